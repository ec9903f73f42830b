"""Words that ranks send for a mixture of experts: derived and counted."""

import numpy as np
import pytest
from sympy import Integer, Rational, expand

from symbolic_cost.errors import InputError, PlacementError
from symbolic_cost.layers import moe
from symbolic_cost.layers.moe import MixtureOfExperts
from symbolic_cost.ledger import Quantity
from symbolic_cost.models.decoders.gpt import GPT
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.part import Part
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.parallel.table import strategy_table
from symbolic_cost.symbols import b as sequences
from symbolic_cost.symbols import dp, e, ep, l
from tests.parallel import experts
from tests.parallel.derived import WORDS, assert_same_results, derived_words, sizes
from tests.parallel.simulator import Ranks

CASES = [
    (1, 1, 12, 2), (2, 1, 12, 2), (3, 1, 12, 2), (4, 1, 12, 3), (6, 1, 12, 2), (12, 1, 12, 1),
    (1, 2, 12, 2), (1, 3, 6, 2), (2, 2, 12, 2), (2, 3, 6, 1), (3, 2, 6, 2), (4, 3, 4, 4),
    (6, 2, 6, 3),
]  # fmt: skip


def model(number, chosen, b, length):
    axes = {"b": b, "u": b, **dict.fromkeys("rl", length), "e": 6, "f_m": 7, "a": chosen}
    given = sizes(axes) | dict.fromkeys("xo", Integer(number))
    given["z"] = given["z_r"] = Rational(length * chosen, number)
    return Model(
        "moe", (Part("block", MixtureOfExperts().ops()),), given, means=("z", "z_r"), axes=moe.AXES
    )


def arrays(number, b, length):
    rng = np.random.default_rng(2)
    shapes = ((b, length, 6), (6, number), (number, 6, 7), (number, 6, 7), (number, 7, 6))
    return [*(rng.standard_normal(s) for s in shapes), rng.standard_normal((b, length, 6))]


@pytest.mark.parametrize(("experts_over", "replicas", "number", "chosen"), CASES)
def test_dispatch_and_return(experts_over, replicas, number, chosen):
    ranks = Ranks(ep=experts_over, dp=replicas)
    b, length = 12, number
    given = arrays(number, b, length)
    found = experts.sharded(ranks, given, chosen)
    assert_same_results(found, experts.layer(given, chosen))
    strategy = f"ep={experts_over},dp={experts_over * replicas}"
    assert ranks.words() == derived_words(model(number, chosen, b, length), strategy)


def test_volume_of_dispatch_and_return():
    """Both ways 2 T k_top e (ep - 1)/ep elements in forward, T tokens of a rank."""
    declared = model(8, 2, 1, 1)
    given = {**declared.sizes, "b": sequences, "u": sequences, "l": l, "r": l, "e": e}
    given |= dict.fromkeys(("z", "z_r"), l / 4)
    declared = Model("moe", declared.parts, given, means=("z", "z_r"), axes=moe.AXES)
    table = strategy_table(declared, parse_strategy("ep,dp"), WORDS)
    moved = sum(
        row.expr
        for row in table.select(Quantity.COMMUNICATION, phase="forward")
        if row.tensor in {"copied", "weighed"}
    )
    tokens = sequences * l / dp
    assert expand(moved - 2 * tokens * 2 * e * (ep - 1) / ep) == 0


def test_experts_hold_their_share():
    table = strategy_table(model(12, 2, 12, 12), parse_strategy("ep=4,dp=8,zero=3"), WORDS)
    held = {row.tensor: row.expr for row in table.select(Quantity.WEIGHT)}
    assert held["experts.gate.w"] == Rational(12 * 6 * 7, 8)  # a quarter each, then over two
    assert held["router.w"] == Rational(6 * 12, 8)
    (split,) = (split for split in table.splits if split.axis == "data-parallel ranks")
    assert (split.size, split.degrees) == (8, (("ep", 4),))


def test_refusals():
    with pytest.raises(InputError, match="ep=3 does not divide dp=8"):
        parse_strategy("ep=3,dp=8")
    with pytest.raises(InputError, match="ep needs dp"):
        parse_strategy("ep=3")
    with pytest.raises(PlacementError, match=r"ep: model 'gpt' has none of its axes \(expert"):
        strategy_table(GPT().model(), parse_strategy("ep=2,dp=8"), WORDS)
    with pytest.raises(PlacementError, match="experts are placed by ep"):
        strategy_table(model(8, 2, 4, 8), parse_strategy("2d=2x2"), WORDS)
