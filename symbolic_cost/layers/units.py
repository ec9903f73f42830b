"""Attention of the positions of a map inside of units, whose queries may be the largest of some.

Axes: as the trail makes them; n units, l queries and t keys of one, s queries of which one is left.
"""

from math import prod

from symbolic_cost.layers.conv import Maps, Trail
from symbolic_cost.ops.declare import Op, einsum, pool, softmax, unread, view
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
