"""How a cost grows with a symbol."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sympy import Expr

from symbolic_cost.analysis.forms import factored, smoothed
from symbolic_cost.analysis.scaling import crossover, derivative, elasticity, leading_term
from symbolic_cost.costs import named_cost
from symbolic_cost.emit.sheet import Cell, Sheet, headed
from symbolic_cost.errors import InputError, Problems
from symbolic_cost.jobs.build import modelled
from symbolic_cost.jobs.header import header
from symbolic_cost.jobs.numbers import refuse_absent, sizes_of
from symbolic_cost.jobs.setup import Setup, refuse_fixed
from symbolic_cost.jobs.tables.totals import number
from symbolic_cost.ops.graph import Model
from symbolic_cost.symbols import b as microbatch
from symbolic_cost.symbols import symbol


def scaling_sheet(work: Setup, name: str, wrt: str, point: str | None = None) -> Sheet:
    """Say how a cost grows with a symbol, and where attention overtakes the MLP.

    Args:
        work: what is costed.
        name: of the cost.
        wrt: the symbol that grows.
        point: a named model at whose sizes the numbers are taken; its own unless given.
    """
    problems = Problems()
    at = None if point is None else problems.attempt(modelled, point)
    cost = problems.attempt(named_cost, name)
    grown = problems.attempt(symbol, wrt)
    problems.refuse()
    refuse_fixed(work.model, grown.name)
    refuse_absent(work.model, work.strategy, grown.name)
    stepped = cost.total(work.rows)
    if at is not None:
        work = replace(work, model=replace(work.model, bindings=_sizes_of(at, work, stepped)))
    total = factored(smoothed(stepped))
    rows: list[tuple[Cell, ...]] = [
        ("total", total, number(work.value(total))),
        _scaled(work, f"derivative by {wrt}", lambda: factored(derivative(total, grown))),
        _scaled(work, f"elasticity in {wrt}", lambda: elasticity(total, grown)),
        _scaled(work, f"leading term in {wrt}", lambda: factored(leading_term(total, grown))),
    ]
    attention, mlp = (
        smoothed(cost.total(work.rows.below(path)))
        for path in ("block.attention.core", "block.mlp")
    )
    if attention.has(grown) and mlp != 0:
        label = f"attention core = MLP at {wrt}"
        solutions = _solutions(attention, mlp, wrt)
        values = ((point, work.value(point)) for point in solutions)
        rows += [(label, one, number(at)) for one, at in values if at.is_positive is not False]
    title = f"Scaling of {cost.name} [{cost.unit}] of {work.share.name} with {wrt}"
    notes = [] if smoothed(stepped) == stepped else [_SMOOTHED]
    if not total.has(grown):
        notes.append(f"{wrt} does not occur in this cost of this model under this strategy")
    return Sheet(
        title, headed("quantity, formula, value>"), tuple(rows), (*notes, *header(work, cost.name))
    )


def _sizes_of(at: Model, work: Setup, total: Expr) -> dict[str, int]:
    """Return the sizes of a named model, if it has those of a cost of another."""
    own = sizes_of(work.model)
    given = {*at.bindings, *work.numbers, microbatch.name}
    lacks = sorted(name for s in total.free_symbols if (name := s.name) in own - given)
    if lacks:
        raise InputError(
            f"--at {at.name} has no {', '.join(lacks)}, which this cost of {work.model.name} has: "
            "a named model of a like family is accepted"
        )
    return {name: size for name, size in at.bindings.items() if name in own}


_SMOOTHED = "padded sizes are taken as quotients: ceilings have no derivative"


def _solutions(left: Expr, right: Expr, wrt: str) -> list[Expr]:
    try:
        return crossover(left, right, symbol(wrt))
    except InputError:
        return []


def _scaled(work: Setup, label: str, make: Callable[[], Expr]) -> tuple[Cell, ...]:
    formula = make()
    return (label, formula, number(work.value(formula)))
