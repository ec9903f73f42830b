"""Keys that Transformers takes for others, and values that only some heads or layers read."""

import pytest

from symbolic_cost.errors import InputError
from symbolic_cost.models.count import count
from tests.models.test_families_truth import TRUTH


def counted(name, head, changes):
    """What is counted of an entry with other fields; a field changed to None is left out."""
    config = {**TRUTH[name]["config"], **changes, **({"architectures": [head]} if head else {})}
    return count({key: value for key, value in config.items() if value is not None}, 2, 12)


ANOTHER = [
    ("bart/a", "encoder_layers", "num_hidden_layers", 2),
    ("whisper/a", "encoder_layers", "num_hidden_layers", 2),
    ("detr/own", "d_model", "hidden_size", 64),
    ("detr/own", "encoder_layers", "num_hidden_layers", 3),
    ("conditional_detr/own", "encoder_attention_heads", "num_attention_heads", 2),
    ("maskformer/swin", "mask_feature_size", "hidden_size", 40),
    ("mask2former/swin", "decoder_layers", "num_hidden_layers", 4),
    ("glm4_moe_lite/a", "qk_rope_head_dim", "head_dim", 16),
    ("deepseek_v4/a", "moe_intermediate_size", "intermediate_size", 24),
]
"""An entry, a field, what Transformers takes for it, and a value."""


@pytest.mark.parametrize(("name", "field", "other", "value"), ANOTHER)
def test_another_name_is_read_or_contradicts(name, field, other, value):
    said = counted(name, None, {field: value, other: None})
    assert counted(name, None, {field: None, other: value}) == said
    with pytest.raises(InputError, match=other):
        counted(name, None, {field: TRUTH[name]["config"].get(field), other: value})


REFUSED = [
    ("led/a", "LEDModel", "tie_word_embeddings", False),
    ("bart/a", "BartForSequenceClassification", "tie_word_embeddings", False),
    ("switch_transformers/a", None, "tie_word_embeddings", False),
    ("luke/a", None, "tie_word_embeddings", False),
    ("dbrx/a", None, "tie_word_embeddings", True),
    ("bailing_hybrid/a", None, "tie_word_embeddings", True),
    ("phimoe/a", None, "num_experts_per_tok", 3),
    ("hy_v3/a", None, "mlp_bias", True),
    ("deberta-v2/a", "DebertaV2ForSequenceClassification", "pooler_hidden_size", 40),
    ("xlm/a", "XLMForSequenceClassification", "summary_proj_to_labels", False),
    ("vivit/a", "VivitModel", "pooler_output_size", 40),
]
"""An entry, its head, and what PyTorch counts otherwise for it than for its usual value."""


@pytest.mark.parametrize(("name", "head", "field", "value"), REFUSED)
def test_what_is_not_declared_is_refused_by_its_name(name, head, field, value):
    with pytest.raises(InputError, match=field):
        counted(name, head, {field: value})


def test_a_narrow_opt_gives_what_is_as_wide_as_its_tokens_without_a_head():
    sizes = {"hidden_size": 96, "num_hidden_layers": 2, "ffn_dim": 100, "num_attention_heads": 6}
    sizes |= {"vocab_size": 150, "word_embed_proj_dim": 40, "max_position_embeddings": 256}
    counts = count({"model_type": "opt", "architectures": ["OPTModel"], **sizes}, 2, 33)
    assert (counts["params"], counts["flops_fwd"]) == (152696, 17487360)


def test_spectrograms_have_one_channel_whatever_a_file_leaves_out():
    assert counted("audio-spectrogram-transformer/a", None, {"num_mel_bins": None})["params"] == (
        318178
    )


def test_entities_as_wide_as_words_are_not_projected():
    config = TRUTH["luke/a"]["config"]
    sizes = {"entity_emb_size": 24, "entity_vocab_size": 20, "hidden_size": 24}
    sizes |= {"num_attention_heads": 1, "intermediate_size": 3, "num_hidden_layers": 4}
    assert counted("luke/a", None, sizes)["params"] == 55371
    assert config["entity_emb_size"] != config["hidden_size"]


def test_windows_of_swin_are_as_wide_as_whole_patches():
    own = {"embed_dim": 24, "depths": [1, 2, 1], "num_heads": [2, 4, 8], "image_size": 71}
    labels = {"id2label": {str(n): str(n) for n in range(5)}}
    config = {"model_type": "swinv2", "architectures": ["Swinv2ForImageClassification"]}
    counts = count({**config, **own, **labels, "window_size": 16}, 2, 1)
    assert counts["flops_fwd"] == 138772352


@pytest.mark.parametrize(
    ("kind", "name", "section"),
    [
        ("altclip_text_model", "altclip/a", "text_config"),
        ("chinese_clip_text_model", "chinese_clip/a", "text_config"),
        ("llama4_vision_model", "llama4/seen", "vision_config"),
    ],
)
def test_a_section_whose_class_has_more_alone_is_refused(kind, name, section):
    own = TRUTH[name]["config"].get(section, {})
    with pytest.raises(InputError, match=f"{kind} is declared as a section of"):
        count({**own, "model_type": kind}, 1, 8)


def test_a_patch_larger_than_its_image_is_refused():
    config = TRUTH["blip-2/opt"]["config"]
    tower = {**config["vision_config"], "image_size": 3}
    with pytest.raises(InputError, match="patch_size"):
        count({**config, "vision_config": tower}, 1, 8)
