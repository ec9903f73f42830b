"""What all repetitions of a part take from one other part is one tensor."""

import pytest

import symbolic_cost as sc
from symbolic_cost.symbols import symbol


@pytest.mark.parametrize("recompute", ["none", "full"])
def test_the_blocks_of_a_decoder_keep_the_result_of_the_encoder_once(recompute):
    saved = sc.cost("t5", recompute=recompute).select("saved")
    (memory,) = saved.select(tensor="memory")
    assert (memory.expr, memory.count) == (2 * symbol("b") * symbol("l") * symbol("e"), 1)
    shared = {"memory", "position"}  # the bias of positions is one tensor as well
    others = {row.count for row in saved.select(path="decoder.block") if row.tensor not in shared}
    assert others == {symbol("n_dec")}
    assert {row.count for row in saved.select(path="decoder.block", tensor="position")} <= {1}
