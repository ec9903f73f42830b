"""What `compare-conventions` prints."""

from __future__ import annotations

from collections.abc import Sequence

from symbolic_cost.analysis.forms import factored
from symbolic_cost.conventions.presets import preset
from symbolic_cost.costs import named_cost
from symbolic_cost.emit.sheet import Cell, Column, Sheet
from symbolic_cost.errors import Problems
from symbolic_cost.jobs.numbers import checked_numbers
from symbolic_cost.jobs.tables.totals import number
from symbolic_cost.models.catalog import model as named_model
from symbolic_cost.models.compare import compare_conventions
from symbolic_cost.numeric.assignments import parse_assignments
from symbolic_cost.numeric.binding import bind
from symbolic_cost.parallel.strategy import Strategy


def difference_sheet(
    name: str, first: str, second: str, cost: str, settings: Sequence[str]
) -> Sheet:
    """Tabulate a difference by kind of op, and its total.

    Raises:
        InputError: every problem of every option.
    """
    problems = Problems()
    model = problems.attempt(named_model, name)
    left, right = (problems.attempt(preset, given) for given in (first, second))
    problems.attempt(named_cost, cost)
    given = problems.attempt(parse_assignments, settings)
    problems.refuse()
    checked_numbers(model, Strategy(), given)
    found = compare_conventions(model, left, right, cost)
    values = {**model.bindings, **given}
    rows: list[tuple[Cell, ...]] = [
        (kind, factored(expr), number(bind(expr, values))) for kind, expr in found.kinds.items()
    ]
    rows.append(("total", factored(found.total), number(bind(found.total, values))))
    columns = (Column("kind"), Column("formula"), Column("value", "right", found.unit))
    notes = tuple(f"{rule.name}: {rule.meaning}" for rule in (left, right))
    title = f"{cost} of {name}: {found.first} less {found.second}"
    return Sheet(title, columns, tuple(rows), notes)
