"""What all stages of any pipeline hold and compute together is the model, whatever the layout."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symbolic_cost as sc
from symbolic_cost.models.catalog import CATALOG
from symbolic_cost.models.config import imported
from tests.models.test_families_truth import TRUTH
from tests.parallel.structures import FAMILIES, MORE


def without(sizes, *names):
    return {name: size for name, size in sizes.items() if name not in names}


UNTIED = {
    "llama": FAMILIES["llama"],
    "mixtral": without(FAMILIES["mixtral"], "f", "E_t"),
    "deepseek_v3": without(MORE["deepseek_v3"], "k", "q"),
}
SIZED = {
    preset.family: name
    for name, preset in CATALOG.items()
    if preset.bindings and preset.family != "cnn"
}
"""One model with numbers of every family that has such a one, and blocks."""

STATES = ("weight", "weight_gradient", "master_weight", "optimizer")


@st.composite
def pipelines(draw):
    """A schedule, stages, chunks and blocks of the fullest chunk, and what ends lack."""
    name = draw(
        st.sampled_from(["gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-v", "dualpipe"])
    )
    stages = 2 * draw(st.integers(1, 3)) if name == "dualpipe" else draw(st.integers(2, 6))
    chunks = {"interleaved": draw(st.integers(2, 4)), "zb-v": 2}.get(name, 1)
    each = draw(st.integers(2, 4))
    most = min(each - 1, stages * chunks * each // (stages + 2))
    lacking = draw(st.tuples(*[st.integers(0, most)] * 2))
    return name, stages, chunks, each, lacking


def check_together(family, pipeline, strategy="", **options):
    name, stages, chunks, each, (first, last) = pipeline
    blocks = stages * chunks * each - first - last
    numbers = {**UNTIED[family], "n_layers": blocks, "b": 1}
    if family == "deepseek_v3":
        numbers["n_dense"] = 1
    whole = sc.job(family, strategy, numbers, **options)
    own = numbers | ({"v": chunks} if name == "interleaved" else {})
    jobs = {
        stage: sc.job(
            family, ",".join(filter(None, (strategy, f"pp={stages}"))), own, stage=stage,
            schedule=name, layout=f"ends={first}/{last}", microbatches=2 * stages, **options,
        )
        for stage in (("first", "last") if stages == 2 else ("first", "middle", "last"))
    }  # fmt: skip
    often = {"first": 1, "middle": stages - 2, "last": 1}

    def together(of):
        return sum(often[stage] * of(job) for stage, job in jobs.items())

    assert together(work) == work(whole)
    # Both ends of dualpipe hold the embedding and the head. Every stage holds its blocks twice,
    # and their states as often, unless ranks keep parts of these (zero).
    both = name == "dualpipe"
    sharded = "zero" in strategy
    assert together(lambda job: job.value(job.rows.total("parameter"))) == held(
        whole, "parameter", 1, 1 + both
    )
    for quantity in STATES:
        twice = both and (quantity in {"weight", "weight_gradient"} or not sharded)
        kept = together(lambda job, q=quantity: job.value(job.memory_rows.total(q)))
        assert kept == held(whole, quantity, 1 + twice, 1 + both), quantity


def work(job):
    """Operations of one microbatch, which passes either copy of dualpipe half of the time."""
    return job.value(job.rows.total("flop"))


def held(job, quantity, of_blocks, of_ends):
    """What a job of one stage holds, blocks and ends counted so often."""
    table = job.rows if quantity == "parameter" else job.memory_rows
    blocks = {part.path for part in job.share.parts if part.is_block}
    return sum(
        (of_blocks if row.part in blocks else of_ends) * job.value(row.total)
        for row in table.select(quantity)
    )


@settings(max_examples=3, deadline=None)
@given(pipelines())
def test_stages_together_are_the_model(pipeline):
    check_together("llama", pipeline)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(UNTIED)),
    pipelines(),
    st.sampled_from(["", "tp=2", "tp=2,sp", "dp=2,zero=1", "dp=4,zero=3", "cp=2", "dp=2,zero=2"]),
    st.sampled_from(["none", "full", "selective"]),
)
def test_stages_of_any_strategy_together_are_the_model(family, pipeline, strategy, recompute):
    check_together(family, pipeline, strategy, recompute=recompute)


def _on_all_stages(model, quantity, stages, **numbers):
    """What of a quantity all stages have together beside the whole model, by op and tensor."""
    found = Counter()
    times = {"first": 1, "middle": stages - 2, "last": 1}
    jobs = {name: sc.job(model, f"pp={stages}", numbers, stage=name) for name in times}
    counted = [(jobs[name], number) for name, number in times.items()]
    for job, number in ((sc.job(model, "", numbers), -1), *counted):
        for row in job.rows.select(quantity, where=lambda row: row.collective is None):
            found[row.path, row.tensor] += number * job.value(row.total)
    lines = str(jobs["first"].table()).replace("\n", " ").split("pipeline: ")[1:]
    return {key: more for key, more in found.items() if more}, " ".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SIZED.values()))
def test_stages_together_have_the_model_and_what_is_told(name):
    """Of every family: FLOP of training, parameters and what is kept, op by op."""
    for quantity in ("flop", "parameter", "saved"):
        found, told = _on_all_stages(name, quantity, 4, b=1)
        words = {*told.replace(",", "").split()}
        named = {
            key for key in found if words & {key[0].rpartition(".")[0], key[1].removeprefix("@")}
        }
        assert found.keys() == named
        assert all(more > 0 for more in found.values())


@pytest.mark.slow
def test_what_stages_have_beside_the_model_is_told():
    """WavLM's gates multiply biases by distance, which every stage makes and keeps for itself.

    Of 320 distances in 4 heads, of 255 positions each, three stages have twice more than one rank.
    """
    pairs = 4 * 255 * 255
    more = {
        "parameter": {("position.bias", "bias.table"): 320 * 4},
        "flop": {("position.bias", ""): pairs},
        "saved": {("block.attention.gated", "position"): 2 * pairs},
    }
    model = imported(TRUTH["wavlm/wavlm0"]["config"]).model
    for quantity, own in more.items():
        found, told = _on_all_stages(model, quantity, 3, b=1, n_layers=6, l=32)
        assert found == {key: 2 * one for key, one in own.items()}
    assert "every stage computes position" in told
    assert "every stage keeps position" in told
