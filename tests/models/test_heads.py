"""Heads and variants of encoders, encoder-decoders, vision, speech and nested models.

`families_heads.json` holds what PyTorch counts of small random models: parameters, and FLOP of a
forward pass at two sizes.
"""

import json
from pathlib import Path

import pytest
from sympy import Integer

import symbolic_cost as sc
from symbolic_cost.conventions.presets import PRESETS
from symbolic_cost.errors import InputError
from symbolic_cost.models.bound import bound
from symbolic_cost.models.config import from_config
from symbolic_cost.models.count import count
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.derive import cost

GOLDEN = Path(__file__).parents[1] / "golden"
TRUTH = {
    entry["id"]: entry
    for entry in json.loads((GOLDEN / "families_heads.json").read_text(encoding="utf-8"))
}
TORCH = PRESETS["torch-flop-counter"]
SAMPLE = sorted(TRUTH)[::20]


def differs(entry):
    wrong = []
    for b, l, total in entry["forward"]:
        table = cost(bound(from_config(entry["config"], Shape(Integer(b), Integer(l)))), TORCH)
        answer = (table.total("parameter"), table.total("flop", phase="forward"))
        wrong += [] if answer == (entry["params"], total) else [answer]
    return wrong


@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_of_heads_is_exact(name):
    assert not differs(TRUTH[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TRUTH.keys() - set(SAMPLE)))
def test_every_other_head_is_exact(name):
    assert not differs(TRUTH[name])


def config(name, **changes):
    return {**TRUTH[name]["config"], **changes}


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["tp=2", "tp=2,sp", "dp=4,zero=3"])
@pytest.mark.parametrize(
    "name",
    ["BertForMaskedLM", "T5ForConditionalGeneration", "Dinov2Model", "SiglipModel", "AlbertModel"],
)
def test_strategies_divide_what_is_not_a_decoder(name, strategy):
    model = from_config(config(name))
    whole, divided = sc.cost(model), sc.cost(model, strategy=strategy)
    assert divided.total("communication") != 0
    assert whole.total("parameter") != 0


@pytest.mark.parametrize("name", ["BertForMaskedLM", "BartForConditionalGeneration"])
def test_context_parallel_divides_text(name):
    assert sc.cost(from_config(config(name)), strategy="cp=2").total("communication") != 0


def seeing(**changes):
    whole = {"vision_feature_select_strategy": "full"}  # its tower has no class token
    return config("LlavaForConditionalGeneration", **whole, **changes)


def test_images_add_a_tower_and_nothing_without_them():
    blind, whole = (count(seeing(), 2, 64, image_tokens=tokens) for tokens in (0, 32))
    assert blind["params"] == whole["params"]
    assert "no image tokens are counted" in blind["note"]
    assert whole["flops_fwd"] > blind["flops_fwd"]
    assert blind["flops_decode"] == whole["flops_decode"]
    two = count(seeing(), 2, 64, image_tokens=16)["flops_fwd"] - blind["flops_fwd"]
    assert whole["flops_fwd"] - blind["flops_fwd"] == 2 * two


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (17, "17 image tokens are no multiple of the 16 of an image"),
        (128, "a sequence has 64 tokens"),
        (-1, "zero or a positive integer is accepted"),
        (1.5, "zero or a positive integer is accepted"),
    ],
)
def test_image_tokens_that_are_none(tokens, text):
    with pytest.raises(InputError, match=text):
        count(seeing(), 1, 64, image_tokens=tokens)


def test_a_text_model_has_no_images():
    with pytest.raises(InputError, match="has no images in its sequences"):
        count(config("BertModel"), 1, 64, image_tokens=16)


@pytest.mark.parametrize("name", ["MvpForQuestionAnswering", "MvpForSequenceClassification"])
def test_an_mvp_that_classifies_takes_no_cache_for_a_further_step(name):
    counts = count(config(name), 1, 64)
    assert (counts["flops_decode"], counts["kv_cache_elements"]) == (None, 0)


@pytest.mark.parametrize(
    ("name", "changes", "text"),
    [
        ("BertModel", {"extra_mixer": 4}, "extra_mixer.*not understood"),
        ("MT5ForQuestionAnswering", {"num_labels": 5}, "begin and end, are accepted"),
        ("BertForQuestionAnswering", {"num_labels": 1}, "begin and end, are accepted"),
        ("GteModel", {"num_attention_heads": 32}, "cannot be rotated in pairs"),
        ("ViTModel", {"patch_size": 65}, "do not fit an image"),
        ("ConvNextForImageClassification", {"num_stages": 3}, "contradicts the 4 of depths"),
        ("Wav2Vec2ForCTC", {"conv_dim": [32, 0, 32]}, "as many sizes as conv_dim has"),
        ("BartModel", {"decoder_attention_heads": 7}, "7 heads do not divide"),
        ("LlavaForConditionalGeneration", {"vision_config": 3}, "an object with the fields"),
        (
            "LlavaForConditionalGeneration",
            {"vision_config": {"model_type": "eye"}},
            "'eye' is no family of towers",
        ),
        ("LlavaForConditionalGeneration", {"vision_feature_layer": 1}, "counted from the last"),
    ],
)
def test_what_is_not_declared_is_refused(name, changes, text):
    with pytest.raises(InputError, match=text):
        from_config(config(name, **changes))


def test_blocks_of_big_bird_need_a_length():
    sizes = {"hidden_size": 96, "num_attention_heads": 6, "num_hidden_layers": 2}
    own = {"model_type": "big_bird", "intermediate_size": 176, "vocab_size": 211, **sizes}
    own |= {"max_position_embeddings": 4096}
    assert count(own, 1, 704)["params"]
    with pytest.raises(InputError, match="a length is needed: beyond 704 tokens"):
        from_config(own)
