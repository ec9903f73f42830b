"""Layers of maps whose positions are told by vectors of queries.

Axes: as the trail makes them; n masks.
"""

from typing import ClassVar

from symbolic_cost.layers.conv import Maps, Trail, under
from symbolic_cost.ops.declare import einsum, softmax
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Coordinates:
    """Waves of the two coordinates of every position of the map at hand, of learned frequencies."""

    channels: int
    frequencies: ClassVar[str] = "*w[{1}]"

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the waves, which are the same for all samples."""
        sides = trail.at.axes[2:]
        two, half = trail.new_axis("m", 2), trail.new_axis("c", self.channels // 2)
        wide = trail.new_axis("c", self.channels)
        turned = Maps(f"{name}.turned", (half, *sides))
        grid = f"!{name}.grid[{' '.join(sides)} {two}]:buffer"
        known = self.frequencies.format(name, f"{two} {half}")
        trail.ops.append(einsum(f"{name}.turn", f"{grid}, {known} -> {turned}"))
        trail.at = trail.made(name, "angles", turned, axes=(wide, *sides), laid=[half])


@dataclass(frozen=True)
class Waves(Coordinates):
    """Waves of the two coordinates of every position of the map at hand, of fixed frequencies."""

    frequencies: ClassVar[str] = "!{0}.frequencies[{1}]:buffer"


@dataclass(frozen=True)
class Points:
    """Waves of the coordinates of some points, and a learned vector for those that are none."""

    number: int
    channels: int

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the vectors of every sample."""
        batch, two = trail.at.axes[0], trail.new_axis("m", 2)
        half, wide = trail.new_axis("c", self.channels // 2), trail.new_axis("c", self.channels)
        y = trail.new_axis("y", self.number)
        turned, axes = Maps(f"{name}.turned", (batch, half, y)), (batch, wide, y)
        points = f"!{name}.points[{batch} {y} {two}]:buffer"
        known = Waves.frequencies.format(name, f"{two} {half}")
        trail.ops.append(einsum(f"{name}.turn", f"{points}, {known} -> {turned}"))
        trail.at = trail.made(name, "angles", turned, f"*none[{wide}]", axes=axes, laid=[half])


@dataclass(frozen=True)
class Masks:
    """Products of vectors with every position of the map at hand.

    Args:
        titles: tensors aside: vectors of a sample, or vectors of many queries.
    """

    titles: tuple[str, ...]

    def declare(self, name: str, trail: Trail) -> None:
        at, vectors = trail.at, [trail.aside[title] for title in self.titles]
        batch, channel, *sides = at.axes
        of_queries, own = len(vectors[0].axes) == _OF_QUERIES, f"{name}.vectors"
        n = vectors[0].axes[2] if of_queries else trail.new_axis("n", len(vectors))
        axes, laid = (batch, channel, n), [v.axes[1] for v in vectors]
        if of_queries:
            many = under(own, vectors[0], axes, trail)
        else:
            many = trail.made(own, "copy", *vectors, axes=axes, laid=laid)
        result = Maps(name, (batch, n, *sides))
        trail.add(einsum(f"{name}.product", f"{at}, {many} -> {result}"), result)


@dataclass(frozen=True)
class Stacked:
    """The map at hand so many times, one below the other."""

    times: int

    def declare(self, name: str, trail: Trail) -> None:
        batch, channel, y, x = trail.at.axes
        tall = trail.new_axis("y", self.times * trail.length(y))
        trail.pointwise(name, "copy", axes=(batch, channel, tall, x), laid=[y])


@dataclass(frozen=True)
class Heatmaps:
    """Where the queries at hand look in a map aside: a channel of each head, query below query."""

    heads: int
    seen: str

    def declare(self, name: str, trail: Trail) -> None:
        seen, (batch, channel, n) = trail.aside[self.seen], trail.at.axes
        y, x = seen.axes[2:]
        # Every rank needs all heads, whose maps are channels of one convolution.
        h = trail.new_axis("m", self.heads)
        d = trail.new_axis("d", trail.length(channel) // self.heads)
        q = trail.product(f"{name}.query", trail.at, (batch, n, h, d), to=f"{name}.q")
        k = trail.product(f"{name}.key", seen, (batch, y, x, h, d), to=f"{name}.k")
        square = f"[{batch} {h} {n} {y} {x}]"
        scores, shares = f"{name}.scores{square}", f"{name}.p{square}"
        trail.ops.append(einsum(f"{name}.scored", f"{q}, {k} -> {scores}"))
        trail.ops.append(softmax(f"{name}.softmax", f"{scores} -> {shares}", row=f"{y} {x}"))
        tall = trail.new_axis("y", trail.length(n) * trail.length(y))
        axes = (batch, trail.new_axis("c", self.heads), tall, x)
        trail.at = trail.made(name, "copy", shares, axes=axes, laid=[h, n, y])


_OF_QUERIES = 3
"""Axes of vectors of many queries: samples, channels, queries."""


@dataclass(frozen=True)
class Scalar:
    """A learned number, added to all or multiplied with all.

    Args:
        function: "add" or "mul".
        shared: name of it, where other layers have the same.
    """

    function: str = "add"
    shared: str = ""

    def declare(self, name: str, trail: Trail) -> None:
        one, own = trail.new_axis("n", 1), f"@{self.shared}." if self.shared else ""
        trail.pointwise(name, self.function, f"*{own}number[{one}]", laid=[one])
