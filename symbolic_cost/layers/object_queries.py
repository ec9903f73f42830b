"""Layers of object queries: what they ask of maps and of each other, and where they look.

Axes: as the trail makes them; h heads, d their width, n places that a query samples.
"""

from math import prod

from symbolic_cost.layers.conv import Maps, Trail, under
from symbolic_cost.layers.maps import attended, plus
from symbolic_cost.ops.declare import softmax
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Conditional:
    """Attention whose queries and keys have a product for their contents and one for their places.

    Of queries among each other both are added; of queries to a map they stand side by side.

    Args:
        attended: tensor aside that is attended to; the queries themselves if empty.
        place: tensor aside, the places of queries, which are added.
        sine: tensor aside, what is side by side with the contents of queries to a map.
        place_seen: tensor aside, the places of what is seen.
    """

    heads: int
    attended: str = ""
    place: str = ""
    sine: str = ""
    place_seen: str = ""

    def declare(self, name: str, trail: Trail) -> None:
        start, aside = trail.at, trail.aside
        batch, channel, *own = start.axes
        h, d = trail.heads(self.heads, trail.length(channel))
        axes = (batch, channel, *map(trail.copy, own))
        seen = aside[self.attended] if self.attended else under(f"{name}.all", start, axes, trail)

        def product(part: str, x: Maps) -> Maps:
            return trail.product(f"{name}.{part}", x, (x.axes[0], *x.axes[2:], h, d))

        def joined(part: str, first: Maps, second: Maps, width: str) -> Maps:
            how, laid = ("add", "") if width == d else ("copy", d)
            axes = (*first.axes[:-1], width)
            return trail.made(f"{name}.{part}", how, first, second, axes=axes, laid=laid.split())

        q, k, v = (product(p, x) for p, x in (("query", start), ("key", seen), ("value", seen)))
        if self.place:
            q = joined("queried", q, product("query_place", aside[self.place]), d)
        if not self.attended:
            place = aside[self.place]
            there = under(f"{name}.there", place, (*place.axes[:2], *seen.axes[2:]), trail)
            k = joined("keyed", k, product("key_place", there), d)
        else:
            far, wide = (
                product("key_place", aside[self.place_seen]),
                trail.new_axis("d", 2 * trail.length(d)),
            )
            k = joined("keyed", k, far, d) if self.place else k
            q = joined("queries", q, product("query_sine", aside[self.sine]), wide)
            k = joined("keys", k, far, wide)
        context = attended(name, trail, q, k, v)
        trail.at = trail.product(f"{name}.proj", context, start.axes, to=name)


@dataclass(frozen=True)
class Sampled:
    """Attention to a few places of every map: where they are and their weights are products.

    The values between positions are interpolated, which no product does.

    Args:
        places: that a head looks at, on all maps together.
        attended: tensor aside whose positions are sampled; those at hand if empty.
        place: tensor aside that is added to queries.
    """

    heads: int
    places: int
    attended: str = ""
    place: str = ""

    def declare(self, name: str, trail: Trail) -> None:
        start = trail.at
        batch, channel, *own = start.axes
        h, d = trail.heads(self.heads, trail.length(channel))
        n, two = trail.new_axis("n", self.places), trail.new_axis("m", 2)
        axes = (batch, channel, *map(trail.copy, own))
        seen = (
            trail.aside[self.attended]
            if self.attended
            else under(f"{name}.all", start, axes, trail)
        )
        asked = plus(f"{name}.asked", start, self.place, trail)
        rows, there = (batch, *own, h), seen.axes[2:]
        points = trail.product(f"{name}.offset", asked, (*rows, n, two), to=f"{name}.offsets")
        scores = trail.product(f"{name}.score", asked, (*rows, n), to=f"{name}.scores")
        value = self._valued(name, seen, (batch, *there, h, d), trail)
        p = Maps(f"{name}.p", (*rows, n))
        trail.ops.append(softmax(f"{name}.softmax", f"{scores} -> {p}", row=n))
        samples = trail.made(
            f"{name}.sample",
            "interpolate",
            value,
            points,
            axes=(*rows, n, d),
            laid=(*there, two),
            to=f"{name}.samples",
        )
        axes, to = (*rows, d), f"{name}.c"
        context = trail.made(f"{name}.weigh", "mul", samples, p, axes=axes, sums=[n], to=to)
        trail.at = self._joined(name, context, start.axes, trail)

    def _valued(self, name: str, seen: Maps, axes: tuple[str, ...], trail: Trail) -> Maps:
        return trail.product(f"{name}.value", seen, axes, to=f"{name}.values")

    def _joined(self, name: str, context: Maps, axes: tuple[str, ...], trail: Trail) -> Maps:
        return trail.product(f"{name}.proj", context, axes, to=name)


@dataclass(frozen=True)
class Looked(Sampled):
    """Attention to a few places of every map, whose values are the map itself."""

    def _valued(self, name: str, seen: Maps, axes: tuple[str, ...], trail: Trail) -> Maps:
        laid, to = [seen.axes[1]], f"{name}.values"
        return trail.made(f"{name}.value", "copy", seen, axes=axes, laid=laid, to=to)

    def _joined(self, name: str, context: Maps, axes: tuple[str, ...], trail: Trail) -> Maps:
        own, laid = f"{name}.joined", context.axes[-2:]
        return trail.made(own, "copy", context, axes=axes, laid=laid, to=name)


@dataclass(frozen=True)
class Gateway:
    """The positions at hand and others aside, each opened by a product of both, added.

    Args:
        title: of the others.
    """

    title: str

    def declare(self, name: str, trail: Trail) -> None:
        start, two = trail.at, trail.new_axis("m", 2)
        batch, channel, *own = start.axes
        other, new = trail.copy(two), trail.copy(channel)
        first = under(f"{name}.first", trail.aside[self.title], start.axes, trail)
        axes = (batch, two, channel, *own)
        both = trail.made(f"{name}.both", "copy", first, start, axes=axes)
        axes = (batch, other, new, *own)
        gates = trail.product(f"{name}.gate", both, axes, to=f"{name}.gates")
        trail.at = trail.made(f"{name}.open", "sigmoid", gates, axes=axes, to=f"{name}.opened")
        same, summed = under(f"{name}.same", both, axes, trail), (batch, new, *own)
        trail.pointwise(f"{name}.weigh", "mul", same, axes=summed, sums=[other], to=f"{name}.sum")
        trail.at = under(name, trail.at, start.axes, trail)


@dataclass(frozen=True)
class Sequence:
    """Maps that stand aside, as positions of one sequence behind each other."""

    titles: tuple[str, ...]

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the sequence; all maps have as many channels."""
        maps = [trail.aside[title] for title in self.titles]
        batch, channel = maps[0].axes[:2]
        places = [
            under(f"{name}.{i}", m, (batch, channel, *m.axes[2:]), trail)
            for i, m in enumerate(maps)
        ]
        length = sum(prod(map(trail.length, m.axes[2:])) for m in maps)
        axes = (batch, channel, trail.new_axis("y", length))
        laid = [axis for m in maps for axis in m.axes[2:]]
        trail.at = trail.made(name, "copy", *places, axes=axes, laid=laid)


@dataclass(frozen=True)
class Levels:
    """Places of positions that are computed, with a learned vector for each of some maps."""

    number: int

    def declare(self, name: str, trail: Trail) -> None:
        batch, channel, *own = axes = trail.at.axes
        level = trail.new_axis("n", self.number)
        sine, samples = f"{channel} {' '.join(own)}", f"!{name}.samples[{batch}]:buffer"
        known = f"!{name}.sine[{sine}]:buffer", f"*table[{level} {channel}]", samples
        trail.at = trail.made(name, "add", *known, axes=axes, laid=[level])


@dataclass(frozen=True)
class Some:
    """So many positions: some of those at hand, or copies of one vector."""

    positions: int

    def declare(self, name: str, trail: Trail) -> None:
        batch, channel, *own = trail.at.axes
        axes = (batch, channel, trail.new_axis("y", self.positions))
        trail.pointwise(name, "copy", axes=axes, laid=own)


@dataclass(frozen=True)
class Chosen(Some):
    """Some of the positions, to which nothing flows back."""

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the choice."""
        Some.declare(self, name, trail)
        trail.at = Maps(name, trail.at.axes, constant=True)


@dataclass(frozen=True)
class Sine:
    """Waves of coordinates, as many as there are channels."""

    channels: int

    def declare(self, name: str, trail: Trail) -> None:
        batch, two, *own = trail.at.axes
        axes = (batch, trail.new_axis("c", self.channels), *own)
        trail.pointwise(name, "angles", axes=axes, laid=[two])


@dataclass(frozen=True)
class Times:
    """The tensor at hand and one aside, multiplied; their channels may have other names."""

    title: str

    def declare(self, name: str, trail: Trail) -> None:
        same = under(f"{name}.same", trail.aside[self.title], trail.at.axes, trail)
        trail.pointwise(name, "mul", same)
