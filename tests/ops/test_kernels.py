"""What single ops save and read in backward, and what a recomputed region moves again."""

from dataclasses import replace

import pytest
from sympy import Integer, expand

from symbolic_cost.conventions.presets import EXACT, STANDARD
from symbolic_cost.ledger import Phase, Quantity
from symbolic_cost.models.catalog import model
from symbolic_cost.models.kernels import Attention, running
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.fused import fused
from symbolic_cost.ops.lookup import lookup
from symbolic_cost.ops.placement import Placement
from symbolic_cost.ops.recompute import SELECTIVE
from symbolic_cost.ops.view import split, view
from symbolic_cost.symbols import symbol
from tests.strategies import model_of


def names(operands):
    return [operand.tensor for operand in operands]


def test_an_input_is_saved_for_the_gradients_of_others_alone():
    assert names(einsum("op", "x[b e], !y[e f] -> z[b f]").saves()) == ["y"]
    assert names(einsum("op", "!x[b e], !y[e f] -> z[b f]").saves()) == []
    assert names(einsum("op", "x[b e], *w[e f] -> z[b f]").saves()) == ["x"]


def backward_reads(op):
    return {kernel.phase: set(names(kernel.reads)) for kernel in op.kernels()[1:]}


def test_a_fused_group_reads_its_weights_in_backward():
    inside = (
        einsum("up", "x[b e], *w[e f] -> u[b f]"),
        pointwise("act", "u[b f] -> y[b f]", "relu"),
    )
    group = fused("group", "x[b e], *up.w[e f] -> y[b f]", inside, saves="x[b e], y[b f]")
    reads = {"dy", "x", "y", "up.w"}
    assert backward_reads(group) == {Phase.BACKWARD_INPUT: reads, Phase.BACKWARD_WEIGHT: reads}


def test_a_lookup_reads_its_ids_in_backward():
    op = lookup("word", "!ids[b l]:index, *table[v e] -> x[b l e]")
    assert backward_reads(op) == {Phase.BACKWARD_WEIGHT: {"ids", "dx"}}


def test_a_region_gathers_again_what_it_keeps_in_shards():
    """The shard that comes into a region is kept, so the gather inside of it runs again."""
    ops = (
        pointwise("before", "x[b r] -> shard[b r]", "relu"),
        replace(view("gather", "shard[b r] -> full[b l]"), core="core"),
        replace(pointwise("act", "full[b l] -> y[b l]", "relu"), core="core"),
        view("after", "y[b l] -> z[b r]"),
    )
    sizes = {"b": Integer(2), "r": Integer(4), "l": Integer(4)}
    placement = Placement({"tp": 2}, {"r": ("tp",)})
    table = cost(model_of(ops, sizes), EXACT, placement, SELECTIVE)
    again = table.select(Quantity.COMMUNICATION, phase=Phase.RECOMPUTE)
    assert [(row.path, row.tensor, row.collective.kind) for row in again] == [
        ("part.before", "shard", "all-gather")
    ]


def test_what_leaves_a_region_is_not_moved_again():
    ops = (
        replace(einsum("up", "x[b e], *w[e f] -> u[b f]"), core="core"),
        pointwise("act", "u[b f] -> y[b f]", "relu"),
    )
    sizes = {"b": Integer(2), "e": Integer(4), "f": Integer(4)}
    table = cost(model_of(ops, sizes), EXACT, Placement({"tp": 2}, {"e": ("tp",)}), SELECTIVE)
    moved = table.select(Quantity.COMMUNICATION)
    assert [(row.phase, row.collective.kind) for row in moved] == [(Phase.FORWARD, "all-reduce")]


def test_a_sum_that_others_use_as_well_is_made_before_a_view_scatters_it():
    ops = (
        einsum("up", "x[b l e], *w[e f] -> y[b l f]"),
        view("scatter", "y[b l f] -> z[b r f]"),
        pointwise("act", "y[b l f] -> a[b l f]", "relu"),
    )
    sizes = dict.fromkeys("blref", Integer(4))
    placement = Placement({"tp": 2}, {"e": ("tp",), "r": ("tp",)})
    moved = cost(model_of(ops, sizes), EXACT, placement).select(Quantity.COMMUNICATION)
    forward = [row.collective.kind for row in moved.select(phase=Phase.FORWARD)]
    assert forward == ["all-reduce"]


def test_partial_gradients_of_parts_are_summed_for_the_whole():
    ops = (
        split("split", "x[c b e] -> p[b e], q[b e]"),
        einsum("up", "p[b e], *w[e f] -> u[b f]"),
        einsum("down", "q[b e], *w[e f] -> v[b f]"),
    )
    sizes = {"c": Integer(2), **dict.fromkeys("bef", Integer(4))}
    table = cost(model_of(ops, sizes), EXACT, Placement({"tp": 2}, {"f": ("tp",)}))
    moved = table.select(Quantity.COMMUNICATION)
    assert [(row.tensor, row.collective.kind) for row in moved] == [("dx", "all-reduce")]


@pytest.mark.parametrize(("kernel", "near", "all_keys"), [("flash", 26, 36), ("eager", 64, 64)])
def test_the_softmax_of_a_fused_kernel_is_over_the_pairs_that_it_computes(kernel, near, all_keys):
    """8 queries: 26 pairs within a window of 4, 36 under a mask, 64 where no pair is left out."""
    runs = running(model("gpt-oss-120b"), Attention(kernel))
    table = cost(runs.model, conventions=runs.executed(STANDARD))
    sizes = {symbol("l"): 8, symbol("W"): 4}
    b, h, q, layers = map(symbol, ("b", "h", "q", "n_layers"))
    for block, pairs in (("sliding", near), ("full", all_keys)):
        path = f"{block}.block.attention.core"
        flop = table.total("flop", phase="forward", path=path).xreplace(sizes)
        assert expand(flop - layers / 2 * b * h * ((5 + 4 * q) * pairs - 2 * 8)) == 0
