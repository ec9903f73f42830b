"""What the package says: words that a rank sends, by phase and mesh axes."""

from collections import Counter
from dataclasses import replace

import numpy as np
from sympy import Integer

from symbolic_cost.conventions.presets import EXACT
from symbolic_cost.conventions.questions import ElementSizes, Role, Saved
from symbolic_cost.layers import mlp
from symbolic_cost.ledger import Phase, Quantity
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.part import Part
from symbolic_cost.ops.view import view
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.parallel.table import strategy_table

WORDS = replace(
    EXACT, sizes=ElementSizes(**{role.value: Integer(1) for role in Role}), saved=Saved.SHARD
)
"""Every element is one word; what was gathered is gathered again in backward."""

_PHASES = {Phase.FORWARD: "forward", Phase.STEP: "step"}


def linear_pair(shape):
    ops = (
        view("gather", "x[b r e] -> full[b l e]"),
        einsum("fc1", "full[b l e], *w[e f] -> u[b l f]"),
        pointwise("act", "u[b l f] -> a[b l f]", "gelu"),
        einsum("fc2", "a[b l f], *w[f e] -> summed[b l e]"),
        view("scatter", "summed[b l e] -> y[b r e]"),
    )
    return Model("pair", (Part("pair", ops),), sizes(shape | {"r": shape["l"]}), axes=mlp.AXES)


def sizes(shape):
    return {axis: Integer(size) for axis, size in shape.items()}


def derived_words(model, strategy):
    words = Counter()
    for row in strategy_table(model, parse_strategy(strategy), WORDS).select(
        Quantity.COMMUNICATION
    ):
        words[_PHASES.get(row.phase, "backward"), row.collective.group] += row.total
    return {key: int(number) for key, number in words.items() if number}


def assert_same_results(found, expected):
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert np.allclose(one, other), f"result {number}"
