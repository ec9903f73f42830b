"""Exact numbers: integers and fractions; roots and logarithms to fifty digits where irrational."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import TypeAlias

Number: TypeAlias = int | Fraction | float
"""An integer or a fraction; the only float is UNDEFINED."""

UNDEFINED = math.nan
"""What has no value: a division by zero, of a case that is not chosen. It is absorbing."""


def undefined(value: object) -> bool:
    """Tell whether an exact result has no value."""
    return isinstance(value, float)


def ratio(value: Number) -> tuple[int, int]:
    """Return numerator and denominator; both zero of what is undefined."""
    return (0, 0) if undefined(value) else value.as_integer_ratio()


def of_ratio(above: int, below: int) -> Number:
    """Return the number of a numerator and a denominator."""
    if not below:
        return UNDEFINED
    return above if below == 1 else Fraction(above, below)


def as_integer(value: Number) -> Number:
    """Return an integer for a fraction that is one."""
    if isinstance(value, Fraction) and value.denominator == 1:
        return value.numerator
    return value


_CONTEXT = Context(prec=50)
LN2 = Fraction(_CONTEXT.ln(Decimal(2)))
"""Natural logarithm of 2, to fifty digits."""


def log2(value: Number) -> Number:
    """Return a logarithm to base 2: exact for powers of two.

    >>> log2(8), log2(Fraction(1, 4))
    (3, -2)
    """
    if value <= 0:
        return UNDEFINED
    above, below = Fraction(value).as_integer_ratio()
    if not (above & (above - 1) or below & (below - 1)):
        return above.bit_length() - below.bit_length()
    return Fraction(_CONTEXT.divide(_logarithm(above, below), _CONTEXT.ln(Decimal(2))))


def exp2(value: Number) -> Number:
    """Return a power of 2: exact for integers."""
    if value == int(value):
        return 2 ** int(value) if value >= 0 else Fraction(1, 2 ** -int(value))
    above, below = Fraction(value).as_integer_ratio()
    exponent = _CONTEXT.divide(Decimal(above), Decimal(below))
    return Fraction(_CONTEXT.power(Decimal(2), exponent))


def root(value: Number) -> Number:
    """Return a square root: exact for squares."""
    if value < 0:
        return UNDEFINED
    above, below = Fraction(value).as_integer_ratio()
    roots = math.isqrt(above), math.isqrt(below)
    if (roots[0] ** 2, roots[1] ** 2) == (above, below):
        return Fraction(*roots)
    return Fraction(_CONTEXT.sqrt(_CONTEXT.divide(Decimal(above), Decimal(below))))


def _logarithm(above: int, below: int) -> Decimal:
    return _CONTEXT.subtract(_CONTEXT.ln(Decimal(above)), _CONTEXT.ln(Decimal(below)))
