"""Convolutions and pooling against loops over every product."""

from itertools import product

import pytest
from sympy import Integer

from symbolic_cost.conventions.presets import EXACT, PRESETS
from symbolic_cost.errors import PatternError, PlacementError, UnknownNameError
from symbolic_cost.ledger import Phase
from symbolic_cost.ops.conv import TransposedConv, conv, pool
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.part import fragment
from symbolic_cost.ops.placement import Placement
from tests.strategies import model_of

SIZES = {"b": 2, "g": 3, "i": 2, "o": 5, "y": 6, "x": 7, "s": 3, "t": 2, "p": 4, "q": 6}
GROUPED = "x[b g i y x], *w[g i o s t] + *bias[g o] -> u[b g o p q]"


def table(op, conventions="exact", placement=None, sizes=SIZES):
    model = Model("m", (fragment("part", (op,)),), {a: Integer(n) for a, n in sizes.items()})
    return cost(model, PRESETS[conventions], *([placement] if placement else []))


def flop(rows, phase):
    return rows.total("flop", phase=phase)


def loops():
    """Operations of a convolution and its gradients, counted one by one: (terms, results)."""
    made, images, weights = {}, {}, {}
    for b, g, i, o, p, q, s, t in product(*(range(SIZES[a]) for a in "bgiopqst")):
        for seen, key in (
            (made, (b, g, o, p, q)),
            (images, (b, g, i, p + s, q + t)),
            (weights, (g, i, o, s, t)),
        ):
            seen[key] = seen.get(key, 0) + 1
    return [(sum(seen.values()), len(seen)) for seen in (made, images, weights)]


def test_flop_of_every_product_is_that_of_loops():
    rows = table(conv("c", GROUPED)).select("flop")
    (terms, results), (back_terms, images), (weight_terms, weights) = loops()
    assert images == 2 * 3 * 2 * 6 * 7  # every input element is reached
    assert flop(rows, "forward") == 2 * terms - results + results  # and one bias each
    assert flop(rows, "backward_input") == 2 * back_terms - images
    biases = 15
    bias_gradient = biases * (2 * 4 * 6 - 1)
    assert flop(rows, "backward_weight") == 2 * weight_terms - weights + bias_gradient


def test_constant_input_has_no_gradient():
    rows = table(conv("c", f"!{GROUPED}"))
    assert flop(rows, "backward_input") == 0
    assert "dx" not in rows.tensors


def test_parameters_and_saved_input():
    rows = table(conv("c", GROUPED), "model-flop")
    assert rows.total("parameter") == 3 * 2 * 5 * 3 * 2 + 15
    assert rows.total("saved") == 2 * (2 * 3 * 2 * 6 * 7)


def test_a_split_sum_leaves_a_partial_result():
    rows = table(conv("c", GROUPED), placement=Placement({"m": 2}, {"i": ("m",)}))
    kinds = {(row.phase, row.collective.kind) for row in rows.select("communication")}
    assert kinds == {("forward", "all-reduce")}


def test_positions_cannot_be_split():
    with pytest.raises(PlacementError, match=r"axis 'p' cannot be split: the conv runs along it"):
        table(conv("c", GROUPED), placement=Placement({"m": 2}, {"p": ("m",)}))


def test_pooling_counts_windows_or_input_elements():
    op = pool("max", "x[b i y x] -> u[b i p q]", "max_pool", window="s t")
    results, inputs = 2 * 2 * 4 * 6, 2 * 2 * 6 * 7
    assert flop(table(op), "forward") == results * (3 * 2 - 1)
    assert flop(table(op, "flops-profiler"), "forward") == inputs
    assert table(op).total("saved") == 2 * inputs + 8 * results


@pytest.mark.parametrize(
    ("declare", "error", "text"),
    [
        (lambda: conv("c", "x[b y] -> u[b p]"), PatternError, "one input and one kernel"),
        (lambda: conv("c", "x[b i y], *w[o s] -> u[b o p]"), PatternError, "no channel meets it"),
        (
            lambda: pool("p", "x[b y] -> u[b p]", "mx_pool", window="s"),
            UnknownNameError,
            "did you mean max_pool",
        ),
        (
            lambda: pool("p", "x[b y], z[b y] -> u[b p]", "max_pool", window="s"),
            PatternError,
            "one tensor to one tensor",
        ),
    ],
)
def test_refuses(declare, error, text):
    with pytest.raises(error, match=text):
        declare()


@pytest.mark.parametrize(("conventions", "per"), [("torch-flop-counter", 2), ("fvcore", 1)])
def test_a_transposed_convolution_multiplies_every_input_by_the_kernel(conventions, per):
    op = TransposedConv("up", conv("up", "x[b i y x], *w[i o s t] -> u[b o p q]").pattern)
    lengths = {"b": 2, "i": 3, "o": 4, "y": 5, "x": 5, "s": 2, "t": 2, "p": 10, "q": 10}
    sizes = {axis: Integer(length) for axis, length in lengths.items()}
    model = Model("up", (fragment("part", (op,)),), sizes)
    products = 2 * (5 * 5) * (3 * 4) * (2 * 2)
    forward = cost(model, PRESETS[conventions]).total("flop", phase=Phase.FORWARD)
    assert forward == per * products
    kernels = {kernel.phase: kernel.work[0] for kernel in op.kernels()}
    assert {work.space for work in kernels.values()} == {("b", "i", "y", "x", "o", "s", "t")}


def test_a_bias_gradient_is_whole_where_channels_that_go_in_are_split():
    """It sums the gradient of the result, which every rank has; the kernel's rows are split."""
    op = conv("conv", "x[b i y x], *w[i o s t] + *bias[o] -> u[b o p q]")
    sizes = dict.fromkeys(("b", "i", "y", "x", "o", "s", "t", "p", "q"), 2)
    table = cost(model_of([op], sizes), EXACT, Placement({"tp": 2}, {"i": ("tp",)}))
    moved = table.select("communication")
    assert [row.tensor for row in moved] == ["u"]
