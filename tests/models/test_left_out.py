"""Keys that files leave out count as the classes of Transformers 5.23 set them, or are refused."""

import json

import pytest

from symbolic_cost.errors import InputError
from symbolic_cost.jobs.job import job
from symbolic_cost.models.config import from_config
from symbolic_cost.models.count import count
from tests.models.test_families_truth import TRUTH

LEFT_OUT = [
    ("jina_embeddings_v3/a", "type_vocab_size", 1),
    ("gte/a", "type_vocab_size", 1),
    ("xlm-roberta-xl/a", "type_vocab_size", 1),
    ("altclip/a", "projection_dim", 768),
    ("altclip/a", "text_config.type_vocab_size", 1),
    ("yolos/a", "image_size", [512, 864]),
    ("efficientnet", "image_size", 600),
    ("switch_transformers/a", "num_decoder_layers", 12),
    ("albert/a", "attention_probs_dropout_prob", 0.0),
    ("whisper/a", "dropout", 0.0),
    ("bart/a", "attention_dropout", 0.0),
    ("m2m_100/a", "activation_function", "relu"),
    ("seed_oss/a", "attention_dropout", 0.1),
    ("Qwen/Qwen2.5-0.5B", "num_key_value_heads", 32),
    ("google/gemma-2b", "num_key_value_heads", 16),
    ("deepseek-ai/DeepSeek-V2-Lite", "q_lora_rank", None),
    ("qwen2_vl/a", "text_config.intermediate_size", 29568),
    ("qwen2_5_vl/seen", "text_config.num_hidden_layers", 80),
    ("glm4v_moe/new", "text_config.attention_bias", True),
    ("paligemma/a", "projection_dim", 2048),
    ("flint/a", "mlp_only_layers", [0, 1]),
    ("flint/a", "sliding_window", 513),
    ("lfm3/a", "conv_L_cache", 7),
    ("kolibri1/a", "moe_intermediate_size", 512),
    ("pvt_v2/a", "qkv_bias", True),
    ("mobilevit/a", "hidden_sizes", [144, 192, 240]),
    ("mobilevitv2/a", "width_multiplier", 1.0),
    ("rt_detr/a", "num_feature_levels", 3),
    ("rt_detr_v2/a", "decoder_ffn_dim", 1024),
    ("ZImageTransformer2DModel/a", "n_refiner_layers", 2),
    ("Lumina2Transformer2DModel/a", "multiple_of", 256),
    ("ChromaTransformer2DModel/a", "approximator_layers", 5),
    ("CogVideoXTransformer3DModel/a", "time_embed_dim", 512),
    ("granite_speech/text", "encoder_config.dim_head", 8),
    ("phi4_multimodal/text", "audio_config.depthwise_separable_out_channel", 1024),
    ("got_ocr2/text", "vision_config.global_attn_indexes", [2, 5, 8, 11]),
    ("siglip2_vision_model/a", "num_patches", 256),
]
"""An entry, a key, and the value of its class."""


def counts(config, path, *value):
    """What is counted with a value at a path, or without it; or that it is refused."""
    *sections, key = path.split(".")
    config = json.loads(json.dumps(config))
    fields = config
    for section in sections:
        fields = fields[section]
    del fields[key]
    if value:
        fields[key] = value[0]
    try:
        return count(config, 1, 64)
    except InputError:
        return None


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        pytest.param(*row, marks=() if number % 4 == 0 else pytest.mark.slow)
        for number, row in enumerate(LEFT_OUT)
    ],
)
def test_what_is_left_out_is_the_value_of_the_class(name, path, value):
    config = next(e["config"] for n, e in TRUTH.items() if n == name or n.startswith(name + "/"))
    assert counts(config, path) == counts(config, path, value)


@pytest.mark.parametrize("key", ["attention_head_dim", "attention_hidden_size", "mamba_headdim"])
def test_widths_of_zamba_2_are_those_that_others_make(key):
    with pytest.raises(InputError, match=key):
        count({**TRUTH["zamba2/b"]["config"], key: 7}, 1, 8)


def test_registers_that_are_not_said_are_asked_for():
    config = TRUTH["dinov3_vit/a"]["config"]
    with pytest.raises(InputError, match="num_register_tokens"):
        count({k: v for k, v in config.items() if k != "num_register_tokens"}, 1, 8)


def test_towers_with_weights_that_nothing_reads_go_round_rings():
    config = TRUTH["llava/a"]["config"]
    assert any(not op.outputs for part in from_config(config).parts for op in part.ops)
    table = job(from_config(config), "ring=2", {"l": 64}).table()
    assert table.total("flop", path="vision") == 0


def test_a_rank_of_zero_is_no_rank():
    with pytest.raises(InputError, match="q_lora_rank"):
        count({**TRUTH["mistral4/a"]["config"], "q_lora_rank": 0}, 1, 8)


def test_what_stands_for_null_is_told():
    """Llama without key/value heads has as many as heads; answers say what null is taken for."""
    config = {
        "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 128, "vocab_size": 100, "num_key_value_heads": None,
        "hidden_act": None, "rope_scaling": None, "attention_bias": None,
    }  # fmt: skip
    notes = [note for note in from_config(config).notes if "null" in note]
    assert notes == [
        "assumed of hidden_act: null, taken as silu",
        "assumed of num_key_value_heads: null, taken as 4",
    ]
    left_out = {key: value for key, value in config.items() if value is not None}
    assert not [note for note in from_config(left_out).notes if "null" in note]
