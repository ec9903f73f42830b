"""Tiles: how often a matrix product reads its operands through a memory of limited capacity.

A product m k by k n works on tiles of its three matrices. What does not fit is read again.
"""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Expr, Integer, ceiling, floor, log

from symbolic_cost.extrema import AtLeast, Choice

ONE = Integer(1)
TWO = Integer(2)
MATRICES = 3
"""Matrices of a product, each with one tile in the memory."""


@dataclass(frozen=True, slots=True)
class Reloads:
    """How often a product moves each of its matrices.

    Args:
        left: reads of the operand m k.
        right: reads of the operand k n.
        result: writes of the result m n.
    """

    left: Expr
    right: Expr
    result: Expr = ONE

    def traffic(self, m: Expr, k: Expr, n: Expr, element: Expr) -> Expr:
        """Return what a product m k by k n moves [byte].

        Args:
            m: rows of the left operand.
            k: length of the sum.
            n: columns of the right operand.
            element: size of an element [byte].
        """
        return element * (m * k * self.left + k * n * self.right + m * n * self.result)


@dataclass(frozen=True, slots=True)
class Tile:
    """Tiles m k, k n and m n that are in a memory at once; all zero where there is no memory.

    Args:
        m: rows of the left operand in a tile.
        k: length of the sum in a tile.
        n: columns of the right operand in a tile.
    """

    m: Expr
    k: Expr
    n: Expr

    def occupied(self, element: Expr) -> Expr:
        """Return what the three tiles need; a capacity must not be less [byte]."""
        return element * (self.m * self.k + self.k * self.n + self.m * self.n)

    def reloads(self, m: Expr, k: Expr, n: Expr) -> Reloads:
        """Return the reloads of a product m k by k n: whole numbers."""
        return self._reloads(k, ceiling(m / self.m), ceiling(n / self.n))

    def most(self, m: Expr, k: Expr, n: Expr) -> Reloads:
        """Return an upper bound of the reloads without ceilings."""
        return self._reloads(k, m / self.m + 1, n / self.n + 1)

    def _reloads(self, k: Expr, rows: Expr, columns: Expr) -> Reloads:
        nothing = 1 - AtLeast(self.k, ONE)
        return Reloads(
            left=Choice(nothing, ONE, Choice(AtLeast(self.k, k), ONE, columns)),
            right=Choice(nothing, ONE, rows),
        )


def square(side: Expr) -> Tile:
    """Return square tiles of one side."""
    return Tile(side, side, side)


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
