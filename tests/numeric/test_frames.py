"""Frames of rows and pivots of ops by cost."""

from fractions import Fraction

import pytest

from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.costs import COSTS
from symbolic_cost.errors import DivisibilityError, InputError
from symbolic_cost.numeric.binding import bind, value
from symbolic_cost.numeric.frames import frame, pivot
from symbolic_cost.symbols import b, e, f, l, m1, n_layers
from tests.numeric.small import small

TABLE = small()
SIZES = {"b": 2, "l": 128, "e": 6 * 10**6, "f": 3 * 10**6, "h": 6, "V": 99, "n_layers": 5, "m1": 3}
COLUMNS = [COSTS[name] for name in ("flops_fwd", "flops_bwd", "params")]


def test_a_frame_holds_formulas():
    rows = frame(TABLE)
    assert list(rows.columns) == [
        *("path", "kind", "phase", "quantity", "unit", "tensor", "count", "formula", "total")
    ]
    assert len(rows) == len(TABLE)
    fc1 = rows[(rows.path == "block.fc") & (rows.quantity == "parameter")].iloc[0]
    assert (fc1.phase, fc1.unit, fc1.tensor) == ("state", "element", "fc.w")
    assert (fc1["count"], fc1.formula, fc1.total) == (n_layers, e * f / m1, n_layers * e * f / m1)


def test_a_frame_holds_exact_numbers():
    rows = frame(TABLE, SIZES)
    fc1 = rows[(rows.path == "block.fc") & (rows.quantity == "parameter")].iloc[0]
    assert fc1.value == 5 * 6 * 10**12
    assert {type(number) for number in rows.value} <= {int, Fraction}
    assert set(rows.dtypes.astype(str)) == {"object"}
    flop = rows[rows.quantity == "flop"].value.sum()
    assert flop == value(bind(TABLE.total("flop"), SIZES))


def test_integers_do_not_overflow():
    huge = {**SIZES, "b": 10**9, "l": 10**9, "e": 6 * 10**9}
    total = frame(TABLE.select("flop"), huge).value.sum()
    assert total == value(bind(TABLE.total("flop"), huge)) > 2**64


def test_a_pivot_has_ops_as_lines():
    formulas = pivot(TABLE, COLUMNS)
    assert list(formulas.index) == list(TABLE.paths())
    assert list(formulas.columns) == ["flops_fwd", "flops_bwd", "params"]
    fc = formulas.loc["block.fc"]
    assert fc.flops_fwd == 2 * b * l * e * f * n_layers / m1
    assert fc.flops_bwd == 4 * b * l * e * f * n_layers / m1
    assert fc.params == e * f * n_layers / m1
    assert formulas.loc["block.drop"].params == 0


def test_a_pivot_sums_to_the_totals():
    numbers = pivot(TABLE, COLUMNS, SIZES)
    for name, quantity, phases in (
        ("flops_fwd", "flop", "forward"),
        ("flops_bwd", "flop", ("backward_input", "backward_weight")),
        ("params", "parameter", None),
    ):
        total = TABLE.total(quantity, phase=phases)
        assert numbers[name].sum() == value(bind(total, SIZES))


def test_an_op_is_not_counted_with_the_ops_below_its_path():
    first, second = TABLE.select("flop", phase="forward").rows[:2]
    below = type(second)(
        f"{first.path}.inner", "add", second.phase, second.quantity, second.unit, second.expr
    )
    joined = type(TABLE)((first, below), STANDARD)
    assert pivot(joined, COLUMNS).flops_fwd.tolist() == [first.total, below.total]


def test_nothing_makes_an_empty_frame():
    nothing = TABLE.select(where=lambda row: not row.path)
    assert len(frame(nothing, SIZES)) == 0
    assert pivot(nothing, COLUMNS).shape == (0, 3)


def test_missing_and_refused_values():
    with pytest.raises(InputError, match=r"^no number without values for"):
        frame(TABLE, {"b": 1})
    with pytest.raises(InputError, match=r"^no number without values for"):
        pivot(TABLE, COLUMNS, {"b": 1})
    with pytest.raises(DivisibilityError, match="axis f"):
        pivot(TABLE, COLUMNS, {**SIZES, "m1": 7})
