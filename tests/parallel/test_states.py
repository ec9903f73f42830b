"""States of all ranks together are those of PyTorch's weights times their copies, for every kind.

Elements are those that PyTorch has and trains (families_truth.json, torch_trained.json); bytes are
those of bf16-mixed with Adam: 2 of a weight, 4 of its gradient, 4 of its master copy, 8 of moments.
"""

import math

import pytest
from sympy import Integer

import symbolic_cost as sc
from symbolic_cost.ledger import Quantity
from symbolic_cost.models.config import from_config
from symbolic_cost.models.shape import Shape
from tests.models.test_families_truth import TRUTH
from tests.models.test_quantized import nf4
from tests.models.test_trained import TRUTH as TRAINED

STATES = {  # bytes of an element, and the level of ZeRO from which ranks keep a shard each
    Quantity.WEIGHT: (2, 3),
    Quantity.WEIGHT_GRADIENT: (4, 2),
    Quantity.MASTER_WEIGHT: (4, 1),
    Quantity.OPTIMIZER: (8, 1),
}
STRATEGIES = ("dp=4", "dp=4,zero=1", "dp=4,zero=2", "dp=4,zero=3", "replicas=2,dp=2,zero=3")
KINDS = {  # weights that are never trained, as PyTorch makes them
    "glm/a": 0,
    "granitemoe/a": 0,
    "glm4_moe_lite/a": 0,
    "bart/a": 0,
    "dinov2/a": 0,
    "falcon_mamba/a": 0,
    "deberta-v2/a": 0,
    "hrm_text/drawn-11": 64,  # the state that the low cycles start from
    "vit_mae/a": 2448,  # the tables of positions
    "llava/a": 0,
}
QUICK = {("deberta-v2/a", "dp=4,zero=1"), ("hrm_text/drawn-11", "replicas=2,dp=2,zero=3")}
CASES = [
    pytest.param(name, text, marks=() if (name, text) in QUICK else pytest.mark.slow)
    for name in KINDS
    for text in STRATEGIES
]


def model(config, **options):
    tokens = 576 if "vision_config" in config else 64
    return from_config(config, Shape(Integer(8), Integer(tokens), **options))


def together(job, quantity):
    return job.strategy.ranks * job.value(job.memory_rows.total(quantity))


def copies(job, level):
    """One of every shard where ZeRO cuts it, times the replicas that repeat the shards."""
    replicas = math.prod(job.strategy.degrees.get("replicas", (1,)))
    return replicas if job.strategy.zero >= level else job.strategy.ranks


@pytest.mark.parametrize(("name", "strategy"), CASES)
def test_all_ranks_hold_the_states_of_every_weight(name, strategy):
    job = sc.job(model(TRUTH[name]["config"]), strategy, precision="bf16-mixed")
    (elements,) = TRUTH[name]["params"]
    for quantity, (size, level) in STATES.items():
        trained = elements - (0 if quantity is Quantity.WEIGHT else KINDS[name])
        assert together(job, quantity) == trained * size * copies(job, level), quantity


ADAPTED = [one for one in TRAINED["entries"] if one["learns"] != "all"]


@pytest.mark.parametrize("strategy", STRATEGIES[1:])
@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(one, marks=() if one["config"]["model_type"] == "llava" else pytest.mark.slow)
        for one in ADAPTED
    ],
    ids=lambda one: f"{one['config']['model_type']} {one['learns']}",
)
def test_frozen_weights_have_no_states_and_are_in_shards_as_well(entry, strategy):
    images = {"i": Integer(8)} if "vision_config" in entry["config"] else {}
    whole = from_config(entry["config"], Shape(Integer(8), Integer(20), **images))
    job = sc.job(whole, strategy, train=entry["learns"], precision="bf16-mixed")
    for quantity, (size, level) in STATES.items():
        elements = entry["params" if quantity is Quantity.WEIGHT else "trained"]
        assert together(job, quantity) == elements * size * copies(job, level), quantity


SEEING = [(48, 48)] * 4 + [(48, 80), (80, 48)]
"""Summed and made features of a block of the vision tower of LLaVA's configuration."""

READING = [(64, 64), (64, 32), (64, 32), (64, 64), (64, 96), (64, 96), (96, 64)]
"""The same of a block of its language model."""

CONNECTING = [(48, 64), (64, 64)]


@pytest.mark.parametrize(
    ("learns", "plain"),
    [
        ("lora:r=4,block.attention.q,block.attention.v", []),
        ("lora:r=4,block.attention.q,block.attention.v+connector", CONNECTING),
    ],
)
def test_a_tower_in_four_bits_by_hand(learns, plain):
    """QLoRA of a model that sees: all frozen linear layers in NF4, but for the head.

    Adapters are 4 (64 + 64) of queries and 4 (64 + 32) of values in each of three blocks.
    """
    config = next(one["config"] for one in ADAPTED if one["config"]["model_type"] == "llava")
    whole = from_config(config, Shape(Integer(8), Integer(20), i=Integer(8)))
    frozen = 3 * SEEING + 3 * READING + [one for one in CONNECTING if one not in plain]
    held = 2 * (202400 - sum(map(math.prod, frozen))) + sum(nf4(*one) for one in frozen)
    adapters = 3 * 4 * (64 + 64 + 64 + 32)
    for strategy, ranks in (("", 1), ("dp=4,zero=1", 4), ("dp=4,zero=3", 1)):
        job = sc.job(whole, strategy, train=f"{learns}+frozen:nf4", precision="bf16-mixed")
        assert together(job, Quantity.WEIGHT) == ranks * (held + 2 * adapters)
        trained = adapters + sum(map(math.prod, plain)) + (64 + 64 if plain else 0)
        assert together(job, Quantity.MASTER_WEIGHT) == 4 * trained
