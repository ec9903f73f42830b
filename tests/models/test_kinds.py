"""One rule for the kinds of layers, with symbols and with numbers."""

import pytest
from sympy import Integer

from symbolic_cost.errors import InputError
from symbolic_cost.models.bound import bound
from symbolic_cost.models.config import from_config
from symbolic_cost.models.count import count
from symbolic_cost.models.decoders.kinds import (
    DENSE,
    FULL,
    SLIDES,
    Sparse,
    Windows,
    numbered_kinds,
    symbolic_kinds,
)
from symbolic_cost.symbols import n_layers


@pytest.mark.parametrize("period", [0, 1, 2, 3, 6])
@pytest.mark.parametrize("layers", [1, 5, 6, 26, 42])
def test_numbers_count_as_the_symbols_do(period, layers):
    windows = Windows(period, 8)
    sliding = [windows.slides(layer) for layer in range(layers)]
    mixers = [SLIDES if slides else FULL for slides in sliding]
    kinds, numbers = numbered_kinds(windows, mixers, [DENSE] * layers)
    counted = {kind.mixer: kind.count.subs(n_layers, numbers["n_layers"]) for kind in kinds}
    assert counted.get(SLIDES, 0) == sum(sliding)
    assert counted.get(FULL, 0) == layers - sum(sliding)
    symbolic = {kind.mixer: kind.count for kind in symbolic_kinds(windows, Sparse.NEVER, n_layers)}
    if period == 0 or layers % period == 0:
        assert symbolic.get(SLIDES, Integer(0)).subs(n_layers, layers) == sum(sliding)


def test_the_last_of_six_layers_is_full():
    assert [Windows(6).slides(layer) for layer in range(7)] == [True] * 5 + [False, True]


SIZES = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 50,
    "max_position_embeddings": 64,
}
MIXED = {"moe_intermediate_size": 32, "num_experts": 4, "num_experts_per_tok": 2}
GEMMA_3 = {"model_type": "gemma3_text", **SIZES, "sliding_window": 4, "head_dim": 16}


def counts(config):
    return {part.path: part.repeat for part in bound(from_config(config)).parts if part.repeat != 1}


def test_published_depths_of_a_period_of_six():
    assert counts({**GEMMA_3, "num_hidden_layers": 26}) == {"sliding.block": 22, "full.block": 4}


def test_the_upper_layers_slide_from_the_given_one_on():
    config = {
        "model_type": "qwen2",
        **SIZES,
        "num_hidden_layers": 7,
        "use_sliding_window": True,
        "sliding_window": 4,
        "max_window_layers": 3,
    }
    assert counts(config) == {"full.block": 3, "sliding.block": 4}
    assert counts(config | {"use_sliding_window": False}) == {"block": 7}


@pytest.mark.parametrize(
    ("family", "dense"),
    [
        ("qwen3_moe", {"mlp_only_layers": [0, 1], "norm_topk_prob": True}),
        (
            "deepseek_v3",
            {
                "first_k_dense_replace": 2,
                "n_shared_experts": 1,
                "q_lora_rank": 8,
                "kv_lora_rank": 8,
                "qk_nope_head_dim": 8,
                "qk_rope_head_dim": 8,
                "v_head_dim": 8,
                "n_group": 1,
                "topk_group": 1,
            },
        ),
    ],
)
def test_a_mixture_of_dense_layers_alone_is_read(family, dense):
    config = {"model_type": family, **SIZES, **MIXED, "num_hidden_layers": 2, **dense}
    assert count(config, 1, 8)["params"] == count(config, 1, 8)["params_active"] > 0


def test_sizes_of_a_configuration_stay_symbols():
    model = from_config({"model_type": "llama", **SIZES, "num_hidden_layers": 3})
    assert model.sizes["e"].is_Symbol
    assert model.bindings["e"] == 64
    assert bound(model).sizes["e"] == 64


@pytest.mark.parametrize("name", ["llama-3-8b", "gpt2", "t5-small", "mamba2-130m", "vit-b-16"])
def test_names_are_counted_as_configurations_are(name):
    assert count(name, 1, 64)["params"] > 0


def test_a_name_that_leaves_sizes_open_is_refused():
    with pytest.raises(InputError, match=r"llama: V, e, f, h, k, n_layers, q have no number"):
        count("llama")


@pytest.mark.parametrize(
    "keys",
    [
        {"feed_forward_proj": "relu", "is_gated_act": True},
        {"feed_forward_proj": "gated-gelu", "is_gated_act": False},
        {"feed_forward_proj": "gated-gelu", "dense_act_fn": "relu"},
    ],
)
def test_contradicting_keys_of_t5_are_refused(keys):
    config = {"model_type": "t5", **SIZES, "num_hidden_layers": 2, "d_kv": 16, **keys}
    config.pop("num_key_value_heads")
    with pytest.raises(InputError, match="contradicts feed_forward_proj"):
        from_config(config)


def test_branches_of_stablelm_side_by_side_share_a_norm():
    config = {"model_type": "stablelm", **SIZES, "num_hidden_layers": 3}
    apart = count(config)["params"] - count(config | {"use_parallel_residual": True})["params"]
    assert apart == 3 * 2 * 64


def test_a_key_that_says_how_branches_run_is_not_passed_over():
    with pytest.raises(InputError, match="use_parallel_residual"):
        from_config(
            {"model_type": "llama", **SIZES, "num_hidden_layers": 3, "use_parallel_residual": True}
        )
