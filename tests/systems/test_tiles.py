"""Tiles: sides, reloads and their bounds, against a walk over tiles."""

from itertools import product

import pytest
from sympy import Integer, ceiling, symbols

from symbolic_cost.systems.tiles import Tile, largest_square, square

SIZES = [(5, 3, 7), (8, 8, 8), (9, 2, 4), (1, 17, 1)]
TILES = [(2, 2, 2), (4, 8, 3), (9, 1, 7)]


def walked(sizes, tile):
    """Count what blocks of rows and columns of the result read, each block after the other."""
    (m, k, n), (rows, depth, columns) = sizes, tile
    left = right = 0
    kept = None
    for i, j in product(range(0, m, rows), range(0, n, columns)):
        here, there = min(rows, m - i), min(columns, n - j)
        left += 0 if kept == i else here * k
        right += k * there
        kept = i if k <= depth else None  # a whole row of tiles stays
    return left, right


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("sizes", SIZES)
def test_reloads_are_what_a_walk_reads(sizes, tile):
    m, k, n = map(Integer, sizes)
    found = Tile(*map(Integer, tile)).reloads(m, k, n)
    assert (found.left * m * k, found.right * k * n) == walked(sizes, tile)
    left, right = walked(sizes, tile)
    assert found.traffic(m, k, n, Integer(4)) == 4 * (left + right + m * n)


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("sizes", SIZES)
def test_a_bound_is_above_the_reloads(sizes, tile):
    m, k, n = map(Integer, sizes)
    found = Tile(*map(Integer, tile))
    exact, high = found.reloads(m, k, n), found.most(m, k, n)
    assert exact.left <= high.left
    assert exact.right <= high.right


def test_the_bound_has_no_ceilings():
    m, k, n, tile = symbols("m k n x", positive=True)
    assert square(tile).reloads(m, k, n).right.has(ceiling)
    assert not square(tile).most(m, k, n).right.has(ceiling)


@pytest.mark.parametrize("capacity", [12, 47, 48, 191, 192, 3 * 2**22])
def test_the_largest_square_fits_and_twice_its_side_does_not(capacity):
    side = largest_square(Integer(capacity), Integer(4))
    assert square(side).occupied(Integer(4)) <= capacity < square(2 * side).occupied(Integer(4))


def test_without_a_memory_everything_moves_once():
    nothing = square(largest_square(Integer(0), Integer(4)))
    found = nothing.reloads(Integer(5), Integer(6), Integer(7))
    assert (found.left, found.right, found.result) == (1, 1, 1)
