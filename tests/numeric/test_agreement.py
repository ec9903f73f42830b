"""Symbolic value = exact value = compiled float64 value."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbolic_cost import symbols
from symbolic_cost.conventions.presets import preset
from symbolic_cost.ledger import Phase, Quantity
from symbolic_cost.models.decoders.gpt import GPT
from symbolic_cost.numeric.binding import bind, value
from symbolic_cost.numeric.compiled import Compiled
from symbolic_cost.numeric.frames import frame
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.placement import Placement
from tests.numeric.expressions import laurent, positive_costs, values

TOLERANCE = 1e-12


def compiled_value(expr, numbers):
    needed = {symbol.name: numbers[symbol.name] for symbol in expr.free_symbols}
    return float(Compiled({"cost": expr})(needed)["cost"])


@given(positive_costs(), values())
def test_random_costs(built, numbers):
    expected = built.at(numbers)
    assert value(bind(built.expr, numbers)) == expected
    assert compiled_value(built.expr, numbers) == pytest.approx(float(expected), rel=TOLERANCE)


@given(laurent(), values())
def test_random_laurent_polynomials(built, numbers):
    expected = built.at(numbers)
    assert value(bind(built.expr, numbers)) == expected
    # Terms of both signs cancel, so the rounding is relative to the sum of their sizes.
    terms = [value(bind(term, numbers)) for term in built.expr.as_ordered_terms()]
    scale = float(sum((abs(Fraction(term)) for term in terms), Fraction(0)))
    assert abs(compiled_value(built.expr, numbers) - float(expected)) <= TOLERANCE * scale


@cache
def gpt(name):
    """A GPT under tensor and sequence parallelism, its totals, and these compiled."""
    axes = ("h", "f", "v", "r")
    placement = Placement({"tp": symbols.m1}, dict.fromkeys(axes, ("tp",)))
    table = cost(GPT().model(), preset(name), placement)
    totals = {
        f"{quantity} {phase}": table.total(quantity, phase=phase)
        for quantity in Quantity
        for phase in Phase
    }
    return table, totals, Compiled(totals)


@st.composite
def gpt_sizes(draw):
    m1, heads, width = draw(st.sampled_from((1, 2, 4, 8, 64))), draw(st.integers(1, 4)), 64
    factor = st.integers(1, 400)
    return {
        "m1": m1,
        "h": heads * m1,
        "e": heads * m1 * width,
        "f": draw(factor) * m1,
        "V": draw(factor) * m1,
        "l": draw(factor) * m1,
        "b": draw(factor),
        "n_layers": draw(factor),
    }


@pytest.mark.parametrize("name", ["exact", "standard"])
@settings(max_examples=10)
@given(data=st.data())
def test_costs_of_a_gpt(name, data):
    table, totals, function = gpt(name)
    numbers = data.draw(gpt_sizes())
    bound = bind(table, numbers)
    found = function(numbers)
    for quantity in Quantity:
        for phase in Phase:
            exact = value(bound.total(quantity, phase=phase))
            total = f"{quantity} {phase}"
            assert exact == value(bind(totals[total], numbers))
            assert float(found[total]) == pytest.approx(float(exact), rel=TOLERANCE)


def test_rows_of_a_frame_add_up_to_the_total():
    table, totals, _ = gpt("standard")
    numbers = {"m1": 8, "h": 96, "e": 12288, "f": 49152, "V": 50304, "l": 2048, "b": 1}
    numbers["n_layers"] = 96
    rows = frame(table, numbers)
    chosen = rows[(rows.quantity == "flop") & (rows.phase == "forward")]
    assert sum(chosen.value) == value(bind(totals["flop forward"], numbers))


def test_many_configurations_in_one_call():
    _, totals, function = gpt("standard")
    numbers = {"m1": 8, "h": 96, "e": 12288, "f": 49152, "V": 50304, "b": 1, "n_layers": 96}
    lengths = 8 * np.arange(1, 100_001)
    found = function({**numbers, "l": lengths})["flop forward"]
    assert found.shape == lengths.shape
    for place in (0, 8191, 8192, 54321, 99_999):
        length = int(lengths[place])
        exact = value(bind(totals["flop forward"], {**numbers, "l": length}))
        assert found[place] == pytest.approx(float(exact), rel=TOLERANCE)
