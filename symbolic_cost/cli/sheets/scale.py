"""What `scale` prints."""

from __future__ import annotations

from collections.abc import Callable

from sympy import Expr

from symbolic_cost.analysis.forms import factored, smoothed
from symbolic_cost.analysis.scaling import crossover, derivative, elasticity, leading_term
from symbolic_cost.cli.session import Session
from symbolic_cost.cli.sheets.formula import number
from symbolic_cost.costs import named_cost
from symbolic_cost.emit.sheet import Cell, Column, Sheet
from symbolic_cost.errors import InputError, Problems
from symbolic_cost.symbols import symbol


def scaling_sheet(work: Session, name: str, wrt: str) -> Sheet:
    """Say how a cost grows with a symbol, and where attention overtakes the MLP.

    Raises:
        InputError: unknown cost or symbol.
    """
    problems = Problems()
    cost = problems.attempt(named_cost, name)
    grown = problems.attempt(symbol, wrt)
    problems.refuse()
    stepped = cost.total(work.table)
    total = factored(smoothed(stepped))
    rows: list[tuple[Cell, ...]] = [
        ("total", total, number(work.value(total))),
        _scaled(work, f"derivative by {wrt}", lambda: factored(derivative(total, grown))),
        _scaled(work, f"elasticity in {wrt}", lambda: elasticity(total, grown)),
        _scaled(work, f"leading term in {wrt}", lambda: factored(leading_term(total, grown))),
    ]
    attention, mlp = (
        smoothed(cost.total(work.table.below(path)))
        for path in ("block.attention.core", "block.mlp")
    )
    if attention.has(grown) and mlp != 0:
        solutions = _solutions(attention, mlp, wrt)
        rows += [
            ("attention core = MLP at", point, number(work.value(point))) for point in solutions
        ]
    columns = (Column("quantity"), Column("formula"), Column("value", "right"))
    title = f"Scaling of {cost.name} of {work.model.name} with {wrt}"
    steps = () if smoothed(stepped) == stepped else (_SMOOTHED,)
    return Sheet(title, columns, tuple(rows), steps + work.notes)


_SMOOTHED = "padded sizes are taken as quotients: ceilings have no derivative"


def _solutions(left: Expr, right: Expr, wrt: str) -> list[Expr]:
    try:
        return crossover(left, right, symbol(wrt))
    except InputError:
        return []


def _scaled(work: Session, label: str, make: Callable[[], Expr]) -> tuple[Cell, ...]:
    formula = make()
    return (label, formula, number(work.value(formula)))
