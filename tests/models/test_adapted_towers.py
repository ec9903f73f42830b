"""Phi-4-multimodal as it is published: the network of Transformers' class, and its adapters."""

import copy
import re

import pytest

from symbolic_cost.errors import InputError
from symbolic_cost.models.count import count
from tests.models.test_popular import ENTRIES

PUBLISHED = ENTRIES["microsoft/Phi-4-multimodal-instruct"]["config"]
TEXT = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
        "num_key_value_heads", "vocab_size", "tie_word_embeddings", "partial_rotary_factor",
        "sliding_window")  # fmt: skip
CONVERTED = {
    "model_type": "phi4_multimodal",
    **{key: PUBLISHED[key] for key in TEXT},
    "audio_config": {"bias_max_distance": 500},
    "vision_config": {},
}


def changed(path, value):
    config = copy.deepcopy(PUBLISHED)
    *outer, name = path.split(".")
    holder = config
    for key in outer:
        holder = holder[key]
    if value == "missing":
        del holder[name]
    else:
        holder[name] = value
    return config


def test_texts_run_as_the_class_of_transformers_does():
    own, other = (count(config, 2, 64) for config in (PUBLISHED, CONVERTED))
    for key in ("flops_fwd", "flops_train", "flops_decode", "kv_cache_elements"):
        assert own[key] == other[key]
    widths = (3072, 5120, 3072, 3072, 3072, 16384, 8192, 3072)  # qkv, o, gate_up, down
    assert own["params"] - other["params"] == 32 * (320 + 256) * sum(widths)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("audio_processor", "missing", "an object with the fields is accepted"),
        ("audio_processor.config.batch_norm", True, "only false is declared"),
        ("audio_processor.config.causal", None, "only true is declared"),
        ("audio_processor.config.ext_pw_out_channel", 512, "only 1024, the width of attention_dim"),
        ("audio_processor.config.linear_units", "missing", "'linear_units' is missing"),
        ("audio_processor.config.extra", 4, "not understood for phi4mm"),
        ("audio_processor.config.relative_attention_bias_args.type", "rope", 'only "t5"'),
        ("embd_layer.audio_embd_layer.use_qformer", True, "only false is declared"),
        ("embd_layer.image_embd_layer.hd_transform_order", "glb_sub", 'only "sub_glb"'),
        ("vision_lora.r", 0, "0 is not accepted"),
        ("speech_lora.layer", ".*", "key 'layer': '.*': only"),
        ("mlp_bias", True, "not understood for phi3"),
    ],
)
def test_other_networks_are_refused(path, value, said):
    with pytest.raises(InputError, match=re.escape(said)):
        count(changed(path, value), 1, 8)


@pytest.mark.parametrize(
    ("features", "saved", "rows"), [(80, None, 10), (33, None, 5), (33, 10, 10)]
)
def test_rows_of_a_spectrogram_follow_from_its_features(features, saved, rows):
    """Of 80 features three halvings leave 10; a file that says how many are left is believed."""
    audio = {"input_size": features, **({} if saved is None else {"nemo_final_size": saved})}
    own = count({**CONVERTED, "audio_config": audio}, 1, 8)["params"]
    usual = count({**CONVERTED, "audio_config": {}}, 1, 8)["params"]
    assert usual - own == (10 - rows) * 1024 * 1024
