"""Random graphs on every rank: the booked collectives are enough, needed, and charged by word."""

from hypothesis import given, reject, settings

from symbolic_cost.conventions.presets import EXACT
from symbolic_cost.errors import PlacementError
from symbolic_cost.ops.derive import cost
from tests.laws.simulator import Run
from tests.strategies import graphs


@settings(max_examples=300)
@given(graphs())
def test_booked_collectives_bring_every_tensor_where_it_is_needed(graph):
    try:
        table = cost(graph.model, EXACT, graph.placement)
    except PlacementError:  # a view that crosses mesh axes
        reject()
    Run(graph.ops, graph.sizes, graph.placement, table).check()
