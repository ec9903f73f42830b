"""Times of a device and of a link."""

import pytest
from sympy import Integer, Rational, log, oo

from symbolic_cost.extrema import Max
from symbolic_cost.ledger import Units
from symbolic_cost.symbols import F_m, F_v, alpha, beta, beta_m, e, l, m1
from symbolic_cost.systems.network import Link, TwoLinks
from symbolic_cost.systems.rooflines import MAXIMUM, Device

SYMBOLIC = Device(F_m, F_v, beta_m)


def test_matrix_products_run_on_matrix_units():
    assert SYMBOLIC.compute_time(Units.MATRIX, l * e) == l * e / F_m
    assert SYMBOLIC.compute_time(Units.VECTOR, l * e) == l * e / F_v
    assert SYMBOLIC.memory_time(l * e) == l * e / beta_m


def test_the_longer_of_computing_and_memory():
    device = Device(Integer(100), Integer(10), Integer(20))
    compute, memory = (
        device.compute_time(Units.MATRIX, Integer(500)),
        device.memory_time(Integer(60)),
    )
    assert (compute, memory) == (5, 3)
    assert MAXIMUM.time(compute, memory) == 5
    assert MAXIMUM.time(l / F_m, e / beta_m) == Max(l / F_m, e / beta_m)


def test_latency_grows_with_the_logarithm_of_ranks():
    link = Link("fast", Integer(8), Rational(1, 2))
    assert link.time(Integer(32), Integer(8)) == 4 + Rational(3, 2)
    assert link.time(Integer(0), Integer(1)) == 0
    assert Link("any", beta, alpha).time(l, m1) == l / beta + alpha * log(m1) / log(2)
    assert Link("any", beta).time(l, m1) == l / beta


@pytest.mark.parametrize(
    ("domain", "ranks", "used"),
    [(4, 4, "fast"), (4, 5, "slow"), (0, 1, "slow"), (1, 1, "fast"), (oo, m1, "fast")],
)
def test_a_group_uses_one_link(domain, ranks, used):
    network = TwoLinks(Link("fast", Integer(2)), Link("slow", Integer(1)), domain)
    assert network.link(ranks).name == used
