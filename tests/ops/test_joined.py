"""Streams laid one after the other: each rank joins its own parts, and nothing is moved."""

import pytest
from sympy import Integer

from symbolic_cost.errors import PlacementError
from symbolic_cost.ledger import Quantity
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.joined import joined
from symbolic_cost.ops.placement import Placement
from tests.parallel.covering import WORK
from tests.strategies import model_of

SIZES = {"b": 3, "m": 8, "n": 16, "j": 24}
JOIN = joined("join", "text[b m], image[b n] -> both[b j]")
PART = joined("part", "both[b j] -> text[b m], image[b n]")
ALIKE = dict.fromkeys("mnj", ("cp",))


def table(op, axes, ranks=4):
    return cost(model_of([op], SIZES), WORK, Placement({"cp": ranks}, axes))


@pytest.mark.parametrize(("op", "elements"), [(JOIN, 3 * 24), (PART, 3 * (8 + 16))])
def test_a_result_is_as_much_work_as_it_has_values(op, elements):
    assert op.laid == (("m", "n") if op is JOIN else ("j",))
    assert table(op, {}).total(Quantity.FLOP, phase="forward") == elements
    assert table(op, ALIKE).total(Quantity.FLOP, phase="forward") == Integer(elements) / 4


@pytest.mark.parametrize("op", [JOIN, PART])
def test_ranks_that_split_all_streams_alike_send_nothing(op):
    assert not [row for row in table(op, ALIKE) if row.collective is not None]


@pytest.mark.parametrize("axes", [("m", "j"), ("m", "n"), ("j",)])
def test_streams_that_are_split_differently_are_refused(axes):
    said = "part.join: streams are split differently, 'm' over .*: ranks join their own parts"
    with pytest.raises(PlacementError, match=said):
        table(JOIN, dict.fromkeys(axes, ("cp",)))
