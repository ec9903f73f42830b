"""Jobs and models sent to another process: by value, and alike there."""

import os
import pickle
import subprocess
import sys

import pytest

import symbolic_cost as sc
from symbolic_cost.models.catalog import CATALOG
from symbolic_cost.models.published_size import configured
from symbolic_cost.systems.records import machine_names

JOBS = {
    "symbols": sc.job("gpt", "tp,sp,dp"),
    "stack": sc.job(
        "llama-3-8b",
        "tp=8,sp,dp=2",
        {"b": 1},
        system="h100",
        global_batch=32,
        stack="megatron-core",
    ),
    "mixture": sc.job(
        "deepseek-v3",
        "tp,pp,ep,dp",
        recompute="full",
        offload="optimizer",
        overlap="dp=partial=0.5,pp=full",
        train="lora:r=16,q_up",
    ),
}
TOLD = """
import pickle, sys, symbolic_cost as sc
sent = pickle.load(sys.stdin.buffer)
assert sent["symbols"] == sc.job("gpt", "tp,sp,dp")
assert hash(sent["symbols"].total("flops")) == hash(sc.job("gpt", "tp,sp,dp").total("flops"))
assert sent["symbols"].total("flops") in {sc.job("gpt", "tp,sp,dp").total("flops")}
sys.stdout.buffer.write(pickle.dumps((sent, sent["stack"].time().step)))
"""


@pytest.mark.parametrize("name", JOBS)
def test_a_job_is_sent_by_value(name):
    own = JOBS[name]
    own.rows  # noqa: B018 - what is worked out stays here
    assert "rows" in vars(own)
    sent = pickle.loads(pickle.dumps(own))  # noqa: S301 - made above
    assert sent == own
    assert "rows" not in vars(sent)


@pytest.mark.slow
def test_another_process_has_the_same_hashes_and_answers():
    """Python salts the hashes of strings in every process."""
    done = subprocess.run(
        [sys.executable, "-c", TOLD],
        input=pickle.dumps(JOBS),
        capture_output=True,
        env={**os.environ, "PYTHONHASHSEED": "7"},
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    sent, step = pickle.loads(done.stdout)  # noqa: S301 - made above
    assert sent == JOBS
    assert step == JOBS["stack"].time().step


@pytest.mark.slow
def test_every_model_and_machine_is_sent():
    everything = [sc.model(name) for name in (*CATALOG, *configured())]
    everything += [sc.job("gpt2", system=name) for name in machine_names()]
    assert len(everything) > 150
    for own in everything:
        assert pickle.loads(pickle.dumps(own)) == own  # noqa: S301 - made above


@pytest.mark.parametrize("name", ["maximum", "launched maximum", "ridge"])
def test_every_roofline_is_sent(name):
    own = sc.job("gpt2", system="h100", roofline=name)
    assert pickle.loads(pickle.dumps(own)) == own  # noqa: S301 - made above
