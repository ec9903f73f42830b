"""Whole models acted out on every rank of a mesh, under every strategy that does not refuse them.

What strategies refuse is approved elsewhere (tests/parallel/coverage.txt).
"""

from dataclasses import replace
from functools import cache

import pytest
from sympy import Integer

from symbolic_cost.conditions import check
from symbolic_cost.errors import InputError, PatternError
from symbolic_cost.models.catalog import CATALOG
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.part import Part
from symbolic_cost.parallel.parsing import parse_strategy
from tests.laws.acted import COPIES, WORDS, act_out

SIZES = {
    "b": 8,
    "l": 8,
    "l_t": 8,
    "e": 8,
    "f": 16,
    "h": 4,
    "k": 2,
    "q": 4,
    "V": 16,
    "P": 8,
    "W": 8,
    "r_m": 4,
    "n_layers": 2,
    "n_dec": 1,
    "n_dense": 1,
    "n_rel": 4,
    "T": 2,
    "N_p": 3,
    "s_p": 2,
    "n_ch": 3,
    "n_classes": 4,
    "J": 8,
    "N": 2,
    "K": 2,
    "r_dt": 2,
    "g": 1,
    "C": 4,
    "E": 4,
    "E_t": 2,
    "f_m": 4,
    "f_s": 4,
    "r_q": 4,
    "r_kv": 4,
    "d_n": 2,
    "d_r": 2,
    "d_v": 2,
    "e_p": 8,
    "h_x": 2,
    "d_x": 2,
}

KINDS = {
    "gpt": 19,
    "llama": 19,
    "gemma2": 19,
    "mixtral": 20,
    "deepseek_v3": 20,
    "bert": 18,
    "bert-pretraining": 11,
    "t5": 18,
    "vit": 14,
    "mamba": 9,
    "mamba2": 9,
    "lstm": 5,
}
"""Families, and how many of the strategies at least can be acted out."""

STRATEGIES = (
    *("dp=2", "dp=4,zero=1", "dp=2,zero=2", "dp=4,zero=3", "replicas=2,dp=2,zero=3"),
    *("tp=2", "tp=2,sp", "tp=2,sp,dp=2,zero=1", "tp=2,cp=2", "tp=2,sp,cp=2,dp=2,zero=3"),
    *("cp=4", "cp=2,dp=2,zero=3", "ulysses=2", "ulysses=2,dp=2,zero=2", "ring=4", "ring=2,dp=2"),
    *("2d=2x2", "2.5d=2x2x2", "3d=2x2x2"),
    *("ep=2,dp=4", "ep=2,dp=4,zero=3", "ep=2,dp=2,cp=2,zero=1", "ep=2,dp=2,tp=2,sp"),
)

GRIDS = ("2d=2x2", "2.5d=2x2x2", "3d=2x2x2")


@cache
def small(name):
    """A family of small sizes."""
    model = CATALOG[name].model()

    def bound(size):
        return size.xreplace({s: Integer(SIZES[s.name]) for s in size.free_symbols})

    return replace(model, sizes={axis: bound(size) for axis, size in model.sizes.items()})


def accepted(name):
    """Strategies that do not refuse a family."""
    for text in STRATEGIES:
        strategy = parse_strategy(text)
        try:
            own = strategy.model(small(name))
            check(cost(own, WORDS, strategy.placement(own)).conditions, {})
        except InputError:
            continue
        yield text


def slowly(*names):
    return [pytest.param(name, marks=pytest.mark.slow) for name in names]


SLOW = (
    *("gpt", "vit", "mamba2", "gemma2", "bert", "bert-pretraining", "t5"),
    *("mixtral", "deepseek_v3"),
)


@pytest.mark.parametrize("name", [*(n for n in KINDS if n not in SLOW), *slowly(*SLOW)])
def test_ranks_act_out_the_model(name):
    texts = list(accepted(name))
    for text in texts:
        try:
            act_out(small(name), parse_strategy(text))
        except AssertionError as error:
            error.add_note(f"{name} under {text}")
            raise
    assert len(texts) >= KINDS[name], texts


@pytest.mark.parametrize("text", GRIDS)
def test_tied_tables_under_tensor_grids(text):
    act_out(small("gpt"), parse_strategy(text))


@pytest.mark.parametrize("text", ["tp=2,sp", "cp=2", "ulysses=2", "ring=2"])
@pytest.mark.parametrize("name", ["gpt", "llama"])
def test_gathered_copies_are_saved_instead(name, text):
    act_out(small(name), parse_strategy(text), COPIES)


def test_ring_keeps_what_joins_two_tensors_to_keys():
    """A latent's keys are joined of two parts; a copy for every head alone is left out."""
    own = parse_strategy("ring=2").model(small("deepseek_v3"))
    ops = [op.path for part in own.parts for op in part.ops]
    assert "attention.join" in ops
    grouped = parse_strategy("ring=2").model(small("llama"))
    assert "attention.copy_keys" not in [op.path for part in grouped.parts for op in part.ops]


def test_a_ring_saves_no_copies_of_keys():
    """Whatever is saved of other gathered tensors: blocks come round again in backward."""
    strategy = parse_strategy("ring=2")
    own = strategy.model(small("gpt"))
    table = cost(own, COPIES, strategy.placement(own))
    saved = {row.tensor for row in table.select("saved", path="block")}
    assert "attention.qkv" not in saved
    assert {"attention.k", "attention.v"} <= saved
    assert not {"attention.keys", "attention.values"} & saved


def test_ops_of_one_path_are_refused():
    ops = (pointwise("act", "x[b] -> y[b]", "relu"), pointwise("act", "y[b] -> z[b]", "relu"))
    with pytest.raises(PatternError, match=r"part\.act: 2 ops have this path"):
        Part("part", ops)


def test_linear_functions_read_no_weight_in_backward():
    (_, back, _) = pointwise("add", "x[b e], *table[e] -> y[b e]", "add").kernels()
    assert [operand.tensor for operand in back.reads] == ["dy"]
    (_, back, _) = pointwise("mul", "x[b e], *scale[e] -> y[b e]", "mul").kernels()
    assert [operand.tensor for operand in back.reads] == ["dy", "x", "mul.scale"]


def test_tied_tables_turn_before_both_passes_of_the_head():
    strategy = parse_strategy("2d=2x2")
    own = strategy.model(small("gpt"))
    rows = cost(own, WORDS, strategy.placement(own)).select("communication", path="head")
    turned = [r.phase for r in rows if r.tensor == "@token" and r.collective.kind == "all-to-all"]
    assert turned == ["forward", "backward_input"]
