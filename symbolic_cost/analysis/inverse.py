"""Inverse answers: where a cost meets another one, and where it is least.

Zeros of differences are exact up to quadratic equations, numeric beyond. Answers are in closed
form where the equation is linear, quadratic or of two terms in the symbol; else exact integers by
search. Which of the two, the answer says.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from sympy import Add, Expr, Integer, Max, Min, Mul, Number, Poly, Symbol, default_sort_key, sqrt

from symbolic_cost.analysis.forms import coefficients, factored
from symbolic_cost.analysis.laurent import Terms, cleared, expression, hidden_in
from symbolic_cost.errors import InputError
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import GLOSSARY, in_glossary_order, of_glossary
from symbolic_cost.symbols import symbol as glossary_symbol

_DIGITS = 17
"""Significant decimal digits that determine a float64."""

_OCTAVES = 60
"""Counts up to 2**60 are searched for sign changes."""

_BISECTIONS = 60
"""Halvings of one octave, which exhaust the digits of a float64."""


def positive_roots(numerator: Terms, symbol: Symbol) -> list[Expr]:
    """Return where a sum of terms is zero: positive values of a symbol, in increasing order.

    A root is left out only if it is known not to be positive.

    Raises:
        InputError: the equation is solved only numerically, and other symbols have no number.
    """
    roots = [root for root in _roots(numerator, symbol) if root.is_positive is not False]
    return sorted(roots, key=_order)


def _roots(numerator: Terms, symbol: Symbol) -> list[Expr]:
    if hidden_in(numerator, {symbol}):
        return _sign_changes(_bound(expression(numerator), symbol), symbol)
    by_degree = _by_degree(numerator, symbol)
    degrees = sorted(by_degree)
    if len(degrees) == 1:
        return []
    if len(degrees) == 2:  # noqa: PLR2004 - a two-term equation
        ratio = _ratio(-by_degree[degrees[0]], by_degree[degrees[1]])
        return [] if ratio.is_positive is False else [ratio ** (1 / degrees[1])]
    if degrees == [0, 1, 2]:
        return _quadratic_roots(*(by_degree[degree] for degree in degrees))
    whole = _bound(Add(*(rest * symbol**degree for degree, rest in by_degree.items())), symbol)
    if all(degree.is_Integer for degree in degrees):
        return [root.n(_DIGITS) for root, _ in Poly(whole, symbol).real_roots(multiple=False)]
    return _sign_changes(whole, symbol)


def _by_degree(numerator: Terms, symbol: Symbol) -> dict[Number, Expr]:
    """Return the coefficients by degree, the lowest degree shifted to zero."""
    by_degree = {
        power.as_base_exp()[1] if power != 1 else Integer(0): rest
        for power, rest in coefficients(expression(numerator), symbol).items()
    }
    lowest = min(by_degree)
    return {degree - lowest: rest for degree, rest in by_degree.items()}


def _quadratic_roots(constant: Expr, linear: Expr, square: Expr) -> list[Expr]:
    half, product = _ratio(-linear, 2 * square), _ratio(constant, square)
    discriminant = factored(half**2 - product)
    if discriminant.is_negative:
        return []
    upper, lower = half + sqrt(discriminant), half - sqrt(discriminant)
    if product.is_negative:  # the roots have different signs
        return [upper]
    return [upper] if discriminant == 0 else [lower, upper]


def _bound(expr: Expr, symbol: Symbol) -> Expr:
    """Return an expression of one symbol, or refuse what has others."""
    others = in_glossary_order(expr.free_symbols - {symbol})
    if others:
        raise InputError(
            f"this equation has no exact solution for {symbol.name}: give numbers to "
            f"{', '.join(other.name for other in others)} to have it solved numerically"
        )
    return expr


def _sign_changes(expr: Expr, symbol: Symbol) -> list[Expr]:
    """Return where an expression changes its sign, one place between two powers of two."""
    lowest = 0 if symbol.is_integer else -_OCTAVES
    points = [Integer(2) ** power for power in range(lowest, _OCTAVES + 1)]
    signs = [_sign(expr, symbol, point) for point in points]
    exact_hits = [point for point, sign in zip(points, signs, strict=True) if sign == 0]
    between = [
        _bisected(expr, symbol, points[place], points[place + 1])
        for place in range(len(points) - 1)
        if signs[place] * signs[place + 1] < 0
    ]
    return exact_hits + between


def _bisected(expr: Expr, symbol: Symbol, low: Expr, high: Expr) -> Expr:
    sign_low = _sign(expr, symbol, low)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if _sign(expr, symbol, middle) == sign_low:
            low = middle
        else:
            high = middle
    return high.n(_DIGITS)


def _sign(expr: Expr, symbol: Symbol, point: Expr) -> int:
    value = expr.xreplace({symbol: point})
    return int(bool(value > 0)) - int(bool(value < 0))


def _ratio(above: Expr, below: Expr) -> Expr:
    return Mul(factored(above), 1 / factored(below))


def _order(root: Expr) -> tuple[bool, object]:
    return (True, default_sort_key(root)) if root.free_symbols else (False, root.n(_DIGITS))


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
    bends = {node.func.__name__ for node in expr.atoms(Max, Min) if variable in node.free_symbols}
    if bends:  # the brackets of their derivatives multiplied out take minutes
        said = " and ".join(sorted(bends))
        raise InputError(f"{variable} in {said}: search integers, or ask for branches")
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
    last = _last(lambda n: bool(cost(n) <= bound))  # type: ignore[operator]
    return min(last, LARGEST) if last else None


def first_change(gap: Evaluation) -> int | None:
    """Return the first integer at which a difference has another sign than at one, by halving.

    Returns:
        None where no sign changes between neighbouring powers of two.

    >>> first_change(lambda n: n * n - 50)
    8
    """
    sign = gap(1) >= 0
    last = _last(lambda n: (gap(n) >= 0) is sign)
    return last + 1 if last < LARGEST else None


def _last(holds: Callable[[int], bool]) -> int:
    """Return the largest integer up to which something holds; `LARGEST` or more if it stays so."""
    low, high = 0, 1
    while high <= LARGEST and holds(high):
        low, high = high, 2 * high
    while high <= LARGEST and high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


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
