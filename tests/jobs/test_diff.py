"""Differences of two conventions, strategies, machines and models, term by term."""

import pytest
from click.testing import CliRunner
from sympy import Add

import symbolic_cost as sc
from symbolic_cost.cli import main
from symbolic_cost.errors import InputError
from symbolic_cost.symbols import V, e, h, l, n_layers, q


def test_conventions_of_a_token():
    (section,) = sc.diff("llama-3-70b", conventions=("torchtitan", "verl"), seq=8192).sections
    terms = {one.name: one.expr for one in section.differing}
    assert terms == {
        "table": 6 * V * e,
        "norms": -12 * e * n_layers - 6 * e,
        "attention": -6 * h * l * n_layers * q,
    }
    assert section.alike == ("head", "products")
    assert section.number(section.total) == -25916129280


def test_presets_of_counting():
    found = sc.diff("gpt3-175b", conventions=("model-flop", "standard"), numbers={"b": 1})
    (section,) = found.sections
    wholes = [sc.job("gpt3-175b", conventions=c).total("flops") for c in ("model-flop", "standard")]
    number = section.number(section.total)
    assert number == (wholes[1] - wholes[0]).xreplace({sc.symbols.symbol("b"): 1})


@pytest.mark.parametrize("pair", [("tp=8", "tp=8,sp"), ("tp=4", "tp=8"), ("", "cp=2")])
def test_terms_of_strategies_add_up(pair):
    found = sc.diff("llama-3-8b", strategy=pair, of="saved,comm", numbers={"b": 1, "l": 4096})
    jobs = [sc.job("llama-3-8b", one, {"b": 1, "l": 4096}) for one in pair]
    for section in found.sections:
        whole = [one.total(section.cost) for one in jobs]
        assert section.number(section.total) == whole[1] - whole[0]
        assert section.number(Add(*(one.expr for one in section.differing))) == whole[1] - whole[0]


def test_what_adapters_save():
    pair = ("all", "lora:r=16,q,v")
    found = sc.diff("llama-3-8b", train=pair, of="flops,params,saved", numbers={"b": 1})
    jobs = [sc.job("llama-3-8b", "", {"b": 1}, train=one) for one in pair]
    for section in found.sections:
        whole = [one.total(section.cost) for one in jobs]
        assert section.number(section.total) == whole[1] - whole[0]
    assert found.sections[1].number(found.sections[1].total) == 32 * 16 * (2 * 4096 + 4096 + 1024)


def test_what_is_trained_in_both():
    line = ["diff", "llama-3-8b", "--strategy", "tp=8", "tp=8,sp", "--of", "weight_gradients"]
    adapters = ("lora:r=16,q,v",) * 2
    result = CliRunner().invoke(main, [*line, "--train", *adapters])
    assert result.exit_code == 0, result.output
    same = sc.diff("llama-3-8b", strategy=("tp=8", "tp=8,sp"), train=adapters[0], of="params")
    assert same.sections[0].differing == ()
    refused = CliRunner().invoke(main, [*line, "--train", "all", adapters[0]])
    assert "strategy ('tp=8' against 'tp=8,sp') and train ('all' against" in refused.output
    with pytest.raises(InputError, match="FLOP per token are of weights that all learn"):
        sc.diff("llama-3-8b", conventions=("torchtitan", "verl"), train=adapters[0])


def test_models_without_attention_have_no_kernel_of_it():
    found = sc.diff("resnet-50", strategy=("", "dp=2"), of="params")
    assert found.sections[0].total == 0
    told = CliRunner().invoke(main, ["diff", "mamba-130m", "gpt2", "--of", "params"])
    assert told.exit_code == 0, told.output


def test_two_models():
    (section,) = sc.diff("llama-3-8b", "llama-3-70b", of="params").sections
    assert section.number(section.total) == 70_553_706_496 - 8_030_261_248
    assert "most of it in" in section.sentence(("a", "b"))


def test_models_of_other_lengths_say_so():
    pair = "llama-3-8b", "mixtral-8x7b"
    lengths = "llama-3-8b at l = 8192, mixtral-8x7b at l = 32768, each its own"
    assert any(lengths in note for note in sc.diff(*pair).sheet().notes)
    assert not any("its own" in note for note in sc.diff(*pair, seq=4096).sheet().notes)


@pytest.mark.slow
def test_two_machines():
    found = sc.diff(
        "llama-3-8b",
        system=("a100-80gb", "h100"),
        on="tp=8",
        numbers={"b": 1, "l": 4096},
        global_batch=8,
    )
    (section,) = found.sections
    times = [
        sc.job("llama-3-8b", "tp=8", {"b": 1, "l": 4096}, system=name, global_batch=8).time()
        for name in found.names
    ]
    assert section.total == times[1].timed.numbers["step"] - times[0].timed.numbers["step"]
    assert any("bandwidth" in note and "a100" not in note for note in found.notes)


def test_less_is_said_as_less():
    """Sequence parallelism keeps 1/m1 of what a rank without it keeps whole: never more."""
    found = sc.diff("gpt", strategy=("tp", "tp,sp"), of="saved")
    (section,) = found.sections
    assert section.total.could_extract_minus_sign()
    assert " less than tp, in 10 terms" in found.summary
    assert "has l (10 n_layers b e" in found.summary
    other = sc.diff("gpt", strategy=("tp,sp", "tp"), of="saved")
    assert " more than tp,sp, in 10 terms" in other.summary


def test_the_same_twice():
    found = sc.diff("llama-3-8b", strategy=("tp=8", "tp=8"), of="params")
    assert found.summary == "params: tp=8 and tp=8 are the same"
    assert found.sheet().rows[-1][1] == "total"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("llama-3-8b", "nothing is given in two versions"),
        (
            "llama-3-8b gpt2 --system h100 a100-80gb",
            "two models ('llama-3-8b' against 'gpt2') and system",
        ),
        ("llama-3-8b --conventions torchtitan standard", "do not answer the same questions"),
        ("llama-3-8b --conventions torchtitn verl", "did you mean"),
        ("llama-3-8b --strategy tpp=8 tp=x", "2 problems"),
        ("llama-3-8b --strategy tp=8 tp=4 --on dp=2", "is the strategy of both"),
        ("llama-3-8b gpt2 --of flopss", "flops"),
    ],
)
def test_refusals(line, told):
    result = CliRunner().invoke(main, ["diff", *line.split()])
    assert result.exit_code == 2
    assert told in result.output
