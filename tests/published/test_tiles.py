"""Tiles: sides and reloads, against a walk over tiles."""

from itertools import product

import pytest
from sympy import Integer

from symbolic_cost.published.lstm_roofline.definitions import MATRICES, largest_square, reloads

SIZES = [(5, 3, 7), (8, 8, 8), (9, 2, 4), (1, 17, 1)]


def walked(sizes, side):
    """Count what blocks of rows and columns of the result read, each block after the other."""
    m, k, n = sizes
    left = right = 0
    kept = None
    for i, j in product(range(0, m, side), range(0, n, side)):
        here, there = min(side, m - i), min(side, n - j)
        left += 0 if kept == i else here * k
        right += k * there
        kept = i if k <= side else None  # a whole row of tiles stays
    return left, right


@pytest.mark.parametrize("side", [1, 2, 3, 8])
@pytest.mark.parametrize("sizes", SIZES)
def test_reloads_are_what_a_walk_reads(sizes, side):
    m, k, n = map(Integer, sizes)
    left, right = reloads(Integer(side), m, k, n)
    assert (left * m * k, right * k * n) == walked(sizes, side)


@pytest.mark.parametrize("capacity", [12, 47, 48, 191, 192, 3 * 2**22])
def test_the_largest_square_fits_and_twice_its_side_does_not(capacity):
    side = largest_square(Integer(capacity), Integer(4))
    assert MATRICES * 4 * side**2 <= capacity < MATRICES * 4 * (2 * side) ** 2


def test_without_a_memory_everything_moves_once():
    nothing = largest_square(Integer(0), Integer(4))
    assert reloads(nothing, Integer(5), Integer(6), Integer(7)) == (1, 1)
