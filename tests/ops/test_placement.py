"""Placements that are refused, the states of tensors, and the table of collectives."""

from fractions import Fraction

import numpy as np
import pytest
from sympy import Integer, Symbol

from symbolic_cost.conventions.presets import EXACT
from symbolic_cost.errors import PlacementError
from symbolic_cost.ledger import Phase, Quantity
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise, softmax
from symbolic_cost.ops.fused import fused
from symbolic_cost.ops.lookup import lookup
from symbolic_cost.ops.moves import moves
from symbolic_cost.ops.placement import Partial, Placement, Replicate, Shard
from symbolic_cost.ops.view import split
from symbolic_cost.symbols import m1
from tests.strategies import model_of


@pytest.mark.parametrize(
    "degree",
    [0, -1, 1.5, 2.0, True, "2", None, Fraction(3, 2), np.int64(2), Integer(0), Symbol("x")],
)
def test_a_degree_is_a_positive_integer_or_a_symbol_of_one(degree):
    with pytest.raises(PlacementError) as refused:
        Placement({"tp": degree})
    assert str(refused.value) == (
        f"mesh axis 'tp' has degree {degree!r}: a positive integer or a symbol is accepted"
    )


REFUSED = [
    ({"f": ("tq",)}, {}, "unknown mesh axis 'tq': did you mean tp?"),
    ({"f": ("tp", "tp")}, {}, "axis 'f' names mesh axis 'tp' twice"),
    ({}, {"weight": ("zz",)}, "unknown mesh axis 'zz': accepted are dp, tp"),
    ({}, {"weight": ("dp", "dp")}, "stored 'weight' names mesh axis 'dp' twice"),
    ({}, {"weights": ("dp",)}, "unknown stored quantity 'weights': did you mean weight"),
]


@pytest.mark.parametrize(("axes", "stored", "problem"), REFUSED)
def test_contradictions(axes, stored, problem):
    with pytest.raises(PlacementError) as refused:
        Placement({"tp": 2, "dp": 3}, axes, stored)
    assert str(refused.value).startswith(problem)


def test_all_problems_at_once():
    with pytest.raises(PlacementError) as refused:
        Placement({"tp": 0, "dp": -2}, {"f": ("tq",), "h": ("tp", "tp")}, {"moments": ("dp",)})
    assert len(refused.value.problems) == 5


LINEAR = einsum("fc1", "x[b e], *w[e f] -> u[b f]")
SIZES = {"b": 12, "e": 12, "f": 12}


def test_a_mesh_axis_splits_one_axis_of_an_op():
    placement = Placement({"tp": 2}, {"e": ("tp",), "f": ("tp",)})
    with pytest.raises(PlacementError) as refused:
        cost(model_of([LINEAR], SIZES), EXACT, placement)
    assert str(refused.value) == (
        "part.fc1: mesh axis 'tp' splits e and f; it may split one axis of an op"
    )


def test_unknown_axes_are_named_with_the_closest():
    model = model_of([einsum("op", "x[width], *w[width] -> y[]")], {"width": 2})
    with pytest.raises(PlacementError, match=r"unknown axis 'widht': did you mean width?"):
        cost(model, EXACT, Placement({"tp": 2}, {"widht": ("tp",)}))


def test_an_axis_without_a_size_is_refused():
    with pytest.raises(PlacementError) as refused:
        cost(model_of([LINEAR], {"b": 2, "e": 2}), EXACT)
    assert str(refused.value) == "part.fc1: axis 'f' has no size"


def test_the_axis_of_a_split_is_whole():
    model = model_of([split("parts", "x[c a] -> y[a], z[a]")], {"c": 2, "a": 4})
    with pytest.raises(PlacementError, match=r"part.parts: axis 'c' cannot be split"):
        cost(model, EXACT, Placement({"tp": 2}, {"c": ("tp",)}))


def test_a_kernel_does_not_sum_over_ranks_inside():
    ops = (
        einsum("scores", "q[l d], k[t d] -> s[l t]"),
        softmax("softmax", "s[l t] -> p[l t]", row="t"),
    )
    group = fused("core", "q[l d], k[t d] -> p[l t]", ops, saves="q[l d], k[t d]")
    model = model_of([group], {"l": 4, "t": 4, "d": 4})
    with pytest.raises(PlacementError) as refused:
        cost(model, EXACT, Placement({"tp": 2}, {"d": ("tp",)}))
    assert str(refused.value) == (
        "part.core: mesh axis 'tp' splits the sum of 's', which the kernel uses inside"
    )
    # Rows along t are reduced by the kernel's ranks: two values forward, one backward.
    split_rows = cost(model, EXACT, Placement({"tp": 2}, {"t": ("tp",)}))
    statistics = split_rows.select(
        Quantity.COMMUNICATION, where=lambda row: row.tensor.endswith(".statistics")
    )
    assert [(row.phase, row.collective.message) for row in statistics] == [
        (Phase.FORWARD, 2 * 4 * 4),
        (Phase.BACKWARD_INPUT, 4 * 4),
    ]


def test_mesh_axes_of_one_rank_are_left_out():
    placement = Placement({"tp": 1, "dp": 2}, {"f": ("tp",), "b": ("tp", "dp")})
    assert dict(placement.degrees) == {"dp": 2}
    assert dict(placement.axes) == {"b": ("dp",)}


def test_states():
    placement = Placement({"tp": 2, "dp": m1}, {"f": ("tp",), "b": ("dp",)})
    assert placement.states(("b", "e"), ("b", "e", "f")) == {"tp": Partial(), "dp": Shard("b")}
    assert placement.states(("e",), ("e",)) == {"tp": Replicate(), "dp": Replicate()}
    assert placement.needs(("b", "f")) == {"tp": Shard("f"), "dp": Shard("b")}


# What moves: (have, need) -> collective, axis, elements of the message; 12 are on a rank, 3 ranks.

STEPS = [
    (Partial(), Replicate(), [("all-reduce", "", 12)]),
    (Partial(), Shard("a"), [("reduce-scatter", "a", 12)]),
    (Partial(), Partial(), []),
    (Shard("a"), Replicate(), [("all-gather", "a", 36)]),
    (Shard("a"), Shard("a"), []),
    (Shard("a"), Shard("b"), [("all-to-all", "b", 12)]),
    (Replicate(), Replicate(), []),
    (Replicate(), Shard("a"), []),
]


@pytest.mark.parametrize(("have", "need", "steps"), STEPS)
def test_the_table_of_collectives(have, need, steps):
    made = moves({"x": have}, {"x": need}, Integer(12), Placement({"x": 3}))
    assert [(move.kind, move.axis, move.elements) for move in made] == steps
    assert all(move.meshes == ("x",) for move in made)


def test_messages_shrink_before_they_grow():
    mesh = Placement({"x": 2, "y": 3, "z": 5})
    have = {"x": Shard("a"), "y": Partial(), "z": Replicate()}
    need = {"x": Replicate(), "y": Shard("b"), "z": Shard("c")}
    made = moves(have, need, Integer(30), mesh)
    assert [(move.kind, move.elements) for move in made] == [
        ("reduce-scatter", 6),
        ("all-gather", 4),
    ]


def test_one_collective_runs_over_all_mesh_axes_that_need_it():
    mesh = Placement({"x": 2, "y": 3})
    have, need = dict.fromkeys("xy", Partial()), dict.fromkeys("xy", Replicate())
    (move,) = moves(have, need, Integer(6), mesh)
    assert move.meshes == ("x", "y")


# Weights kept in shards.

KEPT = {
    0: (),
    1: ("optimizer",),
    2: ("optimizer", "weight_gradient"),
    3: ("optimizer", "weight_gradient", "weight"),
}
# Phase, collective, and whether once per step: gradients kept in shards are scattered each time.
BOOKED = {
    0: [("backward_weight", "all-reduce", True)],
    1: [("backward_weight", "reduce-scatter", True), ("step", "all-gather", True)],
    2: [("backward_weight", "reduce-scatter", False), ("step", "all-gather", True)],
    3: [
        ("forward", "all-gather", False),
        ("backward_input", "all-gather", False),
        ("backward_weight", "reduce-scatter", False),
    ],
}
BYTES = {0: (288, 288), 1: (288, 288), 2: (288, 72), 3: (72, 72)}


@pytest.mark.parametrize("level", KEPT)
def test_weights_kept_in_shards(level):
    placement = Placement({"dp": 4}, {"b": ("dp",)}, dict.fromkeys(KEPT[level], ("dp",)))
    table = cost(model_of([LINEAR], SIZES), EXACT, placement)
    rows = table.select(Quantity.COMMUNICATION)
    assert sorted((r.phase, r.collective.kind, r.per_step) for r in rows) == sorted(BOOKED[level])
    assert {row.collective.message for row in rows} == {288}
    state = (table.total(Quantity.WEIGHT), table.total(Quantity.WEIGHT_GRADIENT))
    assert state == BYTES[level]


def test_a_weight_is_not_divided_twice():
    """Ranks that hold different parts of a weight have nothing left to divide."""
    stored = dict.fromkeys(KEPT[3], ("dp",))
    placement = Placement({"dp": 4}, {"f": ("dp",)}, stored)
    table = cost(model_of([LINEAR], SIZES), EXACT, placement)
    assert table.total(Quantity.WEIGHT) == 288 // 4
    assert not any(row.tensor == "fc1.w" for row in table.select(Quantity.COMMUNICATION))


def test_a_table_kept_in_shards_is_gathered_before_its_lookup():
    op = lookup("token", "!ids[b]:index, *t[v e] -> x[b e]")
    placement = Placement({"dp": 2}, {"b": ("dp",)}, dict.fromkeys(KEPT[3], ("dp",)))
    table = cost(model_of([op], {"b": 4, "v": 6, "e": 2}), EXACT, placement)
    gathers = table.select(Quantity.COMMUNICATION, phase=Phase.FORWARD)
    assert [row.collective.message for row in gathers] == [6 * 2 * 2]


def test_a_gradient_whole_for_one_user_and_a_term_for_another_is_summed_once():
    """The whole one counts on one rank; nothing but the sum of the terms moves."""
    ops = (
        einsum("column", "x[b e], *w[e f] -> u[b f]"),
        pointwise("beside", "x[b e] -> y[b e]", "gelu"),
    )
    table = cost(model_of(ops, SIZES), EXACT, Placement({"tp": 2}, {"f": ("tp",)}))
    (row,) = table.select(Quantity.COMMUNICATION)
    assert (row.tensor, row.collective.kind, row.phase) == (
        "dx",
        "all-reduce",
        Phase.BACKWARD_INPUT,
    )
