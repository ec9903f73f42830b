"""Axes that an elementwise result lacks are declared, so that no union of axes multiplies work."""

from dataclasses import replace

import pytest
from sympy import expand

from symbolic_cost.conventions.presets import preset
from symbolic_cost.errors import InputError, PatternError
from symbolic_cost.models.bound import bound
from symbolic_cost.models.catalog import CATALOG
from symbolic_cost.models.config import from_config
from symbolic_cost.models.decoders.families import symbolic
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.symbols import b, d_r, h, k, l, n_layers

EXACT = preset("exact")


def flop(model, path):
    return cost(model, EXACT).select(path=path).once().total("flop", phase="forward")


def test_an_undeclared_axis_is_refused():
    with pytest.raises(PatternError) as refused:
        pointwise("turn", "x[a d], !cos[a e] -> y[a d]", "rotary")
    assert "lacks axis 'e'" in str(refused.value)
    assert "row, sums or laid" in str(refused.value)


@pytest.mark.parametrize("declared", [{"sums": "a"}, {"laid": "z"}, {"row": "z"}])
def test_a_wrong_declaration_is_refused(declared):
    with pytest.raises(PatternError):
        pointwise("op", "x[a d] -> y[a d]", "copy", **declared)


def test_joined_parts_add_no_work():
    (model,) = [
        pointwise("add", "x[a m], y[a n] -> z[a d]", "add", laid="m n"),
    ]
    (work,) = model.kernels()[0].work
    assert work.axes == ("a", "d")


def test_latent_queries_rotate_their_rotated_part():
    for name in ("rotate_q", "rotate_k"):
        table = cost(symbolic("deepseek_v3"), EXACT).select(path="dense.block.attention")
        rows = [row for row in table.select("flop") if row.path.endswith(name)]
        forward = sum(row.expr for row in rows if row.phase == "forward")
        heads = h if name == "rotate_q" else 1
        assert expand(forward - 3 * b * l * heads * d_r) == 0


def test_a_share_of_the_heads_is_rotated():
    model = symbolic("gpt_neox")
    assert expand(flop(model, "block.attention.rotate_q") - 3 * b * l * h * d_r) == 0
    whole = symbolic("phi3")
    assert flop(whole, "block.attention.rotate_q").has(k) is False


SMALL = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "vocab_size": 50,
    "max_position_embeddings": 64,
}


@pytest.mark.parametrize(
    ("family", "keys", "rotated"),
    [
        ("gpt_neox", {}, 4),
        ("gpt_neox", {"rotary_pct": 0.5}, 8),
        ("gpt_neox", {"rope_parameters": {"partial_rotary_factor": 0.75}}, 12),
        ("gptj", {"rotary_dim": 8}, 8),
        ("gptj", {"rotary_dim": None}, 16),
        ("phi", {}, 8),
        ("phi", {"partial_rotary_factor": 1.0}, 16),
        ("phi3", {}, 16),
        ("phi3", {"partial_rotary_factor": 0.5}, 8),
        ("stablelm", {}, 4),
        ("llama", {}, 16),
    ],
)
def test_configurations_say_how_much_is_rotated(family, keys, rotated):
    model = bound(from_config({"model_type": family, **SMALL, **keys}))
    assert flop(model, "block.attention.rotate_q") == 3 * b * l * 4 * rotated


@pytest.mark.parametrize(
    ("family", "keys"),
    [
        ("llama", {"partial_rotary_factor": 0.5}),
        ("gptj", {"rotary_dim": 64}),
        ("phi", {"partial_rotary_factor": "half"}),
        ("phi", {"rope_parameters": {"partial_rotary_factor": 3}}),
        ("phi", {"partial_rotary_factor": 0.01}),
    ],
)
def test_a_rotation_that_is_not_understood_is_refused(family, keys):
    with pytest.raises(InputError):
        from_config({"model_type": family, **SMALL, **keys})


def shared(name, strategy):
    model = CATALOG[name].model()
    given = parse_strategy(strategy)
    return cost(given.model(model), EXACT, given.placement(given.model(model)))


def test_latents_are_expanded_where_they_are_made():
    whole, part = (shared("deepseek-v3", strategy) for strategy in ("", "ring=8"))
    for name in ("k_up", "v_up"):
        path = f"experts.block.attention.{name}"
        sums = [table.select(path=path).total("flop") for table in (whole, part)]
        assert expand(sums[0] - 8 * sums[1]) == 0


def test_routers_run_on_residual_positions():
    whole, part = (shared("mixtral-8x7b", strategy) for strategy in ("", "tp=8,sp"))
    sums = [t.select(path="block.mlp.router").total("flop", phase="forward") for t in (whole, part)]
    assert expand(sums[0] - 8 * sums[1]) == 0


def test_heads_of_mamba2_are_split():
    whole, part = (shared("mamba2-2.7b", strategy) for strategy in ("", "tp=8"))
    for name in ("in_plain_u", "u_conv", "in_gate", "attend", "out"):
        path = f"block.mixer.{name}"
        sums = [t.select(path=path).select("flop", phase="forward").total() for t in (whole, part)]
        assert expand(sums[0] - 8 * sums[1]) == 0


def test_parts_of_a_convolution_count_as_one():
    # Twelve channels of heads and twice two of the states: tools count sixteen groups.
    numbers = {"b": 1, "l": 8, "e": 4, "h": 3, "q": 4, "g": 1, "N": 2, "K": 4, "C": 4, "V": 8}
    mamba2 = replace(CATALOG["mamba2"].model(), bindings={**numbers, "n_layers": 1})
    table = cost(bound(mamba2), preset("torch-flop-counter"))
    rows = [row for row in table.select("flop", phase="backward_weight") if row.kind == "conv"]
    channels, kernel, positions = 16, 4, 8 + 4 - 1
    total = sum(row.expr for row in rows)
    assert total == 2 * channels * channels * kernel * positions


def test_the_depth_is_a_factor():
    assert cost(symbolic("gpt_neox"), EXACT).select(path="block").total("flop").has(n_layers)
