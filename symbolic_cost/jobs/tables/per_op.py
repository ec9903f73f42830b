"""Costs per op: one row each, one or two cells per cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sympy import Expr

from symbolic_cost.analysis.forms import factored
from symbolic_cost.costs import NamedCost, named_cost
from symbolic_cost.emit.formulas import plain
from symbolic_cost.emit.sheet import Cell, Column, Sheet
from symbolic_cost.errors import Problems
from symbolic_cost.jobs.header import header
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.jobs.tables.totals import number
from symbolic_cost.ledger import CostTable
from symbolic_cost.numeric.binding import value
from symbolic_cost.ops.graph import Part
from symbolic_cost.units import human

FORMULAS, VALUES = "formulas", "values"


def named_costs(names: str) -> list[NamedCost]:
    """Return the costs of names with commas between them.

    Raises:
        UnknownNameError: every unknown cost.
    """
    problems = Problems()
    costs = [problems.attempt(named_cost, name.strip()) for name in names.split(",")]
    problems.refuse()
    return costs


def flat_sheet(work: Setup, costs: Sequence[NamedCost], only: str | None) -> Sheet:
    """Tabulate costs for programs: formula and value in columns of their own."""
    columns = [Column("op"), Column("times", "right")]
    for cost in costs:
        columns += [Column(cost.name)] * (only != VALUES)
        name = cost.name if only == VALUES else f"{cost.name} value"
        columns += [Column(name, "right", cost.unit)] * (only != FORMULAS)
    rows: list[tuple[Cell, ...]] = []
    for part, path, pairs in (*_ops(work, costs), (None, "total", _total(work, costs))):
        cells = [cell for pair in pairs for cell in _chosen(pair, only)]
        rows.append((path, None if part is None else part.repeat, *cells))
    return Sheet(f"Costs of {work.share.name} per op", tuple(columns), tuple(rows), header(work))


def grouped_sheet(work: Setup, costs: Sequence[NamedCost], only: str | None) -> Sheet:
    """Tabulate costs for people: ops below their part, formula and value in one cell."""
    rows: list[tuple[Cell, ...]] = []
    current = None
    for part, path, pairs in _ops(work, costs):
        if part is not current:
            current = part
            times = "" if part.repeat == 1 else f", {plain(part.repeat)} times"
            rows.append((f"{part.path}{times}", *[None] * len(costs)))
        cells = [_both(cost, pair, only) for cost, pair in zip(costs, pairs, strict=True)]
        rows.append((f"  {path.removeprefix(part.path + '.')}", *cells))
    whole = FORMULAS if only == FORMULAS else VALUES
    total = zip(costs, _total(work, costs), strict=True)
    rows.append(("total", *(_both(cost, pair, whole) for cost, pair in total)))
    columns = (Column("op"), *(Column(cost.name) for cost in costs))
    return Sheet(f"Costs of {work.share.name} per op", columns, tuple(rows), header(work))


_Pair = tuple[Expr, Expr] | None
"""Formula and bound formula; nothing where an op has no such cost."""


def _ops(work: Setup, costs: Sequence[NamedCost]) -> Iterator[tuple[Part, str, list[_Pair]]]:
    """Go through the ops that cost anything, each counted once."""
    bound = work.bound
    for part in work.share.parts:
        for op in part.ops:
            path = f"{part.path}.{op.path}"
            one = work.rows.below(path).once()
            if len(one):
                known = bound.below(path).once()
                yield part, path, [_pair(cost, one, known) for cost in costs]


def _total(work: Setup, costs: Sequence[NamedCost]) -> list[_Pair]:
    return [_pair(cost, work.rows, work.bound) for cost in costs]


def _pair(cost: NamedCost, table: CostTable, bound: CostTable) -> _Pair:
    total = cost.total(table)
    return None if total == 0 else (factored(total), cost.total(bound))


def _chosen(pair: _Pair, only: str | None) -> list[Cell]:
    formula, known = (None, None) if pair is None else (pair[0], number(pair[1]))
    return [formula] if only == FORMULAS else [known] if only == VALUES else [formula, known]


def _both(cost: NamedCost, pair: _Pair, only: str | None) -> str | None:
    """Print formula and value one below the other."""
    if pair is None:
        return None
    known = None if pair[1].free_symbols else value(pair[1])
    lines = [plain(pair[0])] if only != VALUES or known is None else []
    if only != FORMULAS and known is not None:
        lines.append(human(known, cost.unit))
    return "\n".join(lines)
