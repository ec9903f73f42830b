"""Layers of maps whose attention is linear in positions, at several scales, as in EfficientViT.

Axes: as the trail makes them; m queries, keys and values of a head, one after the other.
"""

from __future__ import annotations

from symbolic_cost.layers.conv import Activation, Chain, Layer, Maps, Residual, Trail
from symbolic_cost.layers.maps import Mix, deep
from symbolic_cost.ops.conv import conv
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.view import split
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class MultiscaleAttention:
    """Attention whose keys and values are summed before queries see them, also of sums around.

    Args:
        width: of a head.
        kernels: how far the sums around reach; every one has heads of its own.
    """

    width: int
    kernels: tuple[int, ...]

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the layer; the result has the channels of the maps at hand."""
        start = trail.at
        batch, channel, *sides = start.axes
        three, h = trail.new_axis("m", 3), trail.new_axis("h", trail.length(channel) // self.width)
        d = trail.new_axis("d", self.width)
        parts = trail.product(f"{name}.parts", start, (batch, three, h, d, *sides), bias=False)
        scales = [
            parts,
            *(self._around(f"{name}.around{k}", k, parts, trail) for k in self.kernels),
        ]
        seen = [_seen(f"{name}.seen{i}", scale, trail) for i, scale in enumerate(scales)]
        wide = trail.new_axis("c", len(scales) * trail.length(h) * self.width)
        trail.at = seen[0]
        trail.pointwise(f"{name}.join", "copy", *seen[1:], axes=(batch, wide, *sides), laid=(h, d))
        Mix(trail.length(channel), bias=False).declare(f"{name}.out", trail)

    def _around(self, name: str, kernel: int, parts: Maps, trail: Trail) -> Maps:
        """Declare sums around every position, mixed within every part of a head."""
        batch, three, h, d, *sides = parts.axes
        trail.at = Maps(parts.tensor, (batch, d, *sides))
        positions, window = trail.windows(name, kernel, 1, kernel // 2)
        channels, at = f"{three} {h} {d}", " ".join(positions)
        summed = f"{name}.summed[{batch} {channels} {at}]"
        other, single = trail.new_axis("d", self.width), " ".join(trail.window((1, 1)))
        plain = f"{name}.mixed[{batch} {three} {h} {other} {at}]"
        trail.ops += [
            conv(f"{name}.deep", f"{parts}, *w[{channels} {' '.join(window)}] -> {summed}"),
            conv(f"{name}.mix", f"{summed}, *w[{three} {h} {d} {other} {single}] -> {plain}"),
        ]
        laid = (other, *positions)
        return trail.made(f"{name}.same", "copy", plain, axes=parts.axes, laid=laid, to=name)


def _seen(name: str, parts: Maps, trail: Trail) -> Maps:
    """Declare what queries see of keys and values; one more value counts."""
    batch, _, h, d, *sides = parts.axes
    more = trail.new_axis("d", trail.length(d) + 1)
    at = f"{batch} {h} {d} {' '.join(sides)}"
    wide = f"{batch} {h} {more} {' '.join(sides)}"
    result = Maps(name, (batch, h, d, *sides))
    state = f"{name}.state[{batch} {h} {more} {d}]"
    trail.ops += [
        split(f"{name}.split", f"{parts} -> {name}.q[{at}], {name}.k[{at}], {name}.v[{at}]"),
        pointwise(f"{name}.act_q", f"{name}.q[{at}] -> {name}.query[{at}]", "relu"),
        pointwise(f"{name}.act_k", f"{name}.k[{at}] -> {name}.key[{at}]", "relu"),
        pointwise(f"{name}.count", f"{name}.v[{at}] -> {name}.values[{wide}]", "copy", laid=d),
        einsum(f"{name}.sum", f"{name}.values[{wide}], {name}.key[{at}] -> {state}"),
        einsum(f"{name}.see", f"{state}, {name}.query[{at}] -> {name}.wide[{wide}]"),
        pointwise(f"{name}.divide", f"{name}.wide[{wide}] -> {result}", "copy", laid=more),
    ]
    return result


@dataclass(frozen=True)
class Opened:
    """The first half of the channels, opened by the second one."""

    def declare(self, name: str, trail: Trail) -> None:
        batch, channel, *sides = trail.at.axes
        half = trail.new_axis("c", trail.length(channel) // 2)
        axes = (batch, half, *sides)
        trail.pointwise(f"{name}.open", "mul", axes=axes, laid=(channel,))


def gated_around(channels: int, norm: Layer) -> Residual:
    """Return a gated perceptron whose inner features see the positions around before the gate."""
    wide = 8 * channels
    layers: dict[str, Layer] = {"up": Mix(wide), "act": Activation("silu"), "deep": deep(3)}
    layers |= {"gate": Opened(), "down": Mix(channels, bias=False), "norm": norm}
    return Residual(Chain(layers))
