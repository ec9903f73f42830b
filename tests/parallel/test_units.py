"""Ranks that shard everything, against what FSDP2's own processes allocate and send on CPU.

Bytes of tests/golden/make_sharded_memory.py. What is kept for backward is counted as PyTorch keeps
it, so that what is tested is which weights are whole, and which gradients are where, when.
"""

import json
from functools import cache
from pathlib import Path

import pytest
from sympy import Integer

import symbolic_cost as sc

TRUTH = json.loads(
    (Path(__file__).parents[1] / "golden" / "sharded_memory.json").read_text(encoding="utf-8")
)
STACKS = {"apart": "torchtitan", "root": "fsdp"}
PRECISIONS = {"bfloat16": "bf16", "float32": "bf16-fsdp"}
RUNS = TRUTH["runs"]


def job(run):
    """A run; blocks are counted by a symbol, so that one formula holds for one block and five."""
    config = {**TRUTH["models"][run["model"]], "attn_implementation": "eager"}
    return sc.job(
        sc.from_config(config, sc.Shape(Integer(run["b"]), Integer(run["l"]))),
        f"dp={run['ranks']},zero=3" + (",reshard=1" if "whole" in run else ""),
        conventions="torch-autograd",
        precision=PRECISIONS[run["dtype"]],
        attention=None,
        microbatches=run["M"],
        recompute=run.get("recompute", "none"),
        stack=STACKS[run["ends"]],
    )


@cache
def moments(place):
    return {row[0]: row[2] for row in job(RUNS[place]).memory().sheet.rows}


def title(place):
    run = RUNS[place]
    return ", ".join(str(value) for key, value in run.items() if key in {"model", *SAID})


SAID = ("ranks", "ends", "dtype", "l", "M", "recompute", "whole")
FIRST = [place for place, run in enumerate(RUNS) if run["model"] == "llama"]


def off(place):
    """What the peak is off, as a share; where weights stay whole, forward may have it."""
    run, held = RUNS[place], moments(place)
    if "whole" not in run:
        return float(held["at backward"]) / run["backward"] - 1
    both = max(held["at backward"], held["at end of forward"])
    return float(both) / max(run["backward"], run["forward"]) - 1


def moved(place, kind):
    """All messages of a kind in a step [byte]."""
    own, often = job(RUNS[place]), RUNS[place]["M"]
    rows = [row for row in own.rows.select("communication") if row.collective.kind == kind]
    times = [row.count * (1 if row.per_step else often) for row in rows]
    return own.value(sum(n * r.collective.message for n, r in zip(times, rows, strict=True)))


def agrees(place):
    assert moved(place, "all-gather") == RUNS[place]["gathered"]
    assert moved(place, "reduce-scatter") == RUNS[place]["reduced"]
    assert int(moments(place)["between steps"]) == RUNS[place]["between"]
    assert abs(off(place)) <= (0.017 if "whole" in RUNS[place] else 0.01)


@pytest.mark.slow
@pytest.mark.parametrize("place", FIRST, ids=title)
def test_a_model(place):
    agrees(place)


@pytest.mark.slow
@pytest.mark.parametrize("place", sorted(set(range(len(RUNS))) - set(FIRST)), ids=title)
def test_further_models(place):
    agrees(place)


@pytest.mark.slow
@pytest.mark.parametrize(("whole", "most"), [(False, 0.002), (True, 0.005)])
def test_most_are_exact(whole, most):
    errors = [abs(off(place)) for place, run in enumerate(RUNS) if ("whole" in run) is whole]
    assert sum(errors) / len(errors) <= most


@pytest.mark.parametrize(("level", "told"), [(1, True), (2, True), (3, False)])
def test_weights_that_stay_whole_are_told(level, told):
    own = sc.job("llama-3-8b", f"dp=4,zero={level}", stack="torchtitan")
    assert any("keeps shards" in note for note in own.memory().sheet.notes) is told


def test_enough_was_measured():
    assert len(RUNS) >= 70
    assert sum("whole" in run for run in RUNS) >= 20
    for name, values in (("ends", set(STACKS)), ("dtype", set(PRECISIONS)), ("M", {1, 2})):
        assert {run[name] for run in RUNS} == values
