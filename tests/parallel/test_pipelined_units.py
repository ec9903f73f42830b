"""FSDP in a pipeline, against what two stages of FSDP2's own processes allocate and send on CPU.

Bytes of tests/golden/make_pipelined_memory.py: gradients are reduced once per step, and forward
finds weights whole as the backward before has left them.
"""

import json
from functools import cache
from itertools import product
from pathlib import Path

import pytest
from sympy import Integer

import symbolic_cost as sc

TRUTH = json.loads(
    (Path(__file__).parents[1] / "golden" / "pipelined_memory.json").read_text(encoding="utf-8")
)
STACKS = {"apart": "torchtitan", "root": "fsdp"}
PRECISIONS = {"bfloat16": "bf16", "float32": "bf16-fsdp"}
RUNS = list(product(range(len(TRUTH["runs"])), ("first", "last")))
WHOLE = [pair for pair in RUNS if "whole" in TRUTH["runs"][pair[0]]]


@cache
def job(place, stage):
    run = TRUTH["runs"][place]
    config = {**TRUTH["models"][run["model"]], "attn_implementation": "eager"}
    return sc.job(
        sc.from_config(config, sc.Shape(Integer(run["b"]), Integer(run["l"]))),
        f"pp=2,dp={run['ranks']},zero=3" + (",reshard=1" if "whole" in run else ""),
        conventions="torch-autograd",
        precision=PRECISIONS[run["dtype"]],
        attention=None,
        microbatches=run["M"],
        schedule="1f1b",
        stack=STACKS[run["ends"]],
        stage=stage,
    )


@cache
def moments(place, stage):
    return {row[0]: row[2] for row in job(place, stage).memory().sheet.rows}


def moved(place, stage, kind):
    """All messages of a kind in a step [byte]."""
    own, often = job(place, stage), TRUTH["runs"][place]["M"]
    rows = [row for row in own.rows.select("communication") if row.collective.kind == kind]
    times = [row.count * (1 if row.per_step else often) for row in rows]
    return own.value(sum(n * r.collective.message for n, r in zip(times, rows, strict=True)))


@pytest.mark.slow
@pytest.mark.parametrize(("place", "stage"), RUNS)
def test_what_moves_and_stays(place, stage):
    truth = TRUTH["runs"][place][stage]
    assert moved(place, stage, "all-gather") == truth["gathered"]
    assert moved(place, stage, "reduce-scatter") == truth["reduced"]
    assert int(moments(place, stage)["between steps"]) == truth["between"]


def off(place, stage):
    """What the peak is off, as a share."""
    held = moments(place, stage)
    most = max(held["at backward"], held["at end of forward"])
    return float(most) / TRUTH["runs"][place][stage]["passes"] - 1


@pytest.mark.slow
def test_peaks_where_weights_stay_whole():
    """The last stage keeps its logits until their backward is done, which is not counted."""
    errors = [abs(off(*pair)) for pair in WHOLE]
    assert max(errors) <= 0.06
    assert sum(errors) / len(errors) <= 0.015


def test_weights_that_backward_leaves_whole_are_told():
    own = sc.job("llama-3-8b", "pp=4,dp=4,zero=3", stack="torchtitan")
    assert any("backward leaves" in note for note in own.memory().sheet.notes)
    alone = own.replace(strategy="dp=4,zero=3")
    assert not any("backward leaves" in note for note in alone.memory().sheet.notes)


def test_gradients_are_reduced_when_the_last_backward_is_done():
    """Ranks that keep whole gradients reduce them beside that backward."""
    waits = {}
    for strategy in ("zero=1", "zero=3,reshard=1"):
        own = sc.job("llama-3-8b", f"pp=4,dp=8,{strategy}", {"b": 1}, **IN_A_PIPELINE)
        waits[strategy] = own.time().frame().set_index("part").loc["first.gradients", "value"]
    assert waits["zero=3,reshard=1"] > 2 * waits["zero=1"]


IN_A_PIPELINE = {"system": "h100", "stack": "torchtitan", "global_batch": 64}
