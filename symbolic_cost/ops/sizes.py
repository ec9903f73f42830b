"""Which expressions may be sizes of axes: those that may be positive."""

from sympy import Add, Expr, Integer, Mul, Pow

from symbolic_cost.algebra import Term
from symbolic_cost.extrema import Max, Min


def may_be_positive(length: object) -> bool:
    """Tell whether an expression may be positive; a mean may be a fraction, a cache may be empty.

    A sum may be where one of its terms may. SymPy, asked of a sum, takes its derivatives, for which
    it loads matrices, series and integrals.

    >>> from symbolic_cost.symbols import W, e, h
    >>> [may_be_positive(size) for size in (W - 1, e / h, -e, 1 - e, Integer(0), -e - h)]
    [True, True, False, True, True, False]
    """
    if isinstance(length, Integer):
        return bool(length.p >= 0)
    if not isinstance(length, Expr | Term):
        return False
    if isinstance(length, Add | Max):
        real = length.func is Max or length.is_extended_real is not False
        return real and any(map(may_be_positive, length.args))
    if isinstance(length, Pow):
        return may_be_positive(length.base)
    if isinstance(length, Mul | Min) and all(map(may_be_positive, length.args)):
        return True
    return length.is_finite is not False and length.is_extended_nonnegative is not False
