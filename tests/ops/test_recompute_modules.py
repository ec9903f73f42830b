"""Policies of frameworks: what runs again, what is kept, and what matches nothing."""

import pytest

from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.errors import InputError
from symbolic_cost.ledger import Phase, Quantity
from symbolic_cost.models.catalog import model
from symbolic_cost.numeric.binding import bind
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.recompute import MODULES, POLICIES, recompute_policy


def table(name, policy, **sizes):
    own = model(name)
    made = cost(own, STANDARD, recompute=recompute_policy(policy))
    return bind(made, {**own.bindings, "b": 1, "l": 1024, **sizes})


def saved(name, policy):
    return int(table(name, policy).total(Quantity.SAVED))


def again(name, policy):
    rows = table(name, policy).select("flop", phase=Phase.RECOMPUTE)
    return {row.path for row in rows}


def forward(made, paths):
    return made.select("flop", phase=Phase.FORWARD).select(where=lambda row: row.path in paths)


@pytest.mark.parametrize("policy", ["mlp", "layernorm", "selective-op", "minimal", "save_qkv_proj"])
def test_what_runs_again_costs_its_forward(policy):
    made = table("llama-3-8b", policy)
    computed = made.select("flop", phase=Phase.RECOMPUTE).total()
    assert computed == forward(made, again("llama-3-8b", policy)).total()
    assert saved("llama-3-8b", "full") < saved("llama-3-8b", policy) < saved("llama-3-8b", "none")


def test_the_more_is_kept_the_less_runs_again():
    order = (
        "none",
        "minimal_with_context",
        "minimal",
        "save_dot_except_mlp",
        "save_qkv_proj",
        "full",
    )
    kept = [saved("llama-3-8b", name) for name in order]
    assert kept == sorted(kept, reverse=True)


def test_every_second_product_is_kept():
    """Of q, k, v, proj, gate, up and down these are q, v, gate and down; the sums run again."""
    products = {"q", "k", "v", "proj", "gate", "up", "down"}
    runs = {path.rpartition(".")[2] for path in again("llama-3-8b", "selective-op")}
    assert runs & products == {"k", "proj", "up"}


def test_a_dropped_output_is_that_of_norms():
    """Two norms of a block write b l e elements of 2 byte that products keep, and keep b l of 4."""
    own = dict(model("llama-3-8b").bindings)
    rows = 2 * own["n_layers"] * 1024
    less = saved("llama-3-8b", "none") - saved("llama-3-8b", "layernorm")
    assert less == rows * (2 * own["e"] + 4)


@pytest.mark.slow
def test_modules_join():
    one, other = (again("deepseek-v3", name) for name in ("mla_up_proj", "moe_act"))
    assert again("deepseek-v3", "moe_act+mla_up_proj") == one | other
    assert {path.split(".")[0] for path in again("deepseek-v3", "mlp")} == {"dense"}
    assert {path.split(".")[0] for path in again("deepseek-v3", "moe")} == {"experts"}


@pytest.mark.slow
def test_what_is_made_of_one_latent_of_keys_and_values():
    """Of DeepSeek V4 (Megatron-Core's qkv_up_proj_and_rope_apply): compressed keys do not."""
    parts = again("deepseek-v4-flash", "mla_up_proj")
    runs = {path.partition("attention.layer.")[2] for path in parts}
    assert {"norm_low", "q_up", "norm_q", "norm_kv", "rotate_q", "rotate_kv"} <= runs
    assert not runs & {"q_down", "kv", "out_down", "rotate_back", "rotate_far"}
    assert all(path.partition("attention.layer.")[2] for path in parts)


@pytest.mark.parametrize("name", ["mla_up_proj", "moe", "moe_act", "shared_experts"])
def test_what_matches_nothing_is_refused(name):
    with pytest.raises(InputError, match=f"has no {name} that could run again"):
        table("llama-3-8b", name)


@pytest.mark.parametrize(("name", "said"), [("moe+moe", "stands twice"), ("mlp+attn", "unknown")])
def test_lists_that_are_none(name, said):
    with pytest.raises(InputError, match=said):
        recompute_policy(name)


def test_every_entry_has_a_meaning():
    assert all(one.meaning and one.source for one in (*MODULES.values(), *POLICIES.values()))
