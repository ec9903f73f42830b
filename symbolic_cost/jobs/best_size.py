"""The size at which a quantity of a job is least: in closed form, and among integers."""

from __future__ import annotations

from fractions import Fraction

from sympy import Expr

from symbolic_cost.analysis.inverse import How, least_integer, optimum
from symbolic_cost.emit.sheet import Cell, Measured, Sheet, headed
from symbolic_cost.errors import InputError, Problems
from symbolic_cost.jobs.header import by_unit, header
from symbolic_cost.jobs.job import Job
from symbolic_cost.jobs.numbers import degree_names
from symbolic_cost.jobs.quantities import (
    Quantity,
    fuller,
    is_legal,
    is_made_anew,
    moves_microbatches,
    quantity,
    refuse_unread,
    resized,
)
from symbolic_cost.jobs.tables.totals import number
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import b, symbol


@dataclass(frozen=True)
class Best:
    """Where a quantity of a job is least.

    Args:
        closed: where its derivative is zero, in closed form; empty where none was found.
        refused: why there is no closed form.
        integer: the best legal integer of a range; None without numbers.
        evaluations: how many integers were looked at.
    """

    of: Quantity
    by: str
    closed: tuple[Expr, ...]
    refused: str
    integer: int | None
    value: Fraction | None
    evaluations: int
    slope: Fraction | None

    def sheet(self) -> Sheet:
        """Tabulate both answers and how they were obtained."""
        run, unit = self.of.run, self.of.unit
        rows: list[tuple[Cell, ...]] = [
            (f"{self.by} of least {self.of.name}", root, number(run.value(root)), How.CLOSED.value)
            for root in self.closed
        ]
        if self.integer is not None and self.value is not None:
            how = f"{How.SEARCH.value}: all {self.evaluations} that are legal"
            rows.append((f"best {self.by}", None, self.integer, how))
            rows.append((f"{self.of.name} there", None, Measured(self.value, unit), "exact"))
        if self.slope is not None:
            slope = Measured(self.slope, unit)
            rows.append((f"derivative there, per {self.by}", None, slope, "what jumps is flat"))
        columns = headed("what, formula, value>, how")
        notes = [f"no closed form: {self.refused}"] if self.refused else []
        if self.integer is not None:
            notes += fuller(self.of, self.by, self.integer)
            run = resized(run, self.by, self.integer)
        title = f"Least {self.of.name} of {run.model.name} in {self.by}"
        return Sheet(title, columns, tuple(rows), (*notes, *header(run, *by_unit(unit))))


_MOST = 10_000


def best_size(run: Job, of: str, by: str, candidates: range) -> Best:
    """Return where a quantity of a job is least: in closed form, and among integers."""
    problems = Problems()
    if len(candidates) > _MOST:
        told = f"{len(candidates):,} candidates: at most {_MOST:,} are looked at"
        problems.texts.append(f"range {candidates[0]}:{candidates[-1]}: {told}")
    it = problems.attempt(quantity, run, of)
    variable = problems.attempt(symbol, degree_names().get(by, by))
    problems.refuse()
    refuse_unread(variable.name, it)
    if is_made_anew(it, variable.name):
        return _rebuilt(run, it, variable.name, candidates)
    closed: tuple[Expr, ...] = ()
    refused = "the step is a chain of definitions" if it.expr is None else ""
    if it.expr is not None:
        try:
            closed = tuple(one.at for one in optimum(it.expr, variable) if one.least)
            refused = "" if closed else "no positive zero of the derivative"
        except InputError as error:
            refused = str(error)
    missing = [n for n in it.program.inputs if n != variable.name and n not in it.values]
    if missing:
        return Best(it, variable.name, closed, refused, None, None, 0, None)
    legal = [n for n in candidates if it.legal(variable.name, n)]
    lone = it.lone(variable.name) if 1 in candidates and 1 not in legal else None
    if not legal and lone is None:
        raise InputError(f"no {variable.name} from {candidates[0]} to {candidates[-1]} is legal")
    tried = len(legal) + (lone is not None)
    legal = legal or [1]  # the lone one alone
    place, _ = least_integer(lambda n: it.at(**{variable.name: legal[n]}), range(len(legal)))
    sizes = {variable.name: legal[place]}
    value = Fraction(it.at(**sizes))
    if lone is not None and (tried == 1 or lone <= value):
        return Best(it, variable.name, closed, refused, 1, lone, tried, None)
    slope = Fraction(it.slope(variable.name, **sizes))
    return Best(it, variable.name, closed, refused, legal[place], value, tried, slope)


def _rebuilt(run: Job, it: Quantity, by: str, candidates: range) -> Best:
    """Look at jobs of their own, where microbatches or degrees of a step follow from a size."""
    values: dict[int, Fraction] = {}
    whole = run.global_batch if by == b.name else None
    for size in (one for one in candidates if whole is None or whole % one == 0):
        try:
            own = resized(run, by, size)
            if is_legal(own, own.values):
                values[size] = Fraction(quantity(own, it.name).at())
        except InputError:  # a size that the batch or a degree does not divide
            continue
    if not values:
        raise InputError(f"no {by} from {candidates[0]} to {candidates[-1]} is legal")
    best = min(values, key=lambda size: (values[size], size))
    refused = f"with another {by} a step is another chain"
    if moves_microbatches(run, by):
        refused = f"microbatches of the global batch of {run.global_batch} follow from {by}"
    return Best(it, by, (), refused, best, values[best], len(values), None)
