"""Families x strategies: all ranks together do the whole once, and what more is named."""

import pytest

import symbolic_cost as sc
from symbolic_cost.axes import axes
from symbolic_cost.errors import DivisibilityError, PlacementError
from symbolic_cost.models.config import from_config
from symbolic_cost.parallel.coverage import POOLED
from symbolic_cost.parallel.table import strategy_table
from tests.models.test_families_truth import TRUTH
from tests.parallel.covering import (
    APPROVED,
    WORK,
    everything,
    facts_of,
    families,
    strategy_of,
    unnamed,
)

STRUCTURES = (
    *("gpt", "bloom", "llama", "gemma2", "mixtral", "deepseek_v3", "gpt_oss"),
    *("bert-pretraining", "t5", "vit", "mamba", "mamba2", "lstm", "lenet-5"),
)
QUICK = ("gpt", "llama", "mixtral", "vit")
"""Families that have all layers between them."""


def check(names):
    facts, problems = everything(names)
    assert not problems
    approved = {fact for fact in facts_of(APPROVED.read_text()) if fact.family in members(names)}
    assert set(facts) - approved == set(), "new; if right: python tests/parallel/covering.py"
    assert approved - set(facts) == set(), "gone; if right: python tests/parallel/covering.py"


def members(names):
    return {*names, *(preset for name in names for preset in families()[name])}


@pytest.mark.slow
@pytest.mark.parametrize("family", QUICK)
def test_ranks_do_the_whole_and_what_is_named(family):
    check([family])


@pytest.mark.slow
@pytest.mark.parametrize("family", [name for name in families() if name not in QUICK])
def test_ranks_of_the_other_families_too(family):
    check([family])


def test_nothing_approved_is_without_explanation():
    """A share that is no product of degrees would be work that is lost or doubled unseen."""
    facts = list(facts_of(APPROVED.read_text()))
    assert not [fact for fact in facts if "WRONG" in fact.title]
    assert {fact.family for fact in facts} >= set(families())
    refusals = [fact for fact in facts if fact.title == "refused"]
    assert all("axis" in fact.item or "axes" in fact.item for fact in refusals)


@pytest.mark.parametrize(
    ("glossary", "pooled"),
    [
        ("b batch, e hidden", True),
        ("b batch, l token query, e hidden", False),
        ("b batch, t key-token, e hidden", False),
        ("b batch, h head", False),
    ],
)
def test_what_is_pooled_has_no_positions(glossary, pooled):
    assert POOLED.test(tuple(axes(glossary).values())) is pooled


@pytest.mark.parametrize(
    ("name", "strategy", "op"),
    [
        ("mamba-130m", "cp=2", r"block\.mixer\.u_conv \[.*cp splits l, r here"),
        ("t5-small", "3d=2x2x2", r"encoder\.position\.bias \["),
        ("lstm-medium", "tp=2", r"block\.layer\.cell \[.*tp splits v here"),
    ],
)
def test_work_that_every_rank_would_do_is_refused(name, strategy, op):
    with pytest.raises(PlacementError, match=f"every rank would do all the work of {op}"):
        sc.job(name, strategy).table()


@pytest.mark.parametrize("strategy", ["tp=1,sp,cp=2", "cp=2", "ulysses=2", "ring=2"])
def test_an_image_is_cut_into_patches_before_its_positions_are_split(strategy):
    """The class token makes 197 positions of 14 x 14 patches, which nothing divides: refused."""
    with pytest.raises(DivisibilityError, match=r"N_p\*\*2 \+ 1 = 197.*nearest size 196 or 198"):
        sc.job("vit-b-16", strategy).table()
    odd = {"b": 2, "N_p": 15, "s_p": 16, "n_ch": 3, "e": 8, "f": 16, "h": 2, "n_layers": 3}
    job = sc.job("vit", strategy, {**odd, "n_classes": 10})
    alone = sc.job("vit", "", {**odd, "n_classes": 10})
    repeated = {row.path: row for row in job.repeated}
    assert {"embedding.patch", "head.classes"} <= repeated.keys()
    whole, rank = (one.table().total("flop", path="block") for one in (alone, job))
    assert 2 * rank == whole


@pytest.mark.parametrize("name", ["text/bros/0", "deepseek_v32/a", "deberta-v2/a"])
def test_heads_are_exchanged_inside_a_core_alone(name):
    """Distances of boxes and an index of keys, which no heads divide, keep their positions."""
    model, strategy = from_config(TRUTH[name]["config"]), strategy_of("ulysses")
    table, own = strategy_table(model, strategy, WORK), strategy.model(model)
    assert not [*unnamed(strategy, own, table, strategy.repeated(own))]
    moved = {row.tensor for row in table.select("communication")}
    assert not any("from_queries" in tensor for tensor in moved), "longer than the queries"


@pytest.mark.parametrize("name", ["longt5/a", "longt5/global", "albert/a", "mixtral"])
def test_every_gradient_is_summed_over_data_parallel_ranks_once(name):
    """All of 2 (n - 1) / n of the weights, and nothing else moves."""
    model = from_config(TRUTH[name]["config"]) if name in TRUTH else sc.job(name).model
    table = strategy_table(model, strategy_of("dp"), WORK)
    moved = [
        (row.path, row.tensor, row.collective.message) for row in table.select("communication")
    ]
    held = table.select("weight_gradient")
    assert sorted(map(str, moved)) == sorted(str((r.path, r.tensor, r.expr)) for r in held)
