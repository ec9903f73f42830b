"""Attention of positions of a map, with biases of their distances along each side.

Axes: as the trail makes them; n windows, y and x the positions of one, p rows of a table.
"""

from math import prod

from symbolic_cost.layers.conv import Maps, Trail, under
from symbolic_cost.ops.declare import einsum, lookup, softmax
from symbolic_cost.records import dataclass


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
