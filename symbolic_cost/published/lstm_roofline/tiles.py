"""Square tiles: how often a matrix product reads its operands through a memory."""

from __future__ import annotations

from sympy import Expr, Integer, ceiling, floor, log

from symbolic_cost.extrema import AtLeast, Choice

ONE = Integer(1)
TWO = Integer(2)
MATRICES = 3
"""Matrices of a product, each with one tile in the memory."""


def reloads(side: Expr, m: Expr, k: Expr, n: Expr) -> tuple[Expr, Expr]:
    """Return how often a product m k by k n reads its left and its right operand.

    Args:
        side: of the tiles that are in the memory at once; 0 where there is no memory.
        m: rows of the left operand.
        k: length of the sum; a row of tiles that holds all of it stays.
        n: columns of the right operand.

    >>> reloads(*map(Integer, (2, 5, 3, 7)))
    (4, 3)
    """
    nothing = 1 - AtLeast(side, ONE)
    columns = Choice(AtLeast(side, k), ONE, ceiling(n / side))
    return Choice(nothing, ONE, columns), Choice(nothing, ONE, ceiling(m / side))


def largest_square(capacity: Expr, element: Expr) -> Expr:
    """Return the side of the largest square tiles that fit, a power of two; 0 for no capacity.

    Args:
        capacity: of the memory [byte].
        element: size of an element [byte].

    >>> largest_square(Integer(2**25), Integer(4))
    1024
    """
    side = TWO ** floor(log(capacity / (MATRICES * element), 2) / 2)
    return Choice(AtLeast(capacity, ONE), side, Integer(0))
