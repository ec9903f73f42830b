"""What the Flops Profiler sees of models of Hugging Face: numbers of its own runs."""

import pytest
from sympy import Integer

from symbolic_cost.conventions.presets import preset
from symbolic_cost.models.bound import bound
from symbolic_cost.models.config import from_config
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.elementwise import norm, pointwise
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.part import Part

BERT = {
    "model_type": "bert",
    "architectures": ["BertModel"],
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "vocab_size": 30522,
    "max_position_embeddings": 512,
}
GPT2 = {
    "model_type": "gpt2",
    "n_embd": 768,
    "n_layer": 12,
    "n_head": 12,
    "vocab_size": 50257,
    "n_positions": 1024,
}


def forward(config, b, l, conventions):
    model = bound(from_config(config, Shape(Integer(b), Integer(l))))
    return cost(model, preset(conventions)).total("flop", phase="forward")


@pytest.mark.parametrize(
    ("conventions", "counted"),
    [("flops-profiler-macs", 43_488_903_168), ("flops-profiler", 87_026_958_336)],
)
def test_a_fused_core_is_not_seen(conventions, counted):
    assert forward({**BERT, "attn_implementation": "sdpa"}, 4, 128, conventions) == counted
    core = forward(BERT, 4, 128, conventions) - counted
    assert core > 4 * 12 * 2 * 128 * 128 * 768 * (1 if conventions.endswith("macs") else 2) - 1


def test_the_bias_of_one_call_is_counted_by_itself():
    assert forward(GPT2, 1, 128, "flops-profiler") == 32_242_910_208
    assert forward(GPT2, 1, 128, "torch-flop-counter") == 32_228_179_968


def of_op(op, sizes, conventions):
    model = Model("m", (Part("p", (op,)),), {name: Integer(size) for name, size in sizes.items()})
    return cost(model, preset(conventions)).total("flop", phase="forward")


SIZES = {"b": 2, "g": 3, "c": 4, "n": 5}


@pytest.mark.parametrize("conventions", ["flops-profiler", "fvcore"])
@pytest.mark.parametrize(
    ("function", "row", "per_element"),
    [("layer_norm_bare", "c", 4), ("group_norm", "c n", 5), ("instance_norm", "n", 5)],
)
def test_norms_are_counted_by_what_they_learn(conventions, function, row, per_element):
    weights = "" if function.endswith("bare") else ", *scale[g c], *shift[g c]"
    op = norm("norm", f"x[b g c n]{weights} -> y[b g c n]", function, row)
    assert of_op(op, SIZES, conventions) == per_element * 2 * 3 * 4 * 5


@pytest.mark.parametrize("function", ["prelu", "elu", "leaky_relu", "interpolate"])
def test_activations_count_once_per_element(function):
    op = pointwise("act", "x[b c] -> y[b c]", function)
    assert of_op(op, SIZES, "flops-profiler") == 8
    assert of_op(op, SIZES, "standard") in {0, 16, 32}
