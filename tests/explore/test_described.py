"""Keys of what is kept on disk: the same in every process, and none where nobody can tell."""

import subprocess
import sys
from dataclasses import replace
from functools import partial

import pytest

import symbolic_cost as sc
from symbolic_cost.explore.priced import Costs, about_setup, described, structure_of
from symbolic_cost.explore.structured import tape_of
from symbolic_cost.explore.together import together
from symbolic_cost.systems.overlap import Overlap

SCRIPT = """
import symbolic_cost as sc
from symbolic_cost.explore.priced import about_setup, structure_of
print(about_setup(structure_of(sc.job("llama", "tp,sp,dp,zero=1", system="h100")), {}))
"""


@pytest.mark.slow
def test_a_key_is_the_same_in_every_process():
    keys = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(keys) == 1
    assert keys != {b"None\n"}


def test_what_differs_is_told_apart():
    job = sc.job("gpt", "tp=2", system="h100")
    others = [
        job.replace(recompute="full"),
        job.replace(system="a100-80gb"),
        job.replace(precision="fp32"),
        job.replace(strategy="tp=2,sp"),
        sc.job("gpt2", "tp=2", system="h100"),
    ]
    texts = {described(one) for one in (job, *others)}
    assert None not in texts
    assert len(texts) == len(others) + 1


def test_a_function_of_the_user_is_not_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("SYMBOLIC_COST_CACHE", str(tmp_path))
    mine = Overlap("mine", "half of it is hidden", lambda communication, _: communication / 2)
    job = sc.job("gpt", "tp=2", system="h100")
    own = replace(job, methods=replace(job.methods, overlaps={"tp": mine}))
    assert described(own.methods) is None
    for one in (own, job):
        assert not list(tmp_path.iterdir())
        make = partial(tape_of, partial(Costs, {}), [0], lambda _, o=one: structure_of(o))
        together(about_setup(one, {}), [0], make)
    assert list(tmp_path.iterdir())
