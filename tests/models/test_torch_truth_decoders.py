"""Decoders against what PyTorch's FlopCounterMode and its models count, exactly."""

import json
from pathlib import Path

import pytest
from sympy import Integer

from symbolic_cost.conventions.presets import preset
from symbolic_cost.ledger import Phase
from symbolic_cost.models.bound import bound
from symbolic_cost.models.config import from_config
from symbolic_cost.models.count import count
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.derive import cost

GOLDEN = Path(__file__).parents[1] / "golden"
TRUTH = json.loads((GOLDEN / "torch_truth_decoders.json").read_text(encoding="utf-8"))
PUBLIC = json.loads((GOLDEN / "public_configs.json").read_text(encoding="utf-8"))


def table(config, b, l, c=0):
    return cost(
        bound(from_config(config, Shape(Integer(b), Integer(l), Integer(c)))),
        preset("torch-flop-counter"),
    )


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(entry, marks=pytest.mark.slow if place % 2 else (), id=entry["id"])
        for place, entry in enumerate(TRUTH)
    ],
)
def test_counts_are_those_of_torch(entry):
    config = entry["config"]
    assert table(config, 1, 1).total("parameter") == entry["params"]
    for b, l, flop in entry["flops_fwd"]:
        assert table(config, b, l).total("flop", phase=Phase.FORWARD) == flop
    if "flops_train" in entry:
        b, l, flop = entry["flops_train"]
        assert table(config, b, l).total("flop") == flop
    if "kv_cache" in entry:
        b, l, elements = entry["kv_cache"]
        assert table(config, b, l).total("cached") == elements
    if "decode" in entry:
        b, cached, flop = entry["decode"]
        assert table(config, b, 1, cached).total("flop", phase=Phase.FORWARD) == flop


@pytest.mark.parametrize("name", PUBLIC)
def test_parameters_are_the_published_ones(name):
    assert table(PUBLIC[name]["config"], 1, 1).total("parameter") == PUBLIC[name]["params"]


def test_count_gives_every_number_at_once():
    entry = next(entry for entry in TRUTH if entry["id"] == "mixtral-8x7b")
    counted = count(entry["config"], batch=1, seq=4096)
    assert counted.pop("saved_bytes") > 0
    assert counted == {
        "model_type": "mixtral",
        "architecture": "MixtralForCausalLM",
        "params": 46702792704,
        "params_active": 46702792704 - 32 * 6 * 3 * 4096 * 14336,
        "flops_fwd": 113232517791744,
        "flops_train": 3 * 113232517791744,
        "flops_decode": 27645181952,
        "kv_cache_elements": 268435456,
        "note": None,
        "ignored": None,
    }


@pytest.mark.parametrize("name", ["gpt2-s", "llama-s (GQA)", "mixtral-s"])
def test_counted_saved_bytes_are_those_of_autograd(name):
    entry = next(entry for entry in TRUTH if entry["id"] == name)
    kinds = {"attn": "eager", "dtype": "float32", "dropout": "p=0", "autocast_bf16": False}
    run = next(run for run in entry["saved"] if kinds.items() <= run.items())
    counted = count(
        entry["config"], batch=run["b"], seq=run["l"], conventions="torch-autograd-fp32"
    )
    assert counted["saved_bytes"] == run["total_bytes"]
