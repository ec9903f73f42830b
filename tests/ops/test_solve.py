"""Triangular systems: what they save, and the products of their gradients."""

import pytest
from sympy import Integer

from symbolic_cost.conventions.presets import preset
from symbolic_cost.errors import PatternError
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.part import fragment
from symbolic_cost.ops.solve import solve

PATTERN = "system[b i j], right[b j v] -> left[b i v]"


def test_the_gradient_of_the_system_is_a_product():
    """Two sequences, 4 rows, 3 columns: 2 * 4 * 4 products of 3 factors, twice 96 FLOP."""
    sizes = {"b": Integer(2), "i": Integer(4), "j": Integer(4), "v": Integer(3)}
    model = Model("system", (fragment("system", (solve("solve", PATTERN),)),), sizes)
    counted = cost(model, preset("torch-flop-counter"))
    assert counted.total("flop") == 2 * 2 * 4 * 4 * 3
    assert counted.total("flop", phase="forward") == 0
    # Half of the square is visited, by a product and a sum each, forward and for the right sides.
    assert cost(model, preset("exact")).total("flop", phase="forward") == 2 * 4 * 4 * 3


def test_system_and_solutions_are_saved():
    assert [saved.tensor for saved in solve("solve", PATTERN).saves()] == ["system", "left"]


def test_rows_and_columns_stay_whole():
    assert solve("solve", PATTERN).whole_axes == ("i", "j")


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("system[b i j] -> left[b i v]", "have one solution"),
        ("system[b i], right[b j v] -> left[b i v]", "no row of right sides"),
    ],
)
def test_refuses(pattern, said):
    with pytest.raises(PatternError, match=said):
        solve("solve", pattern)
