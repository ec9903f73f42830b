"""Named normal forms of costs; no form depends on the order in which a cost was built.

SymPy's general passes decide by heuristics and take seconds on totals. These walk the terms once.
Max, ceiling, Piecewise and brackets are left as they are.
"""

from sympy import Add, Expr, Mul, Symbol, ceiling, floor

from symbolic_cost.analysis.laurent import Terms, cleared, expression, monomial_of, terms
from symbolic_cost.analysis.normal import human


def expanded(expr: Expr) -> Expr:
    """Return the sum of monomials, in the expression's unit.

    >>> from symbolic_cost.symbols import b, e, m1
    >>> expanded(b * (e + 2) ** 2 / m1)
    b*e**2/m1 + 4*b*e/m1 + 4*b/m1
    """
    return expression(terms(expr))


def factored(expr: Expr) -> Expr:
    """Return the form for people: what all terms share, times what is left; see `normal`.

    >>> from symbolic_cost.symbols import b, e, h, l
    >>> factored(34 * b * e * l + 5 * b * h * l**2)
    b*l*(34*e + 5*h*l)
    """
    return human(expr)


def collected(expr: Expr, *symbols: Symbol) -> Expr:
    """Return a sum over the powers of the given symbols, each times its coefficient's human form.

    Args:
        expr: a cost.
        symbols: by whose powers the terms are grouped.

    >>> from symbolic_cost.symbols import b, e, l
    >>> collected(b * l * (2 * e + l) + 4 * e * l, l)
    b*l**2 + 2*e*l*(b + 2)
    """
    return Add(
        *(
            rest if power == 1 else Mul(power, rest)
            for power, rest in coefficients(expr, *symbols).items()
        )
    )


def coefficients(expr: Expr, *symbols: Symbol) -> dict[Expr, Expr]:
    """Return the human form of the coefficient by power product of the given symbols."""
    groups: dict[Expr, Terms] = {}
    for one, number in terms(expr).items():
        power = frozenset((atom, exponent) for atom, exponent in one if atom in symbols)
        groups.setdefault(monomial_of(power), {})[one - power] = number
    return {power: human(expression(group)) for power, group in groups.items()}


def equal(left: Expr, right: Expr) -> bool:
    """Tell whether two costs are the same function; Max, ceiling and the like compare as symbols.

    >>> from symbolic_cost.symbols import e, l
    >>> equal((e + l) * (e - l), e**2 - l**2), equal(e, l)
    (True, False)
    """
    numerator, _ = cleared(left - right)
    return not numerator


def smoothed(expr: Expr) -> Expr:
    """Return a cost with its ceilings and floors left out, so that it has derivatives.

    >>> from sympy import ceiling
    >>> from symbolic_cost.symbols import V, e, m1
    >>> smoothed(e * ceiling(V / m1))
    V*e/m1
    """
    return expr.replace(ceiling, lambda x: x).replace(floor, lambda x: x)


def leaves(expr: Expr) -> int:
    """Return how many symbols and numbers a formula has."""
    return sum(map(leaves, expr.args)) if expr.args else 1
