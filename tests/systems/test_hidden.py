"""What hides behind computing: no second hides two, and no better rate makes a step longer."""

from dataclasses import replace

import pytest
from sympy import Integer, Rational

import symbolic_cost as sc
from symbolic_cost.systems.overlap import exposed, in_turn, overlap
from symbolic_cost.systems.records import machine


@pytest.mark.parametrize(
    ("answers", "times", "busy", "waits"),
    [
        (["full", "full"], [3, 4], 5, 2),
        (["full", "full"], [3, 4], 9, 0),
        (["full", "none"], [3, 4], 9, 4),
        (["full", "partial=0.5"], [3, 4], 4, 3),
        (["full", "partial=0.5"], [3, 4], 9, 2),
        (["none", "none"], [3, 4], 9, 7),
        ([], [], 9, 0),
    ],
)
def test_all_that_may_be_hidden_hides_together(answers, times, busy, waits):
    parts = [(overlap(answer), Integer(time)) for answer, time in zip(answers, times, strict=True)]
    assert exposed(parts, Integer(busy)) == waits


@pytest.mark.parametrize(
    ("times", "waits"), [(0, 0), (Rational(1, 2), 5), (1, 10), (3, 10 + 2 * 6)]
)
def test_whoever_runs_none_waits_for_none(times, waits):
    """10 s beside 4 s, each after the first."""
    parts = [(overlap("full"), Integer(10))]
    assert in_turn(parts, Integer(4), Integer(0) + times) == waits


@pytest.mark.slow
def test_a_stage_waits_for_no_weights_of_blocks_that_others_hold():
    """The dense blocks of DeepSeek-V3 lead: however wide, only the first stage gathers them."""
    job = sc.job(
        "deepseek-v3",
        "pp=8,ep=8,dp=64,zero=3",
        {"b": 1, "l": 4096},
        system="h800",
        stack="megatron-core",
        microbatches=32,
        layout="uneven",
    )
    narrow, wide = (job.bind(f=f).time().timed.numbers for f in (18432, 36864))
    stage, other = "middle.forward.exposed", "first.forward.exposed"
    assert narrow[stage] == wide[stage] > 0
    assert narrow[other] < wide[other]


SEVERAL = [
    (
        "llama-3-8b",
        "tp=8,sp,dp=2",
        {"b": 1, "l": 4096},
        {"system": "h100", "offload": "weight", "overlap": "tp=full,dp=full,host=full"},
        "matrix",
    ),
    (
        "qwen3-30b-a3b",
        "tp=8,sp,cp=8,ep=4,dp=16,zero=1",
        {"b": 2, "l": 32768},
        {"system": "h200", "recompute": "full", "precision": "mxfp8", "microbatches": 1},
        "memory.bandwidth",
    ),
]
"""Jobs that hide things behind the same computing, or beside a host that is waited for; a rate."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "strategy", "numbers", "options", "place"), SEVERAL)
def test_no_step_is_longer_at_a_better_rate(name, strategy, numbers, options, place):
    own = machine(options["system"])
    run = {"stack": "megatron-core", "microbatches": 2, **options}
    steps = []
    for times in (1, 8):

        def better(where, figure, times=times):
            faster = where.startswith(place)
            return replace(figure, value=figure.value * times) if faster else figure

        system = replace(own.mapped(better), record=own)
        steps.append(
            float(sc.job(name, strategy, numbers, **{**run, "system": system}).time().step)
        )
    assert steps[0] >= steps[1] * (1 - 1e-12)


def test_a_share_above_one_is_explained():
    """Windows of 128 tokens are counted as 32,768, which weighs most in what runs again."""
    job = sc.job(
        "gpt-oss-120b",
        "ring=2,ep=2,dp=16,zero=3,reshard=1",
        {"b": 4, "l": 32768},
        system="a100-80gb",
        stack="nemo-scoped",
        microbatches=16,
        recompute="selective",
        precision="bf16",
    )
    known = job.time().timed
    assert known.numbers["mfu"] < 1 < known.numbers["hfu"]
    (said,) = (line for line in known.warnings if line.startswith("HFU"))
    assert said.startswith("HFU 1.13 above 1: conventions standard count work that attention flash")
