"""Formulas of papers, held against the derived ones."""

import json

import pytest
from click.testing import CliRunner

import symbolic_cost as sc
from symbolic_cost.analysis.forms import equal
from symbolic_cost.analysis.verdict import Answer, compared
from symbolic_cost.cli import main
from symbolic_cost.symbols import b, e, l

BLOCK = {"path": "block"}
EQUAL = [
    # Korthikanti et al. 2022, equations 1, 2 and 4, and 7 without the head
    ("sbh(34 + 5as/h)", "saved", "gpt", "megatron", BLOCK),
    ("sbh(10 + 24/t + 5as/(ht))", "saved", "gpt", "megatron", {**BLOCK, "strategy": "tp"}),
    ("sbh/t*(34 + 5as/h)", "saved", "gpt", "megatron", {**BLOCK, "strategy": "tp,sp"}),
    ("72bsh^2(1 + s/(6h))", "flops", "gpt", "megatron", BLOCK),
    # How to Scale Your Model, chapter 4
    ("DF", "params", "llama", "jax-book", {"path": "block.mlp.gate"}),
    ("18BTDF", "flops", "llama", "jax-book", {"path": "block.mlp", "conventions": "model-flop"}),
    ("6BTDV", "flops", "llama", "jax-book", {"path": "head", "conventions": "model-flop"}),
    # DeepSeek-V2, table 1: the cache of a token, d_c + d_h^R elements of each layer, in 16 bits
    ("2*n_layers*b*l*(r_kv + d_r)", "cache", "deepseek_v3", "own", {}),
    # Hu et al. 2021: r x d and d x r beside each adapted matrix
    (
        "2*n_layers*r_a*(2*e + h*q + k*q)",
        "weight_gradients",
        "llama",
        "own",
        {"train": "lora:r=16,q,v"},
    ),
]


@pytest.mark.parametrize(("text", "cost", "model", "notation", "more"), EQUAL)
def test_papers(text, cost, model, notation, more):
    assert sc.check(text, cost, model, notation_name=notation, **more)


def test_how_it_differs():
    wrong = sc.check("sbh(32 + 5as/h)", "saved", "gpt", path="block", notation_name="megatron")
    assert wrong.sentence == "differs: derived less typed is 2 b l e"
    half = sc.check("sbh(17 + 5as/(2h))", "saved", "gpt", path="block", notation_name="megatron")
    assert half.sentence == "differs by a factor: derived = 2 times typed"
    leading = sc.check(
        "sbh(34 + 5as/h)",
        "saved",
        "gpt",
        path="block",
        notation_name="megatron",
        conventions="standard",
    )
    assert leading.sentence.startswith("equal to leading order: derived less typed is 16 b l")


def test_letters_of_a_paper_that_a_model_has_no_size_for():
    """Kaplan et al. 2020, table 1: 2 d_model (2 d_attn + d_ff) of a block; GPT has no d_attn."""
    typed = "2*d_model*(2*d_attn + d_ff)"
    found = sc.check(typed, "params", "gpt", path="block", notation_name="kaplan")
    assert found.verdict.answer is Answer.LEADING
    assert "assumed: q = e/h" in found.sheet().notes


def test_the_cache_of_a_token_as_deepseek_writes_it():
    """DeepSeek-V2, table 1: (d_c + d_h^R) l elements of a token."""
    found = sc.check("(d_c + d_hR)*l", "cache", "deepseek_v3", notation_name="deepseek-v3")
    assert found.verdict.answer is Answer.FACTOR
    assert found.verdict.factor == 2 * b * l


def test_a_number_is_held_against_the_sizes_of_the_model():
    same = sc.check("8030261248", "params", "llama-3-8b")
    assert same
    assert same.sentence.startswith("equal at these sizes; at others derived less typed is ")
    assert not sc.check("8030261249", "params", "llama-3-8b")
    assert sc.check("n_layers*217088 + 2*V*e + e", "params", "llama-3-8b").sentence.startswith(
        "differs"
    )
    assert run("2*576*61*4096", "deepseek-v3", "--of", "cache").exit_code == 0


def run(*line):
    return CliRunner().invoke(main, ["check", *line])


def test_command_line():
    line = ("s*b*h*(34 + 5*a*s/h)", "--cost", "saved", "gpt", "--path", "block")
    more = ("--strategy", "", "--notation", "megatron")
    same = run(*line, *more, "--format", "json")
    assert same.exit_code == 0
    assert json.loads(same.output)["notes"][0] == "equal"
    assert run("sbh", *line[1:], *more).exit_code == 1


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (("x*y", "gpt", "--cost", "saved"), "unknown symbol of the formula 'y'"),
        (("sbh)(", "gpt", "--cost", "saved", "--notation", "megatron"), "')' at 4"),
        (("2^99999", "gptt", "--cost", "savedd"), "3 problems"),
        (("b", "gpt", "--cost", "saved", "--path", "blocks"), "block"),
        (("b", "gpt", "--cost", "saved", "--notation", "nobody"), "unknown notation"),
    ],
)
def test_refusals(line, told):
    result = run(*line)
    assert result.exit_code == 2
    assert told in result.output


def test_a_factor_is_named_whole():
    """A formula typed per b s h, as papers print it, lacks b s h and not 1."""
    typed = "10 + 24/t + 5*a*s/(h*t)"
    asked = {"path": "block", "notation_name": "megatron", "strategy": "tp"}
    verdict = sc.check(typed, "saved", "gpt", **asked).verdict
    assert verdict.answer is Answer.FACTOR
    assert verdict.factor == b * e * l


@pytest.mark.parametrize("typed", [b + 1, l * (b + 1) / e, b / (b + 1) + 1, 3 * b])
@pytest.mark.parametrize("factor", [2 * e, b / l, 1 / (3 * (e + 1)), l**2])
def test_the_factor_of_two_formulas_is_their_quotient(typed, factor):
    assert equal(compared(typed, factor * typed).factor, factor)
