"""Saved activations of every decoder family against the storages that autograd keeps, exactly.

Two layers of width 64 without dropout, three sequences of 20 tokens; experts run one by one.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from sympy import Integer

from symbolic_cost.conventions.presets import preset
from symbolic_cost.models.bound import bound
from symbolic_cost.models.checked import CHECKED, UNCHECKED, WINDOWS, saved_note, unlike
from symbolic_cost.models.config import from_config
from symbolic_cost.models.count import count
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.derive import cost

GOLDEN = Path(__file__).parents[1] / "golden"
TRUTH, SLIDING, VALUES = (
    json.loads((GOLDEN / f"torch_saved_{name}.json").read_text(encoding="utf-8"))
    for name in ("families", "windows", "values")
)
RULES = {"bfloat16": "torch-autograd", "float32": "torch-autograd-fp32"}
OTHER_TESTS = {"gpt2", "bert", "vit", "resnet", "gemma3"}

CASES = [
    pytest.param(
        entry["config"],
        run,
        id=f"{entry['config']['model_type']} {run['attention']} {run['dtype']}",
    )
    for entry in (*TRUTH["families"], *SLIDING["families"])
    for run in entry["runs"]
]


DROPPED = [entry["config"] for entry in VALUES["families"] if entry["dropped"]]
OF_VALUES = [
    pytest.param(
        entry["config"],
        run,
        id=f"{number} {entry['config']['model_type']} {run['attention']} {run['dtype']}",
        marks=() if number % 3 == 0 else pytest.mark.slow,
    )
    for number, entry in enumerate(VALUES["families"])
    for run in entry["runs"]
]


def saved(config, run):
    """What is kept; masks as large as values, where a CPU made the truth."""
    rules = preset(RULES[run["dtype"]])
    if config in DROPPED:
        rules = replace(rules, sizes=replace(rules.sizes, mask=rules.sizes.value))
    asked = {**config, "attn_implementation": run["attention"]}
    model = bound(from_config(asked, Shape(Integer(TRUTH["b"]), Integer(TRUTH["l"]))))
    return cost(model, rules).total("saved")


@pytest.mark.parametrize(("config", "run"), CASES)
def test_what_is_said_to_be_checked_is_exact(config, run):
    checked = run["attention"] in CHECKED.get(config["model_type"], ())
    assert (saved(config, run) == run["bytes"]) is checked


@pytest.mark.parametrize(("config", "run"), OF_VALUES)
def test_what_a_value_decides_is_exact_or_told(config, run):
    """Caps and clamps, tables of angles, quotients that are cast, heads that everyone shares."""
    told = count(config, 2, 8)["note"] == UNCHECKED
    assert told == unlike(config["model_type"], config)
    exact = saved(config, run) == run["bytes"]
    assert exact or told


def test_what_is_told_is_needed():
    """Every value of a configuration that is not checked changes what some run keeps."""
    told = [(c, run) for c, run in (p.values for p in OF_VALUES) if unlike(c["model_type"], c)]
    off = {c["model_type"] for c, run in told if saved(c, run) != run["bytes"]}
    assert off == {c["model_type"] for c, _ in told}
    assert len(off) == 5


def test_every_family_checked_with_windows_is_held_by_a_test():
    """Of 20 tokens a window of 20 is a mask, one of 21 is none."""
    slid = {entry["config"]["model_type"] for entry in SLIDING["families"]}
    assert slid | {"gemma3_text"} == WINDOWS


def test_every_checked_family_is_held_by_a_test():
    entries = (*TRUTH["families"], *VALUES["families"])
    held = {entry["config"]["model_type"] for entry in entries}
    assert set(CHECKED) <= held | OTHER_TESTS


def test_counts_say_what_was_not_checked():
    assert saved_note("llama") == ""
    assert saved_note("mixtral", "sdpa", sliding=True) == UNCHECKED
    assert saved_note("mistral", "sdpa", sliding=True) == ""
    assert saved_note("mistral", "flash_attention_2", sliding=True) == UNCHECKED
    falcon = next(e["config"] for e in TRUTH["families"] if e["config"]["model_type"] == "falcon")
    assert count(falcon, 1, 8)["note"] == UNCHECKED
    llama = next(e["config"] for e in TRUTH["families"] if e["config"]["model_type"] == "llama")
    assert count(llama, 1, 8)["note"] is None
