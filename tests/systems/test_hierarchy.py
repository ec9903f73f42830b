"""Matrix products through memory levels."""

import pytest
from sympy import Integer, Rational

from symbolic_cost.errors import InputError
from symbolic_cost.symbols import e, l
from symbolic_cost.systems.hierarchy import product_times, square_tiles
from symbolic_cost.systems.records import machine
from symbolic_cost.systems.rooflines import roofline
from symbolic_cost.systems.tiles import Tile

LSTM = machine("lstm-roofline")
GATES = tuple(map(Integer, (512, 39936, 79872)))
FOUR = Integer(4)


def test_tiles_of_the_log():
    """lstm-roofline: tiles of 512 through the cache, of 2048 through shared memory."""
    assert [tile.m for tile in square_tiles(LSTM, FOUR)] == [512, 2048]


def test_traffic_of_the_log():
    """lstm-roofline, product Cf: operands read 156 and once, or 39 times and once."""
    m, k, n = GATES
    times = product_times(LSTM, GATES, FOUR, precision="fp32")
    moved = 4 * (156 * m * k + k * n + m * n)
    assert times.memory == moved / (Rational(7, 10) * Integer(162) * 10**10)
    inner = 4 * (39 * m * k + k * n + m * n)
    assert times.levels == (inner / (Rational("1.2672") * 10**15),)


def test_smooth_bounds_enclose_the_reloads():
    sizes = (Integer(5000), Integer(7000), Integer(3000))
    low, exact, high = (
        product_times(LSTM, sizes, FOUR, precision="fp32", count=count)
        for count in (Tile.fewest, Tile.reloads, Tile.most)
    )
    assert low.memory < exact.memory < high.memory
    assert low.levels[0] <= exact.levels[0] <= high.levels[0]
    assert low.compute == exact.compute == high.compute


def test_bounds_differentiate():
    symbolic = (l, e, 4 * e)
    times = product_times(LSTM, symbolic, FOUR, precision="fp32", count=Tile.most)
    slope = times.memory.diff(l).subs({l: 4096, e: 8192})
    assert slope > 0


def test_free_tiles():
    tall = Tile(Integer(2048), Integer(64), Integer(64))
    shared = Tile(Integer(256), Integer(256), Integer(256))
    times = product_times(LSTM, GATES, FOUR, precision="fp32", tiles=(tall, shared))
    m, k, n = GATES
    assert times.memory == 4 * (1248 * m * k + k * n + m * n) / (Rational(7, 10) * 162 * 10**10)


def test_levels_count_in_the_roofline():
    """A product of 64 x 2 by 2 x 64: 256 and 4096 elements moved once, by memory and by cache."""
    slow = product_times(LSTM, tuple(map(Integer, (64, 2, 64))), FOUR, precision="fp32")
    moved = 4 * (2 * 128 + 64 * 64)
    memory = moved / (Rational(7, 10) * Integer(162) * 10**10)
    cache = moved / (Rational("1.2672") * 10**15)
    waits = LSTM.latency.value + LSTM.efficiencies.launch.value
    assert roofline("ridge").rule(slow) == memory + cache + waits
    assert slow.compute < memory


def test_refusals():
    big = Tile(*map(Integer, (4096, 4096, 4096)))
    with pytest.raises(InputError) as caught:
        product_times(LSTM, GATES, FOUR, precision="fp32", tiles=(big, big))
    assert list(caught.value.problems) == [
        "tiles of l2 need 201326592 bytes; its capacity is 9667968",
        "tiles of shared need 201326592 bytes; its capacity is 58007812",
    ]
    with pytest.raises(InputError, match="2 caches and 1 tiles are given"):
        product_times(LSTM, GATES, FOUR, precision="fp32", tiles=(big,))


def test_without_caches_everything_moves_once():
    plain = machine("transformer-tables")
    times = product_times(plain, (Integer(10), Integer(20), Integer(30)), Integer(2))
    assert times.memory == Rational(2 * (200 + 600 + 300), 1555 * 10**9)
    assert times.levels == ()
