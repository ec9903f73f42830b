"""Attention whose queries, keys and values are convolved before their products.

Axes: as the trail makes them; y positions, one before them that is no part of the map.
"""

from math import isqrt

from symbolic_cost.layers.conv import BatchNorm, Chain, Depthwise, Layer, Maps, Trail
from symbolic_cost.layers.maps import attended
from symbolic_cost.layers.upsampling import Grid
from symbolic_cost.ops.declare import einsum, pointwise
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Projected:
    """Attention of a map, or of a sequence of a token and a square map.

    Args:
        kernel: of all convolutions.
        stride: of those of keys and values.
        padding: of those of keys and values; that of queries keeps the map.
        bias: whether query, key and value have one.
    """

    heads: int
    kernel: int
    stride: int
    padding: int
    bias: bool = True

    def declare(self, name: str, trail: Trail) -> None:
        start = trail.at
        batch, channel, *own = start.axes
        h, d = trail.heads(self.heads, trail.length(channel))
        bias = f" + *bias[{h} {d}]" if self.bias else ""
        made: dict[str, Maps] = {}
        for part, (stride, pad) in {
            "q": (1, self.kernel // 2),
            "k": (self.stride, self.padding),
            "v": (self.stride, self.padding),
        }.items():
            trail.at = start
            self._convolved(f"{name}.{part}", trail, stride, pad)
            if part == "v":  # values lie where keys do
                places = made["k"].axes[1:-2]
            else:
                places = trail.at.axes[2:] if part == "k" else tuple(own)
            taken = Maps(trail.at.tensor, trail.at.axes)
            if part == "v" or (part == "q" and taken.axes[2:] != places):
                same = Maps(f"{name}.{part}_same", (batch, channel, *places))
                laid = " ".join(a for a in taken.axes[2:])
                trail.ops.append(pointwise(same.tensor, f"{taken} -> {same}", "copy", laid=laid))
                taken = same
            made[part] = Maps(f"{name}.{part}", (batch, *places, h, d))
            weight = f"*w[{channel} {h} {d}]{bias}"
            trail.ops.append(einsum(f"{name}.{part}_of", f"{taken}, {weight} -> {made[part]}"))
        context = attended(name, trail, *(str(made[part]) for part in "qkv"))
        result = Maps(name, start.axes)
        out = f"*w[{h} {d} {channel}] + *bias[{channel}]"
        trail.add(einsum(f"{name}.proj", f"{context}, {out} -> {result}"), result)

    def _convolved(self, name: str, trail: Trail, stride: int, padding: int) -> None:
        """Declare a convolution of the map, and the token before what it gives, if there is one."""
        sequence = trail.at if len(trail.at.axes) == _FLAT else None
        layers: dict[str, Layer] = {}
        if sequence is not None:
            side = isqrt(trail.length(sequence.axes[2]) - 1)
            layers["grid"] = Grid(side, side)
        layers["conv"] = Depthwise(self.kernel, stride, padding, bias=False)
        Chain(layers | {"norm": BatchNorm()}).declare(name, trail)
        if sequence is None:
            return
        batch, channel, *sides = trail.at.axes
        length = 1
        for side_axis in sides:
            length *= trail.length(side_axis)
        row = trail.new_axis("y", length + 1)
        laid = " ".join((*sides, sequence.axes[2]))
        result = Maps(f"{name}.all", (batch, channel, row))
        pattern = f"{trail.at}, {sequence} -> {result}"
        trail.add(pointwise(result.tensor, pattern, "copy", laid=laid), result)


_FLAT = 3
"""Axes of a sequence: samples, channels, positions."""
