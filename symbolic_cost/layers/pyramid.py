"""Further layers of image networks, for a trail of feature maps.

Axes: as the trail makes them; n positions of a sequence with learned tokens.
"""

from __future__ import annotations

from math import prod

from symbolic_cost.errors import refuse
from symbolic_cost.layers.conv import (
    Activation,
    BatchNorm,
    Chain,
    Layer,
    Maps,
    Padding,
    Sizes,
    Trail,
    under,
)
from symbolic_cost.layers.maps import Mean, Mix, Normed, deep
from symbolic_cost.ops.declare import Role, conv, einsum, lookup, norm, pointwise, softmax, split
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Token:
    """Learned tokens before all positions, which are one sequence from then on."""

    number: int = 1

    def declare(self, name: str, trail: Trail) -> None:
        batch, channel, *sides = trail.at.axes
        length = self.number + prod(map(trail.length, sides))
        own = [trail.new_axis("p", self.number)] if self.number > 1 else []
        axes, token = (batch, channel, trail.new_axis("y", length)), " ".join((channel, *own))
        trail.pointwise(name, "copy", f"*token[{token}]", axes=axes, laid=(*sides, *own))


@dataclass(frozen=True)
class FirstPosition:
    """The first position alone."""

    def declare(self, name: str, trail: Trail) -> None:
        batch, channel, *rest = trail.at.axes
        trail.pointwise(name, "copy", axes=(batch, channel), laid=rest)


@dataclass(frozen=True)
class Squeeze:
    """Factors of all channels, made of their means by two products.

    Args:
        channels: between the products.
        function: between the products.
    """

    channels: int
    function: str = "relu"

    def declare(self, name: str, trail: Trail) -> None:
        start = trail.at
        channel = start.axes[1]
        layers: dict[str, Layer] = {
            "mean": Mean(),
            "reduce": Mix(self.channels),
            "act": Activation(self.function),
        }
        Chain(layers).declare(name, trail)
        axes = (trail.at.axes[0], channel)
        wide = trail.product(f"{name}.expand", trail.at, axes, to=f"{name}.wide")
        opened = trail.made(f"{name}.open", "sigmoid", wide, axes=axes, to=f"{name}.opened")
        trail.at = start
        trail.pointwise(name, "mul", opened)


@dataclass(frozen=True)
class Grouped:
    """A convolution within groups of channels, without a bias.

    Args:
        channels: that come out; as many as come in if zero.
    """

    groups: int
    kernel: Sizes
    stride: int = 1
    padding: Padding = 0
    channels: int = 0

    def declare(self, name: str, trail: Trail) -> None:
        batch, channel, *old = trail.at.axes
        inside, made = trail.length(channel), self.channels or trail.length(channel)
        if inside % self.groups or made % self.groups:
            refuse([f"{name}: {self.groups} groups do not divide {inside} and {made} channels"])
        sizes = self.groups, inside // self.groups, made // self.groups
        g, i, o = (trail.new_axis("g", size) for size in sizes)
        axes = (batch, g, i, *old)
        apart = trail.made(f"{name}.groups", "copy", trail.at, axes=axes, laid=[channel])
        positions, kernel = trail.windows(name, self.kernel, self.stride, self.padding)
        grouped = Maps(f"{name}.apart", (batch, g, o, *positions))
        weight = f"*w[{g} {i} {o} {' '.join(kernel)}]"
        trail.ops.append(conv(f"{name}.conv", f"{apart}, {weight} -> {grouped}"))
        axes = (batch, trail.new_axis("c", made), *positions)
        trail.at = trail.made(name, "copy", grouped, axes=axes, laid=(g, o))


@dataclass(frozen=True)
class Focal:
    """Modulation by what is around a position, near and far.

    Args:
        kernels: of the convolutions that look further and further.
        normed: what is normalised: nothing, or the modulated queries.
    """

    kernels: tuple[int, ...]
    normed: str = ""

    def declare(self, name: str, trail: Trail) -> None:
        start, width = trail.at, trail.length(trail.at.axes[1])
        gates = self._gates(name, trail)
        Mix(width).declare(f"{name}.query", trail)
        query, trail.at = trail.at, start
        Mix(width).declare(f"{name}.context", trail)
        total: Maps | None = None
        for i, (kernel, gate) in enumerate(zip((*self.kernels, 0), gates, strict=True)):
            own = f"{name}.{i}"
            layer = deep(kernel, bias=False) if kernel else Mean()
            axes = trail.at.axes
            Chain({"seen": layer, "act": Activation("gelu")}).declare(own, trail)
            axes = trail.at.axes if kernel else axes
            here = under(f"{own}.gate", gate, (axes[0], *axes[2:]), trail)
            opened = trail.made(f"{own}.opened", "mul", trail.at, here, axes=axes)
            if total is not None:
                before = under(f"{own}.before", total, axes, trail)
                opened = trail.made(f"{own}.sum", "add", before, opened, axes=axes)
            total = opened
        trail.at = total or trail.at
        Mix(width).declare(f"{name}.modulator", trail)
        same = under(f"{name}.same", trail.at, query.axes, trail)
        trail.at = trail.made(f"{name}.modulated", "mul", query, same, axes=query.axes)
        layers = {"norm": Normed()} if self.normed else {}
        Chain({**layers, "proj": Mix(width)}).declare(name, trail)

    def _gates(self, name: str, trail: Trail) -> list[Maps]:
        """Declare a factor of every position for every kernel, and for the mean of all."""
        batch, _, *sides = trail.at.axes
        n = trail.new_axis("n", len(self.kernels) + 1)
        every = trail.product(f"{name}.gates", trail.at, (n, batch, *sides))
        gates = [Maps(f"{name}.of{i}", (batch, *sides)) for i in range(len(self.kernels) + 1)]
        trail.ops.append(split(f"{name}.split", f"{every} -> {', '.join(map(str, gates))}"))
        return gates


def _plain(name: str, x: Maps, axes: tuple[str, ...], trail: Trail) -> Maps:
    """Declare a product of channels without a bias, and a norm of what it makes over the rest."""
    plain = trail.product(f"{name}.linear", x, axes, to=f"{name}.plain", bias=False)
    result, new = Maps(name, axes), " ".join(axis for axis in axes if axis not in x.axes)
    row = " ".join(axis for axis in axes if axis in x.axes)
    pattern = f"{plain}, *scale[{new}], *shift[{new}] -> {result}"
    trail.ops.append(norm(f"{name}.norm", pattern, "batch_norm", row))
    return result


@dataclass(frozen=True)
class Plained:
    """A product of the channels of every position without a bias, and a batch norm.

    Args:
        channels: that come out.
    """

    channels: int

    def declare(self, name: str, trail: Trail) -> None:
        Chain({"linear": Mix(self.channels, bias=False), "norm": BatchNorm()}).declare(name, trail)


@dataclass(frozen=True)
class Biased:
    """Attention with a bias for every distance, batch norms and an activation before the end.

    Args:
        heads: of attention.
        width: of queries and keys of a head.
        ratio: width of values over it.
        channels: that come out.
        stride: between the positions of queries, of which fewer come out.
    """

    heads: int
    width: int
    ratio: int
    channels: int
    stride: int = 1

    def declare(self, name: str, trail: Trail) -> None:
        start = trail.at
        batch, channel, *sides = start.axes
        h = trail.new_axis("h", self.heads, Role.HEAD)
        d, wide = trail.new_axis("d", self.width), trail.new_axis("d", self.ratio * self.width)
        own, seen = self._strided(name, trail), tuple(map(trail.copy, sides))
        keys = under(f"{name}.all", start, (batch, channel, *seen), trail)
        q, k, v = (
            _plain(f"{name}.{part}", x, (batch, *x.axes[2:], h, axis), trail)
            for part, x, axis in (("q", own, d), ("k", keys, d), ("v", keys, wide))
        )
        here, there = " ".join(own.axes[2:]), " ".join(seen)
        offsets = self._offsets(trail.length(sides[0]), trail.length(own.axes[2]))
        table = trail.new_axis(
            "p", offsets * self._offsets(*map(trail.length, (sides[1], own.axes[3])))
        )
        pairs, square = f"{here} {there}", f"[{batch} {h} {here} {there}]"
        bias, scores = f"{name}.bias[{h} {pairs}]", f"{name}.scores{square}"
        context, p = Maps(f"{name}.c", (batch, *own.axes[2:], h, wide)), f"{name}.p{square}"
        trail.ops += [
            lookup(
                f"{name}.table", f"!{name}.buckets[{pairs}]:buffer, *table[{table} {h}] -> {bias}"
            ),
            einsum(f"{name}.scored", f"{q}, {k} -> {scores}"),
            pointwise(f"{name}.add", f"{scores}, {bias} -> {name}.biased{square}", "add"),
            softmax(f"{name}.softmax", f"{name}.biased{square} -> {p}", row=there),
            einsum(f"{name}.attend", f"{p}, {v} -> {context}"),
        ]
        active = trail.made(f"{name}.act", "silu", context, axes=context.axes, to=f"{name}.a")
        new = trail.new_axis("c", self.channels)
        trail.at = _plain(f"{name}.proj", active, (batch, *own.axes[2:], new), trail)
        trail.pointwise(name, "copy", axes=(batch, new, *own.axes[2:]))

    def _strided(self, name: str, trail: Trail) -> Maps:
        """Declare the positions of queries."""
        if self.stride == 1:
            return trail.at
        batch, channel, *sides = trail.at.axes
        new = [trail.new_axis(a[0], -(-trail.length(a) // self.stride)) for a in sides]
        axes = (batch, channel, *new)
        return trail.made(f"{name}.some", "copy", trail.at, axes=axes, laid=sides)

    def _offsets(self, keys: int, queries: int) -> int:
        """Return how many distances there are along a side."""
        return len({abs(i * self.stride - j) for i in range(queries) for j in range(keys)})
