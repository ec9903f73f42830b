"""What is kept for the next token, and what surrounds tensors in pictures of memory."""

import pytest
from click.testing import CliRunner
from sympy import Integer

import symbolic_cost as sc
from symbolic_cost.cli import main
from symbolic_cost.errors import InputError
from symbolic_cost.jobs.tables.pictures import memory_bars
from symbolic_cost.models.catalog import model
from symbolic_cost.models.shape import Shape

SIZES = {"n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257, "n_positions": 1024}


@pytest.mark.parametrize(("cell", "vectors"), [("rnn", 1), ("gru", 1), ("lstm", 2)])
def test_states_of_recurrent_layers(cell, vectors):
    b, e, layers = (sc.symbols.symbol(name) for name in ("b", "e", "n_layers"))
    assert sc.job(cell).total("cache") == 2 * vectors * b * e * layers


def test_a_gpt_by_name_keeps_what_its_configuration_does():
    named, own = sc.count("gpt2", 2, 512), sc.count({"model_type": "gpt2", **SIZES}, 2, 512)
    for figure in ("params", "flops_fwd", "flops_decode", "kv_cache_elements"):
        assert named[figure] == own[figure] != 0
    assert sc.job("gpt2", "", {"b": 2, "l": 512}).total("cache") == 2 * own["kv_cache_elements"]


@pytest.mark.parametrize("name", ["mamba-2.8b", "mamba2-2.7b", "gpt2", "llama-3-8b", "lstm-large"])
def test_tokens_that_follow_others_are_a_step_of_generation(name):
    assert model(name, shape=Shape(l=Integer(1), c=Integer(100))).follows
    assert not model(name).follows


def test_a_step_of_states_alone_is_not_trained():
    step = model("mamba-2.8b", shape=Shape(l=Integer(1), c=Integer(100)))
    with pytest.raises(InputError, match="generation has no memory or time of training"):
        sc.job(step, "", {"b": 1}, system="h100").memory()


def test_pictures_show_what_fits_counts():
    own = sc.job("gpt2", "dp=4,zero=1", {"b": 1, "M": 8}, system="h100")
    answer = own.memory()
    bars = memory_bars([answer.setup])
    assert sum(sum(stack) for stack in bars.parts.values()) == pytest.approx(
        float(answer.peak + answer.fits.beside)
    )
    alone = sc.job("gpt2", "dp=4,zero=1", {"b": 1, "M": 8}).memory()
    assert "beside tensors" not in memory_bars([alone.setup]).parts


@pytest.mark.slow
def test_a_plan_says_what_files_hold_besides_its_bytes():
    line = ["serve-plan", "gpt-oss-20b", "--system", "h100", "--gpus", "1", "--input", "100"]
    said = CliRunner().invoke(main, [*line, "--output", "10", "--strategy", "tp=1"]).stdout
    assert "its files hold experts in mxfp4" in said
