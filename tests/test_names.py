"""Unknown names raise, with the closest ones; symbols of other assumptions are the glossary's."""

import pytest
from sympy import I, Symbol, nan, oo

import symbolic_cost as sc
from symbolic_cost.costs import COSTS, PHASES, named_cost
from symbolic_cost.errors import InputError, UnknownNameError
from symbolic_cost.parallel.memory import Training
from symbolic_cost.symbols import b, e, l

GPT = sc.cost(sc.GPT().model(), sc.preset("standard"))


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"quantity": "flops"}, "unknown quantity 'flops': did you mean flop?"),
        ({"quantity": "parameters"}, "did you mean parameter"),
        ({"phase": "forwards"}, "unknown phase 'forwards': did you mean forward"),
        ({"phase": ("forward", "backwards")}, "unknown phase 'backwards': did you mean backward_"),
        ({"path": "nonexistent"}, "unknown path 'nonexistent'"),
        ({"path": "block.mpl"}, "did you mean block.mlp"),
        ({"path": "block.ml"}, "block.mlp"),
        ({"kind": "einsums"}, "unknown kind 'einsums': did you mean einsum?"),
        ({"quantity": "3"}, "unknown quantity '3'"),
    ],
)
def test_a_selection_by_an_unknown_name_raises(chosen, said):
    for method in (GPT.select, GPT.total):
        with pytest.raises(UnknownNameError) as caught:
            method(**chosen)
        assert said in str(caught.value)


def test_a_tensor_that_no_row_has_raises():
    with pytest.raises(UnknownNameError, match=r"unknown tensor 'attention\.key': did you mean"):
        GPT.select(tensor="attention.key")


def test_phases_have_the_words_of_the_command_line():
    assert GPT.total("flop", phase="fwd") == GPT.total("flop", phase="forward")
    both = ("backward_input", "backward_weight")
    for word in ("bwd", "backward"):
        assert GPT.total("flop", phase=word) == GPT.total("flop", phase=both)
    every = ("forward", *both, "recompute")
    assert GPT.total("flop", phase="train") == GPT.total("flop", phase=every)
    for short, word in (("fwd", "forward"), ("bwd", "backward")):
        assert named_cost("flops", word) == named_cost("flops", short)
    assert named_cost("flops", "backward").meaning == "backward FLOP"


def test_what_a_selection_lost_is_still_known():
    forward = GPT.select("flop", phase="forward")
    assert forward.total("saved") == 0
    assert forward.total("flop", phase="backward_input") == 0
    assert not GPT.select("parameter").select(path="block.mlp.act")
    with pytest.raises(UnknownNameError):
        forward.select(path="blok")


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("phase", PHASES)
def test_a_phase_narrows_a_cost_or_is_refused(cost, phase):
    if COSTS[cost].phases and not set(COSTS[cost].phases).isdisjoint(PHASES[phase]):
        assert set(sc.named_cost(cost, phase).phases) <= set(COSTS[cost].phases)
    elif not cost.startswith("comm"):
        with pytest.raises(InputError, match=f"{cost} has nothing in phase {phase!r}"):
            sc.named_cost(cost, phase)


@pytest.mark.parametrize("symbol", [l, "l", Symbol("l"), Symbol("l", real=True)])
def test_a_symbol_stands_for_the_one_of_its_name(symbol):
    cost = b * l * (2 * e + l)
    assert sc.derivative(cost, symbol) == 2 * b * (e + l)
    assert sc.elasticity(cost, symbol) == sc.elasticity(cost, l)
    assert sc.leading_term(cost, symbol) == b * l**2
    assert sc.exponent(cost, {symbol: 2}) == 4
    assert sc.crossover(cost, 4 * b * e * l, symbol) == [2 * e]
    assert sc.derivative(cost.xreplace({l: Symbol("l")}), symbol) == 2 * b * (e + l)


@pytest.mark.parametrize("text", ["zz", "__import__('os').getpid()", "l*2", "", None, 3, 2 * l])
def test_no_text_reaches_sympy(text):
    for call in (
        lambda: sc.derivative(l**2, text),
        lambda: sc.elasticity(l**2, text),
        lambda: sc.leading_term(l**2, text),
        lambda: sc.exponent(l**2, text),
        lambda: sc.crossover(l**2, 4 * l, text),
    ):
        with pytest.raises(InputError):
            call()


@pytest.mark.parametrize("text", ["__import__('os').getpid()", "M", "4", None, -1, 0, nan, I])
def test_microbatches_are_a_number(text):
    with pytest.raises(InputError):
        Training(microbatches=text)
    assert Training(microbatches=4).microbatches == 4
    assert Training(microbatches=oo).microbatches == oo


@pytest.mark.parametrize("name", ["b", "l", "e", "f", "h", "q", "V", "P", "n_layers"])
@pytest.mark.parametrize("value", [-1, 0, I, 1.5, "2", nan, oo, True, [2]])
def test_a_gpt_has_positive_sizes(name, value):
    with pytest.raises(InputError, match=f"{name} = "):
        sc.GPT(**{name: value})


def test_a_shape_takes_plain_integers():
    from symbolic_cost.models.shape import Shape

    assert Shape(l=1, c=0) == Shape(l=sc.symbols.exact(1))
    with pytest.raises(InputError, match="l = 0"):
        Shape(l=0)


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda: sc.symbols.symbol("d_model"), "did you mean e?"),
        (lambda: sc.symbols.symbol("tp"), "did you mean m1?"),
        (lambda: sc.parse_strategy("fsdp"), "did you mean zero?"),
        (lambda: sc.parse_strategy("mp=4"), "did you mean tp?"),
    ],
)
def test_other_words_of_the_field_are_understood_in_suggestions(call, meant):
    with pytest.raises(InputError) as caught:
        call()
    assert meant in str(caught.value)


def test_fp8_means_the_policies_of_eight_bits():
    from symbolic_cost.parallel.states import precision

    with pytest.raises(UnknownNameError, match="did you mean fp8"):
        precision("fp8")
