"""One total, as a formula and as a number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sympy import Expr

from symbolic_cost.analysis.views import formed
from symbolic_cost.costs import NamedCost, named_cost
from symbolic_cost.emit.formulas import latex
from symbolic_cost.emit.sheet import Cell, Column, Sheet
from symbolic_cost.emit.tree import tree_sheet
from symbolic_cost.errors import Problems
from symbolic_cost.jobs.header import header
from symbolic_cost.jobs.letters import lettered
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.ledger import CostTable
from symbolic_cost.numeric.binding import value


def total_sheet(
    work: Setup, name: str, phase: str | None, path: str | None, form: str = "human"
) -> Sheet:
    """Give one total as a formula, and its value where it is known."""
    work = lettered(work)
    cost, total = _total(work.rows, name, phase, path)
    formula, note = formed(total, form)
    known = cost.total(work.bound.select(path=path))
    columns = (Column("cost"), Column("formula"), Column("value", "right", cost.unit))
    row = (cost.name, formula, number(known))
    notes = (*filter(None, [note]), *_alone(work, cost, total), *header(work, cost.name))
    return Sheet(f"{cost.meaning} of {path or work.share.name}", columns, (row,), notes, work.names)


def total_latex(
    work: Setup, name: str, phase: str | None, path: str | None, form: str = "human"
) -> str:
    """Give one total in LaTeX's math mode, and nothing else."""
    return latex(formed(_total(work.rows, name, phase, path)[1], form)[0])


def nested_sheet(work: Setup, name: str, phase: str | None) -> Sheet:
    """Nest the totals of a cost by the parts of the model, with their shares."""
    cost, work = named_cost(name, phase), lettered(work)
    work.bound  # noqa: B018 - refuses numbers that do not fit
    sheet = tree_sheet(cost.rows(work.rows), cost.name, work.values)
    notes = (*sheet.notes, *_alone(work, cost, cost.total(work.rows)), *header(work, cost.name))
    return replace(sheet, notes=notes, names=work.names)


def _alone(work: Setup, cost: NamedCost, total: Expr) -> Iterator[str]:
    """Say why nothing is sent."""
    if total == 0 and cost.name.startswith("comm") and not work.strategy.degrees:
        yield "one rank sends nothing: --strategy names several"


def number(expr: Expr) -> Cell:
    """Return the exact number of an expression, or nothing while symbols are left."""
    if expr.free_symbols:
        return None
    return value(expr) if expr.is_Rational else float(expr)


def _total(
    table: CostTable, name: str, phase: str | None, path: str | None
) -> tuple[NamedCost, Expr]:
    problems = Problems()
    cost = problems.attempt(named_cost, name, phase)
    rows = problems.attempt(lambda: table.select(path=path))
    problems.refuse()
    return cost, cost.total(rows)
