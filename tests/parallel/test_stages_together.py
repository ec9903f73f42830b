"""What all stages of any pipeline hold and compute together is the model, whatever the layout."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symbolic_cost as sc
from tests.parallel.structures import FAMILIES, MORE


def without(sizes, *names):
    return {name: size for name, size in sizes.items() if name not in names}


UNTIED = {
    "llama": FAMILIES["llama"],
    "mixtral": without(FAMILIES["mixtral"], "f", "E_t"),
    "deepseek_v3": without(MORE["deepseek_v3"], "k", "q"),
}
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
