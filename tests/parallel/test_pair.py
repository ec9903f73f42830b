"""Words that ranks send for a linear pair: derived and counted."""

import numpy as np
import pytest

from tests.parallel import algorithms
from tests.parallel.derived import assert_same_results, derived_words, linear_pair
from tests.parallel.simulator import Ranks

SHAPE = {"b": 12, "l": 12, "e": 24, "f": 48}
MEGATRON = [
    (tp, cp, dp, sp, zero)
    for tp, cp, dp in [
        (1, 1, 1),
        (2, 1, 1),
        (3, 1, 1),
        (4, 1, 1),
        (1, 2, 1),
        (1, 1, 3),
        (2, 3, 1),
        (3, 1, 2),
        (1, 2, 3),
        (2, 2, 2),
    ]
    for sp in (False, True)
    for zero in (0, 1, 2, 3)
    if zero == 0 or dp * cp > 1
]
GRIDS_2D = [
    (1, 1),
    (1, 2),
    (2, 1),
    (2, 2),
    (3, 1),
    (1, 3),
    (2, 3),
    (3, 2),
    (3, 3),
    (4, 2),
    (2, 4),
    (4, 3),
    (1, 4),
]
GRIDS_3D = [
    (1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2), (2, 2, 1), (2, 1, 2), (1, 2, 2), (2, 2, 2),
    (3, 2, 1), (1, 3, 2), (2, 3, 1), (3, 1, 2), (2, 1, 3), (3, 2, 2),
]  # fmt: skip


def arrays():
    rng = np.random.default_rng(0)
    b, l, e, f = SHAPE.values()
    return [rng.standard_normal(shape) for shape in ((b, l, e), (e, f), (f, e), (b, l, e))]


def check(strategy, ranks, run):
    given = arrays()
    assert_same_results(run(ranks, *given), algorithms.pair(*given))
    assert ranks.words() == derived_words(linear_pair(SHAPE), strategy)


@pytest.mark.parametrize(("tp", "cp", "dp", "sp", "zero"), MEGATRON)
def test_megatron(tp, cp, dp, sp, zero):
    text = f"tp={tp},cp={cp},dp={dp}" + (",sp" if sp else "") + (f",zero={zero}" if zero else "")

    def run(ranks, *given):
        return algorithms.megatron_pair(ranks, *given, sp=sp, zero=zero)

    check(text, Ranks(tp=tp, cp=cp, dp=dp), run)


@pytest.mark.parametrize("zero", [1, 2, 3])
@pytest.mark.parametrize(
    ("tp", "dp", "replicas"), [(1, 2, 1), (1, 1, 2), (1, 2, 2), (1, 2, 3), (2, 3, 2), (2, 2, 2)]
)
def test_hybrid_shards(tp, dp, replicas, zero):
    def run(ranks, *given):
        return algorithms.megatron_pair(ranks, *given, zero=zero)

    text = f"tp={tp},cp=1,dp={dp},replicas={replicas},zero={zero}"
    check(text, Ranks(tp=tp, cp=1, dp=dp, replicas=replicas), run)


@pytest.mark.parametrize(("m1", "m2"), GRIDS_2D)
def test_two_dimensions(m1, m2):
    def run(ranks, *given):
        return algorithms.grid_pair(ranks, *given, lines=("", "m2"))

    check(f"2d={m1}x{m2}", Ranks(m1=m1, m2=m2), run)


@pytest.mark.parametrize(("m1", "m2", "m3"), GRIDS_3D)
def test_two_and_a_half_dimensions(m1, m2, m3):
    def run(ranks, *given):
        return algorithms.grid_pair(ranks, *given, lines=("m2+m3", ""))

    check(f"2.5d={m1}x{m2}x{m3}", Ranks(m1=m1, m2=m2, m3=m3), run)


@pytest.mark.parametrize(("m1", "m2", "m3"), GRIDS_3D)
def test_three_dimensions(m1, m2, m3):
    check(f"3d={m1}x{m2}x{m3}", Ranks(m1=m1, m2=m2, m3=m3), algorithms.cube_pair)
