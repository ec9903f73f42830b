"""Inference: derived from the same declarations, against numbers worked out by hand."""

from fractions import Fraction
from functools import partial

import pytest
from sympy import Integer, Rational, expand

from symbolic_cost import models
from symbolic_cost.conventions.presets import preset
from symbolic_cost.errors import InputError, UnknownNameError
from symbolic_cost.layers.attention_core import Step
from symbolic_cost.layers.differential import Decayed
from symbolic_cost.layers.latent import LatentAttention
from symbolic_cost.models.bound import bound
from symbolic_cost.models.compare import compare_conventions
from symbolic_cost.models.config import from_config
from symbolic_cost.models.decoders.families import DECODERS, symbolic
from symbolic_cost.models.decoders.series import Timed
from symbolic_cost.models.inference import (
    batch_that_fits,
    cached_bytes,
    decode,
    intensity,
    prefill,
    weight_only,
)
from symbolic_cost.models.shape import TRAINING, Shape
from symbolic_cost.ops.derive import cost
from symbolic_cost.symbols import b, e, f, h, k, l, n_layers, q

RULES = preset("model-flop")
LLAMA_3_8B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}
MIXTRAL = {
    **LLAMA_3_8B,
    "model_type": "mixtral",
    "num_experts_per_tok": 2,
    "num_local_experts": 8,
    "sliding_window": None,
    "vocab_size": 32000,
}
GIB = 2**30


def numbered(config, shape=TRAINING):
    return bound(from_config(config, shape))


llama = partial(numbered, LLAMA_3_8B)
mixtral = partial(numbered, MIXTRAL)


def step(sequences, cached):
    return Shape(Integer(sequences), Integer(1), Integer(cached))


def test_prefill_is_the_forward_pass():
    assert prefill(models.llama, RULES).total("flop") == prefill(models.llama, RULES).total(
        "flop", phase="forward"
    )
    assert prefill(llama, RULES, Shape(Integer(1), Integer(128))).total("flop") == 1929782493184


def test_prefill_token_by_token_does_the_same_products_of_weights():
    shape = Shape(Integer(1), Integer(64))
    at_once = prefill(llama, RULES, shape).select(where=lambda row: "core" not in row.path)
    steps = [decode(llama, RULES, step(1, cached)) for cached in (0, 63)]
    one = [made.select(where=lambda row: "core" not in row.path).total("flop") for made in steps]
    assert one[0] == one[1]
    assert at_once.total("flop") == 64 * one[0]


def test_cache_of_grouped_heads():
    assert expand(cached_bytes(models.llama, RULES) - 2 * 2 * b * l * k * q * n_layers) == 0
    assert cached_bytes(llama, RULES, Shape(Integer(1), Integer(8192))) == GIB


def test_batch_that_fits():
    weights = 2 * 8030261248
    assert batch_that_fits(llama, RULES, weights + 10 * GIB, 8192) == 10
    assert batch_that_fits(llama, RULES, weights + 10 * GIB - 1, 8192) == 9
    assert batch_that_fits(llama, RULES, 2**30, 8192) == 0


def test_quantised_weights():
    int4 = weight_only(RULES, 4, group=128)
    expected = 8030261248 * (Rational(1, 2) + Rational(2, 128))
    assert decode(llama, int4, step(1, 1)).total("weight") == expected
    assert intensity(llama, int4, step(1, 1)) > 3 * intensity(llama, RULES, step(1, 1))
    assert cached_bytes(llama, int4) == cached_bytes(llama, RULES)


def test_intensity_of_decode_grows_with_the_batch_to_that_of_the_cache():
    alone, many = (intensity(llama, RULES, step(n, 1)) for n in (1, 64))
    assert Fraction(9, 10) < Fraction(int(alone.p), int(alone.q)) < 1
    assert 30 < many < 64


def test_a_batch_reads_the_experts_that_it_chooses():
    def experts(sequences):
        made = decode(mixtral, RULES, step(sequences, 1)).select("read", path="block.mlp.experts")
        weights = made.select(where=lambda row: row.tensor.endswith(".w"))
        return weights.once().total("read") / (3 * 2 * 4096 * 14336)

    assert [experts(sequences) for sequences in (1, 2, 4, 5, 100)] == [2, 4, 8, 8, 8]


@pytest.mark.parametrize(("bits", "group"), [(7, None), (0, None), (4, 0), (4, True)])
def test_refuses_widths(bits, group):
    with pytest.raises(InputError, match=r"accepted"):
        weight_only(RULES, bits, group)


def test_the_rules_of_thumb_differ_by_attention():
    model = models.llama()
    difference = compare_conventions(model, "palm-mfu", "6nd")
    assert expand(difference.total - 12 * b * l**2 * h * q * n_layers) == 0
    assert set(difference.kinds) == {"einsum"}


def test_conventions_differ_by_multiply_and_add():
    model = models.olmo()
    forward = compare_conventions(model, "torch-flop-counter", "fvcore", "flops_fwd")
    weights = b * l * (2 * e * h * q + 2 * e * k * q + 3 * e * f) * n_layers
    norms = 4 * b * l * e * (2 * n_layers + 1)  # without weights
    assert forward.kinds.keys() == {"einsum", "layer_norm_bare"}
    assert expand(forward.kinds["layer_norm_bare"] + norms) == 0
    products = forward.kinds["einsum"].xreplace({model.sizes["v"]: Integer(0)})
    assert expand(products - weights - 2 * b * l**2 * h * q * n_layers) == 0


def test_a_convention_does_not_differ_from_itself():
    same = compare_conventions(models.mixtral(), "standard", preset("standard"))
    assert (same.total, same.kinds) == (0, {})


def test_refuses_unknown_conventions():
    with pytest.raises(UnknownNameError, match="unknown conventions 'palm': did you mean"):
        compare_conventions(models.llama(), "palm", "6nd")


# A latent is expanded again at every step, and a mask made of the values of all keys is made again:
# these families do more, and those without a mask never do tokens one by one. Of those with several
# kinds of layers only a configuration says which layer is of which kind.
EXPANDED_ONCE = sorted(
    name
    for name, family in DECODERS.items()
    if not isinstance(family.attention, LatentAttention | Decayed)
    and Step.MASK in family.attention.core.steps
    and not family.mixers
    and family.reads.kinds is None
    and not isinstance(family, Timed)
)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPANDED_ONCE[::8])
def test_tokens_one_by_one_do_the_products_of_a_causal_prefill(name):
    sizes = {"n_layers": 12, "e": 8, "f": 8, "h": 4, "k": 2, "q": 4, "V": 8, "W": 5}
    sizes |= {"E": 4, "E_t": 2, "f_m": 4, "f_s": 4}
    rules = preset("model-flop-causal")
    tokens = 7

    def forward(shape):
        return cost(bound(symbolic(name, shape), **sizes), rules).total("flop", phase="forward")

    steps = sum(forward(step(1, cached)) for cached in range(tokens))
    assert steps == forward(Shape(Integer(1), Integer(tokens)))
