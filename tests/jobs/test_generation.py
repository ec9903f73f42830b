"""Jobs of models whose tokens follow others in a cache: a forward pass, and nothing of training."""

from functools import partial

import pytest

import symbolic_cost as sc
from symbolic_cost.errors import InputError
from symbolic_cost.jobs.header import header
from symbolic_cost.models.config import from_config
from symbolic_cost.models.shape import DECODE, Shape

SIZES = {"hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 2, "vocab_size": 1000}
HEADS = {"num_attention_heads": 8, "num_key_value_heads": 4}
LLAMA = {"model_type": "llama", **SIZES, **HEADS}
T5 = {"model_type": "t5", "d_model": 512, "d_ff": 64, "num_heads": 8, "d_kv": 64, "num_layers": 2}
FAMILIES = {
    "llama": LLAMA,
    "windows": {"model_type": "mistral", **SIZES, **HEADS, "sliding_window": 64},
    "mixture": {
        "model_type": "mixtral",
        **SIZES,
        **HEADS,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
    },
    "t5": {**T5, "vocab_size": 1000},
}
STEP = {"b": 3, "c": 100}


@pytest.mark.parametrize("config", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("shape", [DECODE, Shape(l=8, c=100)], ids=["step", "chunk"])
def test_only_the_forward_pass_is_run(config, shape):
    run = sc.job(
        from_config(config, shape), "", {"b": 3, **({"c": 100} if shape is DECODE else {})}
    )
    alone = sc.decode(partial(from_config, config), sc.preset("standard"), shape)
    flop = run.value(alone.total("flop"))
    assert run.total("flops") == run.total("flops_fwd") == flop > 0
    assert run.total("saved") == run.total("weight_gradients") == run.total("bytes_bwd") == 0
    assert "a step of generation, forward alone" in "\n".join(header(run))


@pytest.mark.parametrize("ask", ["memory", "time"])
def test_training_is_refused(ask):
    run = sc.job(from_config(LLAMA, DECODE), "", STEP, system="h100", microbatches=1)
    with pytest.raises(InputError, match="tokens that follow others in a cache"):
        getattr(run, ask)()
    with pytest.raises(InputError, match="tokens that follow others in a cache"):
        sc.solve("memory <= 80 GiB", run, "c")


def test_cache_is_split_and_solved():
    run = sc.job(from_config(LLAMA, DECODE), "tp=4", STEP)
    assert run.total("cache") == 2 * 2 * 2 * 3 * 101 * 4 * 64 // 4
    assert sc.solve(
        "cache <= 1 MiB", sc.job(from_config(LLAMA, DECODE), "", STEP), "c"
    ).integer == (2**20 // (2 * 2 * 2 * 3 * 4 * 64) - 1)


@pytest.mark.parametrize("config", FAMILIES.values(), ids=FAMILIES)
def test_a_prompt_is_trained(config):
    run = sc.job(from_config(config), "", {"b": 3, "l": 128}, microbatches=1)
    assert run.total("flops_bwd") > 0
    assert run.memory().peak > 0
