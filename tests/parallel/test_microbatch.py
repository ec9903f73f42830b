"""b is the microbatch of one rank, whatever ranks there are."""

from collections import Counter
from contextlib import suppress

import pytest

import symbolic_cost as sc
from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.errors import InputError
from symbolic_cost.ledger import Quantity
from symbolic_cost.models.catalog import model
from symbolic_cost.models.decoders.gpt import GPT
from symbolic_cost.parallel.microbatch import on_every_rank
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.parallel.table import strategy_table
from symbolic_cost.symbols import b, e
from tests.models.test_families_truth import TRUTH


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


def products(config, strategy, sequences):
    """FLOP of products by op, with that many sequences on a rank."""
    numbers = {"b": sequences, "l": 16}
    job = sc.job(sc.from_config(config), strategy, numbers, conventions="model-flop")
    rows = job.rows.select("flop", where=lambda row: row.collective is None)
    found = Counter()
    for row in rows:
        found[row.path] += job.strategy.ranks * job.value(row.total)
    return found


@pytest.mark.parametrize(
    "name",
    [
        "siglip2/a",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("altclip/a", "aimv2/drawn-24", "clap/s0", "owlvit/a", "llava/a", "bart/a")
        ),
    ],
)
def test_ranks_with_a_half_each_do_what_one_does_with_all(name):
    """Texts are compared with the images of all ranks: 8 with 8, as 4 on each rank with 8."""
    config = TRUTH[name]["config"]
    assert products(config, "dp=2", 4) == products(config, "", 8)


@pytest.mark.slow
def test_sequences_alone_grow_with_the_microbatch():
    """Ranks have their own: what grows with b otherwise would stay that of one rank."""
    kinds = {}
    for entry in TRUTH.values():
        config = entry["config"]
        kind = config.get("model_type") or config.get("_class_name")
        kinds.setdefault((kind, *(config.get("architectures") or ())), config)
    found = []
    for kind, config in kinds.items():
        with suppress(InputError):  # families that are refused
            own = sc.from_config(config)
            found += [
                (kind, axis)
                for axis in own.axis_names
                if own.sizes[axis].has(b) and own.axes[axis].role is not sc.Role.BATCH
            ]
    assert len(kinds) > 500
    assert not found
