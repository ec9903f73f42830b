"""Axes found in a graph: dimensions unified along the data flow, split where a view splits them.

A dimension is a sequence of axes, outermost first; one of size 1 is the empty sequence. Two
dimensions that meet are unified axis by axis, a longer axis being split by a shorter one: query
heads h = 8 that meet (k = 2, g = 4) become (k, g), wherever h stands.

Sizes are compared at large primes in place of the dynamic dimensions, so that whether 64*l divides
into 8 and 8*l is a question about integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from sympy import Expr, Integer, nextprime

from symbolic_cost.models.traced.graph import Size, number
from symbolic_cost.records import dataclass, field


@dataclass(eq=False, slots=True)
class Axis:
    """An axis of the graph.

    Args:
        size: exact.
        count: its size at the primes.
        parts: axes that it is made of, once it is split; or the one that it is unified with.
        origin: the axis whose positions it names a second time (keys), if any.
    """

    size: Expr
    count: int
    parts: tuple[Axis, ...] | None = None
    origin: Axis | None = None


Dim = tuple[Axis, ...]
Dims = tuple[Dim, ...]


@dataclass
class Forest:
    """All axes of a graph.

    Args:
        means: axes whose size is a mean, which need not be whole.
        moved: axes whose elements change places among themselves (rolled, padded, cumulated).
    """

    means: set[Axis] = field(default_factory=set)
    moved: set[Axis] = field(default_factory=set)
    _primes: dict[Expr, Expr] = field(default_factory=dict)
    _counts: dict[Size, int] = field(default_factory=dict)
    _shares: dict[tuple[Dim, Dim], Dim] = field(default_factory=dict)
    _sorted: dict[Dim, Dim] = field(default_factory=dict)
    _copies: dict[tuple[Axis, str], Axis] = field(default_factory=dict)

    def count(self, size: Size) -> int:
        """Return a size at the primes."""
        if isinstance(size, int):
            return size
        if size not in self._counts:
            for symbol in sorted(size.free_symbols - self._primes.keys(), key=str):
                last = max(map(int, self._primes.values()), default=1_000_000)
                self._primes[symbol] = Integer(nextprime(last + 1_000))
            self._counts[size] = int(size.xreplace(self._primes))
        return self._counts[size]

    def new(self, size: Size) -> Axis:
        """Return a new axis."""
        return Axis(number(size), self.count(size))

    def dim(self, size: Size) -> Dim:
        """Return a new dimension."""
        return () if size == 1 else (self.new(size),)

    def dims(self, sizes: Iterable[Size]) -> Dims:
        """Return new dimensions of these sizes."""
        return tuple(map(self.dim, sizes))

    def flat(self, dim: Iterable[Axis]) -> Dim:
        """Return the axes of a dimension as they are now."""
        leaves: list[Axis] = []
        for axis in dim:
            if axis.parts is None:
                leaves.append(axis)
            elif len(axis.parts) == 1:
                axis.parts = self.flat(axis.parts)  # shorter the next time
                leaves += axis.parts
            else:
                leaves += self.flat(axis.parts)
        return tuple(leaves)

    def axes(self, dims: Iterable[Dim]) -> Dim:
        """Return the axes of dimensions as they are now, one dimension after the other."""
        return self.flat(axis for dim in dims for axis in dim)

    def length(self, dim: Iterable[Axis]) -> int:
        """Return the size of a dimension at the primes, however it is split by now."""
        return prod(axis.count for axis in dim)

    def fits(self, dim: Iterable[Axis], size: Size) -> bool:
        """Tell whether a dimension is of a size."""
        return self.length(dim) == self.count(size)

    def copy(self, axis: Axis, what: str = "key") -> Axis:
        """Return a second axis over the same positions, one for every purpose."""
        named = self.origin(axis)
        root = axis if named is None or what != "key" else named
        if (root, what) not in self._copies:
            self._copies[root, what] = Axis(root.size, root.count, origin=root)
        return self._copies[root, what]

    def origin(self, axis: Axis) -> Axis | None:
        """Return the axis whose positions an axis names a second time, as it is now."""
        if axis.origin is None:
            return None
        now = self.flat((axis.origin,))
        return now[0] if len(now) == 1 else axis.origin

    def again(self, one: Iterable[Axis], other: Iterable[Axis]) -> bool:
        """Tell whether one dimension names positions of the other a second time."""
        left, right = self.flat(one), self.flat(other)
        roots = {self.origin(axis) for axis in left} - {None}
        others = {self.origin(axis) for axis in right} - {None}
        return bool(roots & set(right)) or bool(others & set(left))

    def copies(self, dim: Iterable[Axis]) -> Dim:
        """Return second axes for a dimension."""
        return tuple(self.copy(axis, "key") for axis in self.flat(dim))

    def shares(self, rows: Dim, experts: Dim) -> Dim:
        """Return rows (b, l, a) sorted by expert as (u, z, x): each of x experts takes z.

        The same rows are sorted once: all products over them share the axes.
        """
        key = (rows, experts)
        if key not in self._shares:
            first, (expert,) = rows[0], experts
            each, count = Integer(1), 1
            for axis in rows[1:]:
                each, count = each * axis.size, count * axis.count
            mean = Axis(each / expert.size, max(count // expert.count, 1))
            self.means.add(mean)
            self._shares[key] = (self.copy(first, "routed"), mean, expert)
            self._sorted[self._shares[key]] = rows
        return self._shares[key]

    def unsorted(self, rows: Dim) -> Dim:
        """Return rows that are sorted by expert as they were before; others as they are."""
        return self._sorted.get(rows, rows)

    def split(self, dim: Iterable[Axis], lengths: Sequence[Size]) -> Dims | None:
        """Split a dimension into several, outermost first; None if an axis crosses a border."""
        rest = list(reversed(self.flat(dim)))
        dims: list[Dim] = []
        for length in lengths:
            wanted, part = self.count(length), []
            left: Expr = number(length)
            while wanted > 1:
                if not rest:
                    return None
                axis = rest.pop()
                if wanted % axis.count == 0:
                    part.append(axis)
                    wanted, left = wanted // axis.count, left / axis.size
                    continue
                if axis.count % wanted:
                    return None
                outer = Axis(left, wanted)
                inner = Axis(axis.size / left, axis.count // wanted)
                axis.parts = (outer, inner)
                part.append(outer)
                rest.append(inner)
                wanted = 1
            dims.append(tuple(part))
        return tuple(dims) if not rest else None

    def unify(self, one: Iterable[Axis], other: Iterable[Axis]) -> bool:
        """Make two dimensions the same, as far as they can be; tell whether they are."""
        left, right = self.flat(one), self.flat(other)
        if left == right:
            return True
        if not self._fits(left, right) or self.again(left, right):
            return False
        mine, theirs = list(reversed(left)), list(reversed(right))
        while mine and theirs:
            a, b = mine.pop(), theirs.pop()
            if a is b:
                continue
            if a.count == b.count:
                self._join(a, b)
                continue
            (long, rest), short = ((a, mine), b) if a.count > b.count else ((b, theirs), a)
            inner = Axis(long.size / short.size, long.count // short.count)
            long.parts = (short, inner)
            rest.append(inner)
        return True

    def _fits(self, left: Dim, right: Dim) -> bool:
        """Tell whether borders of one never stand inside an axis of the other."""
        mine, theirs = [a.count for a in reversed(left)], [a.count for a in reversed(right)]
        while mine and theirs:
            a, b = mine.pop(), theirs.pop()
            if a % b and b % a:
                return False
            if a > b:
                mine.append(a // b)
            elif b > a:
                theirs.append(b // a)
        return not mine and not theirs

    def _join(self, a: Axis, b: Axis) -> None:
        """Let one axis stand for two; what names positions a second time goes on to do so."""
        stays, goes = (a, b) if a.origin is not None or b.origin is None else (b, a)
        goes.parts = (stays,)


class Apart(Forest):
    """Axes of which none is another: every op has its own."""

    def unify(self, one: Iterable[Axis], other: Iterable[Axis]) -> bool:
        """Tell whether two dimensions are the same already."""
        return self.flat(one) == self.flat(other)
