"""What is said in several ways, or not at all, means one thing everywhere."""

import json

import pytest

import symbolic_cost as sc
from symbolic_cost.analysis.views import FORMS
from symbolic_cost.emit.sheet import Column, Sheet
from symbolic_cost.errors import InputError
from symbolic_cost.symbols import symbol
from symbolic_cost.units import Unit
from tests.cli.test_commands import run


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "scale flops gpt2 IN l",
        "crossover gpt2 attention mlp IN l",
        "optimum gpt2 --of saved IN b",
        "solve params<=1e9 gpt2 IN n_layers",
        "time gpt2 --global-batch 4 IN b",
    ],
)
def test_a_symbol_is_asked_for_by_one_spelling(line):
    texts = {run(line.replace("IN", option)) for option in ("--in", "--wrt", "--for")}
    assert len(texts) == 1


def test_help_lists_every_form():
    help_ = "".join(run("formula --help").split())
    assert "|".join(FORMS) in help_


def test_a_model_is_shown_by_name():
    records = json.loads(run("models gpt2 --format json"))["records"]
    assert {one["symbol"]: one["size"] for one in records}["parameters"] == 124439808


def test_check_and_derive_take_sizes_by_others():
    request = "--path block --set f=4*e --conventions model-flop"
    assert "equal" in run(f"check 24*b*l*e^2+4*b*l^2*e --cost flops_fwd gpt {request}")
    assert "4 b l e (l + 6 e)" in run(f"derive gpt --of flops_fwd {request} --notation own")


def test_the_unit_of_seconds_is_told_though_titles_have_an_s():
    seconds = Column("value", unit=Unit.SECOND)
    rows = ((symbol("b"), None),)
    titles = {
        title: Sheet(title, (Column("formula"), seconds), rows).visible.title
        for title in ("Steps of models", "Seconds of steps [s]")
    }
    assert titles == {one: f"{one.removesuffix(' [s]')} [s]" for one in titles}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["torchtitan", "fsdp", "llm-foundry"])
def test_a_stack_implies_its_precision_and_the_header_says_so(name):
    options = {"system": "h100", "stack": name, "global_batch": 2}
    implied = sc.job("gpt2", "dp=2,zero=3", precision="usual", **options)
    assert implied.memory().peak == sc.job("gpt2", "dp=2,zero=3", **options).memory().peak
    assert implied.training.precision == "bf16-fsdp"
    line = f"time gpt2 --strategy dp=2,zero=3 --system h100 --global-batch 2 --stack {name}"
    assert f"bytes of precision bf16-fsdp, usual under stack {name}" in run(line)
    assert "bytes of precision bf16-mixed" in run(f"{line} --precision bf16-mixed")
    assert implied.replace(stack="megatron-core").training.precision == "bf16-mixed"
    kept = implied.replace(precision="fp32").replace(stack="megatron-core")
    assert kept.training.precision == "fp32"


def test_the_time_of_a_step_is_read_as_a_decimal():
    step = sc.job("gpt2", "", {"b": 1}, system="h100", global_batch=2).time().step
    assert len(repr(step)) < 24
    assert step.denominator > 10**9


def test_a_model_without_attention_names_no_kernel_of_it():
    text = run("fit mamba-130m --system a100-80gb --gpus 2 --for b")
    assert "optimizer adam\n" in text
    assert "attention" not in text


def test_a_degree_is_asked_for_by_the_name_of_its_strategy():
    by_name = run("crossover llama-3-8b comm saved --in tp --strategy tp")
    assert by_name == run("crossover llama-3-8b comm saved --in m1 --strategy tp")
    assert "meet in m1" in by_name


def test_where_attention_meets_the_mlp_is_positive():
    """Both are divided by tp: no degree makes them equal."""
    assert "attention core = MLP" not in run("scale flops_train llama-3-8b --in tp --strategy tp")


@pytest.mark.slow
def test_what_is_bound_is_not_asked_for_and_no_legal_size_is_told():
    text = run("solve memory==20GiB llama-3-8b --in tp --strategy tp")
    assert "give numbers" not in text
    (row,) = (line for line in text.splitlines() if "legal m1" in line)
    assert "none" in row


def test_least_memory_of_an_encoder_and_a_decoder_is_found_at_once():
    """The brackets of its derivative multiplied out had no end."""
    text = run("optimum t5-small --of memory --in b --range 1:4")
    assert "b in Max" in text


def test_sizes_that_a_model_lacks_are_not_offered():
    with pytest.raises(InputError, match="q is no size of gpt2: P, V, b, e, f, h, l"):
        sc.fit("gpt2", system="h100", gpus=2, symbols=("q",))


def test_relative_forms_take_padded_sizes_as_quotients():
    assert "padded sizes are taken as quotients" in run("formula flops mamba2 --form relative:l")
