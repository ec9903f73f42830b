"""Attention whose queries, keys and values are convolved before their products.

Axes: as the trail makes them; y positions, one before them that is no part of the map.
"""

from math import isqrt, prod

from symbolic_cost.layers.conv import BatchNorm, Chain, Depthwise, Layer, Maps, Trail
from symbolic_cost.layers.maps import attended
from symbolic_cost.layers.upsampling import Grid
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
            old = trail.at.axes[2:]
            if part == "v" or (part == "q" and old != places):
                axes = (batch, channel, *places)
                trail.pointwise(f"{name}.{part}_same", "copy", axes=axes, laid=old)
            axes, to = (batch, *places, h, d), f"{name}.{part}"
            made[part] = trail.product(f"{to}_of", trail.at, axes, to=to, bias=self.bias)
        context = attended(name, trail, *made.values())
        trail.at = trail.product(f"{name}.proj", context, start.axes, to=name)

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
        row, laid = prod(map(trail.length, sides)) + 1, (*sides, sequence.axes[2])
        axes = (batch, channel, trail.new_axis("y", row))
        trail.pointwise(f"{name}.all", "copy", sequence, axes=axes, laid=laid)


_FLAT = 3
"""Axes of a sequence: samples, channels, positions."""
