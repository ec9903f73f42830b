"""What one rank holds, and when it holds most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import partial

from sympy import Expr, Integer

from symbolic_cost.analysis.forms import factored
from symbolic_cost.emit.sheet import Cell, Sheet, headed
from symbolic_cost.extrema import Max
from symbolic_cost.jobs.fit import fit
from symbolic_cost.jobs.header import header, lacking, scheduled
from symbolic_cost.jobs.letters import Lettered, lettered
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.ledger import Phase, Place, Quantity, Row
from symbolic_cost.numeric.binding import bind, value
from symbolic_cost.parallel.moments import moments, shares
from symbolic_cost.parallel.moments import peak as greatest_moment
from symbolic_cost.symbols import Active


def memory_sheet(setup: Setup) -> Sheet:
    """Tabulate quantities and moments: formula, value, share of the peak."""
    training, fits = setup.training, _stages(setup)
    setup = lettered(setup)
    table = setup.memory_rows
    bind(table, setup.values)
    held = moments(table)
    known = {name: setup.value(total) for name, total in held.items()}
    numbers = {name: value(total) for name, total in known.items() if not total.free_symbols}
    peak = max(numbers.values()) if len(numbers) == len(held) else None
    rows: list[tuple[Cell, ...]] = []
    for kind in dict.fromkeys(map(_kind, table)):
        quantity, on_host, of = kind
        chosen = table.select(quantity, where=partial(_is_of, kind))
        label = quantity.value.replace("_", " ") + (" on the host" if on_host else "")
        label += of
        rows.append(_row(label, chosen.total(), setup, None if on_host else peak))
    for name, total in held.items():
        place, _, *numbers_of = _row(_at(name), total, setup, peak)
        rows.append((place, _terms(setup, name), *numbers_of))
    if peak is not None:
        at = next(name for name, number in numbers.items() if number == peak)
        rows.append((f"peak, {_at(at)}", None, peak, 100))
    else:
        rows.append(("peak", _names(greatest_moment(table), held), None, None))
    columns = headed("memory, formula, value> [byte], share of peak> [%]")
    said = (
        f"precision {training.precision}, optimizer {training.optimizer}, "
        f"{scheduled(setup, training.microbatches)} in a step"
    )
    notes = (*fits, *lacking(setup, held.values()), said)
    notes += (*setup.stages_memory.assumed, *header(setup))
    return Sheet(
        f"Memory of one rank of {setup.model.name}", columns, tuple(rows), notes, setup.names
    )


def _stages(setup: Setup) -> Iterator[str]:
    """Say whether all stages fit, and that the table's may not be the one that holds most."""
    fits = None if setup.machine is None else fit(setup)
    yield from () if fits is None else fits.summary
    others = [stage for stage in setup.structure.stages if stage is not setup.stage]
    if fits is None or not fits.peaks:
        if others:
            yield f"of stage {setup.stage} alone; a machine says which stage holds most"
    elif fits.peaks[fits.fullest].size > fits.peaks[setup.stage].size:
        yield f"stage {fits.fullest} holds more than stage {setup.stage}: --stage {fits.fullest}"


def _at(moment: str) -> str:
    """Say when: "at" a moment, or "between steps"."""
    return moment if moment.startswith("between") else f"at {moment}"


def _names(greatest: Expr, held: Mapping[str, Expr]) -> str:
    """Name the moments among which the greatest is."""
    every = {total: _at(name) for name, total in held.items()}
    if greatest in every:
        return every[greatest]
    return f"max({', '.join(every[one] for one in every if one in greatest.args)})"


def _terms(setup: Setup, moment: str) -> str:
    """Name what is there at a moment."""
    return " + ".join(shares(setup.memory_rows, moment)).replace("_", " ")


def _kind(row: Row) -> tuple[Quantity, bool, str]:
    """Say of what a row is: its quantity, whether it is on the host, and of which pass alone."""
    of = _WORKSPACES.get(row.phase, "") if row.quantity is Quantity.WORKSPACE else ""
    return row.quantity, row.place is Place.HOST, of


def _is_of(kind: tuple[Quantity, bool, str], row: Row) -> bool:
    return _kind(row) == kind


def _row(label: str, total: Expr, setup: Lettered, peak: int | Fraction | None) -> tuple[Cell, ...]:
    bound = setup.value(total)
    known = None if bound.free_symbols else value(bound)
    share = None if known is None or peak is None else round(float(Fraction(100 * known) / peak), 2)
    formula = total if known is None else _deciding(total, setup)
    return (label, factored(formula), known, share)


def _deciding(total: Expr, setup: Lettered) -> Expr:
    """Return a formula with the sum that is greatest in place of a maximum of many."""
    greatest = {
        one: max(one.args, key=lambda argument: value(setup.value(argument)))
        for one in total.atoms(Max)
        if len(one.args) > _READABLE
    }
    formula = total.xreplace(greatest)
    formula = formula.xreplace({one: setup.value(one) for one in formula.atoms(Active)})
    absent = {one: Integer(0) for one in setup.names if setup.values.get(one.name) == 0}
    return formula.xreplace(absent) if greatest else formula


_WORKSPACES = {
    Phase.STEP: " of the optimizer step",
    Phase.FORWARD: " of forward",
    Phase.STATE: " of unused gradients",
}
_READABLE = 4
"""Arguments of a maximum that a formula shows."""
