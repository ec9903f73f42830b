"""The microbatch of one rank, on all ranks that have one of their own."""

import pytest

from symbolic_cost.models.gpt import GPT
from symbolic_cost.parallel.microbatch import on_every_rank
from symbolic_cost.parallel.strategy import parse_strategy
from symbolic_cost.symbols import b, e


@pytest.mark.parametrize(
    ("text", "times"),
    [("dp=3", 3), ("replicas=2,dp=3", 6), ("tp=2,cp=2,dp=3", 3), ("2.5d=2x2x2", 1), ("tp=2", 1)],
)
def test_ranks_that_read_data_have_a_microbatch_each(text, times):
    model = on_every_rank(GPT().model(), parse_strategy(text))
    assert (model.sizes["b"], model.sizes["e"]) == (times * b, e)
