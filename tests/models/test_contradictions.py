"""Keys that contradict each other, or what a class derives: as PyTorch has it, or refused by name.

Every line is a configuration of the truth files, what is changed in it (None: left out; "null":
null), and the parameters that Transformers 5.23 builds then, or the key that is refused.
"""

import json

import pytest

from symbolic_cost.errors import InputError
from symbolic_cost.models.count import count
from tests.models.test_families_truth import TRUTH
from tests.models.test_heads import TRUTH as HEADS

TIES = "tie_word_embeddings"
LABELS = {"0": "a", "1": "b", "2": "c"}
GEMMA = {
    "model_type": "gemma",
    "vocab_size": 211,
    "hidden_size": 96,
    "intermediate_size": 176,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 16,
}
GPT2 = {
    "model_type": "gpt2",
    "vocab_size": 211,
    "n_embd": 96,
    "n_layer": 2,
    "n_head": 6,
    "n_positions": 128,
}
ANSWERED = (
    ("text/openai_privacy_filter/4", {"id2label": LABELS, "num_labels": None}, 27955),
    ("llava_next_video/new", {TIES: False, f"text_config.{TIES}": True}, 507184),
    ("video_llama_3/text", {TIES: False, f"text_config.{TIES}": True}, 142856),
    ("kosmos-2/text", {TIES: False, f"text_config.{TIES}": True}, 158448),
    ("molmo2/text", {TIES: True}, 185960),
    ("qwen2_5_omni/text", {TIES: True}, 116624972),
    ("further/muse_spark", {TIES: True}, 624040),
    ("llama4/several", {TIES: False, f"text_config.{TIES}": True}, 371936),
    ("llava/one", {"text_config": GEMMA}, 242868),
    ("blip-2/opt", {TIES: False, "text_config": GEMMA}, 266536),
    ("blip-2/opt", {TIES: False, "text_config": GPT2}, 351688),
    ("ved-trocr/a", {TIES: True, f"decoder.{TIES}": False}, 408048),
    (
        "further/t5gemma2",
        {"decoder.num_key_value_heads": None, "decoder.num_attention_heads": 8},
        545384,
    ),
    ("canary/s0", {TIES: False, f"decoder_config.{TIES}": True}, 300273),
    ("cohere2/a", {"hidden_act": "mish", "head_dim": 16}, 321792),
    ("biogpt/a", {"hidden_act": "hardswish"}, 356576),
    ("text/xmod/4", {"languages": ["c", "b", "b"]}, 21722),
    ("gemma4_text/shared", {"per_layer_config": "null"}, 825640),
    ("gemma4_unified_text/a", {"per_layer_config": "null"}, 119904),
    ("molmo2/published", {"vit_config.num_hidden_layers": None}, 398832),
    ("molmo2/published", {"adapter_config.vit_layers": None}, 207456),
    ("dpt/0", {"use_bias_in_fusion_residual": "null"}, 157725),
)
REFUSED = (
    ("dac/s0", {"upsampling_ratios": [5]}, "upsampling_ratios"),
    ("dac/s0", {"hidden_size": 3}, "hidden_size"),
    ("diffllama/a", {"hidden_act": "xielu"}, "hidden_act"),
    ("wav2vec2/a", {"feat_extract_activation": "xielu"}, "feat_extract_activation"),
    ("zamba2/a", {"hybrid_layer_ids": [1, 3]}, "hybrid_layer_ids"),
    ("mobilebert/a", {"true_hidden_size": 16}, "true_hidden_size"),
    ("text/bros/0", {"dim_bbox_projection": 8}, "dim_bbox_projection"),
    ("text/esmc/0", {"head_dim": 12}, "head_dim"),
    ("text/esmc/6", {TIES: True}, "tie_word_embeddings"),
    ("kimi_linear/a", {TIES: True}, "tie_word_embeddings"),
    ("nemotron_h/a", {"attention_bias": True}, "attention_bias"),
    ("ved-bert/a", {"decoder.add_cross_attention": False}, "add_cross_attention"),
    ("laguna/a", {"architectures": ["LagunaForSequenceClassification"]}, "architectures"),
    ("further/axk2", {"index_head_dim": 4}, "index_head_dim"),
    ("deepseek_v4/b", {"index_head_dim": 4}, "index_head_dim"),
    ("hiera/a", {"image_size": [64]}, "image_size"),
    ("hiera/a", {"query_stride": [2]}, "query_stride"),
    ("hiera/a", {"masked_unit_size": [8]}, "masked_unit_size"),
    ("dpt/0", {"patch_size": "null"}, "patch_size"),
    ("mistral4/a", {"first_k_dense_replace": "null"}, "first_k_dense_replace"),
    ("esm/more", {"position_embedding_type": "null"}, "position_embedding_type"),
    ("google/mt5-small", {"is_gated_act": "null"}, "is_gated_act"),
)


def changed(name, changes):
    config = json.loads(json.dumps(TRUTH[name]["config"]))
    for path, value in changes.items():
        *sections, key = path.split(".")
        fields = config
        for section in sections:
            fields = fields[section]
        fields[key] = None if value == "null" else value
        if value is None:
            del fields[key]
    return config


@pytest.mark.parametrize(("name", "changes", "params"), ANSWERED)
def test_what_holds_is_what_pytorch_builds(name, changes, params):
    assert count(changed(name, changes), 2, 40)["params"] == params


@pytest.mark.parametrize(("name", "changes", "key"), REFUSED)
def test_what_contradicts_is_refused(name, changes, key):
    with pytest.raises(InputError, match=key):
        count(changed(name, changes), 2, 40)


@pytest.mark.parametrize("name", ["T5ForTokenClassification", "UMT5ForTokenClassification"])
def test_an_encoder_alone_is_no_decoder(name):
    with pytest.raises(InputError, match="is_decoder"):
        count({**HEADS[name]["config"], "is_decoder": True}, 2, 40)


def test_a_bart_without_labels_tells_three_classes_apart():
    config = {**HEADS["BartForQuestionAnswering"]["config"], "id2label": None}
    config["architectures"] = ["BartForSequenceClassification"]
    assert count(config, 3, 33)["params"] == 556115


def test_a_target_of_classes_is_as_long_in_a_step_as_in_the_cache():
    answer = count(HEADS["BartForQuestionAnswering"]["config"], 1, 57)
    assert (answer["kv_cache_elements"], answer["flops_decode"]) == (43776, 432768)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"is_encoder_decoder": False}, "keys of the source join those of the target then"),
        ({"tie_word_embeddings": None}, "null, but t5 needs it"),
    ],
)
def test_what_the_class_of_t5_makes_of_two_fields(change, told):
    """FlopCounterMode counts 7,301,376 FLOP of 12 targets where the cache is one for both lengths.

    Transformers ties a head whose tie_word_embeddings is null: 91,504 parameters, not 96,160.
    """
    sizes = {"vocab_size": 97, "d_model": 48, "d_kv": 12, "d_ff": 80, "num_layers": 2}
    config = {"model_type": "t5", "num_heads": 4, "feed_forward_proj": "relu", **sizes}
    whole = count({**config, "architectures": ["T5ForConditionalGeneration"]}, 2, 24)
    assert (whole["params"], whole["flops_fwd"]) == (91_504, 7_190_784)
    with pytest.raises(InputError, match=told):
        count({**config, "architectures": ["T5ForConditionalGeneration"], **change}, 2, 24)
    alone = {**config, "architectures": ["T5EncoderModel"], "is_encoder_decoder": False}
    assert count(alone, 2, 24)["flops_fwd"] == 3_686_400


def test_heads_of_helium_are_as_wide_as_its_tokens():
    """Transformers builds 49,488 parameters for heads of 16, and cannot run them.

    Its class sets heads of 128 where none are given, whatever the tokens.
    """
    sizes = {"vocab_size": 97, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 2}
    config = {"model_type": "helium", "num_attention_heads": 4, "num_key_value_heads": 2, **sizes}
    config["architectures"] = ["HeliumForCausalLM"]
    assert count({**config, "head_dim": 12}, 2, 8)["params"] == 46_416
    for changed in ({"head_dim": 16}, {}):
        with pytest.raises(InputError, match="are not as wide as a hidden_size of 48"):
            count({**config, **changed}, 2, 8)
