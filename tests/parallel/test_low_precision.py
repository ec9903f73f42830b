"""What products in few bits keep for backward: copies in these bits, beside what others keep."""

import pytest
from sympy import Rational

import symbolic_cost as sc
from symbolic_cost.symbols import E_t, b, e, f, f_m, h, l, n_layers, q

WIDE = "bf16-mixed"


def saved(model, precision, strategy="", **options):
    return sc.job(model, strategy, precision=precision, **options).memory().total("saved")


def number(model, expr):
    """Return the value of a formula for one sequence of a model."""
    values = {**sc.job(model).values, "b": 1}
    return expr.subs({one: values[one.name] for one in expr.free_symbols})


@pytest.mark.parametrize(
    ("precision", "size"),
    [
        ("fp8-hybrid", 1),
        ("fp8-gradients", 1),
        ("fp8-weights", 1),
        ("fp8-params", 1),
        ("fp8-deepseek", Rational(33, 32)),
        ("mxfp8", Rational(33, 32)),
        ("nvfp4", Rational(9, 16)),
    ],
)
def test_inputs_of_hidden_matrices_are_kept_in_few_bits(precision, size):
    """Results of norms and of the activation are; what attention keeps is, as a copy of its own.

    TransformerEngine's Linear saves its cast input: an element of a norm's result takes one byte
    in place of two, the result of attention one more.
    """
    change = saved("llama-3-8b", precision) - saved("llama-3-8b", WIDE)
    alone = b * l * n_layers * (2 * e + f) * (size - 2)
    assert change == number("llama-3-8b", alone + b * l * n_layers * h * q * size)


@pytest.mark.parametrize("precision", ["fp8-linear", "int8-fp32"])
def test_others_keep_what_they_multiply(precision):
    """torchao's Linear saves its input before the cast."""
    assert saved("llama-3-8b", precision) == saved("llama-3-8b", WIDE)


def test_routers_stay_wide():
    """A norm's result is kept in 16 bits for the router, and in 8 for the rows of each expert."""
    change = saved("mixtral-8x7b", "fp8-hybrid") - saved("mixtral-8x7b", WIDE)
    tokens = b * l * n_layers
    assert change == number("mixtral-8x7b", tokens * (h * q - e) - tokens * E_t * (e + f_m))


def test_what_runs_again_keeps_none():
    more = {"recompute": "full", "stack": "megatron-core"}
    assert saved("llama-3-8b", "fp8-hybrid", **more) == saved("llama-3-8b", WIDE, **more)


def test_ranks_keep_their_part():
    whole, kept = (
        [saved("llama-3-8b", precision, strategy) for precision in ("fp8-hybrid", WIDE)]
        for strategy in ("", "tp=4,sp")
    )
    assert 4 * (kept[1] - kept[0]) == whole[1] - whole[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stack", "kept", "more"),
    [("llm-foundry", 2, 2), ("fsdp", 4, 8)],
)
def test_a_loss_that_writes_its_gradient_beside_the_logits(stack, kept, more):
    """LLM Foundry: 2 byte of a logit are kept, and 2 more made; PyTorch's ops take 4 and 8."""
    few, many = (
        sc.job("gpt2", "dp=8,zero=3", {"b": 64, "V": words, "M": 1}, stack=stack, system="h100")
        for words in (10**6, 2 * 10**6)
    )
    logits = 64 * 1024 * 10**6
    change = many.memory().total("saved") - few.memory().total("saved")
    assert change == kept * logits
    peaks = [one.memory().fits.peaks for one in (few, many)]
    grown = [max(p.size for p in one.values()) for one in peaks]
    weights = 768 * 10**6
    assert grown[1] - grown[0] - (kept + more) * logits < 20 * weights
    assert grown[1] - grown[0] >= (kept + more) * logits
