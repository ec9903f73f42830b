"""The peak of a step against PyTorch's own storages, followed through it; no GPU took part.

Bytes of runs by tests/golden/make_peak_memory.py, and jobs of the report on accuracy. What is kept
for backward is counted as PyTorch keeps it, so that what is tested is what lives when.
"""

import runpy
from functools import cache
from pathlib import Path

import pytest

REPORT = runpy.run_path(str(Path(__file__).parents[2] / "reports" / "accuracy" / "allocated.py"))
BY_MODEL = {}
for _run in REPORT["runs"]():
    BY_MODEL.setdefault(_run["model"], []).append(_run)
MIXTURES = {model for model, runs in BY_MODEL.items() if REPORT["is_mixture"](runs[0])}
DENSE = [model for model in BY_MODEL if model not in MIXTURES]


@cache
def errors(model):
    """What the peaks of a model's runs are off, as shares."""
    return {REPORT["named"](run): abs(REPORT["error"](run)) for run in BY_MODEL[model]}


@pytest.mark.slow
@pytest.mark.parametrize("model", DENSE)
def test_peaks_of_dense_models(model):
    assert max(errors(model).values()) <= 0.01


@pytest.mark.slow
@pytest.mark.parametrize("model", sorted(MIXTURES))
def test_peaks_of_mixtures(model):
    """Experts one by one make a gradient of all weights for each: of wide ones, 5 %."""
    found = errors(model)
    assert all(own <= 0.01 for run, own in found.items() if "apart" not in run)
    assert sum(found.values()) / len(found) <= 0.01
    assert max(found.values()) <= 0.055


@pytest.mark.slow
def test_the_mean_over_dense_models():
    every = [own for model in DENSE for own in errors(model).values()]
    assert sum(every) / len(every) <= 0.002


def test_moments_are_those_of_torch():
    """Between steps, in backward and in the optimizer's step."""
    (run,) = [
        run for run in BY_MODEL["llama"] if run["dtype"] == "float32" and "optimizer" not in run
    ]
    held = REPORT["held"](run)
    phases = {"between": "between steps", "backward": "at backward", "step": "at optimizer step"}
    for phase, moment in phases.items():
        assert held[moment] == pytest.approx(run[phase], rel=1e-3)


def test_enough_was_measured():
    dense = [run for model in DENSE for run in BY_MODEL[model]]
    assert len(dense) >= 100
    assert sum(len(BY_MODEL[model]) for model in MIXTURES) >= 20
    phases = ("forward", "backward", "step")
    assert {max(phases, key=lambda p: run.get(p, 0)) for run in dense} == {"backward", "step"}
