"""The exact preset counts what a loop over the index space multiplies and adds."""

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from sympy import Integer

from symbolic_cost.conventions.answers import (
    CAUSAL,
    MULTIPLY_ACCUMULATE,
    NO_ADDITIONS,
    NOT_COUNTED,
)
from symbolic_cost.conventions.presets import EXACT, PRESETS
from symbolic_cost.ledger import Phase, Quantity
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import dropout, pointwise, softmax
from symbolic_cost.ops.placement import Placement
from symbolic_cost.symbols import m1
from tests.strategies import contractions, model_of, placed_contractions

PRODUCTS = replace(
    EXACT,
    contraction=MULTIPLY_ACCUMULATE,
    summation=NOT_COUNTED,
    addition=Integer(0),
    reduction_additions=NO_ADDITIONS,
)


def looped(result, factors, sizes, kept=bool):
    """Multiplications and additions of a loop that fills `result` with sums of products."""
    axes = sorted({axis for factor in factors for axis in factor})
    filled, operations = Counter(), 0
    for values in product(*(range(sizes[axis]) for axis in axes)):
        index = dict(zip(axes, values, strict=True))
        if not kept(index):
            continue
        place = tuple(index[axis] for axis in result)
        operations += len(factors) - 1
        operations += filled[place] > 0
        filled[place] += 1
    return operations


def elements(axes, sizes):
    return sum(1 for _ in product(*(range(sizes[axis]) for axis in axes)))


def gradient_count(op, sizes, weights):
    """Operations of the gradient products of the weights, or of the inputs, and of the biases."""
    inputs, result = op.pattern.inputs, op.result.axes
    total = 0
    for place, operand in enumerate(inputs):
        if operand.constant or operand.is_weight is not weights:
            continue
        others = [other.axes for other_place, other in enumerate(inputs) if other_place != place]
        total += looped(operand.axes, [result, *others], sizes)
    if weights:
        total += sum(looped(bias.axes, [result], sizes) for bias in op.pattern.biases)
    return total


@given(contractions())
def test_forward_is_counted_by_a_loop(drawn):
    op, sizes = drawn.op, drawn.sizes
    looped_count = looped(op.result.axes, [operand.axes for operand in op.pattern.inputs], sizes)
    added = len(op.pattern.biases) * elements(op.result.axes, sizes)
    table = cost(drawn.model, EXACT)
    assert table.total(Quantity.FLOP, phase=Phase.FORWARD) == looped_count + added


@given(contractions())
def test_gradients_are_counted_by_a_loop(drawn):
    table = cost(drawn.model, EXACT)
    for phase, weights in ((Phase.BACKWARD_INPUT, False), (Phase.BACKWARD_WEIGHT, True)):
        counted = table.total(Quantity.FLOP, phase=phase)
        assert counted == gradient_count(drawn.op, drawn.sizes, weights=weights)


@given(placed_contractions(biases=False))
def test_sharding_never_changes_the_products(drawn):
    """A mesh axis that splits none of the op's axes repeats the work on each of its ranks."""
    op, placement = drawn.op, drawn.placement
    idle = [m for m in placement.degrees if placement.split_axis(m, op.axes) is None]
    ranks = placement.degree(tuple(placement.degrees))
    for phase in (Phase.FORWARD, Phase.BACKWARD_INPUT, Phase.BACKWARD_WEIGHT):
        whole = cost(drawn.model, PRODUCTS).total(Quantity.FLOP, phase=phase)
        local = cost(drawn.model, PRODUCTS, placement).total(Quantity.FLOP, phase=phase)
        assert ranks * local == placement.degree(idle) * whole


@given(placed_contractions(biases=False))
def test_the_additions_of_a_ring_are_those_missing_in_the_partial_sums(drawn):
    op, placement = drawn.op, drawn.placement
    idle = [m for m in placement.degrees if placement.split_axis(m, op.axes) is None]
    ranks = placement.degree(tuple(placement.degrees))
    whole = cost(drawn.model, EXACT).total(Quantity.FLOP)
    local = cost(drawn.model, EXACT, placement).total(Quantity.FLOP)
    assert ranks * local == placement.degree(idle) * whole


@pytest.mark.parametrize("keys", [4, 7])
def test_a_causal_mask_is_counted_by_a_loop(keys):
    """Query i of l sees the keys up to its own position, counted from the end."""
    sizes = {"l": 4, "t": keys, "d": 3}
    ops = (
        einsum("scores", "q[l d], k[t d] -> s[l t]", pairs="l t"),
        einsum("attend", "s[l t], v[t d] -> o[l d]", pairs="l t"),
    )
    convention = replace(EXACT, attention_pairs=CAUSAL)

    def seen(index):
        return index["t"] <= index["l"] + keys - 4

    forward = looped("lt", ["ld", "td"], sizes, seen) + looped("ld", ["lt", "td"], sizes, seen)
    backward = [("ld", "lt", "td"), ("td", "lt", "ld"), ("lt", "ld", "td"), ("td", "ld", "lt")]
    backward_count = sum(looped(made, others, sizes, seen) for made, *others in backward)
    table = cost(model_of(ops, sizes), convention)
    assert table.total(Quantity.FLOP, phase=Phase.FORWARD) == forward
    assert table.total(Quantity.FLOP, phase=Phase.BACKWARD_INPUT) == backward_count


def test_ranks_share_a_causal_mask_evenly():
    ops = (einsum("scores", "q[l d], k[t d] -> s[l t]", pairs="l t"),)
    model = model_of(ops, {"l": Integer(12), "t": Integer(12), "d": Integer(3)})
    convention = replace(PRODUCTS, attention_pairs=CAUSAL)
    whole = cost(model, convention).total(Quantity.FLOP)
    for axis in "lt":
        split = Placement({"x": 4}, {axis: ("x",)})
        assert 4 * cost(model, convention, split).total(Quantity.FLOP) == whole


@given(placed_contractions())
def test_one_rank_never_communicates(drawn):
    """Whether the degree is the number one or a symbol that one is put in for."""
    symbolic = Placement(dict.fromkeys(drawn.placement.degrees, m1), drawn.placement.axes)
    alone = Placement(dict.fromkeys(drawn.placement.degrees, 1), drawn.placement.axes)
    for preset in PRESETS.values():
        table = cost(drawn.model, preset, symbolic).select(Quantity.COMMUNICATION)
        assert table.total().subs(m1, 1) == 0
        assert len(cost(drawn.model, preset, alone).select(Quantity.COMMUNICATION)) == 0


def test_elementwise_work_covers_the_whole_index_space():
    sizes = {"a": 3, "b": 5}
    small_first = pointwise("add", "x[b], y[a b] -> z[a b]", "add")
    large_first = pointwise("add", "y[a b], x[b] -> z[a b]", "add")
    counted = [
        cost(model_of([op], sizes), EXACT).total("flop") for op in (small_first, large_first)
    ]
    assert counted == [15, 15]


def softmax_of(row):
    """A softmax written out, and the operations that it takes."""
    operations, greatest = 0, row[0]
    for value in row[1:]:
        greatest, operations = max(greatest, value), operations + 1
    shifted = [value - greatest for value in row]
    powers = [2**value for value in shifted]
    operations += len(shifted) + len(powers)
    total = powers[0]
    for power in powers[1:]:
        total, operations = total + power, operations + 1
    return [power / total for power in powers], operations + len(powers)


def test_rows_are_counted_along_their_axis():
    """Three rows of five, and one operation per element of the dropout."""
    ops = (softmax("p", "x[a b] -> p[a b]", row="b"), dropout("d", "p[a b] -> y[a b]"))
    table = cost(model_of(ops, {"a": 3, "b": 5}), EXACT)
    shares, operations = softmax_of([1, 2, 3, 4, 5])
    assert sum(shares) == 1
    assert table.total("flop", phase=Phase.FORWARD) == 3 * operations + 15
