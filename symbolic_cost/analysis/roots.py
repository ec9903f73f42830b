"""Zeros of costs' differences: exact up to quadratic equations, numeric beyond."""

from sympy import Add, Expr, Integer, Mul, Number, Poly, Symbol, default_sort_key, sqrt

from symbolic_cost.analysis.forms import coefficients, factored
from symbolic_cost.analysis.laurent import Terms, expression, hidden_in
from symbolic_cost.errors import InputError
from symbolic_cost.symbols import in_glossary_order

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
