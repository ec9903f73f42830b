"""What backward keeps, reads and moves again, where a slip would not show in totals."""

from dataclasses import replace

from symbolic_cost.conventions.presets import preset
from symbolic_cost.ledger import Phase
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.fused import fused
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.lookup import lookup
from symbolic_cost.ops.part import OUTSIDE, Part, Place
from symbolic_cost.ops.placement import Placement
from symbolic_cost.ops.recompute import FULL, SELECTIVE
from symbolic_cost.ops.view import view
from symbolic_cost.symbols import b, e, f, l, m1

RULES = preset("exact")


def kernel(op, phase):
    (found,) = [each for each in op.kernels() if each.phase is phase]
    return found


def names(operands):
    return [operand.tensor for operand in operands]


def test_an_input_is_kept_for_the_gradient_of_another():
    assert names(einsum("op", "x[a c], y[c d] -> z[a d]").saves()) == ["x", "y"]
    assert names(einsum("op", "x[a c], *w[c d] -> z[a d]").saves()) == ["x"]


def test_an_input_is_not_kept_where_no_other_operand_needs_a_gradient():
    masked = einsum("op", "x[a c], !mask[c d] -> z[a d]")
    assert names(masked.saves()) == ["mask"]
    assert not einsum("op", "!x[a c], !mask[c d] -> z[a d]").saves()
    assert names(einsum("op", "!x[a c], *w[c d] -> z[a d]").saves()) == ["x"]


def test_a_fused_backward_reads_weights_and_what_was_kept():
    inner = einsum("fc", "x[a c], *w[c d] -> z[a d]")
    group = fused("group", "x[a c], *fc.w[c d] -> z[a d]", (inner,), saves="x[a c]")
    for phase in (Phase.BACKWARD_INPUT, Phase.BACKWARD_WEIGHT):
        assert names(kernel(group, phase).reads) == ["dz", "x", "fc.w"]


def test_the_backward_of_a_lookup_reads_the_ids():
    op = lookup("word", "!ids[b l]:index, *table[v e] -> x[b l e]")
    assert names(kernel(op, Phase.BACKWARD_WEIGHT).reads) == ["ids", "dx"]
    assert names(op.saves()) == ["ids"]


def block(*ops, before=()):
    return Model(
        "m",
        (Part("start", before), Part("block", ops, place=Place.BLOCK)),
        {"b": b, "r": l, "l": l, "e": e, "f": f, "g": e},
    )


INSIDE = (
    view("gather", "x[b r e] -> full[b l e]"),
    einsum("up", "full[b l e], *w[e f] -> u[b l f]"),
    einsum("down", "u[b l f], *w[f e] -> summed[b l e]"),
    view("scatter", "summed[b l e] -> y[b r e]"),
)


LATER = (pointwise("act", "x[b r e] -> y[b r e]", "gelu"),)


def moved(model, placement, phase, policy=FULL):
    table = cost(model, RULES, placement, policy).select("communication", phase=phase)
    return [(row.path, str(row.collective.kind)) for row in table]


def test_what_a_region_gathers_and_sums_inside_moves_again():
    split = Placement({"tp": m1}, {"f": ("tp",), "r": ("tp",)})
    inside = [("block.gather", "all-gather"), ("block.down", "reduce-scatter")]
    for phase in (Phase.FORWARD, Phase.RECOMPUTE):
        assert moved(block(*INSIDE), split, phase) == inside


def test_a_sum_that_comes_into_a_region_is_kept_and_not_made_again():
    parts = (
        einsum("before", "seen[b f], *w[f e] -> given[b e]"),
        replace(pointwise("core.act", "given[b e] -> done[b e]", "gelu"), core="core"),
    )
    outside = {"seen": OUTSIDE}
    model = Model("m", (Part("part", parts, takes=outside),), {"b": b, "e": e, "f": f})
    split = Placement({"tp": m1}, {"f": ("tp",)})
    assert moved(model, split, Phase.FORWARD, SELECTIVE) == [("part.before", "all-reduce")]
    assert moved(model, split, Phase.RECOMPUTE, SELECTIVE) == []
    kept = cost(model, RULES, split, SELECTIVE).select("saved")
    assert [row.tensor for row in kept] == ["seen", "given"]


def test_nothing_moves_again_outside_a_region():
    split = Placement({"tp": m1}, {"f": ("tp",), "r": ("tp",)})
    again = (
        Part("part", INSIDE, takes={"x": OUTSIDE}),
        Part("block", LATER, place=Place.BLOCK),
    )
    outside = Model("m", again, block().sizes)
    forward = moved(outside, split, Phase.FORWARD)
    assert [path for path, _ in forward] == ["part.gather", "part.down"]
    assert moved(outside, split, Phase.RECOMPUTE) == []
