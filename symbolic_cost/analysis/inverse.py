"""Inverse answers: where a cost meets another one, and where it is least.

In closed form where the equation is linear, quadratic or of two terms in the symbol; else as exact
integers by search. Which of the two, the answer says.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from sympy import Expr, Integer, Number, Symbol

from symbolic_cost.analysis.forms import factored
from symbolic_cost.analysis.laurent import cleared, hidden_in
from symbolic_cost.analysis.roots import positive_roots
from symbolic_cost.errors import InputError
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import GLOSSARY, of_glossary
from symbolic_cost.symbols import symbol as glossary_symbol

LARGEST = 1 << 40
"""No integer is looked for beyond."""


class How(StrEnum):
    """How an answer was obtained."""

    CLOSED = "closed form"
    NUMERIC = "root of a polynomial, in floats"
    SEARCH = "exact integers, by search"


class Kind(StrEnum):
    """Which extremum."""

    LEAST = "least"
    GREATEST = "greatest"


@dataclass(frozen=True)
class Extremum:
    """Where a cost is least or greatest.

    Args:
        at: of the symbol.
        kind: of extremum.
    """

    at: Expr
    value: Expr
    kind: Kind
    how: How

    @property
    def least(self) -> bool:
        """Whether it is a least value."""
        return self.kind is Kind.LEAST


def optimum(expr: Expr, by: Symbol | str) -> tuple[Extremum, ...]:
    """Return where the derivative of a cost by a symbol is zero, at positive values of it.

    Args:
        expr: a cost; symbols of the glossary, or positive ones of your own.
        by: the symbol.

    Raises:
        InputError: the cost has a Max, ceiling or bracket of the symbol, does not depend on it, or
            needs numbers for other symbols.

    >>> from sympy import symbols
    >>> n, k = symbols("n k", positive=True)
    >>> (least,) = optimum(n / k + k, k)
    >>> least.at, least.value, least.least
    (sqrt(n), 2*sqrt(n), True)
    """
    variable = _variable(by)
    expr = of_glossary(expr)
    if variable not in expr.free_symbols:
        raise InputError(f"the cost does not depend on {variable}")
    numerator, _ = cleared(expr.diff(variable))
    hidden = hidden_in(numerator, {variable})
    if hidden:
        said = " and ".join(hidden)
        raise InputError(f"{variable} in {said}: search integers, or ask for branches")
    if not numerator:
        raise InputError(f"the cost is the same for every {variable}")
    curvature = expr.diff(variable, 2)
    extrema = []
    for root in positive_roots(numerator, variable):
        how = How.NUMERIC if root.has(_FLOAT) else How.CLOSED
        bend = factored(_plain(curvature.xreplace({variable: root})))
        value = _plain(expr.xreplace({variable: root}))
        kind = Kind.GREATEST if bend.is_positive is False else Kind.LEAST
        extrema.append(Extremum(root, value, kind, how))
    return tuple(extrema)


_FLOAT = type(Integer(1).evalf())


def _plain(expr: Expr) -> Expr:
    """Return a formula with roots in it multiplied out and collected."""
    return factored(expr.expand())


def _variable(by: Symbol | str) -> Symbol:
    if isinstance(by, Symbol) and by.is_positive and by.name not in GLOSSARY:
        return by
    return glossary_symbol(by)


Evaluation = Callable[[int], Number | int]
"""Exact value of a cost at an integer."""


def last_within(cost: Evaluation, bound: object) -> int | None:
    """Return the largest integer up to which a cost stays within a bound, by halving.

    The cost must not fall on the way: it is looked at where the interval is halved.

    Returns:
        None where one is too many already; `LARGEST` where all are within.

    >>> last_within(lambda n: 3 * n * n, 100)
    5
    """
    if cost(1) > bound:  # type: ignore[operator]
        return None
    low, high = 1, 2
    while high <= LARGEST and cost(high) <= bound:  # type: ignore[operator]
        low, high = high, 2 * high
    if high > LARGEST:
        return LARGEST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if cost(middle) <= bound else (low, middle)  # type: ignore[operator]
    return low


def first_change(gap: Evaluation) -> int | None:
    """Return the first integer at which a difference has another sign than at one, by halving.

    Returns:
        None where no sign changes between neighbouring powers of two.

    >>> first_change(lambda n: n * n - 50)
    8
    """
    sign = gap(1) >= 0
    low, high = 1, 2
    while high <= LARGEST and (gap(high) >= 0) is sign:
        low, high = high, 2 * high
    if high > LARGEST:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if (gap(middle) >= 0) is sign else (low, middle)
    return high


def least_integer(cost: Evaluation, candidates: range) -> tuple[int, object]:
    """Return the integer of a range at which a cost is least, all of them looked at.

    Raises:
        InputError: an empty range, or more than MOST_CANDIDATES.
    """
    if not 0 < len(candidates) <= MOST_CANDIDATES:
        raise InputError(f"{len(candidates)} integers: from 1 to {MOST_CANDIDATES} are looked at")
    best = min(candidates, key=lambda n: (cost(n), n))
    return best, cost(best)


MOST_CANDIDATES = 100_000
