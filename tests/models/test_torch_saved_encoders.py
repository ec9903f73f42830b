"""Saved activations of BERT and ViT against the storages that autograd keeps, exactly."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from sympy import Integer

from symbolic_cost.conventions.presets import PRESETS
from symbolic_cost.models.bound import bound
from symbolic_cost.models.config import from_config
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.derive import cost

GOLDEN = Path(__file__).parents[1] / "golden" / "torch_truth_encoders.json"
RULES = {"bfloat16": "torch-autograd", "float32": "torch-autograd-fp32"}
WITHOUT = "p=0"
DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob")


def measured():
    """With dropout, fused attention runs op by op on the CPU, another model: left out."""
    for entry in json.loads(GOLDEN.read_text(encoding="utf-8"))["models"]:
        for run in entry.get("saved", ()):
            if run["attn"] == "eager" or run["dropout"] == WITHOUT:
                words = (run["attn"], run["dtype"], run["dropout"][:12], str(run["l"]))
                yield pytest.param(entry, run, id=f"{entry['id']} {' '.join(words)}")


CASES = list(measured())


def table(entry, run):
    config = {**entry["config"], "architectures": [entry["cls"]]}
    rate = 0.0 if run["dropout"] == WITHOUT else 0.1
    config |= {**dict.fromkeys(DROPOUTS, rate), "attn_implementation": run["attn"]}
    rules = PRESETS[RULES[run["dtype"]]]
    if "CPU" in run["dropout"]:  # a noise tensor as large as the values instead of a mask
        rules = replace(rules, sizes=replace(rules.sizes, mask=rules.sizes.value))
    return cost(bound(from_config(config, Shape(Integer(run["b"]), Integer(run["l"])))), rules)


@pytest.mark.parametrize(("entry", "run"), CASES)
def test_saved_bytes_are_those_of_autograd(entry, run):
    saved = table(entry, run)
    assert set(run["per_layer"]) == {saved.select("saved", path="block").once().total()}
    assert saved.total("saved") == run["total"]


def test_enough_was_measured():
    assert len(CASES) == 16
