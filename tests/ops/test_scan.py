"""Scans, recurrent cells and caches against loops over their positions."""

import pytest

from symbolic_cost.conventions.presets import EXACT
from symbolic_cost.errors import PatternError, PlacementError
from symbolic_cost.ledger import Phase, Quantity
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.placement import Placement
from symbolic_cost.ops.scan import recurrence, scan
from symbolic_cost.ops.view import cache
from tests.strategies import model_of

SCAN = scan("scan", "decay[b l j], x[b l j] -> state[b l j]", along="l")
SIZES = {"b": 2, "l": 5, "j": 3}


def test_a_scan_counts_a_product_and_a_sum_per_step_after_the_first():
    operations = 0
    for _row in range(SIZES["b"] * SIZES["j"]):
        state = None
        for _position in range(SIZES["l"]):
            operations += 0 if state is None else 2
            state = True
    table = cost(model_of([SCAN], SIZES), EXACT)
    assert table.total(Quantity.FLOP, phase=Phase.FORWARD) == operations


def test_a_scan_gradient_is_a_scan_and_the_gradient_of_the_decays():
    """Backwards in time: dstate accumulates (product and sum), and times the state before."""
    operations = 0
    for _row in range(SIZES["b"] * SIZES["j"]):
        for position in reversed(range(SIZES["l"])):
            operations += 3 * (position > 0)
    table = cost(model_of([SCAN], SIZES), EXACT)
    assert table.total(Quantity.FLOP, phase=Phase.BACKWARD_INPUT) == operations
    assert {row.tensor for row in table.select(Quantity.SAVED)} == {"decay", "state"}


def test_no_mesh_axis_splits_a_recurrence():
    with pytest.raises(PlacementError) as refused:
        cost(model_of([SCAN], SIZES), EXACT, Placement({"cp": 5}, {"l": ("cp",)}))
    assert str(refused.value) == "part.scan: axis 'l' cannot be split: the scan runs along it"


@pytest.mark.parametrize(
    ("pattern", "along"),
    [
        ("x[b l] -> state[b l]", "l"),
        ("decay[b l], x[b] -> state[b l]", "l"),
        ("decay[b l], x[b l] -> state[b]", "l"),
        ("decay[b l], x[b l] -> state[b l]", "t"),
    ],
)
def test_malformed_scans(pattern, along):
    with pytest.raises(PatternError, match="pattern "):
        scan("scan", pattern, along)


STEP = (
    einsum("input", "x[b l e], *w[e h] -> gates[b l h]"),
    einsum("state", "before[b l g], *u[g h] -> turned[b l h]"),
    pointwise("sum", "gates[b l h], turned[b l h] -> made[b l h]", "add"),
    pointwise("tanh", "made[b l h] -> after[b l h]", "tanh"),
)
CELL_SIZES = {"b": 2, "l": 5, "e": 3, "h": 4, "g": 4}


def test_a_recurrent_cell_computes_what_its_ops_compute():
    border = "x[b l e], *input.w[e h], *state.u[g h] -> after[b l h]"
    cell = recurrence("cell", border, STEP, saves="x[b l e], after[b l h]", along="l")
    together = cost(model_of([cell], CELL_SIZES), EXACT)
    apart = cost(model_of(STEP, CELL_SIZES), EXACT)
    for phase in (Phase.FORWARD, Phase.BACKWARD_INPUT, Phase.BACKWARD_WEIGHT):
        assert together.total(Quantity.FLOP, phase=phase) == apart.total(Quantity.FLOP, phase=phase)
    assert together.total(Quantity.PARAMETER) == 3 * 4 + 4 * 4


def test_a_cache_is_kept_and_read_in_full():
    """One new position of 2 sequences; 7 are kept for the next step and read by the scores."""
    ops = (
        cache("keys", "k[b l d] -> keys[b t d]", kept="b t d"),
        einsum("scores", "q[b l d], keys[b t d] -> scores[b l t]", pairs="l t"),
    )
    table = cost(model_of(ops, {"b": 2, "l": 1, "t": 7, "d": 3}), EXACT)
    assert table.total(Quantity.CACHED) == 2 * 7 * 3
    assert table.total(Quantity.CACHE) == 2 * 7 * 3 * 2
    reads = table.select(Quantity.READ, phase=Phase.FORWARD)
    assert {row.tensor: row.expr for row in reads} == {"q": 2 * 3 * 2, "keys": 2 * 7 * 3 * 2}


def test_kept_axes_are_those_of_the_result():
    with pytest.raises(PatternError, match=r"kept axes \[b t\] are not those of the result"):
        cache("keys", "k[b l d] -> keys[b t d]", kept="b t")
