"""Greatest and least of costs, which drop an argument only where that is certain.

SymPy 1.14 decides some comparisons of positive integers wrongly: `Max(1/(p*q), 1)` is `1/(p*q)`
there. These classes are SymPy's in every other respect.
"""

from __future__ import annotations

from typing import Any

from sympy import Expr
from sympy import Max as _Max
from sympy import Min as _Min


class _Certain:
    """Decides between two arguments by their quotient, and not at all where it does not tell."""

    @classmethod
    def _collapse_arguments(cls, args: frozenset[Expr], **_: Any) -> frozenset[Expr]:  # noqa: ANN401 - SymPy's signature
        return args

    @classmethod
    def _is_connected(cls, x: Expr, y: Expr) -> Any:  # noqa: ANN401 - SymPy's protocol: a class or False
        if x == y:
            return True
        if at_least(x, y):
            return Max
        return Min if at_least(y, x) else False


class Max(_Certain, _Max):
    """The greatest of its arguments.

    >>> from symbolic_cost.symbols import b, m1
    >>> Max(2 * b, 3 * b), Max(b, b / m1), Max(1 / (b * m1), 1), Max(b, m1)
    (3*b, b, 1, Max(b, m1))
    """


class Min(_Certain, _Min):
    """The least of its arguments.

    >>> from symbolic_cost.symbols import b, m1
    >>> Min(b, b / m1), Min(b, m1)
    (b/m1, Min(b, m1))
    """


def at_least(greater: Expr, less: Expr) -> bool:
    """Tell whether one cost is certainly at least another, whatever its symbols stand for."""
    if greater.is_number and less.is_number:
        return bool(greater >= less)
    if less == 0 or greater == 0:
        return bool(less == 0 and _is_product_of_positive(greater))
    if not (_is_product_of_positive(greater) and _is_product_of_positive(less)):
        return False
    coefficient, powers = (greater / less).as_coeff_Mul()
    return bool(coefficient >= 1) and all(
        base.is_integer and exponent.is_nonnegative
        for base, exponent in powers.as_powers_dict().items()
    )


def _is_product_of_positive(expr: Expr) -> bool:
    coefficient, powers = expr.as_coeff_Mul()
    return bool(coefficient > 0) and all(
        base.is_positive and not base.is_Add and exponent.is_Rational
        for base, exponent in powers.as_powers_dict().items()
    )
