"""The best use of a budget: least loss for a compute, least compute for a loss.

In closed form where one is derived (see `closed`), else by a search over the size, which says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import cached_property, lru_cache

from symbolic_cost.errors import InputError, quote, refuse
from symbolic_cost.records import dataclass
from symbolic_cost.scaling.closed import closed, numeric
from symbolic_cost.scaling.family import Family
from symbolic_cost.scaling.law import FLOP, Law, Number

_LEAST, _MOST = 1.0, 1e40
_POINTS, _HALVINGS, _STEP, _FAR = 80, 60, 1e-4, 1e15
_END, _CLOSE = 1.01, 1e-9


@dataclass(frozen=True)
class Optimum:
    """The best point of a budget.

    Args:
        law: name of the law, and of its constants.
        values: number of each variable, those that were not chosen included, what the law gives,
            "C" [FLOP].
        price: loss that one more FLOP removes [unit of the law per FLOP].
        exponents: power of the compute with which each variable grows, at this point.
        excess: power of the compute with which the loss falls to its limit; None where it is
            not known in closed form.
        how: "closed form" or "search".
        member: sizes of the family's member, if one was asked for.
        warnings: what is extrapolated.
    """

    law: str
    constants: str
    values: Mapping[str, float]
    price: float
    exponents: Mapping[str, float]
    how: str
    excess: float | None = None
    member: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Plane:
    """A law under a budget: the loss by the first variable, the second following from the budget.

    Args:
        flop: compute of the two variables [FLOP].
    """

    law: Law
    constants: str
    others: Mapping[str, Number]
    flop: Callable[[float, float], float]
    range: tuple[float, float] = (_LEAST, 1e20)

    @property
    def names(self) -> tuple[str, str]:
        first, second = self.law.chosen
        return first, second

    def loss(self, first: float, second: float) -> float:
        point = {self.names[0]: first, self.names[1]: second}
        return float(self.law.of({**self._constants, **point})[self.law.gives])

    @cached_property
    def _constants(self) -> dict[str, float]:
        constants = self.law.constants(self.constants).values
        numbers = {**constants, **self.law.fixed, **self.others}
        return {name: float(value) for name, value in numbers.items()}

    def second(self, first: float, budget: float) -> float:
        """Return what of the second variable a budget leaves; zero where it leaves none.

        Most computes are a line in the tokens, which two of its points give.
        """
        base, slope = self.flop(first, 0.0), self.flop(first, _FAR) - self.flop(first, 0.0)
        second = max(0.0, _FAR * (budget - base) / slope) if slope > 0 else 0.0
        if second == 0 or math.isclose(self.flop(first, second), budget, rel_tol=_CLOSE):
            return second
        return _rising(lambda value: self.flop(first, value), budget)

    def best(self, budget: float) -> tuple[float, float]:
        """Return the variables of the least loss."""

        def loss(first: float) -> float:
            second = self.second(first, budget)
            return self.loss(first, second) if second > _LEAST else math.inf

        first = _lowest(loss, *self.range)
        second = self.second(first, budget)
        self.refuse_end(first, second)
        return first, second

    def refuse_end(self, first: float, second: float) -> None:
        """Refuse a best point at the end of what is looked at: it is no optimum."""
        low, high = self.range
        if not (low * _END < first < high / _END and second > 2 * _LEAST):
            one, other = self.names
            raise InputError(
                f"law {self.law.name} has no optimum inside: {one} = {first:.3g}, "
                f"{other} = {second:.3g} is at the end of what is looked at"
            )

    def refuse_beaten(self, first: float, budget: float, loss: float) -> None:
        """Refuse a point that its neighbours beat: where it is level, it is not least."""
        for beside in (first * _END, first / _END):
            if self.loss(beside, self.second(beside, budget)) < loss * (1 - _CLOSE):
                raise InputError(f"law {self.law.name} has no least {self.law.gives} of a compute")


def optimum(
    law: Law,
    flop: float,
    constants: str | None = None,
    others: Mapping[str, Number] | None = None,
    family: Family | None = None,
) -> Optimum:
    """Return the least loss for a compute.

    Raises:
        InputError: several sets and none named, or nothing that can be chosen.
    """
    chosen = law.constants(constants)
    budget = _accepted("flop", flop)
    others = dict(others or {})
    if len(law.chosen) != 2:  # noqa: PLR2004 - a plane
        raise InputError(f"law {law.name} has no two variables to choose for a compute")
    solved = None if family is not None else _closed(law, chosen.name, budget, others)
    _check_others(law, others)
    plane = _Plane(law, chosen.name, others, _compute(law, others, family))
    if family is not None:
        plane = replace(plane, range=family.range)
    if solved is not None:
        plane.refuse_beaten(solved.values[plane.names[0]], budget, solved.values[law.gives])
    answer = _told(law, solved or _optimum_at(plane, *plane.best(budget)), others)
    small = [f"{name} = {n:.3g}" for name in plane.names if (n := answer.values[name]) < 1]
    if small:
        raise InputError(f"flop = {flop:g}: the best size is {', '.join(small)}: more is accepted")
    if family is None:
        return answer
    size = family.size_of(answer.values[plane.names[0]])
    return replace(answer, member={str(family.free): size})


def cheapest(
    law: Law, value: float, constants: str | None = None, others: Mapping[str, Number] | None = None
) -> Optimum:
    """Return the least compute for a loss, later inference included where the law has it.

    Raises:
        InputError: no size reaches that loss.
    """
    chosen, wanted, others = law.constants(constants), _accepted("loss", value), dict(others or {})
    _check_others(law, others)
    plane = _Plane(law, chosen.name, others, _compute(law, others, None))

    def second(first: float) -> float:
        if plane.loss(first, _MOST) >= wanted:
            return math.inf
        return _rising(lambda data: -plane.loss(first, data), -wanted)

    def flop(first: float) -> float:
        data = second(first)
        return plane.flop(first, data) if math.isfinite(data) else math.inf

    first = _lowest(flop, *plane.range)
    if not math.isfinite(flop(first)):
        raise InputError(f"no size reaches a loss of {wanted:g} under law {law.name}")
    plane.refuse_end(first, second(first))
    return _told(law, _optimum_at(plane, first, second(first)), others)


def _told(law: Law, answer: Optimum, others: Mapping[str, Number]) -> Optimum:
    """Return an optimum with the variables that it did not choose, and what is extrapolated."""
    warnings = law.warnings({**answer.values, **others}, answer.constants)
    held = {name: float(value) for name, value in {**law.fixed, **others}.items()}
    return replace(answer, values={**held, **answer.values}, warnings=warnings)


def _check_others(law: Law, others: Mapping[str, Number]) -> None:
    """Refuse variables that are none of the law, and those that are chosen."""
    law.check({**dict.fromkeys(law.chosen, 1), **others})
    refuse(
        f"{name} = {others[name]:g} is not read: a compute or a loss chooses {name}"
        for name in law.chosen
        if name in others
    )


def _compute(
    law: Law, others: Mapping[str, Number], family: Family | None
) -> Callable[[float, float], float]:
    """Return the compute as a function of the two chosen variables."""
    if family is not None:
        if law.counts != family.counts:
            raise InputError(
                f"law {law.name} counts {law.counts} parameters: give a family that does"
            )
        per_token = lru_cache(1)(lambda parameters: family.at(family.size_of(parameters))[1])
        return lambda parameters, tokens: tokens * per_token(parameters)
    formula, known = law.flop(), {**law.fixed, **others}
    first, second = law.chosen
    return lambda one, other: float(formula.number({**known, first: one, second: other}))


def _closed(
    law: Law, constants: str, budget: float, others: Mapping[str, Number]
) -> Optimum | None:
    """Return the optimum in closed form, if one is derived."""
    try:
        forms = closed(law)
    except InputError:
        return None
    numbers = {**law.constants(constants).values, **law.fixed, **others}
    known = {name: float(value) for name, value in numbers.items()}
    for name, formula in law.where.items():  # those of parameters alone stand in the formulas
        if formula.names <= known.keys():
            known[name] = float(formula.number(known))
    known[FLOP] = budget
    try:
        values = {name: numeric(expr, known) for name, expr in forms.best.items()}
    except (TypeError, ValueError):  # no real number
        raise InputError(f"law {law.name} has no least {law.gives} of a compute") from None
    values |= {law.gives: float(law.at({**others, **values}, constants)[law.gives]), FLOP: budget}
    exponents = {name: numeric(expr, known) for name, expr in forms.exponents.items()}
    price, excess = numeric(forms.price, known), numeric(forms.excess, known)
    return Optimum(law.name, constants, values, price, exponents, "closed form", excess)


def _optimum_at(plane: _Plane, first: float, second: float) -> Optimum:
    """Return a point with the price of a FLOP and the local exponents there.

    At an optimum the price is the same in each direction: d loss / d D over d C / d D.
    """
    names, budget = plane.names, plane.flop(first, second)
    up, down = second * (1 + _STEP), second * (1 - _STEP)
    price = (plane.loss(first, down) - plane.loss(first, up)) / (
        plane.flop(first, up) - plane.flop(first, down)
    )
    if price <= 0:
        raise InputError(
            f"law {plane.law.name} has no optimum at {budget:.3g} FLOP: its {plane.law.gives} is "
            f"level there, and less compute gives {plane.loss(first, second):.6g} as well"
        )
    wider = 1.05
    more, less = plane.best(budget * wider), plane.best(budget / wider)
    grown = [math.log(a / b) / (2 * math.log(wider)) for a, b in zip(more, less, strict=True)]
    values = {names[0]: first, names[1]: second, FLOP: budget}
    values[plane.law.gives] = plane.loss(first, second)
    exponents = dict(zip(names, grown, strict=True))
    return Optimum(plane.law.name, plane.constants, values, price, exponents, "search")


def _accepted(name: str, value: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 < number < _MOST:
        raise InputError(
            f"{name} = {quote(value)}: a number above 0 and below {_MOST:g} is accepted"
        )
    return number


def _rising(function: Callable[[float], float], wanted: float) -> float:
    """Return where a rising function reaches a number; zero if it is above it from the start."""
    low, high = 0.0, math.log(_MOST)
    if function(_LEAST) > wanted:
        return 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if function(math.exp(middle)) < wanted else (low, middle)
    return math.exp((low + high) / 2)


def _lowest(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function is least: the best of a grid, refined by golden section."""
    ends = math.log(low), math.log(high)
    width = (ends[1] - ends[0]) / _POINTS
    grid = [ends[0] + width * step for step in range(_POINTS + 1)]
    best = min(grid, key=lambda x: function(math.exp(x)))
    start, end = max(ends[0], best - width), min(ends[1], best + width)
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(40):
        left, right = end - golden * (end - start), start + golden * (end - start)
        if function(math.exp(left)) <= function(math.exp(right)):
            end = right
        else:
            start = left
    return math.exp((start + end) / 2)
