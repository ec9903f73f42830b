"""Weights that are stored in few bits: elements, and scales that blocks of them share."""

from __future__ import annotations

from sympy import Expr

from symbolic_cost.records import dataclass

Block = tuple[tuple[int, ...], Expr | None]
"""Places of axes in a weight, and how many elements along them together share; all of them if None.

Blocks that are cut off at the end count as whole ones.
"""


@dataclass(frozen=True, slots=True)
class Scale:
    """What a block of elements shares: a scale, a zero, an index.

    Args:
        size: of one [byte].
        blocks: elements that share one; along axes that none names, every element has its own.
    """

    size: Expr
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """A format of one weight.

    For example nf4 of *w[e f] has e f / 2 bytes, and a scale of 4 bytes for 64 elements in a row.

    Args:
        size: of one element [byte].
        scales: what blocks share.
    """

    name: str
    size: Expr
    scales: tuple[Scale, ...] = ()
    source: str = "definition"

    def once(self, made: tuple[int, ...]) -> tuple[Scale, ...]:
        """Return the scales that all result features share.

        Args:
            made: places of the axes of these.
        """
        return tuple(
            scale
            for scale in self.scales
            if any(length is None and {*made} <= {*places} for places, length in scale.blocks)
        )
