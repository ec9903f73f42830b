"""Points on the roofline."""

import pytest
from sympy import Integer

from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.errors import InputError
from symbolic_cost.ledger import Phase
from symbolic_cost.models.catalog import model
from symbolic_cost.ops.derive import cost
from symbolic_cost.symbols import n_layers
from symbolic_cost.systems.records import machine
from symbolic_cost.systems.rooflines import roofline_points, roofs

GPT2 = model("gpt2")
DEVICE = machine("transformer-tables").device("fp16")


def points():
    table = cost(GPT2, STANDARD)
    numbers = {s: Integer(GPT2.bindings[s.name]) for s in _symbols(table)}
    return roofline_points(table.map(lambda expr: expr.xreplace(numbers)), DEVICE)


def _symbols(table):
    return set().union(*(row.expr.free_symbols | row.count.free_symbols for row in table))


def test_points():
    found = {(point.path, point.phase): point for point in points()}
    fc1 = found["block.mlp.fc1", Phase.FORWARD]
    l, e, f = 1024, 768, 3072
    assert fc1.flop == 12 * (2 * l * e * f + l * f)
    assert fc1.traffic == 12 * 2 * (l * e + e * f + f + l * f)
    assert fc1.rate == min(312e12, fc1.intensity * 1555e9)
    norm = found["block.mlp.norm", Phase.FORWARD]
    assert (norm.units, fc1.units) == ("vector", "matrix")
    assert norm.rate == pytest.approx(norm.intensity * 1555e9)
    assert all(point.rate <= roofs(DEVICE)[point.units][0] for point in points())


def test_symbols_that_are_left():
    with pytest.raises(InputError, match="no point without values for V, b, e, l"):
        roofline_points(cost(GPT2, STANDARD), DEVICE)


def test_blocks_that_a_stage_has_none_of_are_no_points():
    """The first of 16 stages of deepseek-v3 has dense blocks alone."""
    table = cost(GPT2, STANDARD)
    numbers = {s: Integer(GPT2.bindings[s.name]) for s in _symbols(table)}
    numbers[n_layers] = Integer(0)
    points = roofline_points(table.map(lambda expr: expr.xreplace(numbers)), DEVICE)
    assert {point.path.partition(".")[0] for point in points} == {"embedding", "head"}
