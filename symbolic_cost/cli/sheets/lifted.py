"""What lifting prints: the candidate declaration of a family."""

from __future__ import annotations

from collections.abc import Iterator

from symbolic_cost.emit.sheet import Cell, Column, Sheet
from symbolic_cost.models.traced.lift import Lifted


def lifted_sheet(family: Lifted) -> Sheet:
    """Tabulate axes with their sizes, parts with their repetitions, and the ops of each."""
    columns = (Column("what"), Column("name"), Column("is"))
    notes = (
        f"predicted exactly: parameters and FLOP of {family.checked}, which nothing was fitted to",
        "a candidate: compare it with the family's source before it is declared",
    )
    return Sheet(f"Family of {family.model.name}", columns, tuple(_rows(family)), notes)


def _rows(family: Lifted) -> Iterator[tuple[Cell, ...]]:
    for name, (size, rest) in family.sizes.items():
        dynamic = "" if rest == 1 else f" * {rest}"
        yield "axis", name, f"{size}{dynamic}"
    for part in family.model.parts:
        yield "part", part.path, f"{family.repeats[part.path]} times"
        for op in part.ops:
            yield op.kind, op.path, op.pattern.text
