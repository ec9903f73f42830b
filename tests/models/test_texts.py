"""What is said of families of texts beside their counts, and what null switches off."""

import pytest

from symbolic_cost.errors import InputError
from symbolic_cost.models.checked import SCANNED
from symbolic_cost.models.count import count
from tests.models.test_families_truth import TRUTH

SIDE = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 99,
    "attention_dropout": 0.0,
    "dropout_rate": 0.0,
    "layer_types": ["full_attention", "full_attention"],
}
T5GEMMA = {
    "model_type": "t5gemma",
    "architectures": ["T5GemmaForConditionalGeneration"],
    "dropout_rate": 0.0,
    "encoder": SIDE,
    "decoder": SIDE,
}
GEMMA = {**SIDE, "model_type": "gemma", "architectures": ["GemmaForCausalLM"]} | {
    "layer_types": None,
    "dropout_rate": None,
}
LONGCAT = TRUTH["text/longcat_flash/base"]["config"]


def without(config, **values):
    return {**config, **{side: {**config[side], **values} for side in ("encoder", "decoder")}}


def saved(config):
    return count(config, 3, 20, "torch-autograd-fp32")["saved_bytes"]


def test_null_caps_of_t5gemma_keep_nothing():
    """Transformers 5.23 keeps 681,908 bytes with both caps and 636,428 without."""
    bare = without(T5GEMMA, attn_logit_softcapping=None, final_logit_softcapping=None)
    assert saved(T5GEMMA) - saved(bare) == 681_908 - 636_428


def test_one_side_of_t5gemma_has_no_caps_of_its_own():
    config = {**T5GEMMA, "encoder": {**SIDE, "attn_logit_softcapping": None}}
    with pytest.raises(InputError, match="attn_logit_softcapping': null in both sections"):
        count(config)


@pytest.mark.parametrize(
    "named", [{"hidden_act": "gelu", "hidden_activation": "relu"}, {"hidden_activation": "relu"}]
)
def test_gemma_1_reads_hidden_act_alone(named):
    elementwise = [count({**GEMMA, **own}, 1, 8, "flops-profiler") for own in ({}, named)]
    assert elementwise[0] == elementwise[1]


def test_zero_experts_are_an_assumption():
    said = count(LONGCAT, 2, 16)["ignored"]
    assert said.startswith("zero_expert_num: choices fall on all experts alike")
    assert count({**LONGCAT, "zero_expert_num": 0}, 2, 16)["ignored"] is None


def test_two_layers_make_a_block_of_longcat():
    assert count({**LONGCAT, "num_hidden_layers": 4})["params"] == count(LONGCAT)["params"]
    with pytest.raises(InputError, match="two for each of num_layers = 2 are accepted"):
        count({**LONGCAT, "num_hidden_layers": 3})


def test_saved_bytes_of_scans_say_what_they_are():
    mamba = {"model_type": "mamba", "vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 1}
    assert count(mamba, 1, 8)["note"] == SCANNED


def test_a_decoder_behind_an_encoder_writes_half_as_much():
    config = next(e["config"] for e in TRUTH.values() if e["id"].startswith("text/encoder-decoder"))
    assert count(config, 1, 16)["kv_cache_elements"]
    images = {**config, "encoder": {**config["encoder"], "model_type": "vit"}}
    with pytest.raises(InputError, match="behind an encoder are declared"):
        count(images)


QWEN = TRUTH["qwen4_exp/ple"]["config"]


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"hc_count": 1}, "hc_count"),
        ({"ngram_size": 1}, "ngram_size"),
        ({"ple_layer_ids": [4]}, "ple_layer_ids"),
        ({"eos_token_id": None}, "eos_token_id"),
        ({"indexer_budget": 6}, "indexer_budget"),
        ({"indexer_kv_heads": 2}, "indexer_kv_heads"),
        ({"indexer_head_dim": 6}, "indexer_head_dim"),
        ({"heads_per_ngram": 10**9}, "heads_per_ngram"),
        ({"output_gate_type": "relu"}, "output_gate_type"),
    ],
)
def test_what_qwen_4_does_not_build_is_refused(changed, named):
    with pytest.raises(InputError, match=named):
        count({**QWEN, **changed})


def test_a_sequence_without_a_complete_block_scores_none():
    """Of six tokens, the last three meet one block of four, by 3 heads of 8 features."""
    none, some = (count({**QWEN, "indexer_compress_ratio": n}, 1, 6) for n in (8, 4))
    assert some["flops_fwd"] - none["flops_fwd"] == 3 * (2 * 3 * 8)


def test_heads_of_one_feature_are_no_product_in_xlnet():
    config = {"model_type": "xlnet", "vocab_size": 99, "d_model": 4, "d_inner": 8, "n_layer": 1}
    with pytest.raises(InputError, match="n_head': 1 is no width of a head"):
        count({**config, "n_head": 4})
