"""Random graphs on every rank: the booked collectives are enough, needed, and charged by word."""

import pytest
from hypothesis import given, reject, settings

from symbolic_cost.conventions.presets import EXACT
from symbolic_cost.errors import PlacementError
from symbolic_cost.layers.attention import Attention, Projection
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.ledger import Phase, Quantity
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import cross_entropy, norm, pointwise, softmax
from symbolic_cost.ops.lookup import lookup
from symbolic_cost.ops.placement import Placement
from symbolic_cost.ops.view import view
from tests.laws.simulator import Run
from tests.strategies import graphs, model_of


@settings(max_examples=150)
@given(graphs())
def test_booked_collectives_bring_every_tensor_where_it_is_needed(graph):
    try:
        table = cost(graph.model, EXACT, graph.placement)
    except PlacementError:  # a view that crosses mesh axes
        reject()
    Run(graph.ops, graph.sizes, graph.placement, table).check()


LAYERS = {
    "mlp": MLP().ops(),
    "attention": Attention().ops(),
    "attention of three projections": Attention(projection=Projection.SEPARATE).ops(),
}
TENSOR = {"h": ("tp",), "f": ("tp",)}
PLACEMENTS = {
    "tp": Placement({"tp": 2}, TENSOR),
    "tp+sp": Placement({"tp": 2}, TENSOR | {"r": ("tp",)}),
    "dp": Placement({"dp": 2}, {"b": ("dp",)}),
    "cp": Placement({"cp": 2}, {"r": ("cp",), "l": ("cp",)}),
    "tp+sp+cp": Placement({"tp": 2, "cp": 3}, TENSOR | {"r": ("tp", "cp"), "l": ("cp",)}),
    "tp+dp": Placement({"tp": 3, "dp": 2}, TENSOR | {"b": ("dp",)}),
}
SIZES = {"b": 2, "r": 6, "l": 6, "t": 6, "e": 2, "f": 6, "c": 3, "h": 6, "d": 1}


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("layer", LAYERS)
def test_layers_run_on_the_booked_collectives(layer, placement):
    ops = LAYERS[layer]
    known = {axis for op in ops for axis in op.axes}
    whole = PLACEMENTS[placement]
    placed = Placement(whole.degrees, {a: m for a, m in whole.axes.items() if a in known})
    table = cost(model_of(ops, SIZES), EXACT, placed)
    Run(ops, SIZES, placed, table).check()


def test_a_position_table_is_summed_once_per_step():
    """Sums of gradients that only weights use are left to the weights."""
    ops = (
        lookup("position", "!places[r]:index, *table[p e] -> positions[r e]"),
        pointwise("add", "tokens[b r e], positions[r e] -> y[b r e]", "add"),
    )
    placement = Placement({"dp": 2}, {"b": ("dp",)})
    table = cost(model_of(ops, {"b": 4, "r": 3, "p": 5, "e": 2}), EXACT, placement)
    (row,) = table.select(Quantity.COMMUNICATION)
    assert (row.tensor, row.phase, row.per_step) == (
        "dposition.table",
        Phase.BACKWARD_WEIGHT,
        True,
    )
    assert row.collective.message == 5 * 2 * 2


def test_tied_weights_are_summed_once():
    ops = (
        lookup("token", "!ids[b l]:index, *@token[v e] -> x[b l e]"),
        einsum("logits", "x[b l e], *@token[v e] -> logits[b l v]"),
    )
    model = model_of(ops, {"b": 4, "l": 3, "v": 5, "e": 2})
    for stored, phases in (
        ((), ["backward_weight"]),
        (("optimizer",), ["backward_weight", "step"]),
    ):
        placement = Placement({"dp": 2}, {"b": ("dp",)}, dict.fromkeys(stored, ("dp",)))
        rows = cost(model, EXACT, placement).select(Quantity.COMMUNICATION)
        assert [row.phase for row in rows] == phases


def test_weights_tied_over_repeated_blocks_are_one():
    """A block that runs three times with the same weight; ranks gather it each time."""
    ops = (einsum("op", "x[b e], *@w[e f] -> y[b f]"),)
    stored = dict.fromkeys(("weight", "weight_gradient"), ("dp",))
    placement = Placement({"dp": 2}, {"b": ("dp",)}, stored)
    table = cost(model_of(ops, {"b": 4, "e": 3, "f": 5}, repeat=3), EXACT, placement)
    assert table.total(Quantity.PARAMETER) == 15
    assert table.total(Quantity.WEIGHT) == 15
    counts = {(r.phase, r.collective.kind): r.count for r in table.select("communication")}
    assert counts == {
        (Phase.FORWARD, "all-gather"): 3,
        (Phase.BACKWARD_INPUT, "all-gather"): 3,
        (Phase.BACKWARD_WEIGHT, "reduce-scatter"): 1,
    }


@pytest.mark.parametrize("layer", ["layer_norm", "softmax", "cross_entropy"])
def test_statistics_of_split_rows_are_reduced(layer):
    """The values per row that ranks exchange, four bytes each."""
    op, forward, backward = {
        "layer_norm": (norm("n", "x[a b], *g[b] -> y[a b]", "layer_norm", row="b"), 2, 2),
        "softmax": (softmax("n", "x[a b] -> y[a b]", row="b"), 2, 1),
        "cross_entropy": (cross_entropy("n", "x[a b], !t[a]:index -> y[a]", row="b"), 3, 0),
    }[layer]
    placement = Placement({"x": 4}, {"b": ("x",)})
    table = cost(model_of([op], {"a": 3, "b": 8}), EXACT, placement).select("communication")
    assert {row.collective.kind for row in table} == {"all-reduce"}
    messages = [(row.phase, row.collective.message) for row in table]
    assert messages == [
        (phase, values * 3 * 4)
        for phase, values in ((Phase.FORWARD, forward), (Phase.BACKWARD_INPUT, backward))
        if values
    ]


def test_a_view_that_no_collective_joins_is_refused():
    ops = (view("shift", "x[a] -> y[b]"),)
    for before, after in ((("x", "y"), ("x",)), (("x",), ("y",)), (("x", "y"), ("y", "x"))):
        placement = Placement({"x": 2, "y": 2}, {"a": before, "b": after})
        with pytest.raises(PlacementError) as refused:
            cost(model_of(ops, {"a": 4, "b": 4}), EXACT, placement)
        assert str(refused.value) == (
            f"part.shift: 'a' is split over {' and '.join(before)}, 'b' over "
            f"{' and '.join(after)}, innermost first: a view gathers or scatters inner mesh axes "
            "and keeps the outer ones"
        )
