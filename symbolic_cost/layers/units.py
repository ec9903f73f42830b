"""Attention of the positions of a map inside of units, whose queries may be the largest of some.

Axes: as the trail makes them; n units, l queries and t keys of one, s queries of which one is left.
"""

from __future__ import annotations

from math import prod

from symbolic_cost.layers.conv import Maps, Trail
from symbolic_cost.ops.conv import pool
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise, softmax
from symbolic_cost.ops.view import view
from symbolic_cost.records import dataclass


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
        every, fewer = prod(map(trail.length, sides)), self.step**2
        each = self.queries * fewer or every
        n, t, s = (
            trail.new_axis(x, size) for x, size in (("n", every // each), ("t", each), ("s", fewer))
        )
        l = trail.new_axis("l", each // fewer)
        h, d = trail.heads(self.heads, self.width)
        part = f"{name}.part[{batch} {n} {t} {channel}]"
        there, rows = (f"[{batch} {n} {x} {h} {d}]" for x in (t, l))
        trail.ops.append(
            pointwise(f"{name}.units", f"{start} -> {part}", "copy", laid=" ".join(sides))
        )
        weight = f"*w[{channel} {h} {d}] + *bias[{h} {d}]"
        trail.ops += [
            einsum(f"{name}.{x}", f"{part}, {weight} -> {name}.{x}_{there}") for x in "qkv"
        ]
        asked, q = f"{name}.q_{there}", f"{name}.q{rows}"
        if self.step > 1:
            trail.ops.append(pool(f"{name}.most", f"{asked} -> {q}", "max_pool", s))
        else:
            trail.ops.append(view(f"{name}.asked", f"{asked} -> {q}"))
        square = f"[{batch} {n} {h} {l} {t}]"
        new = trail.new_axis("c", self.width)
        done = f"{name}.done[{batch} {n} {l} {new}]"
        trail.ops += [
            einsum(f"{name}.scored", f"{q}, {name}.k_{there} -> {name}.scores{square}"),
            softmax(f"{name}.softmax", f"{name}.scores{square} -> {name}.p{square}", row=t),
            einsum(f"{name}.attend", f"{name}.p{square}, {name}.v_{there} -> {name}.c{rows}"),
            einsum(f"{name}.proj", f"{name}.c{rows}, *w[{h} {d} {new}] + *bias[{new}] -> {done}"),
        ]
        left = [trail.new_axis(a[0], trail.length(a) // self.step) for a in sides]
        result = Maps(name, (batch, new, *(left if self.step > 1 else sides)))
        trail.add(pointwise(f"{name}.back", f"{done} -> {result}", "copy", laid=f"{n} {l}"), result)
