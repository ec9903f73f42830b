"""Where copies of a token go, against draws one by one."""

import random

import pytest
from sympy import Integer

from symbolic_cost.models.catalog import CATALOG
from symbolic_cost.systems.routing import Routing


def drawn(groups, chosen, copies, units, times=8000):
    """Mean number of units that hold experts of a token."""
    chance, total = random.Random(1), 0  # noqa: S311 - no secret
    for _ in range(times):
        own = chance.sample(range(groups), chosen)
        places = set()
        for _ in range(copies):
            group = chance.choice(own)
            fine = units // groups
            inside = chance.randrange(fine) if fine else 0
            places.add(group * fine + inside if fine else group * units // groups)
        total += len(places)
    return total / times


@pytest.mark.parametrize(
    ("groups", "chosen", "copies", "units"),
    [(8, 4, 8, 8), (8, 4, 8, 2), (8, 4, 8, 4), (8, 4, 8, 64), (8, 3, 6, 4), (1, 1, 8, 8)],
)
def test_units_that_copies_reach_are_those_of_draws(groups, chosen, copies, units):
    own = Routing(Integer(copies), groups, chosen).sent(Integer(units))
    assert float(own) * copies == pytest.approx(drawn(groups, chosen, copies, units), rel=0.01)


def test_groups_are_facts_of_models():
    assert CATALOG["deepseek-v3"].model().routed == (8, 4)
    assert CATALOG["kimi-k2"].model().routed == (1, 1)
