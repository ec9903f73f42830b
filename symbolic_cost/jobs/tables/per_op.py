"""Costs per op: one row each, one or two cells per cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sympy import Expr

from symbolic_cost.analysis.forms import factored
from symbolic_cost.costs import NamedCost, named_cost
from symbolic_cost.emit.sheet import Cell, Column, Phrase, Sheet
from symbolic_cost.errors import InputError, Problems
from symbolic_cost.jobs.header import header
from symbolic_cost.jobs.letters import Lettered, lettered
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.jobs.tables.totals import number
from symbolic_cost.ledger import CostTable
from symbolic_cost.ops.part import Part

FORMULAS, VALUES = "formulas", "values"


def named_costs(names: str) -> list[NamedCost]:
    """Return the costs of names with commas between them."""
    problems = Problems()
    costs = [problems.attempt(named_cost, name.strip()) for name in names.split(",")]
    problems.refuse()
    return costs


def flat_sheet(work: Setup, costs: Sequence[NamedCost], only: str | None) -> Sheet:
    """Tabulate costs for programs: formula and value in columns of their own."""
    work = _valued(work, costs, only)
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
        f"Costs of {work.share.name} per op",
        tuple(columns),
        tuple(rows),
        _header(work, costs),
        work.names,
    )


def grouped_sheet(work: Setup, costs: Sequence[NamedCost], only: str | None) -> Sheet:
    """Tabulate costs for people: ops below what they are a part of, value and formula of each."""
    work = _valued(work, costs, only)
    columns = [Column("op")]
    for cost in costs:
        columns += [Column(cost.name, "right", cost.unit)] * (only != FORMULAS)
        columns += [Column(f"{cost.name} formula")] * (only != VALUES)

    def row(name: str, pairs: list[_Pair]) -> tuple[Cell, ...]:
        return (name, *(cell for pair in pairs for cell in _chosen(pair, only)[::-1]))

    ops = below_headings(
        (path, part.repeat, row(path.rpartition(".")[2], pairs))
        for part, path, pairs in _ops(work, costs)
    )
    rows = (*ops, row("total", _total(work, costs)))
    return Sheet(
        f"Costs of {work.share.name} per op", tuple(columns), rows, _header(work, costs), work.names
    )


def _header(work: Setup, costs: Sequence[NamedCost]) -> tuple[str, ...]:
    return header(work, *(cost.name for cost in costs))


def _valued(work: Setup, costs: Sequence[NamedCost], only: str | None) -> Lettered:
    """Return what is tabulated, in its letters; values alone need numbers for one cost at least."""
    totals = [cost.total(work.bound) for cost in costs] if only == VALUES else []
    totals = [total for total in totals if total != 0]
    missing = {symbol.name for total in totals for symbol in total.free_symbols}
    if totals and all(total.free_symbols for total in totals):
        raise InputError(f"no values without numbers for {', '.join(sorted(missing))}: --set b=1")
    return lettered(work)


def below_headings(ops: Iterable[tuple[str, Expr, tuple[Cell, ...]]]) -> Iterator[tuple[Cell, ...]]:
    """Yield rows of ops, of (path, count, cells), below what they are a part of."""
    above: Phrase = ()
    for path, count, cells in ops:
        name = path.rpartition(".")[0] or path
        heading: Phrase = (name,) if count == 1 else (f"{name}, ", count, " times")
        if heading != above:
            above = heading
            yield (heading, *[None] * (len(cells) - 1))
        yield cells


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
