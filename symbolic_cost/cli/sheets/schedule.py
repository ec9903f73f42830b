"""What `schedule` prints."""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Integer

from symbolic_cost.emit.sheet import Cell, Column, Sheet
from symbolic_cost.errors import InputError
from symbolic_cost.numeric.binding import value
from symbolic_cost.parallel.schedules import schedule
from symbolic_cost.parallel.strategy import parse_strategy
from symbolic_cost.parallel.timeline import Event
from symbolic_cost.symbols import T_B, T_F, T_W, M, pp, stage, v

_UNIT_TIMES = "values for T_F = T_B = T_W = 1, in that unit; in flight on the first stage"


def stages_of(text: str) -> int:
    """Return the pipeline stages of a strategy.

    Raises:
        InputError: the strategy is refused, or does not give pp a number.
    """
    degree = parse_strategy(text).degree("pp")
    if not degree.is_Integer:
        raise InputError(f"strategy {text!r}: pp needs a number here, such as pp=4")
    return int(degree)


def schedule_sheet(
    name: str, stages: int, microbatches: int, chunks: int, events: Sequence[Event]
) -> Sheet:
    """Tabulate the formulas of a schedule, with their values, and its length as it runs."""
    made = schedule(name)
    sizes = {pp: stages, M: microbatches, v: chunks, stage: 1, T_F: 1, T_B: 1, T_W: 1}
    numbers = {symbol: Integer(size) for symbol, size in sizes.items()}
    formulas = {
        "bubble": made.bubble,
        "step time": made.step_time,
        "bubble fraction": made.bubble_fraction,
        "microbatches in flight": made.in_flight,
        "waiting for weight gradients": made.residue,
        "messages between stages": made.messages,
        "copies of the weights": made.copies,
    }
    rows: list[tuple[Cell, ...]] = [
        (label, formula, value(formula.xreplace(numbers))) for label, formula in formulas.items()
    ]
    rows.append(("step time as it runs", None, max(event.end for event in events)))
    columns = (Column("quantity"), Column("formula"), Column("value", "right"))
    notes = (_UNIT_TIMES, f"source {made.source}")
    title = f"{name} ({made.meaning}), {stages} stages, {microbatches} microbatches"
    return Sheet(title, columns, tuple(rows), notes)
