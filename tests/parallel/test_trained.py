"""Strategies on models of which some weights are trained: all ranks together do the whole once."""

from dataclasses import replace

import pytest

import symbolic_cost as sc
from symbolic_cost.ledger import Phase, Quantity
from symbolic_cost.models.catalog import CATALOG, Preset
from symbolic_cost.models.training import training
from symbolic_cost.parallel.parsing import parse_strategy
from tests.laws.acted import act_out
from tests.laws.test_models import SIZES, accepted, small
from tests.parallel import covering

TRAINED = {
    "llama": "lora:all-linear+head",
    "gpt": "lora:qkv,mlp+norm",
    "mixtral": "lora:q,v,experts+mlp.router",
    "deepseek_v3": "lora:all-linear",
    "t5": "lora:q,v",
    "bert": "adapter:proj,fc2",
    "vit": "all-but:block",
}
QUICK = (("llama", "tp,sp"),)
SLOW = (
    *(("llama", text) for text in ("2d", "ulysses", "dp,zero=3")),
    *(("gpt", text) for text in ("2.5d", "3d")),
    *(("mixtral", text) for text in ("tp", "ring", "ep,dp,zero=1")),
    *(("deepseek_v3", "cp"), ("t5", "ring"), ("bert", "tp,sp"), ("vit", "tp")),
)
CASES = [*QUICK, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)]


@pytest.fixture
def adapted(monkeypatch):
    def add(family):
        name, source = f"{family} {TRAINED[family]}", CATALOG[family]
        own = Preset(name, family, lambda shape: training(source.model(shape), TRAINED[family]))
        monkeypatch.setitem(CATALOG, name, own)
        return name

    return add


@pytest.mark.parametrize(("family", "text"), CASES)
def test_ranks_do_the_whole_and_what_is_named(adapted, family, text):
    problems, facts = covering.examined(adapted(family), text)
    assert not problems
    assert not [fact for fact in facts if "WRONG" in fact.title]
    refused = {fact.item for fact in facts if fact.title == "refused"}
    _, plain = covering.examined(family, text)
    assert bool(refused) == any(fact.title == "refused" for fact in plain)


ACTED = {
    "llama": ("lora:q,v,proj,up,down+head", 19),
    "gpt": ("lora:qkv,fc1+norm", 19),
    "mixtral": ("lora:q,experts", 20),
}
"""What is trained, and how many strategies at least can be acted out."""


@pytest.mark.slow
@pytest.mark.parametrize("family", ACTED)
def test_ranks_act_out_what_is_trained(family, adapted, monkeypatch):
    """Every rank's tensors and gradients, collective by collective, are those of one rank."""
    spec, least = ACTED[family]
    monkeypatch.setitem(TRAINED, family, spec)
    monkeypatch.setitem(SIZES, "r_a", 2)
    name = adapted(family)
    texts = list(accepted(name))
    for text in texts:
        act_out(small(name), parse_strategy(text))
    assert len(texts) >= least


def moved(job, phase, tensor=""):
    return [
        (row.tensor.rpartition(".")[2], row.collective.kind.value, row.collective.group)
        for row in job.rows.select(Quantity.COMMUNICATION, phase=phase)
        if tensor in row.tensor and row.path.startswith("block") and ".first." not in row.path
    ]


def test_narrow_tensors_move_in_place_of_wide_ones():
    """Of q and proj, as PEFT places them: B of q is split, and A of proj."""
    job = sc.job("llama-3-8b", "tp=2,sp", train="lora:r=16,q,proj")
    assert moved(job, Phase.FORWARD, "low") == [
        ("low", "all-gather", "tp"),
        ("low", "reduce-scatter", "tp"),
    ]
    plain = sc.job("llama-3-8b", "tp=2,sp")
    wide = [row for row in moved(job, Phase.FORWARD) if row[0] != "low"]
    assert wide == moved(plain, Phase.FORWARD)


def test_ranks_of_the_first_block_send_no_gradient_below_it():
    job = sc.job("llama-3-8b", "tp=2", train="lora:r=16,q,v")
    backward = job.rows.select(Quantity.COMMUNICATION, phase=Phase.BACKWARD_INPUT)
    parts = {row.path.partition(".attention")[0] for row in backward if "attention" in row.path}
    assert parts == {"block"}


def total(job, quantity):
    return job.value(job.memory_rows.total(quantity))


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_states_are_those_of_trained_weights(zero):
    """Rank 16 on q and v of 32 layers: 16 (4096 + 4096) + 16 (4096 + 1024) elements each."""
    strategy = "dp=4" + (f",zero={zero}" if zero else "")
    job = sc.job("llama-3-8b", strategy, train="lora:r=16,q,v").replace(precision="bf16-mixed")
    elements = 32 * 16 * (4096 + 4096 + 4096 + 1024)
    shards = [4 if zero >= level else 1 for level in (1, 2)]
    assert total(job, Quantity.OPTIMIZER) == 8 * elements // shards[0]
    assert total(job, Quantity.MASTER_WEIGHT) == 4 * elements // shards[0]
    assert total(job, Quantity.WEIGHT_GRADIENT) == 4 * elements // shards[1]
    reduced = [r for r in job.rows.select(Quantity.COMMUNICATION) if r.tensor.startswith("d")]
    assert {row.path.rpartition(".")[2] for row in reduced} == {"lora_a", "lora_b"}


def test_a_stage_below_what_is_trained_gets_no_gradient():
    job = sc.job("llama-3-8b", "pp=4", {"M": 8}, train="head")
    sent = [r.phase for r in job.rows if r.kind == "pipeline"]
    assert sent == [Phase.FORWARD]


def test_frozen_weights_are_gathered_as_they_are_stored():
    """AWQ's 4 bits and, for 128 of a row, 2 bytes of scale and half a byte of zero."""
    spec = "lora:r=16,q+frozen:int4"
    job = sc.job("llama-3-8b", "dp=4,zero=3", train=spec)
    rows = [r for r in job.rows.select(Quantity.COMMUNICATION) if r.tensor == "mlp.up.w"]
    assert {row.collective.kind.value for row in rows} == {"all-gather"}
    elements = 4096 * 14336
    message = job.value(rows[0].collective.message)
    assert message == elements // 2 + elements // 128 * 5 // 2


def test_later_ranks_bind_as_declared_ones():
    open_rank = sc.job("llama-3-8b", "tp", train="lora:q,v").bind(r_a=8, tp=2)
    stated = sc.job("llama-3-8b", "tp=2", train="lora:r=8,q,v")
    assert open_rank.total("flops_bwd") == stated.total("flops_bwd")


def test_what_is_trained_stays_and_goes_with_a_job():
    job = sc.job("llama-3-8b", train="lora:r=8,q,v")
    other = job.replace(model="llama-2-7b", strategy="tp=2")
    assert other.model.trains == "lora:r=8,q,v"
    assert job.replace(train="all").total("flops_bwd") == sc.job("llama-3-8b").total("flops_bwd")
    assert replace(job).model is job.model
