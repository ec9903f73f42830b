"""What `memory` prints."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from sympy import Expr

from symbolic_cost.analysis.forms import factored
from symbolic_cost.cli.options import Choices
from symbolic_cost.cli.session import Session, session, stage_of
from symbolic_cost.emit.sheet import Cell, Column, Sheet
from symbolic_cost.errors import Problems
from symbolic_cost.ledger import CostTable, Place, Quantity, Row
from symbolic_cost.numeric.binding import bind, value
from symbolic_cost.ops.recompute import recompute_policy
from symbolic_cost.parallel.memory import MOMENTS, Training, memory_table, moments
from symbolic_cost.parallel.memory import peak as greatest_moment
from symbolic_cost.parallel.microbatch import on_every_rank
from symbolic_cost.parallel.schedules import schedule as named_schedule
from symbolic_cost.parallel.states import optimizer as named_optimizer
from symbolic_cost.parallel.states import precision as named_precision
from symbolic_cost.parallel.structure import Structure
from symbolic_cost.symbols import exact, v
from symbolic_cost.units import Unit


@dataclass(frozen=True, slots=True)
class Kept:
    """What training keeps, as typed."""

    precision: str
    optimizer: str
    schedule: str
    offload: str


def memory_sheet(name: str, choices: Choices, kept: Kept) -> Sheet:
    """Tabulate quantities and moments: formula, value, share of the peak.

    Raises:
        InputError: every problem of every option.
    """
    problems = Problems()
    work = problems.attempt(session, name, choices)
    training = problems.attempt(_training, kept, choices)
    problems.refuse()
    chunks = exact(work.values.get("v", v))
    training = replace(training, chunks=chunks, layout=choices.layout)
    strategy = Structure(work.strategy).symbolic
    table = memory_table(
        on_every_rank(work.declared, strategy),
        strategy,
        work.table.conventions,
        training,
        stage=stage_of(choices.stage),
    )
    bind(table, work.values)
    columns = (
        Column("memory"),
        Column("formula"),
        Column("value", "right", Unit.BYTE),
        Column("share of peak", "right", "%"),
    )
    said = f"precision {kept.precision}, optimizer {kept.optimizer}, schedule {kept.schedule}"
    notes = (said, *work.notes)
    title = f"Memory of one rank of {name}, stage {choices.stage}"
    return Sheet(title, columns, tuple(_rows(table, work)), notes)


def _training(kept: Kept, choices: Choices) -> Training:
    problems = Problems()
    problems.attempt(named_precision, kept.precision)
    problems.attempt(named_optimizer, kept.optimizer)
    problems.attempt(named_schedule, kept.schedule)
    policy = problems.attempt(recompute_policy, choices.recompute)
    problems.refuse()
    offload = frozenset(filter(None, (name.strip() for name in kept.offload.split(","))))
    return Training(kept.precision, kept.optimizer, policy, kept.schedule, offload=offload)


def _rows(table: CostTable, work: Session) -> list[tuple[Cell, ...]]:
    held = moments(table)
    known = {name: work.value(total) for name, total in held.items()}
    numbers = {name: value(total) for name, total in known.items() if not total.free_symbols}
    peak = max(numbers.values()) if len(numbers) == len(held) else None
    places = dict.fromkeys((row.quantity, row.place is Place.HOST) for row in table)
    rows: list[tuple[Cell, ...]] = []
    for quantity, on_host in places:
        chosen = table.select(quantity, where=partial(_is_kept, on_host))
        label = quantity.value.replace("_", " ") + (" on the host" if on_host else "")
        rows.append(_row(label, chosen.total(), work, peak))
    for name, total in held.items():
        place, _, *numbers_of = _row(f"at {name}", total, work, peak)
        rows.append((place, _terms(table, name), *numbers_of))
    if peak is not None:
        at = next(name for name, number in numbers.items() if number == peak)
        rows.append((f"peak, at {at}", None, peak, 100))
    else:
        rows.append(_row("peak", greatest_moment(table), work, None))
    return rows


def _terms(table: CostTable, moment: str) -> str:
    """Name what is there at a moment."""
    quantities, phase = MOMENTS[moment]
    there = {row.quantity for row in table if row.place is Place.DEVICE}
    names = [quantity.value for quantity in quantities if quantity in there]
    works = phase is not None and len(table.select(Quantity.WORKSPACE, phase=phase))
    return " + ".join(names + ["workspace"] * bool(works)).replace("_", " ")


def _is_kept(on_host: bool, row: Row) -> bool:  # noqa: FBT001 - bound by partial
    return (row.place is Place.HOST) is on_host


def _row(label: str, total: Expr, work: Session, peak: int | Fraction | None) -> tuple[Cell, ...]:
    bound = work.value(total)
    known = None if bound.free_symbols else value(bound)
    share = None if known is None or peak is None else round(float(Fraction(100 * known) / peak), 2)
    return (label, factored(total), known, share)
