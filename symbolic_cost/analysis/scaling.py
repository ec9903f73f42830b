"""How a cost grows: derivatives, elasticities, leading terms, and where two costs cross.

Symbols are treated as positive reals here, though they count things.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from sympy import Add, Derivative, Expr, Integer, Mul, Number, Subs, Symbol

from symbolic_cost.analysis.forms import factored
from symbolic_cost.analysis.inverse import positive_roots
from symbolic_cost.analysis.laurent import Terms, cleared, expression, hidden_in, terms
from symbolic_cost.errors import InputError
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import Active, exact, in_glossary_order, of_glossary
from symbolic_cost.symbols import symbol as named

Scale: TypeAlias = Symbol | str | Mapping[Symbol | str, int]
"""The symbol that grows, or the symbols that grow together, each with its power."""


def derivative(expr: Expr, symbol: Symbol | str) -> Expr:
    """Return d cost / d symbol in human form, in the cost's unit per one of the symbol.

    Args:
        expr: a cost.
        symbol: of the glossary, or its name; one of another library's making counts by its name.

    Raises:
        UnknownNameError: the glossary has no such symbol.
        InputError: a ceiling or floor of the symbol has no derivative.

    >>> from symbolic_cost.symbols import b, l
    >>> derivative(b * l**2, "l")
    2*b*l
    """
    expr, symbol = of_glossary(expr), named(symbol)
    slope = expr.diff(symbol)
    if slope.has(Derivative, Subs):
        raise InputError(
            f"{expr} has steps in {symbol.name}: a derivative needs a cost without ceiling or "
            f"floor of {symbol.name}, such as its smoothed form"
        )
    return factored(slope)


def elasticity(expr: Expr, symbol: Symbol | str) -> Expr:
    """Return d ln cost / d ln symbol: the per cent of cost per per cent of the symbol.

    Raises:
        InputError: the cost is zero, or has no derivative.

    >>> from symbolic_cost.symbols import b, e, l
    >>> elasticity(b * l * (2 * e + l), l)
    2*(e + l)/(2*e + l)
    """
    expr, symbol = of_glossary(expr), named(symbol)
    slope, (numerator, denominator) = derivative(expr, symbol), _fraction(expr)
    return Mul(factored(symbol * slope * denominator), 1 / numerator)


def leading_term(expr: Expr, scale: Scale) -> Expr:
    """Return the part of a cost that dominates for large sizes, in the cost's unit.

    Args:
        expr: a cost.
        scale: the symbol that grows, or the symbols that grow together, each with its power:
            `{e: 1, f: 1, h: 1}` is a transformer that gets wider.

    Raises:
        InputError: the cost is zero, or grows in a Max, ceiling or Piecewise.

    >>> from symbolic_cost.symbols import b, e, l
    >>> leading_term(b * l * (2 * e + l), l), leading_term(b * l * (2 * e + l), e)
    (b*l**2, 2*b*e*l)
    """
    return _growth(expr, scale).term


def exponent(expr: Expr, scale: Scale) -> Number:
    """Return the power with which a cost grows at last: its elasticity in the limit.

    Args:
        expr: a cost.
        scale: as for `leading_term`.

    Raises:
        InputError: as for `leading_term`.
    """
    return _growth(expr, scale).power


def crossover(left: Expr, right: Expr, symbol: Symbol | str) -> list[Expr]:
    """Return where two costs are equal: the positive values of the symbol, in increasing order.

    Linear, quadratic and two-term equations are solved exactly in all other symbols; there a
    solution is left out only if it is known not to be positive. All others need numbers for the
    other symbols, and give floating-point numbers: polynomials all of them, costs with Max,
    ceiling or Piecewise of the symbol those between whose neighbouring powers of two the
    difference changes its sign.

    Raises:
        InputError: the costs are equal everywhere or nowhere, or the equation cannot be solved.

    >>> from symbolic_cost.symbols import b, e, l
    >>> crossover(4 * b * e * l**2, 16 * b * e**2 * l, l)
    [4*e]
    """
    symbol = named(symbol)
    numerator, _ = cleared(of_glossary(left) - of_glossary(right))
    if not numerator:
        raise InputError(f"the two costs are equal for every {symbol.name}")
    roots = positive_roots(numerator, symbol)
    if not roots:
        raise InputError(f"the two costs are equal for no positive {symbol.name}")
    return roots


# ---------------------------------------------------------------------- growth


@dataclass(frozen=True, slots=True)
class _Growth:
    """term is of order scale**power."""

    term: Expr
    power: Number


def _growth(expr: Expr, scale: Scale) -> _Growth:
    scales: Mapping[Any, int] = scale if isinstance(scale, Mapping) else {scale: 1}
    powers = {named(symbol): exact(power) for symbol, power in scales.items()}
    refused = {symbol.name: power for symbol, power in powers.items() if not power.is_positive}
    if refused or not powers:
        raise InputError(f"{refused} do not grow: positive powers are accepted")
    numerator, denominator = cleared(_grown_brackets(of_glossary(expr), set(powers)))
    if not numerator:
        raise InputError("a cost of zero does not grow")
    above, below = _leading(numerator, powers), _leading(terms(denominator), powers)
    return _Growth(Mul(above.term, 1 / below.term), above.power - below.power)


def _grown_brackets(expr: Expr, symbols: set[Symbol]) -> Expr:
    """Put one for every bracket [p > 1] whose p grows."""
    grown = {node: Integer(1) for node in expr.atoms(Active) if node.free_symbols & symbols}
    return expr.xreplace(grown)


def _leading(polynomial: Terms, powers: Mapping[Symbol, Expr]) -> _Growth:
    hidden = hidden_in(polynomial, set(powers))
    if hidden:
        names = ", ".join(symbol.name for symbol in in_glossary_order(powers))
        raise InputError(
            f"{names} in {' and '.join(hidden)}: growth is known for sums of powers only"
        )
    weights = {one: Add(*(e * powers.get(atom, 0) for atom, e in one)) for one in polynomial}
    highest = max(weights.values())
    top = {one: number for one, number in polynomial.items() if weights[one] == highest}
    return _Growth(factored(expression(top)), highest)


def _fraction(expr: Expr) -> tuple[Expr, Expr]:
    """Return numerator, in human form, and denominator."""
    numerator, denominator = cleared(expr)
    if not numerator:
        raise InputError("a cost of zero has no elasticity")
    return factored(expression(numerator)), denominator
