"""What runs again in backward against torch.utils.checkpoint: FLOP and saved bytes, exactly."""

import json
from pathlib import Path

import pytest
from sympy import Integer

from symbolic_cost.conventions.presets import preset
from symbolic_cost.ledger import Quantity
from symbolic_cost.models.bound import bound
from symbolic_cost.models.config import from_config
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.recompute import recompute_policy

GOLDEN = Path(__file__).parents[1] / "golden" / "torch_checkpoints.json"
TRUTH = json.loads(GOLDEN.read_text(encoding="utf-8"))
TABLES = 2 * TRUTH["l"] * 16 * 4
"""Cosines and sines, which whole blocks keep as arguments that no hook of autograd sees."""


@pytest.mark.parametrize(
    "entry",
    [pytest.param(e, id=f"{e['config']['model_type']} {e['policy']}") for e in TRUTH["entries"]],
)
def test_flop_and_saved_bytes_are_those_of_checkpoints(entry):
    config = {**entry["config"], "attn_implementation": "eager"}
    model = bound(from_config(config, Shape(Integer(TRUTH["b"]), Integer(TRUTH["l"]))))
    policy = recompute_policy(entry["policy"])
    table = cost(model, preset("torch-autograd-fp32"), recompute=policy)
    assert table.total(Quantity.FLOP) == entry["flop"]
    unseen = TABLES if policy.kept is not None else 0
    assert table.total(Quantity.SAVED) == entry["saved"] + unseen
