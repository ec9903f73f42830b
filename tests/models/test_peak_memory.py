"""The peak of a step against PyTorch's own storages, followed through it; no GPU took part.

Bytes of runs by tests/golden/make_peak_memory.py. What is kept for backward is counted as PyTorch
keeps it ("torch-autograd"), so that what is tested is what lives when.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from sympy import Integer

import symbolic_cost as sc
from symbolic_cost.conventions.presets import preset
from symbolic_cost.models.config import from_config
from symbolic_cost.models.shape import Shape
from symbolic_cost.parallel.moments import moments, peak

GOLDEN = Path(__file__).parents[1] / "golden" / "peak_memory.json"
TRUTH = json.loads(GOLDEN.read_text(encoding="utf-8"))
RULES = {"bfloat16": ("torch-autograd", "bf16"), "float32": ("torch-autograd-fp32", "fp32")}
NAMED = ("attention", "dtype", "M", "recompute", "precision", "optimizer", "train", "experts", "b")


def name(run):
    return ", ".join([run["model"], *(f"{run[key]}" for key in NAMED if key in run)])


def measured(run):
    return max(run[phase] for phase in ("forward", "backward", "step") if phase in run)


def job(run):
    rules, precision = RULES[run["dtype"]]
    counted = preset(rules)
    if run.get("experts") == "grouped":
        kept = {k: v for k, v in counted.kept_as.items() if k != "gathered_sum"}
        counted = replace(counted, kept_as=kept)
    kernel = "sdpa" if run["attention"] == "flash" else "eager"
    config = {**TRUTH["models"][run["model"]], "attn_implementation": kernel}
    model = from_config(config, Shape(Integer(run["b"]), Integer(run["l"])))
    return sc.job(
        model,
        conventions=counted,
        precision=run.get("precision", precision),
        attention=None,
        microbatches=run["M"],
        recompute=run.get("recompute", "none"),
        optimizer=run.get("optimizer", "adam"),
        train=run.get("train"),
        stack="pytorch",
    )


def error(run):
    own = job(run)
    return float(own.value(peak(own.memory_rows))) / measured(run) - 1


BY_MODEL = {}
for _run in TRUTH["runs"]:
    BY_MODEL.setdefault(_run["model"], []).append(_run)
MIXTURES = {model for model, runs in BY_MODEL.items() if "experts" in runs[0]}


@pytest.mark.parametrize("model", [one for one in BY_MODEL if one not in MIXTURES])
def test_peaks_of_dense_models(model):
    errors = [abs(error(run)) for run in BY_MODEL[model]]
    assert max(errors) <= 0.01
    assert sum(errors) / len(errors) <= 0.005


@pytest.mark.parametrize("model", sorted(MIXTURES))
def test_peaks_of_mixtures(model):
    """Experts one by one make a gradient of all weights for each: of wide ones, 5 %."""
    errors = {name(run): abs(error(run)) for run in BY_MODEL[model]}
    assert all(own <= 0.01 for run, own in errors.items() if "apart" not in run)
    assert sum(errors.values()) / len(errors) <= 0.01
    assert max(errors.values()) <= 0.055


def test_moments_are_those_of_torch():
    """Between steps, in backward and in the step, of a model of which each is another number."""
    run = next(r for r in BY_MODEL["llama"] if r["dtype"] == "float32" and "recompute" not in r)
    own = job(run)
    for moment, bytes_of in (("between", "between steps"), ("backward", "backward")):
        found = own.value(moments(own.memory_rows)[bytes_of])
        assert float(found) == pytest.approx(run[moment], rel=1e-3)


def test_enough_was_measured():
    dense = [run for run in TRUTH["runs"] if run["model"] not in MIXTURES]
    assert len(dense) >= 100
    assert len(TRUTH["runs"]) - len(dense) >= 20
    tops = {max(("forward", "backward", "step"), key=lambda p: run.get(p, 0)) for run in dense}
    assert tops == {"backward", "step"}
