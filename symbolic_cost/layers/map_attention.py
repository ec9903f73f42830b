"""Attention of positions of a map, with biases of their distances along each side.

Axes: as the trail makes them; n windows, y and x the positions of one, p rows of a table.
"""

from symbolic_cost.layers.conv import Maps, Trail
from symbolic_cost.ops.declare import einsum, lookup, pointwise, softmax, view
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
        here, there = rows[-2:], [trail.copy(axis) for axis in rows[-2:]]
        outer, query = " ".join(rows[:-2]), " ".join(here)
        bias = f" + *bias[{h} {d}]" if self.bias else ""
        q, k, v = (f"{name}.{x}[{outer} {query} {h} {d}]" for x in "qkv")
        keys = " ".join(there)
        key, value = (f"{name}.{x}[{outer} {keys} {h} {d}]" for x in ("keys", "values"))
        square = f"[{outer} {h} {query} {keys}]"
        trail.ops += [
            *(
                einsum(f"{name}.{x}", f"{taken}, *w[{channel} {h} {d}]{bias} -> {y}")
                for x, y in zip("qkv", (q, k, v), strict=True)
            ),
            view(f"{name}.keys", f"{k} -> {key}"),
            view(f"{name}.values", f"{v} -> {value}"),
            einsum(f"{name}.scored", f"{q}, {key} -> {name}.scores{square}"),
        ]
        scores = f"{name}.scores{square}"
        if self.distances:
            biases = [
                self._distances(f"{name}.{a[0]}", trail, q, (outer, h, query, a, b, d))
                for a, b in zip(here, there, strict=True)
            ]
            added = f"{scores}, {', '.join(biases)} -> {name}.biased{square}"
            trail.ops.append(pointwise(f"{name}.add", added, "add"))
            scores = f"{name}.biased{square}"
        p, context = f"{name}.p{square}", f"{name}.c[{outer} {query} {h} {d}]"
        new = trail.new_axis("c", trail.length(channel))
        done = Maps(f"{name}.done", (batch, new, *rows[1:]))
        out = f"*w[{h} {d} {new}] + *bias[{new}]"
        trail.ops += [
            softmax(f"{name}.softmax", f"{scores} -> {p}", row=keys),
            einsum(f"{name}.attend", f"{p}, {value} -> {context}"),
            einsum(f"{name}.proj", f"{context}, {out} -> {done}"),
        ]
        result = Maps(name, (batch, new, *sides))
        laid = "" if done.axes == result.axes else " ".join(rows[1:])
        trail.add(pointwise(f"{name}.back", f"{done} -> {result}", "copy", laid=laid), result)

    def _windows(self, name: str, trail: Trail) -> tuple[tuple[str, ...], Maps]:
        """Declare windows; return the axes of their positions, the batch first, and the windows."""
        batch, channel, *sides = trail.at.axes
        if not self.side:
            return (batch, *sides), trail.at
        number = 1
        for axis in sides:
            number *= -(-trail.length(axis) // self.side)
        n = trail.new_axis("n", number)
        y, x = (trail.new_axis(letter, self.side) for letter in "yx")
        result = Maps(f"{name}.part", (batch, channel, n, y, x))
        pattern = f"{trail.at} -> {result}"
        trail.ops.append(pointwise(f"{name}.windows", pattern, "copy", laid=" ".join(sides)))
        return (batch, n, y, x), result

    def _distances(self, name: str, trail: Trail, q: str, axes: tuple[str, ...]) -> str:
        """Declare the products of queries with vectors of distances along a side."""
        outer, h, query, here, there, d = axes
        rows = trail.new_axis("p", 2 * trail.length(here) - 1)
        vectors = f"{name}_vectors[{here} {there} {d}]"
        bias = f"{name}_bias[{outer} {h} {query} {there}]"
        pattern = f"!{name}_rows[{here} {there}]:buffer, *table[{rows} {d}] -> {vectors}"
        trail.ops += [
            lookup(f"{name}_table", pattern),
            einsum(f"{name}_distance", f"{q}, {vectors} -> {bias}"),
        ]
        return bias
