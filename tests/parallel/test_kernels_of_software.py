"""What kernels of some software keep that are several ops as a model declares them."""

import pytest
from sympy import Integer

import symbolic_cost as sc
from symbolic_cost.conventions.presets import preset
from symbolic_cost.ops.recompute import recompute_policy
from symbolic_cost.parallel.memory import Training, memory_table
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.parallel.software import Software
from symbolic_cost.symbols import symbol

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 128,
    "max_position_embeddings": 64,
}
MIXTRAL = LLAMA | {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
GATED = Software(joined=(("act", "mul"),))


def kept(config, software, policy="none"):
    """Bytes that are kept for backward, by tensor of a perceptron."""
    declared = sc.from_config(config, sc.Shape(Integer(1), Integer(32)))
    training = Training(software=software, recompute=recompute_policy(policy))
    table = memory_table(declared, parse_strategy(""), preset("standard"), training)
    rows = [row for row in table.select("saved") if ".mlp." in row.path]
    return {row.tensor: row.total for row in rows}


@pytest.mark.parametrize("act", ["silu", "gelu", "relu", "sigmoid"])
def test_a_gate_and_its_activation_keep_what_both_are_made_of(act):
    """Two tensors, whatever an activation keeps of its own: what comes in, or its result."""
    one, two = (kept(LLAMA | {"hidden_act": act}, own) for own in (GATED, Software()))
    more = {"mlp.a"} if act in {"silu", "gelu"} else set()
    wide = 2 * 32 * symbol("f") * symbol("n_layers")
    assert two == one | dict.fromkeys(more, wide)
    assert list(one.values()).count(wide) == 3  # with their product, which the last one meets


@pytest.mark.parametrize("policy", ["moe_act", "full", "selective-op", "needed"])
def test_what_runs_again_is_kept_by_neither(policy):
    """Where an activation runs again anyway, its kernel saves nothing more."""
    assert kept(MIXTRAL, GATED, policy) == kept(MIXTRAL, Software(), policy)
    assert kept(MIXTRAL, GATED) != kept(MIXTRAL, Software())


def test_what_others_read_is_kept():
    """A kernel hands its activation on to another product, which meets it in backward."""
    ops = (
        sc.einsum("gate", "x[b l e], *w[e f] -> g[b l f]"),
        sc.einsum("up", "x[b l e], *v[e f] -> u[b l f]"),
        sc.pointwise("act", "g[b l f] -> a[b l f]", "silu"),
        sc.pointwise("mul", "a[b l f], u[b l f] -> p[b l f]", "mul"),
        sc.einsum("down", "p[b l f], *t[f e] -> y[b l e]"),
    )
    other = sc.einsum("other", "a[b l f], *o[f e] -> z[b l e]")
    sizes = {name: symbol(name) for name in "blef"}
    axes = sc.roles("b batch, l token query, e hidden, f inner")
    conventions = GATED.counted(preset("standard"))
    for more in ((), (other,)):
        model = sc.Model("two", (sc.Part("block", (*ops, *more)),), sizes, axes=axes)
        saved = {row.tensor for row in sc.cost(model, conventions).select("saved")}
        assert saved == {"x", "g", "u", "p"} | ({"a"} if more else set())
