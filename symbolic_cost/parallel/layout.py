"""Layouts: how many blocks each stage of a pipeline holds.

The middle stages are alike; the first and the last, which hold the embedding and the head as well,
may hold fewer. For example 126 blocks on 16 stages with ends lighter by one: 7, 14 times 8, 7.
"""

import re
from collections.abc import Callable

from sympy import Expr, Integer, ceiling, floor

from symbolic_cost.conditions import Condition, Least, Split
from symbolic_cost.errors import InputError
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.records import dataclass

Fewer = Callable[[Expr, Expr], tuple[Expr, Expr, Expr]]
"""How many blocks it would be with the ends as full as the middle, and how many are missing in the
first and in the last stage, of (blocks, slots). For example 61 blocks in 16 slots: 64, 1, 2."""


@dataclass(frozen=True)
class Layout:
    """One layout.

    Args:
        rule: see `Fewer`; slots are the stages times their chunks.
    """

    name: str
    meaning: str
    source: str
    rule: Fewer

    def blocks(self, total: Expr, stages: Expr, chunks: Expr, stage: Stage) -> Expr:
        """Return the blocks of a stage."""
        if stages == 1:
            return total
        full, first, last = self.rule(total, stages * chunks)
        fewer = {Stage.FIRST: first, Stage.MIDDLE: Integer(0), Stage.LAST: last}
        return full / stages - fewer[stage]

    def conditions(
        self, total: Expr, stages: Expr, chunks: Expr, path: str
    ) -> tuple[Condition, ...]:
        """Return what the numbers of blocks, stages and chunks must meet."""
        if stages == 1:
            return ()
        full, first, last = self.rule(total, stages * chunks)
        degrees = (("pp", stages), ("v", chunks))
        slots = tuple((name, degree) for name, degree in degrees if degree != 1)
        held = [full / (stages * chunks) - fewer for fewer in (first, last)]
        of_one = "stage" if chunks == 1 else "chunk"
        because = f"layout {self.name!r} takes more blocks from an end than a {of_one} has"
        short = f"layout {self.name!r} takes more blocks from the ends than the model has"
        return (
            Split("blocks", full, slots, path),
            *(
                (Least("blocks beside a middle stage", total - full / stages, Integer(0), short),)
                if first.is_Integer and first + last != 0
                else ()
            ),
            *(
                Least(f"blocks of a {of_one} at the end", blocks, Integer(0), because)
                for blocks, fewer in zip(held, (first, last), strict=True)
                if fewer != 0
            ),
        )


def ends(first: int, last: int) -> Layout:
    """Return the layout whose first and last stage hold fewer blocks than the others."""
    return Layout(
        f"ends={first}/{last}",
        f"the first stage holds {first} and the last {last} blocks less than a middle one",
        "grattafiori-2024",
        lambda total, _slots: (total + first + last, Integer(first), Integer(last)),
    )


def _missing(total: Expr, slots: Expr) -> tuple[Expr, Expr, Expr]:
    full = slots * ceiling(total / slots)
    return full, floor((full - total) / 2), ceiling((full - total) / 2)


EVEN = Layout(
    "even",
    "every stage holds the same",
    "definition",
    lambda total, _slots: (total, Integer(0), Integer(0)),
)
UNEVEN = Layout(
    "uneven",
    "middle stages hold the quotient rounded up; what that is too much is missing at both ends",
    "definition",
    _missing,
)

AUTO = "auto"
"""Even unless the numbers of blocks and stages are known and one does not divide the other."""

_ENDS = re.compile(r"ends=([0-9]{1,4})(?:/([0-9]{1,4}))?")


def layout(text: str) -> Layout:
    """Return a layout by name: "even", "uneven", "ends=1" or "ends=0/3" (first, last)."""
    named = {AUTO: EVEN} | {each.name: each for each in (EVEN, UNEVEN)}
    if text in named:
        return named[text]
    fewer = _ENDS.fullmatch(text)
    if fewer is None:
        raise InputError(f"layout {text!r}: accepted are even, uneven, ends=1 and ends=0/3")
    return ends(int(fewer[1]), int(fewer[2] or fewer[1]))
