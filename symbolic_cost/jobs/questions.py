"""Questions about a job that formulas answer: crossovers, sensitivities, dominance."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from sympy import Expr

from symbolic_cost.analysis.dominance import Map, Region, dominance, dominance_map
from symbolic_cost.analysis.forms import factored, leaves, smoothed
from symbolic_cost.analysis.inverse import How, first_change
from symbolic_cost.analysis.scaling import crossover
from symbolic_cost.analysis.sensitivity import Sensitivity, branches, sensitivity
from symbolic_cost.costs import COSTS
from symbolic_cost.emit.formulas import plain
from symbolic_cost.emit.sheet import Cell, Measured, Sheet, headed
from symbolic_cost.errors import InputError, Problems, refuse
from symbolic_cost.jobs.header import by_unit, header, without_number
from symbolic_cost.jobs.job import Job
from symbolic_cost.jobs.numbers import degree_names
from symbolic_cost.jobs.quantities import (
    Quantity,
    in_its_precision,
    part_named,
    quantity,
    refuse_moved,
    refuse_unread,
    resized,
    unit_of,
)
from symbolic_cost.jobs.setup import refuse_fixed
from symbolic_cost.jobs.tables.totals import number
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact, symbol

MOST_SYMBOLS = 80
"""Symbols and numbers of the longest formula that is shown in a table."""


@dataclass(frozen=True)
class Crossing:
    """Where two quantities of a job meet.

    Args:
        roots: in closed form, where one was found.
        integer: the first at which the other one is greater; None where none was found, or
            numbers are missing.
        slope: of the difference there, per one of the symbol; None without numbers.
        lacking: symbols without numbers.
    """

    sides: tuple[Quantity, Quantity]
    by: str
    roots: tuple[Expr, ...]
    how: How
    integer: int | None
    slope: Fraction | None
    lacking: frozenset[str]

    def sheet(self) -> Sheet:
        """Tabulate the roots and the integer, and how they were obtained."""
        left, right = self.sides
        run = left.run
        if not self.roots and self.integer is None and self.lacking:
            raise InputError(f"{left.name} and {right.name} are equal for no positive {self.by}")
        equal = f"{self.by} where they are equal"
        known = ((root, run.value(root)) for root in self.roots)
        roots = [root for root, size in known if not (size.is_number and size < 1)]
        rows = [root_row(equal, root, self.how, run) for root in roots]
        if self.integer is not None:
            more = right if self._is_greater() else left
            what = f"first {self.by} at which {more.name} is greater"
            rows.append((what, None, self.integer, How.SEARCH.value))
        elif not rows:
            more, less = (left, right) if self._is_greater() else (right, left)
            said = f"{more.name} is greater than {less.name} at every {self.by} from 1 on"
            rows.append((self.by, None, "none", said))
        if self.slope is not None:
            unit = f"{left.unit.value} per {self.by}"
            rows.append((f"derivative of the difference [{unit}]", None, self.slope, "derived"))
        title = f"{left.name} and {right.name} of {run.model.name} meet in {self.by}"
        run = run if self.integer is None else resized(run, self.by, self.integer)
        own = header(run, *by_unit(left.unit))
        return Sheet(title, headed("what, formula, value>, how"), tuple(rows), own)

    def _is_greater(self) -> bool:
        """Tell whether the left side is greater at one, or as great: before the order changes."""
        left, right = (Fraction(side.at(**{self.by: 1})) for side in self.sides)
        return left >= right


def root_row(name: str, root: Expr, how: How, run: Job) -> tuple[Cell, ...]:
    """Return the row of a root; one of very many symbols is not written."""
    length, value = leaves(root), number(run.value(root))
    if length > MOST_SYMBOLS:
        return name, None, value, f"{how.value}, too long to show: {length} symbols and numbers"
    return name, root, value, how.value


def crossing(run: Job, left: str, right: str, by: str, cost: str = "flops") -> Crossing:
    """Return where two quantities of a job are equal, as a symbol grows."""
    problems, run = Problems(), in_its_precision(run, left, right)
    one, other = (problems.attempt(quantity, run, name, cost) for name in (left, right))
    variable = problems.attempt(symbol, degree_names().get(by, by))
    problems.refuse()
    refuse_moved(variable.name, one, other)
    if one.unit is not other.unit:
        raise InputError(f"{left} is in {one.unit}, {right} in {other.unit}: name two of one unit")
    if one.program == other.program:
        raise InputError(f"{left} and {right} are equal at every {variable.name}")
    roots: tuple[Expr, ...] = ()
    how = How.CLOSED
    if one.expr is not None and other.expr is not None:
        try:
            roots = _roots(one.expr, other.expr, variable.name)
        except InputError:
            bound = [run.value(e) if e is not None else e for e in _others(one, other, by)]
            how = How.NUMERIC
            roots = _maybe(bound, variable.name)
    inputs = frozenset((*one.program.inputs, *other.program.inputs))
    lacking = inputs - {variable.name, *one.values}
    if lacking and None in (one.expr, other.expr):
        raise InputError(without_number(sorted(lacking)))
    integer, slope = (None, None) if lacking else _integer(one, other, variable.name)
    return Crossing((one, other), variable.name, roots, how, integer, slope, lacking)


def _roots(left: Expr, right: Expr, by: str) -> tuple[Expr, ...]:
    roots = crossover(smoothed(left), smoothed(right), by)
    return tuple(factored(root) if not root.is_number else root for root in roots)


def _others(one: Quantity, other: Quantity, by: str) -> list[Expr]:
    """Return both formulas with numbers for all symbols but one."""
    values = {symbol(n): exact(v) for n, v in one.values.items() if n != by}
    return [q.expr.xreplace(values) for q in (one, other) if q.expr is not None]


def _maybe(pair: list[Expr], by: str) -> tuple[Expr, ...]:
    try:
        return tuple(crossover(pair[0], pair[1], by))
    except InputError:
        return ()


def _integer(one: Quantity, other: Quantity, by: str) -> tuple[int | None, Fraction | None]:
    """Return the first integer of another order and the slope there."""
    change = first_change(lambda n: Fraction(one.at(**{by: n})) - Fraction(other.at(**{by: n})))
    if change is None:
        return None, None
    slopes = [Fraction(q.slope(by, **{by: change})) for q in (one, other)]
    return change, slopes[0] - slopes[1]


def elasticities(run: Job, names: Iterable[str] = ()) -> Sensitivity:
    """Return the elasticity of costs in every symbol, at the numbers of a job."""
    problems = Problems()
    wanted = tuple(names)
    run = in_its_precision(run, *wanted)
    chosen = [problems.attempt(quantity, run, name) for name in wanted]
    problems.refuse()
    totals = {one.name: one.expr for one in chosen if one.expr is not None}
    if not wanted:
        totals = {name: cost.total(run.rows) for name, cost in COSTS.items()}
        totals = {name: expr for name, expr in totals.items() if expr != 0}
    missing = sorted(
        {s.name for expr in totals.values() for s in expr.free_symbols} - {*run.values}
    )
    if missing:
        raise InputError(f"no number for {', '.join(missing)}: bind them, as in --set b=1")
    return sensitivity(totals, run.values)


def sensitivity_sheet(run: Job, names: Iterable[str] = ()) -> Sheet:
    """Tabulate the elasticities of costs: rows by cost, columns by symbol."""
    wanted = tuple(names)
    run = in_its_precision(run, *wanted)
    matrix = elasticities(run, wanted)
    columns = headed(", ".join(["cost, value>", *(f"{name}>" for name in matrix.symbols)]))
    rows = tuple(
        (
            *(name, Measured(total, unit_of(name))),
            *(round(matrix.elasticities[name][one], 4) for one in matrix.symbols),
        )
        for name, total in matrix.totals.items()
    )
    jumps = {name: ", ".join(by) for name, by in matrix.jumping.items() if by}
    said = "; ".join(f"{name} jumps in {by}" for name, by in jumps.items())
    notes = (
        "per cent of the cost per per cent of the symbol, at the numbers below",
        *((f"ceilings and floors count as what they round: {said}",) if said else ()),
        *header(run, *matrix.totals),
    )
    return Sheet(f"Elasticities of {run.model.name}", columns, rows, notes)


def branch_sheet(run: Job, name: str, by: str) -> Sheet:
    """Tabulate the derivative of a quantity, branch by branch with its condition."""
    it = quantity(run, name)
    refuse_fixed(run.model, by)
    if it.expr is None:
        raise InputError(
            f"{name} is a chain of definitions, without branches: time --in {by} tells"
        )
    refuse_unread(by, it)
    rows: list[tuple[Cell, ...]] = []
    for one in branches(it.expr, by):
        where = " and ".join(map(plain, one.where)) or "always"
        flat = ", ".join(map(plain, one.flat))
        rows.append((where, one.slope, number(run.value(one.slope)), flat))
    columns = headed(f"where, derivative by {by}, value>, taken as flat")
    return Sheet(
        f"Derivative of {name} of {run.model.name}", columns, tuple(rows), header(it.run, name)
    )


def dominating(run: Job, names: Iterable[str], cost: str = "flops") -> tuple[Region, ...]:
    """Return where each part of a job is the costliest, as inequalities."""
    return dominance(_parts(run, names, cost))


def _parts(run: Job, names: Iterable[str], cost: str) -> dict[str, Expr]:
    problems = Problems()
    quantities = [problems.attempt(quantity, run, name, cost) for name in names]
    problems.refuse()
    inside = [
        f"{one.name} is a part of {other.name}: parts beside each other are accepted"
        for one in quantities
        for other in quantities
        if other is not one and _within(run, one.name, other.name)
    ]
    refuse(inside)
    if len({one.unit for one in quantities}) > 1:
        raise InputError(f"{', '.join(one.name for one in quantities)}: name parts of one unit")
    return {one.name: one.expr for one in quantities if one.expr is not None}


def _within(run: Job, name: str, other: str) -> bool:
    """Tell whether a part is one of the ops of another."""
    if name in COSTS or other in COSTS:
        return False
    inner, outer = (part_named(run.rows, one) for one in (name, other))
    return inner.startswith(f"{outer}.")


def dominance_sheet(run: Job, names: Iterable[str], cost: str = "flops") -> Sheet:
    """Tabulate the inequalities under which each part is the costliest."""
    rows: list[tuple[Cell, ...]] = []
    for region in dominating(run, names, cost):
        for other, (greater, less) in region.inequalities.items():
            sides = run.value(greater), run.value(less)
            known = not (sides[0].free_symbols | sides[1].free_symbols)
            holds = ("yes" if sides[0] >= sides[1] else "no") if known else ""
            rows.append((region.part, other, f"{plain(greater)} >= {plain(less)}", holds))
    title = f"Which part of {run.model.name} takes most {cost}"
    return Sheet(title, headed("greatest, before, where, here"), tuple(rows), header(run, cost))


def dominance_picture(
    run: Job,
    names: Iterable[str],
    cost: str,
    across: tuple[str, tuple[int, int]],
    up: tuple[str, tuple[int, int]],
) -> Map:
    """Return the map of the costliest part over two symbols, all others at the job's numbers."""
    for by, _ in (across, up):
        refuse_fixed(run.model, by)
    return dominance_map(_parts(run, names, cost), run.values, across, up)
