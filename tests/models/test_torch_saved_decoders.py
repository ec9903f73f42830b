"""Saved activations of decoders against the storages that autograd keeps, exactly."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from sympy import Integer

from symbolic_cost.conventions.presets import preset
from symbolic_cost.models.bound import bound
from symbolic_cost.models.config import from_config
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.recompute import FULL, KEEP_ALL

GOLDEN = Path(__file__).parents[1] / "golden" / "torch_truth_decoders.json"
PRESETS = {"bfloat16": "torch-autograd", "float32": "torch-autograd-fp32"}


def measured():
    """Runs without autocast."""
    for entry in json.loads(GOLDEN.read_text(encoding="utf-8")):
        for run in entry.get("saved", ()):
            if not run["autocast_bf16"]:
                yield entry, run


def name(case):
    return f"{case[0]['id']}, " + ", ".join(map(str, list(case[1].values())[:6]))


CASES = list(measured())


def table(entry, run):
    config = {**entry["config"], "attn_implementation": run["attn"]}
    if run["dropout"] != "p=0":
        config |= {"resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1}
        if run["attn"] == "sdpa":  # on the CPU, where the truth was measured
            config["attn_implementation"] = "sdpa_math"
    rules = preset(PRESETS[run["dtype"]])
    if "CPU" in run["dropout"]:
        rules = replace(rules, sizes=replace(rules.sizes, mask=rules.sizes.value))
    model = bound(from_config(config, Shape(Integer(run["b"]), Integer(run["l"]))))
    return cost(model, rules, recompute=FULL if run["checkpoint"] else KEEP_ALL)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_saved_bytes_are_those_of_autograd(case):
    entry, run = case
    saved = table(entry, run)
    assert saved.select(path="block").once().total("saved") == run["layers"][-1]
    if not run["checkpoint"]:  # a checkpoint keeps arguments, such as masks, that no op saves
        assert saved.total("saved") == run["total_bytes"]


def test_enough_was_measured():
    assert len(CASES) == 28
