"""Ranks of tp beyond the key/value heads, in models whose layers have several kinds of heads."""

import json
from pathlib import Path

import pytest

import symbolic_cost as sc
from symbolic_cost.errors import DivisibilityError

GOLDEN = Path(__file__).parents[1] / "golden"


def config(tmp_path, name, **more):
    for file in ("families_truth.json", "families_more.json"):
        for entry in json.loads((GOLDEN / file).read_text(encoding="utf-8")):
            if entry["id"] == name:
                path = tmp_path / "config.json"
                path.write_text(json.dumps({**entry["config"], **more}))
                return str(path)
    raise KeyError(name)


HYBRID = {
    "model_type": "qwen3_next",
    "architectures": ["Qwen3NextForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "linear_num_key_heads": 8,
    "linear_num_value_heads": 16,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 128,
}


@pytest.fixture
def hybrid(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(HYBRID))
    return str(path)


@pytest.mark.slow
def test_heads_that_the_ranks_divide_have_no_copies(hybrid):
    """Two heads of keys and values have four copies each on tp=8, eight linear ones none."""
    job = sc.job(hybrid, "tp=8", {"b": 1, "l": 64})
    whole = sc.job(hybrid, "", {"b": 1, "l": 64})
    assert (job.strategy.copies, job.strategy.shared) == (4, ("k",))

    def weights(one, path):
        return one.table().total("parameter", path=path)

    # In weights of the attention, the keys and values alone are held more than once.
    for op, share in (("q", 8), ("k", 2), ("v", 2)):
        path = f"full.block.attention.{op}"
        assert weights(whole, path) == share * weights(job, path)
    scores = {"phase": "forward", "path": "linear.block.mixer.scores"}
    both = [one.table().total("flop", **scores) for one in (whole, job)]
    assert both[0] == 8 * both[1]


def test_heads_that_no_rank_divides_are_refused(hybrid):
    with pytest.raises(DivisibilityError, match="is not divisible by"):
        sc.job(hybrid, "tp=3", {"b": 1, "l": 64}).total("params")


def test_more_ranks_than_query_heads_are_refused_in_words():
    with pytest.raises(DivisibilityError, match="the 8 ranks of tp that share a key/value head"):
        sc.job("llama-3-8b", "tp=64", {"b": 1, "l": 64}).total("params")
    with pytest.raises(
        DivisibilityError, match="share one 1, as tp is at most the number of query"
    ):
        sc.job("deepseek-v3", "tp=256", {"b": 1, "l": 64}).total("params")


def test_a_tower_of_no_images_hinders_no_strategy(tmp_path):
    """Its weights are there, and no positions that sequence parallelism would have to divide."""
    path = config(tmp_path, "qwen3_vl/a")
    alone = sc.job(path, "", {"b": 2, "l": 64})
    job = sc.job(path, "tp=2,sp", {"b": 2, "l": 64})
    kind, amount = alone.model.work
    assert (kind, str(amount)) == ("tokens", "b*l")
    assert 2 * job.total("params") >= alone.total("params") > job.total("params")
