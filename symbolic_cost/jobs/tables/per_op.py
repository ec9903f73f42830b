"""Costs per op: one row each, one or two cells per cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sympy import Expr

from symbolic_cost.analysis.forms import factored
from symbolic_cost.costs import NamedCost, named_cost
from symbolic_cost.emit.sheet import Cell, Column, Phrase, Sheet
from symbolic_cost.errors import Problems
from symbolic_cost.jobs.header import header
from symbolic_cost.jobs.lettered import lettered
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.jobs.tables.totals import number
from symbolic_cost.ledger import CostTable
from symbolic_cost.ops.graph import Part

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
    work = lettered(work)
    columns = [Column("op"), Column("times", "right")]
    for cost in costs:
        columns += [Column(cost.name)] * (only != VALUES)
        name = cost.name if only == VALUES else f"{cost.name} value"
        columns += [Column(name, "right", cost.unit)] * (only != FORMULAS)
    rows: list[tuple[Cell, ...]] = []
    for part, path, pairs in (*_ops(work, costs), (None, "total", _total(work, costs))):
        cells = [cell for pair in pairs for cell in _chosen(pair, only)]
        rows.append((path, None if part is None else part.repeat, *cells))
    return Sheet(
        f"Costs of {work.share.name} per op", tuple(columns), tuple(rows), header(work), work.names
    )


def grouped_sheet(work: Setup, costs: Sequence[NamedCost], only: str | None) -> Sheet:
    """Tabulate costs for people: ops below what they are a part of, value and formula of each."""
    work = lettered(work)
    columns = [Column("op")]
    for cost in costs:
        columns += [Column(cost.name, "right", cost.unit)] * (only != FORMULAS)
        columns += [Column(f"{cost.name} formula")] * (only != VALUES)
    rows: list[tuple[Cell, ...]] = []
    above: Phrase = ()
    for part, path, pairs in _ops(work, costs):
        heading = heading_of(path, part.repeat)
        if heading != above:
            above = heading
            rows.append((heading, *[None] * (len(columns) - 1)))
        cells = [cell for pair in pairs for cell in _chosen(pair, only)[::-1]]
        rows.append((path.rpartition(".")[2], *cells))
    totals = [_chosen(pair, only)[::-1] for pair in _total(work, costs)]
    rows.append(("total", *(cell for cells in totals for cell in cells)))
    return Sheet(
        f"Costs of {work.share.name} per op", tuple(columns), tuple(rows), header(work), work.names
    )


def heading_of(path: str, count: Expr) -> Phrase:
    """Name what an op is a part of, with how often it occurs."""
    above = path.rpartition(".")[0] or path
    return (above,) if count == 1 else (f"{above}, ", count, " times")


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
