"""Laurent polynomials: a cost as a sum of monomials with integer exponents of either sign.

Every smooth cost is a short Laurent polynomial over symbols. What is not (Max, ceiling, Piecewise,
brackets, reciprocals of sums) is an atom: it takes part as if it were a symbol.
"""

from collections.abc import Iterable, Mapping
from math import gcd, lcm

from sympy import Add, Expr, Integer, Mul, Number, Pow, Rational, Symbol

Monomial = frozenset[tuple[Expr, Number]]
"""Atoms with their exponents, none of them zero; empty for a constant."""

Terms = dict[Monomial, Number]
"""Coefficient by monomial, none of them zero; empty for zero."""

_ONE: Monomial = frozenset()


def terms(expr: Expr) -> Terms:
    """Expand an expression into its monomials."""
    if expr.is_Number:
        return {_ONE: expr} if expr != 0 else {}
    if isinstance(expr, Add):
        return _sum(terms(argument) for argument in expr.args)
    if isinstance(expr, Mul):
        result: Terms = {_ONE: Integer(1)}
        for argument in expr.args:
            result = _product(result, terms(argument))
        return result
    if isinstance(expr, Pow):
        return _power(expr)
    return _atom(expr)


def expression(polynomial: Terms) -> Expr:
    """Return the sum of the monomials."""
    return Add(*(Mul(coefficient, monomial_of(one)) for one, coefficient in polynomial.items()))


def monomial_of(one: Monomial) -> Expr:
    """Return a monomial as a product of powers."""
    return Mul(*(Pow(atom, exponent) for atom, exponent in one))


def divided(one: Monomial, other: Monomial) -> Monomial:
    """Return the quotient of two monomials."""
    return _times(one, frozenset((atom, -exponent) for atom, exponent in other))


def content(polynomial: Terms) -> tuple[Number, Monomial]:
    """Return what all terms have in common: a rational number and a monomial.

    Divided by it, the coefficients are coprime integers, not all of them negative, and no atom
    stands in a denominator or in every term.
    """
    lowest: dict[Expr, Number] = {}
    for atom in {atom for one in polynomial for atom, _ in one}:
        lowest[atom] = min(dict(one).get(atom, Integer(0)) for one in polynomial)
    common = frozenset((atom, exponent) for atom, exponent in lowest.items() if exponent != 0)
    return common_factor(polynomial.values()), common


def cleared(expr: Expr) -> tuple[Terms, Expr]:
    """Return numerator and denominator such that no sum stands in a denominator of the numerator.

    The denominator is a product of powers of sums; it is 1 for a Laurent polynomial.
    """
    polynomial, denominator = terms(expr), Integer(1)
    while sums := _sums_below(polynomial):
        factor = frozenset((atom, -exponent) for atom, exponent in sums.items())
        denominator = denominator * monomial_of(factor)
        polynomial = terms(expression({_times(one, factor): c for one, c in polynomial.items()}))
    return polynomial, denominator


def hidden_in(polynomial: Terms, symbols: set[Symbol]) -> list[str]:
    """Name the atoms (Max, ceiling, ...) inside of which one of the symbols stands."""
    atoms = {atom for one in polynomial for atom, _ in one if not isinstance(atom, Symbol)}
    return sorted(str(atom) for atom in atoms if atom.free_symbols & symbols)


def _sums_below(polynomial: Terms) -> dict[Expr, Number]:
    """Return the lowest negative exponent of every sum that is an atom."""
    lowest: dict[Expr, Number] = {}
    for one in polynomial:
        for atom, exponent in one:
            if isinstance(atom, Add) and exponent < 0:
                lowest[atom] = min(exponent, lowest.get(atom, exponent))
    return lowest


def common_factor(coefficients: Iterable[Number]) -> Number:
    """Return the rational number that leaves coprime integers, not all of them negative."""
    numbers = list(coefficients)
    if not all(number.is_Rational for number in numbers):
        return Integer(1)
    factor = Rational(gcd(*(n.p for n in numbers)), lcm(*(n.q for n in numbers)))
    return -factor if all(number < 0 for number in numbers) else factor


def _atom(expr: Expr, exponent: Number = Integer(1)) -> Terms:
    return {frozenset([(expr, exponent)]): Integer(1)}


def _sum(many: Iterable[Terms]) -> Terms:
    total: Terms = {}
    for addend in many:
        for one, coefficient in addend.items():
            total[one] = total.get(one, Integer(0)) + coefficient
    return {one: coefficient for one, coefficient in total.items() if coefficient != 0}


def _product(left: Terms, right: Terms) -> Terms:
    return _sum(
        {_times(one, other): c * d} for one, c in left.items() for other, d in right.items()
    )


def _times(one: Monomial, other: Monomial) -> Monomial:
    exponents: dict[Expr, Number] = dict(one)
    for atom, exponent in other:
        exponents[atom] = exponents.get(atom, Integer(0)) + exponent
    return frozenset((atom, exponent) for atom, exponent in exponents.items() if exponent != 0)


def _power(expr: Pow) -> Terms:
    base, exponent = expr.as_base_exp()
    if isinstance(base, Symbol) and exponent.is_Rational:
        return _atom(base, exponent)
    if not exponent.is_Integer:
        return _atom(expr)
    polynomial = terms(base)
    if len(polynomial) == 1:
        return _monomial_power(polynomial, exponent)
    if exponent < 0:
        number, common = content(polynomial)
        rest = {divided(one, common): c / number for one, c in polynomial.items()}
        outside = _monomial_power({common: number}, exponent)
        return _product(outside, _atom(expression(rest), exponent))
    power: Terms = {_ONE: Integer(1)}
    for _ in range(int(exponent)):
        power = _product(power, polynomial)
    return power


def _monomial_power(polynomial: Mapping[Monomial, Number], exponent: Number) -> Terms:
    ((one, coefficient),) = polynomial.items()
    return {frozenset((atom, e * exponent) for atom, e in one): coefficient**exponent}
