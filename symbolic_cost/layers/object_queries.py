"""Layers of object queries: what they ask of maps and of each other, and where they look.

Axes: as the trail makes them; h heads, d their width, n places that a query samples.
"""

from symbolic_cost.layers.conv import Maps, Trail, under
from symbolic_cost.layers.maps import attended, plus
from symbolic_cost.ops.declare import Op, einsum, pointwise, softmax, view
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
            result = Maps(f"{name}.{part}", (x.axes[0], *x.axes[2:], h, d))
            weight = f"*w[{x.axes[1]} {h} {d}] + *bias[{h} {d}]"
            trail.ops.append(einsum(result.tensor, f"{x}, {weight} -> {result}"))
            return result

        def joined(part: str, first: Maps, second: Maps, width: str) -> Maps:
            result = Maps(f"{name}.{part}", (*first.axes[:-1], width))
            how, laid = ("add", "") if width == d else ("copy", d)
            pattern = f"{first}, {second} -> {result}"
            trail.ops.append(pointwise(result.tensor, pattern, how, laid=laid))
            return result

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
        context = attended(name, trail, str(q), str(k), str(v))
        result = Maps(name, start.axes)
        out = f"*w[{h} {d} {channel}] + *bias[{channel}]"
        trail.add(einsum(f"{name}.proj", f"{context}, {out} -> {result}"), result)


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
        asked, here = plus(f"{name}.asked", start, self.place, trail), " ".join(own)
        there = " ".join(seen.axes[2:])
        rows, points = f"{batch} {here} {h}", f"{n} {two}"
        value = f"{name}.values[{batch} {there} {h} {d}]"
        offsets, scores, p = (
            f"{name}.{part}[{rows} {axes}]"
            for part, axes in (("offsets", points), ("scores", n), ("p", n))
        )
        samples, context = f"{name}.samples[{rows} {n} {d}]", f"{name}.c[{rows} {d}]"
        trail.ops += [
            *(_product(name, *of) for of in (("offset", asked, offsets), ("score", asked, scores))),
            self._valued(name, seen, value),
            softmax(f"{name}.softmax", f"{scores} -> {p}", row=n),
            pointwise(
                f"{name}.sample",
                f"{value}, {offsets} -> {samples}",
                "interpolate",
                laid=f"{there} {two}",
            ),
            pointwise(f"{name}.weigh", f"{samples}, {p} -> {context}", "mul", sums=n),
        ]
        result = Maps(name, start.axes)
        trail.add(self._joined(name, context, result), result)

    def _valued(self, name: str, seen: Maps, value: str) -> Op:
        return _product(name, "value", seen, value)

    def _joined(self, name: str, context: str, result: Maps) -> Op:
        out = f"*w[{' '.join(_heads(context))} {result.axes[1]}] + *bias[{result.axes[1]}]"
        return einsum(f"{name}.proj", f"{context}, {out} -> {result}")


@dataclass(frozen=True)
class Looked(Sampled):
    """Attention to a few places of every map, whose values are the map itself."""

    def _valued(self, name: str, seen: Maps, value: str) -> Op:
        return pointwise(f"{name}.value", f"{seen} -> {value}", "copy", laid=seen.axes[1])

    def _joined(self, name: str, context: str, result: Maps) -> Op:
        laid = " ".join(_heads(context))
        return pointwise(f"{name}.joined", f"{context} -> {result}", "copy", laid=laid)


def _product(name: str, part: str, x: Maps, result: str) -> Op:
    """Declare a product of channels, with a bias, to the axes of a result behind its positions."""
    made = " ".join(result.partition("[")[2].removesuffix("]").split()[len(x.axes) - 1 :])
    weight = f"*w[{x.axes[1]} {made}] + *bias[{made}]"
    return einsum(f"{name}.{part}", f"{x}, {weight} -> {result}")


def _heads(tensor: str) -> list[str]:
    """Return the axes of heads and their widths, the last of a tensor."""
    return tensor.removesuffix("]").split()[-2:]


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
        both = Maps(f"{name}.both", (batch, two, channel, *own))
        gates, opened = (
            Maps(f"{name}.{part}", (batch, other, new, *own)) for part in ("gates", "opened")
        )
        same, result = Maps(f"{name}.same", gates.axes), Maps(name, start.axes)
        summed = Maps(f"{name}.sum", (batch, new, *own))
        weight = f"*w[{two} {channel} {other} {new}] + *bias[{other} {new}]"
        trail.ops += [
            pointwise(f"{name}.both", f"{first}, {start} -> {both}", "copy"),
            einsum(f"{name}.gate", f"{both}, {weight} -> {gates}"),
            pointwise(f"{name}.open", f"{gates} -> {opened}", "sigmoid"),
            view(f"{name}.same", f"{both} -> {same}"),
            pointwise(f"{name}.weigh", f"{opened}, {same} -> {summed}", "mul", sums=other),
        ]
        trail.add(view(name, f"{summed} -> {result}"), result)


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
        length = 0
        for m in maps:
            number = 1
            for axis in m.axes[2:]:
                number *= trail.length(axis)
            length += number
        result = Maps(name, (batch, channel, trail.new_axis("y", length)))
        pattern = f"{', '.join(map(str, places))} -> {result}"
        laid = " ".join(axis for m in maps for axis in m.axes[2:])
        trail.add(pointwise(name, pattern, "copy", laid=laid), result)


@dataclass(frozen=True)
class Levels:
    """Places of positions that are computed, with a learned vector for each of some maps."""

    number: int

    def declare(self, name: str, trail: Trail) -> None:
        _, channel, *own = trail.at.axes
        level, result = trail.new_axis("n", self.number), Maps(name, trail.at.axes)
        table = f"!{name}.sine[{channel} {' '.join(own)}]:buffer, *table[{level} {channel}]"
        batch = f"!{name}.samples[{trail.at.axes[0]}]:buffer"
        trail.add(pointwise(name, f"{table}, {batch} -> {result}", "add", laid=level), result)


@dataclass(frozen=True)
class Some:
    """Some of the positions."""

    positions: int

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the choice."""
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
