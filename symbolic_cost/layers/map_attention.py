"""Attention of maps that is linear in positions, among patches, or behind convolutions.

Axes: as the trail makes them; p places in a patch, and patches as positions y; one position before
those of a map; m queries, keys and values of a head, one after the other.
"""

from __future__ import annotations

from math import isqrt, prod

from symbolic_cost.errors import InputError
from symbolic_cost.layers.conv import Activation, BatchNorm, Chain, Depthwise, Layer, Maps, Trail
from symbolic_cost.layers.maps import Mix, Residual, attended, deep
from symbolic_cost.layers.upsampling import Grid
from symbolic_cost.ops.declare import conv, einsum, pointwise, softmax, split
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Patchwise:
    """Layers that see a place of a patch in all patches, and no other place.

    Args:
        side: of a patch; maps that patches do not divide are enlarged for these layers.
    """

    side: int
    layers: Chain

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the layers, and what is laid out for them and back."""
        batch, channel, *sides = trail.at.axes
        counts = [-(-trail.length(axis) // self.side) for axis in sides]
        grown = any(trail.length(a) % self.side for a in sides)
        large = tuple(
            trail.new_axis(letter, self.side * count) if grown else axis
            for letter, count, axis in zip("yx", counts, sides, strict=True)
        )
        self._resized(f"{name}.grow", f"{name}.whole", large, trail)
        place, patch = trail.new_axis("p", self.side**2), trail.new_axis("y", counts[0] * counts[1])
        apart = (batch, channel, place, patch)
        trail.pointwise(f"{name}.unfold", "copy", axes=apart, laid=large, to=f"{name}.apart")
        self.layers.declare(name, trail)
        _, channel, *own = trail.at.axes
        whole = (batch, channel, *large)
        trail.pointwise(f"{name}.fold", "copy", axes=whole, laid=own, to=f"{name}.folded")
        self._resized(f"{name}.shrink", f"{name}.small", tuple(sides), trail)

    def _resized(self, name: str, to: str, sides: tuple[str, ...], trail: Trail) -> None:
        batch, channel, *old = trail.at.axes
        if tuple(old) != sides:
            trail.pointwise(name, "interpolate", axes=(batch, channel, *sides), laid=old, to=to)


@dataclass(frozen=True)
class Pooled:
    """Attention in which one share of every position weighs its key, and all see the sum."""

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the layer; positions of the first axis see none of the others."""
        batch, channel, place, there = trail.at.axes
        d = trail.new_axis("c", trail.length(channel))
        shares, rows = (batch, place, there), (batch, d, place, there)
        query = trail.product(f"{name}.q", trail.at, shares, to=f"{name}.query")
        k, v = (trail.product(f"{name}.{letter}", trail.at, rows) for letter in "kv")
        p = Maps(f"{name}.p", shares)
        trail.ops.append(softmax(f"{name}.softmax", f"{query} -> {p}", row=there))
        wk = trail.made(f"{name}.weigh", "mul", k, p, axes=rows, to=f"{name}.wk")
        axes, to = (batch, d, place), f"{name}.s"
        seen = trail.made(f"{name}.sum", "sum", wk, axes=axes, sums=[there], to=to)
        trail.at = trail.made(f"{name}.act", "relu", v, axes=rows, to=f"{name}.a")
        trail.pointwise(f"{name}.mul", "mul", seen, to=f"{name}.c")
        Mix(trail.length(channel)).declare(f"{name}.proj", trail)


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
            if 1 in (trail.length(d), prod(map(trail.length, places)) if part == "k" else 0):
                raise InputError(f"{name}: a sum over one feature or key is no product")
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
