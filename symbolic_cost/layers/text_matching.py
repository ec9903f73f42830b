"""Layers of images and texts that are compared, patch by patch.

Axes: as the trail makes them; v rows of a table, b_all all images of a batch.
"""

from sympy import Expr

from symbolic_cost.axes import Axis, Role
from symbolic_cost.layers.conv import Maps, Trail, under
from symbolic_cost.layers.maps import Mix
from symbolic_cost.ops.declare import einsum, lookup, norm, softmax, unread, view
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Words:
    """The embedding of texts, with a learned vector for every position.

    Args:
        vocabulary: rows of the table of words.
        places: rows of the table of positions.
        length: of a text.
    """

    vocabulary: int
    places: int
    width: int
    length: Expr

    def declare(self, name: str, trail: Trail) -> None:
        batch, y = trail.at.axes[0], trail.new_axis("y", self.length)
        channel, v = trail.new_axis("c", self.width), trail.new_axis("v", self.vocabulary)
        rows, words = trail.new_axis("p", self.places), Maps(f"{name}.word", (batch, channel, y))
        table = f"!{name}.ids[{batch} {y}]:index, *table[{v} {channel}]"
        near = f"{name}.near[{y} {channel}]"
        places = f"!{name}.places[{y}]:buffer, *table[{rows} {channel}] -> {near}"
        trail.add(lookup(f"{name}.words", f"{table} -> {words}"), words)
        trail.ops.append(lookup(f"{name}.position", places))
        trail.pointwise(f"{name}.add", "add", near, to=f"{name}.placed")


@dataclass(frozen=True)
class ScaledByFirst:
    """Every position behind the first one, times the first one."""

    def declare(self, name: str, trail: Trail) -> None:
        batch, channel, old = trail.at.axes
        axes = (batch, channel, trail.new_axis("y", trail.sizes[old] - 1))
        trail.pointwise(name, "mul", axes=axes, laid=[old])


@dataclass(frozen=True)
class Unit:
    """Channels divided by their length."""

    def declare(self, name: str, trail: Trail) -> None:
        at, result = trail.at, Maps(name, trail.at.axes)
        trail.add(norm(name, f"{at} -> {result}", "rms_norm_bare", at.axes[1]), result)


@dataclass(frozen=True)
class Compared:
    """A vector of a text aside, with all images of a batch: what nothing takes."""

    title: str

    def declare(self, name: str, trail: Trail) -> None:
        (batch, _), text = trail.at.axes, trail.aside[self.title]
        every = trail.new_axis("n", trail.sizes[batch])
        trail.roles[every] = Axis(every, Role.BATCH, "all")
        others = Maps(f"{name}.others", (every, text.axes[1]))
        pattern = f"{text}, {others} -> {name}[{batch} {every}]"
        view_of = view(others.tensor, f"{trail.at} -> {others}")
        trail.ops += unread((view_of, einsum(name, pattern)))


@dataclass(frozen=True)
class Matched:
    """Products of every position with a vector of a text aside."""

    title: str

    def declare(self, name: str, trail: Trail) -> None:
        (batch, channel, y), text = trail.at.axes, trail.aside[self.title]
        same = under(f"{name}.text", text, (batch, channel), trail)
        result = Maps(name, (batch, y))
        trail.add(einsum(name, f"{trail.at}, {same} -> {result}"), result)


@dataclass(frozen=True)
class Filmed:
    """Channels scaled and shifted by what two products make of a vector aside."""

    title: str

    def declare(self, name: str, trail: Trail) -> None:
        batch, channel, *_ = trail.at.axes
        for part, how in (("scale", "mul"), ("shift", "add")):
            at, trail.at = trail.at, trail.aside[self.title]
            Mix(trail.length(channel)).declare(f"{name}.{part}", trail)
            same = under(f"{name}.{part}.same", trail.at, (batch, channel), trail)
            trail.at = at
            trail.pointwise(f"{name}.{how}", how, same)


@dataclass(frozen=True)
class Typed:
    """A row of a small table for every position, added."""

    rows: int

    def declare(self, name: str, trail: Trail) -> None:
        rows = trail.new_axis("p", self.rows)
        trail.pointwise(name, "add", f"*table[{rows} {trail.at.axes[1]}]", laid=[rows])


@dataclass(frozen=True)
class Behind:
    """The positions at hand behind those of a sequence aside."""

    title: str

    def declare(self, name: str, trail: Trail) -> None:
        batch, channel, old = trail.at.axes
        first = trail.aside[self.title]
        length = trail.sizes[old] + trail.sizes[first.axes[2]]
        axes = (batch, channel, trail.new_axis("y", length))
        same = under(f"{name}.first", first, (batch, channel, first.axes[2]), trail)
        trail.pointwise(name, "copy", same, axes=axes, laid=(old, first.axes[2]))


@dataclass(frozen=True)
class Meeting:
    """Attention of the positions at hand to a text aside and of the text to them, of one product.

    Both are added to what they come from, each by a learned factor of every channel.

    Args:
        width: of all heads together.
        title: of the text, which becomes what it is made.
    """

    heads: int
    width: int
    title: str

    def declare(self, name: str, trail: Trail) -> None:
        image, text = trail.at, trail.aside[self.title]
        h, d = trail.heads(self.heads, self.width)
        batch, y, t = image.axes[0], image.axes[2], text.axes[2]
        q, k, seen, told = (
            trail.product(f"{name}.{part}", x, (batch, x.axes[2], h, d))
            for part, x in (("q", image), ("k", text), ("seen", image), ("told", text))
        )
        square = f"[{batch} {h} {y} {t}]"
        trail.ops.append(einsum(f"{name}.scored", f"{q}, {k} -> {name}.scores{square}"))
        ways = {"image": (image, told, t), "text": (text, seen, y)}
        for part, (x, value, row) in ways.items():
            own = f"{name}.{part}"
            p, context = f"{own}.p{square}", Maps(f"{own}.c", (batch, x.axes[2], h, d))
            trail.ops += [
                softmax(f"{own}.softmax", f"{name}.scores{square} -> {p}", row=row),
                einsum(f"{own}.attend", f"{p}, {value} -> {context}"),
            ]
            trail.at = trail.product(f"{own}.proj", context, x.axes)
            trail.pointwise(f"{own}.scale", "mul", f"*scale[{x.axes[1]}]", to=f"{own}.scaled")
            result = trail.made(f"{own}.sum", "add", x, trail.at, axes=x.axes)
            ways[part] = (result, value, row)
        trail.at, trail.aside[self.title] = ways["image"][0], ways["text"][0]
