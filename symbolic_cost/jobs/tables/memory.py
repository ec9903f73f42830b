"""What one rank holds, and when it holds most."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

from sympy import Expr

from symbolic_cost.analysis.forms import factored
from symbolic_cost.emit.sheet import Cell, Sheet, headed
from symbolic_cost.jobs.fit import fit
from symbolic_cost.jobs.header import header, scheduled
from symbolic_cost.jobs.letters import lettered
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.ledger import Place, Quantity, Row
from symbolic_cost.numeric.binding import bind, value
from symbolic_cost.parallel.memory import MOMENTS, moments
from symbolic_cost.parallel.memory import peak as greatest_moment


def memory_sheet(setup: Setup) -> Sheet:
    """Tabulate quantities and moments: formula, value, share of the peak."""
    training, fits = setup.training, () if setup.machine is None else fit(setup).told
    setup = lettered(setup)
    table = setup.memory_rows
    bind(table, setup.values)
    held = moments(table)
    known = {name: setup.value(total) for name, total in held.items()}
    numbers = {name: value(total) for name, total in known.items() if not total.free_symbols}
    peak = max(numbers.values()) if len(numbers) == len(held) else None
    rows: list[tuple[Cell, ...]] = []
    places = dict.fromkeys((row.quantity, row.place is Place.HOST) for row in table)
    for quantity, on_host in places:
        chosen = table.select(quantity, where=partial(_is_kept, on_host))
        label = quantity.value.replace("_", " ") + (" on the host" if on_host else "")
        rows.append(_row(label, chosen.total(), setup, None if on_host else peak))
    for name, total in held.items():
        place, _, *numbers_of = _row(_at(name), total, setup, peak)
        rows.append((place, _terms(setup, name), *numbers_of))
    if peak is not None:
        at = next(name for name, number in numbers.items() if number == peak)
        rows.append((f"peak, {_at(at)}", None, peak, 100))
    else:
        rows.append(_row("peak", greatest_moment(table), setup, None))
    columns = headed("memory, formula, value> [byte], share of peak> [%]")
    said = (
        f"precision {training.precision}, optimizer {training.optimizer}, "
        f"{scheduled(setup, training.microbatches)} in a step"
    )
    title = f"Memory of one rank of {setup.model.name}"
    return Sheet(title, columns, tuple(rows), (*fits, said, *header(setup)), setup.names)


def _at(moment: str) -> str:
    """Say when: "at" a moment, or "between steps"."""
    return moment if moment.startswith("between") else f"at {moment}"


def _terms(setup: Setup, moment: str) -> str:
    """Name what is there at a moment."""
    quantities, phase = MOMENTS[moment]
    table = setup.memory_rows
    there = {row.quantity for row in table if row.place is Place.DEVICE}
    names = [quantity.value for quantity in quantities if quantity in there]
    works = phase is not None and len(table.select(Quantity.WORKSPACE, phase=phase))
    return " + ".join(names + ["workspace"] * bool(works)).replace("_", " ")


def _is_kept(on_host: bool, row: Row) -> bool:  # noqa: FBT001 - bound by partial
    return (row.place is Place.HOST) is on_host


def _row(label: str, total: Expr, setup: Setup, peak: int | Fraction | None) -> tuple[Cell, ...]:
    bound = setup.value(total)
    known = None if bound.free_symbols else value(bound)
    share = None if known is None or peak is None else round(float(Fraction(100 * known) / peak), 2)
    return (label, factored(total), known, share)
