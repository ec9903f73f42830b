from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Add, Integer, Rational, expand, log

from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.costs import COSTS
from symbolic_cost.emit.formulas import plain
from symbolic_cost.emit.sheet import render
from symbolic_cost.emit.tree import tree_sheet
from symbolic_cost.errors import ConventionError, InputError
from symbolic_cost.ledger import CostTable, Phase, Quantity, Row
from symbolic_cost.models.decoders.gpt import GPT
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.placement import Placement
from symbolic_cost.symbols import b, e, f, l, m1, n_layers
from symbolic_cost.units import Unit

AXES = dict.fromkeys("hfvr", ("tp",))
TIMES = "\N{MULTIPLICATION SIGN}"


@pytest.fixture(scope="module")
def gpt():
    return cost(GPT().model(), STANDARD, Placement({"tp": m1}, AXES))


def table(*rows, unit=Unit.FLOP):
    return CostTable(
        tuple(
            Row(path, "op", Phase.FORWARD, Quantity.FLOP, unit, expr, count)
            for path, expr, count in rows
        ),
        STANDARD,
        name="toy",
    )


TOY = table(
    ("block.attention.norm", b * e, n_layers),
    ("block.attention.core.scores", b * l**2, n_layers),
    ("block.attention.core.scores", b * l, n_layers),
    ("block.mlp.layer.fc1", 2 * b * e * f, n_layers),
    ("head.logits", b * e, Integer(1)),
)


def test_tree_of_formulas():
    sheet = tree_sheet(TOY, "flops")
    assert sheet.title == "flops of toy"
    assert [(node.label, node.level, plain(formula)) for node, formula in sheet.rows] == [
        ("toy", 0, "n_layers b (l^2 + 2 e f + l + e) + b e"),
        (f"block {TIMES} n_layers", 1, "n_layers b (l^2 + 2 e f + l + e)"),
        ("attention", 2, "n_layers b (l^2 + l + e)"),
        ("norm", 3, "n_layers b e"),
        ("core.scores", 3, "n_layers b l (l + 1)"),
        ("mlp.layer.fc1", 2, "2 n_layers b e f"),
        ("head.logits", 1, "b e"),
    ]


def test_tree_of_numbers():
    values = {"b": 1, "l": 3, "e": 4, "f": 8, "n_layers": 2}
    sheet = tree_sheet(TOY, "flops", values)
    assert [(node.path, value, share) for node, _, value, share in sheet.rows] == [
        ("", 164, 100),
        ("block", 160, float(Fraction(16000, 164))),
        ("block.attention", 32, float(Fraction(3200, 164))),
        ("block.attention.norm", 8, float(Fraction(800, 164))),
        ("block.attention.core.scores", 24, float(Fraction(2400, 164))),
        ("block.mlp.layer.fc1", 128, float(Fraction(12800, 164))),
        ("head.logits", 4, float(Fraction(400, 164))),
    ]
    assert sheet.rows[1][0].label == f"block {TIMES} 2"
    assert sheet.columns[2].unit is Unit.FLOP


def test_some_numbers_are_no_numbers():
    sheet = tree_sheet(TOY, "flops", {"n_layers": 96})
    assert [column.heading for column in sheet.columns] == ["part", "formula"]
    assert sheet.rows[1][0].label == f"block {TIMES} 96"


def test_count_below_count():
    one = ("a.x", b, n_layers)
    sheet = tree_sheet(table(one, ("a.y", e, Integer(2) * n_layers)), "flops")
    labels = [node.label for node, _ in sheet.rows]
    assert labels == ["toy", "a", f"x {TIMES} n_layers", f"y {TIMES} 2 n_layers"]


def test_an_op_above_another_op():
    sheet = tree_sheet(table(("a", b, Integer(1)), ("a.x", e, Integer(1))), "flops")
    assert [(node.label, node.level, plain(total)) for node, total in sheet.rows] == [
        ("toy", 0, "b + e"),
        ("a", 1, "b + e"),
        ("itself", 2, "b"),
        ("x", 2, "e"),
    ]


def test_numbers_that_are_not_rational():
    sheet = tree_sheet(table(("a", log(b), Integer(1))), "flops", {"b": 3})
    assert sheet.rows[0][2:] == (pytest.approx(1.0986122886681098), 100.0)


def test_no_rows():
    sheet = tree_sheet(table(), "flops")
    assert [(node.label, total) for node, total in sheet.rows] == [("toy", 0)]


def test_nothing_has_no_shares():
    sheet = tree_sheet(table(("a", b - 1, Integer(1))), "flops", {"b": 1})
    assert [row[2:] for row in sheet.rows] == [(0, None), (0, None)]


def test_refuses_mixed_units():
    mixed = table(("a", b, Integer(1))) + table(("b", e, Integer(1)), unit=Unit.BYTE)
    with pytest.raises(ConventionError) as caught:
        tree_sheet(mixed, "flops")
    assert str(caught.value) == "a tree is of one unit, not of FLOP, byte: select rows"


def test_refuses_bad_values():
    with pytest.raises(InputError, match="b = 0: an integer from 1"):
        tree_sheet(TOY, "flops", {"b": 0})


def children_add_to_parents(rows):
    for place, (node, total) in enumerate(rows):
        below = []
        for other, part in rows[place + 1 :]:
            if other.level <= node.level:
                break
            if other.level == node.level + 1:
                below.append(part)
        assert not below or expand(Add(*below) - total) == 0, node


@pytest.mark.parametrize("name", COSTS)
def test_children_add_to_parents_in_a_model(gpt, name):
    rows = COSTS[name].rows(gpt)
    sheet = tree_sheet(rows, name)
    children_add_to_parents(sheet.rows)
    assert expand(sheet.rows[0][1] - COSTS[name].total(gpt)) == 0


PATHS = st.lists(st.sampled_from("xyz"), min_size=1, max_size=4).map(".".join)
ROWS = st.tuples(
    PATHS,
    st.sampled_from([b, e / m1, b * l + 1, Rational(1, 2) * f]),
    st.sampled_from([Integer(1), Integer(3), n_layers]),
)


@given(st.lists(ROWS, min_size=1, max_size=8))
def test_children_add_to_parents_in_any_table(rows):
    sheet = tree_sheet(table(*rows), "flops")
    children_add_to_parents(sheet.rows)
    total = Add(*(expr * count for _, expr, count in rows))
    assert expand(sheet.rows[0][1] - total) == 0
    assert {path for path, _, _ in rows} <= {node.path for node, *_ in sheet.rows}


def test_tree_is_written_in_a_terminal():
    values = {"b": 1, "l": 3, "e": 4, "f": 8, "n_layers": 2}
    assert render(tree_sheet(TOY, "flops", values), "table").splitlines()[2:7] == [
        " part                   value   share [%]",
        " ────────────────────────────────────────",
        " toy                 164 FLOP      100.00",
        "     = n_layers b (l^2 + 2 e f + l + e) + b e",
        f"   block {TIMES} 2         160 FLOP       97.56",
    ]
