"""b is the microbatch of one rank, whatever ranks there are."""

import pytest

from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.ledger import Quantity
from symbolic_cost.models.catalog import model
from symbolic_cost.models.decoders.gpt import GPT
from symbolic_cost.parallel.microbatch import on_every_rank
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.parallel.table import strategy_table
from symbolic_cost.symbols import b, e


@pytest.mark.parametrize(
    "text", ["dp=4", "dp=4,replicas=2", "dp=2,replicas=8", "dp", "dp,replicas"]
)
def test_every_data_rank_has_a_microbatch_of_its_own(text):
    """The work of one rank is that of one rank alone: replicas are data-parallel ranks as well."""
    strategy = parse_strategy(text)
    alone = strategy_table(model("llama"), parse_strategy(""), STANDARD)
    one = strategy_table(on_every_rank(model("llama"), strategy), strategy, STANDARD)
    for quantity in (Quantity.FLOP, Quantity.SAVED):
        assert one.total(quantity) == alone.total(quantity)


def test_expert_ranks_have_microbatches_too():
    strategy = parse_strategy("dp=8,ep=4,replicas=2")
    sizes = on_every_rank(model("mixtral"), strategy).sizes
    assert sizes["b"] == 16 * model("mixtral").sizes["b"]


@pytest.mark.parametrize(
    ("text", "times"),
    [("dp=3", 3), ("replicas=2,dp=3", 6), ("tp=2,cp=2,dp=3", 3), ("2.5d=2x2x2", 1), ("tp=2", 1)],
)
def test_ranks_that_read_data_have_a_microbatch_each(text, times):
    spread = on_every_rank(GPT().model(), parse_strategy(text))
    assert (spread.sizes["b"], spread.sizes["e"]) == (times * b, e)
