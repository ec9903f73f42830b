"""Attention of the positions of a map inside of windows, and of all with biases of their distances.

Axes: as the trail makes them; n windows, l and t positions of one, or y and x; p rows of a table of
distances, s queries of which the largest one is left.
"""

from math import prod

from symbolic_cost.errors import InputError
from symbolic_cost.layers.conv import Maps, Trail, under
from symbolic_cost.ops.declare import (
    Op,
    einsum,
    lookup,
    norm,
    pointwise,
    pool,
    softmax,
    unread,
    view,
)
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Windowed:
    """Attention inside of windows, with a learned bias per distance.

    Args:
        side: of a window, where the map is larger.
        least: side of a window at least, to which smaller maps are padded.
        channels: that come out; as many as come in if zero.
        bias: whether query, key and value have one.
        computed: width of the perceptron that makes the biases of distances and goes with
            scores of cosines and keys without a bias; a table holds them if zero.
    """

    heads: int
    side: int
    bias: bool = True
    computed: int = 0
    least: int = 0
    channels: int = 0

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the layer; maps that windows do not divide are padded.

        Raises:
            InputError: there are no two axes of positions.
        """
        start = trail.at
        batch, channel, *sides = start.axes
        if len(sides) != len("yx"):
            raise InputError(f"{name}: windows lie on maps, of two axes and not {len(sides)}")
        lengths = [trail.length(axis) for axis in sides]
        side = max(min(self.side, *lengths), self.least)
        n = trail.new_axis("n", prod(-(-length // side) for length in lengths))
        l, t = trail.new_axis("l", side**2), trail.new_axis("t", side**2)
        h, d = trail.heads(self.heads, trail.length(channel))
        axes, to = (batch, n, l, channel), f"{name}.part"
        part = trail.made(f"{name}.windows", "copy", start, axes=axes, laid=sides, to=to)
        rows, there = (f"{batch} {n} {x} {h} {d}" for x in (l, t))
        for letter in "qkv":
            self._projected(name, letter, part, (batch, n, l, h, d), trail)
        trail.ops += [
            *(view(f"{name}.{x}", f"{name}.{x[0]}[{rows}] -> {name}.{x}[{there}]") for x in _SEEN),
            *self._distances(name, trail, h, f"{l} {t}"),
            *self._core(name, rows, there),
        ]
        context = Maps(f"{name}.c", (batch, n, l, h, d))
        new = trail.new_axis("c", self.channels or trail.length(channel))
        done = (batch, n, l, new)
        trail.at = trail.product(f"{name}.proj", context, done, to=f"{name}.done")
        trail.pointwise(f"{name}.back", "copy", axes=(batch, new, *sides), laid=(n, l), to=name)

    def _projected(
        self, name: str, letter: str, part: Maps, rows: tuple[str, ...], trail: Trail
    ) -> None:
        """Declare queries, keys or values; for cosines the first two are of length one."""
        cosine = self.computed and letter != "v"
        bias = self.bias and not (cosine and letter == "k")
        own, to = f"{name}.{letter}", f"{name}.plain_{letter}" if cosine else ""
        plain = trail.product(own, part, rows, to=to, bias=bias)
        if cosine:
            unit = norm(
                f"{name}.unit_{letter}", f"{plain} -> {Maps(own, rows)}", "rms_norm_bare", rows[-1]
            )
            trail.ops.append(unit)

    def _distances(self, name: str, trail: Trail, h: str, pairs: str) -> tuple[Op, ...]:
        rows = trail.new_axis("p", (2 * self.side - 1) ** 2)
        bias = f"{name}.bias[{h} {pairs}]"
        if not self.computed:
            pattern = f"!{name}.buckets[{pairs}]:buffer, *table[{rows} {h}] -> {bias}"
            return (lookup(f"{name}.table", pattern),)
        two, wide = trail.new_axis("m", 2), trail.new_axis("f", self.computed)
        first = f"!{name}.distances[{rows} {two}]:buffer, *w[{two} {wide}] + *bias[{wide}]"
        u, a = (f"{name}.of_{x}[{rows} {wide}]" for x in "ua")
        of_all = f"{name}.of_all[{rows} {h}]"
        return (
            einsum(f"{name}.fc1", f"{first} -> {u}"),
            pointwise(f"{name}.relu", f"{u} -> {a}", "relu"),
            einsum(f"{name}.fc2", f"{a}, *w[{wide} {h}] -> {of_all}"),
            pointwise(f"{name}.spread", f"{of_all} -> {bias}", "sigmoid", laid=rows),
        )

    def _core(self, name: str, rows: str, there: str) -> tuple[Op, ...]:
        batch, n, l, h, _ = rows.split()
        t = there.split()[2]
        square = f"[{batch} {n} {h} {l} {t}]"
        plain = f"{name}.{'plain' if self.computed else 'scores'}{square}"
        scores, biased, p = (f"{name}.{x}{square}" for x in ("scores", "biased", "p"))
        scaled = pointwise(f"{name}.scale", f"{plain}, *scale[{h}] -> {scores}", "mul")
        return (
            einsum(f"{name}.scored", f"{name}.q[{rows}], {name}.keys[{there}] -> {plain}"),
            *((scaled,) if self.computed else ()),
            pointwise(f"{name}.add", f"{scores}, {name}.bias[{h} {l} {t}] -> {biased}", "add"),
            softmax(f"{name}.softmax", f"{biased} -> {p}", row=t),
            einsum(f"{name}.attend", f"{p}, {name}.values[{there}] -> {name}.c[{rows}]"),
        )


@dataclass(frozen=True)
class Looked(Windowed):
    """Attention inside of windows whose biases are looked up by products with ones and zeros."""

    def _distances(self, name: str, trail: Trail, h: str, pairs: str) -> tuple[Op, ...]:
        far = [trail.new_axis("p", 2 * self.side - 1) for _ in "yx"]
        y, x, y_seen, x_seen = (trail.new_axis("w", self.side) for _ in range(4))
        rows = f"{name}.rows[{h} {y} {y_seen} {far[1]}]"
        table = f"*table[{h} {' '.join(far)}], !{name}.ones_y[{y} {y_seen} {far[0]}]:buffer"
        ones = f"!{name}.ones_x[{x} {x_seen} {far[1]}]:buffer"
        four = f"{name}.four[{h} {y} {x} {y_seen} {x_seen}]"
        laid = f"{y} {x} {y_seen} {x_seen}"
        return (
            einsum(f"{name}.along_y", f"{table} -> {rows}"),
            einsum(f"{name}.along_x", f"{rows}, {ones} -> {four}"),
            pointwise(f"{name}.bias", f"{four} -> {name}.bias[{h} {pairs}]", "copy", laid=laid),
        )


_SEEN = ("keys", "values")


@dataclass(frozen=True)
class Decomposed:
    """Attention whose scores get the product of a query with vectors of both distances.

    Args:
        side: of a window, whose maps are padded; 0 for the whole map.
        bias: whether query, key and value have one.
        distances: whether there are vectors of distances.
    """

    heads: int
    side: int = 0
    bias: bool = True
    distances: bool = True

    def declare(self, name: str, trail: Trail) -> None:
        start = trail.at
        batch, channel, *sides = start.axes
        rows, taken = self._windows(name, trail)
        h, d = trail.heads(self.heads, trail.length(channel))
        outer, here = rows[:-2], rows[-2:]
        there = tuple(map(trail.copy, here))
        q, k, v = (
            trail.product(f"{name}.{x}", taken, (*rows, h, d), bias=self.bias) for x in "qkv"
        )
        key = under(f"{name}.keys", k, (*outer, *there, h, d), trail)
        value = under(f"{name}.values", v, key.axes, trail)
        square = (*outer, h, *here, *there)
        scores, p = (Maps(f"{name}.{x}", square) for x in ("scores", "p"))
        trail.ops.append(einsum(f"{name}.scored", f"{q}, {key} -> {scores}"))
        if self.distances:
            biases = [
                self._distances(f"{name}.{a[0]}", trail, q, (*outer, h, *here, b), a)
                for a, b in zip(here, there, strict=True)
            ]
            added = f"{name}.biased"
            scores = trail.made(f"{name}.add", "add", scores, *biases, axes=square, to=added)
        context = Maps(f"{name}.c", q.axes)
        trail.ops += [
            softmax(f"{name}.softmax", f"{scores} -> {p}", row=" ".join(there)),
            einsum(f"{name}.attend", f"{p}, {value} -> {context}"),
        ]
        new = trail.new_axis("c", trail.length(channel))
        done = (batch, new, *rows[1:])
        trail.at = trail.product(f"{name}.proj", context, done, to=f"{name}.done")
        axes = (batch, new, *sides)
        laid = () if done == axes else rows[1:]
        trail.pointwise(f"{name}.back", "copy", axes=axes, laid=laid, to=name)

    def _windows(self, name: str, trail: Trail) -> tuple[tuple[str, ...], Maps]:
        """Declare windows; return the axes of their positions, the batch first, and the windows."""
        batch, channel, *sides = trail.at.axes
        if not self.side:
            return (batch, *sides), trail.at
        n = trail.new_axis("n", prod(-(-trail.length(axis) // self.side) for axis in sides))
        y, x = (trail.new_axis(letter, self.side) for letter in "yx")
        own, axes = f"{name}.windows", (batch, channel, n, y, x)
        part = trail.made(own, "copy", trail.at, axes=axes, laid=sides, to=f"{name}.part")
        return (batch, n, y, x), part

    def _distances(
        self, name: str, trail: Trail, q: Maps, axes: tuple[str, ...], here: str
    ) -> Maps:
        """Declare the products of queries with vectors of distances along a side."""
        there, d = axes[-1], q.axes[-1]
        rows = trail.new_axis("p", 2 * trail.length(here) - 1)
        vectors, bias = f"{name}_vectors[{here} {there} {d}]", Maps(f"{name}_bias", axes)
        pattern = f"!{name}_rows[{here} {there}]:buffer, *table[{rows} {d}] -> {vectors}"
        trail.ops += [
            lookup(f"{name}_table", pattern),
            einsum(f"{name}_distance", f"{q}, {vectors} -> {bias}"),
        ]
        return bias


@dataclass(frozen=True)
class Units:
    """Attention inside of units, as Hiera's.

    Args:
        width: of all heads together, and of the result.
        queries: of a unit; those of all positions if zero.
        step: by which queries leave fewer positions on every side.
    """

    heads: int
    width: int
    queries: int = 0
    step: int = 1

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the layer."""
        start = trail.at
        batch, channel, *sides = start.axes
        units, each, left_over = self._counts([trail.length(side) for side in sides])
        n, t, s = (
            trail.new_axis(x, size) for x, size in (("n", units), ("t", each), ("s", self.step**2))
        )
        l = trail.new_axis("l", left_over)
        h, d = trail.heads(self.heads, self.width)
        axes, to = (batch, n, t, channel), f"{name}.part"
        part = trail.made(f"{name}.units", "copy", start, axes=axes, laid=sides, to=to)
        heads = (batch, n, t, h, d)
        asked, k, v = (trail.product(f"{name}.{x}", part, heads, to=f"{name}.{x}_") for x in "qkv")
        trail.ops += self._further(name, trail, asked, k)
        q, context = (Maps(f"{name}.{x}", (batch, n, l, h, d)) for x in "qc")
        if self.step > 1:
            trail.ops.append(pool(f"{name}.most", f"{asked} -> {q}", "max_pool", s))
        else:
            trail.ops.append(view(f"{name}.asked", f"{asked} -> {q}"))
        square = f"[{batch} {n} {h} {l} {t}]"
        new = trail.new_axis("c", self.width)
        trail.ops += [
            einsum(f"{name}.scored", f"{q}, {k} -> {name}.scores{square}"),
            softmax(f"{name}.softmax", f"{name}.scores{square} -> {name}.p{square}", row=t),
            einsum(f"{name}.attend", f"{name}.p{square}, {v} -> {context}"),
        ]
        done = (batch, n, l, new)
        trail.at = trail.product(f"{name}.proj", context, done, to=f"{name}.done")
        left = [trail.new_axis(a[0], trail.length(a) // self.step) for a in sides]
        whole = (batch, new, *(left if self.step > 1 else sides))
        trail.pointwise(f"{name}.back", "copy", axes=whole, laid=(n, l), to=name)

    def _counts(self, sides: list[int]) -> tuple[int, int, int]:
        """Return the units of a map, and positions and queries of each."""
        each = self.queries * self.step**2 or prod(sides)
        return prod(sides) // each, each, each // self.step**2

    def _further(self, name: str, trail: Trail, q: Maps, k: Maps) -> tuple[Op, ...]:  # noqa: ARG002 - of others
        """Declare what else is made of queries and keys."""
        return ()


@dataclass(frozen=True)
class Squares(Units):
    """Attention inside of the windows of a padded map, as SAM 2's.

    Every position makes scores between its own heads too, as the code has it, which nothing takes.

    Args:
        side: of a window; 0 for the whole map.
    """

    side: int = 0

    def _counts(self, sides: list[int]) -> tuple[int, int, int]:
        own = [self.side] * len(sides) if self.side else sides
        units = prod(-(-length // side) for length, side in zip(sides, own, strict=True))
        return units, prod(own), prod(side // self.step for side in own)

    def _further(self, name: str, trail: Trail, q: Maps, k: Maps) -> tuple[Op, ...]:
        batch, n, t, h, d = q.axes
        other = trail.copy(h)
        keys = Maps(f"{name}.k_heads", (batch, n, t, other, d))
        between = f"{name}.between[{batch} {n} {t} {h} {other}]"
        heads = einsum(f"{name}.heads", f"{q}, {keys} -> {between}")
        return unread((view(keys.tensor, f"{k} -> {keys}"), heads))
