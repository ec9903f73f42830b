"""Decoders whose layers have sizes of their own, and what of new families is refused."""

import json

import pytest

import symbolic_cost as sc
from symbolic_cost.errors import InputError
from symbolic_cost.models.count import count
from tests.models.test_families_truth import TRUTH

PHASES = ("forward", "backward_input", "backward_weight")


def refused(name, **changes):
    with pytest.raises(InputError) as raised:
        count({**TRUTH[name]["config"], **changes}, 1, 8)
    return str(raised.value)


def test_every_list_is_as_long_as_the_model_is_deep():
    told = refused("openelm/a", num_kv_heads=[3], ffn_multipliers=[0.5, "wide", 2, 4])
    assert "'num_kv_heads': 4 positive integers" in told
    assert "'ffn_multipliers': 4 positive numbers" in told


def test_heads_are_divided_by_their_groups():
    assert "4 do not divide 6 heads" in refused("deci/a", num_key_value_heads_per_layer=[4] * 4)


def replaced(at, **changes):
    """A searched decoder in one of whose layers something else stands for a part."""
    blocks = [dict(block) for block in TRUTH["nemotron-nas/a"]["config"]["block_configs"]]
    for part, values in changes.items():
        blocks[at] = {**blocks[at], part: {**blocks[at][part], **values}}
    return {"block_configs": blocks}


def test_a_layer_of_a_search_may_lack_what_is_declared_alone():
    told = refused("nemotron-nas/a", **replaced(1, attention={"window_length": 64}))
    assert "window_length is not declared" in told
    told = refused("nemotron-nas/a", **replaced(1, ffn={"ffn_mult": None, "no_op": False}))
    assert "ffn {ffn_mult, ...} are accepted" in told


def test_a_product_stands_for_attention_and_for_a_perceptron():
    config = TRUTH["nemotron-nas/a"]["config"]
    width, bias = config["hidden_size"], config.get("mlp_bias", False)
    nothing = {**config, **replaced(1, attention={"no_op": True}, ffn={"no_op": True})}
    product = {"replace_with_linear": True, "no_op": False}
    other = {**config, **replaced(1, attention=product, ffn=product)}
    before, after = (count(each, 2, 8) for each in (nothing, other))
    # two products and two norms
    assert after["params"] - before["params"] == 2 * width * (width + 1 + bias)
    assert after["flops_fwd"] - before["flops_fwd"] == 2 * 2 * 2 * 8 * width**2
    assert after["kv_cache_elements"] == before["kv_cache_elements"]


def test_layers_of_a_step_are_told_by_numbers_in_bounds():
    """Python reads no number of thousands of digits."""
    config = dict(TRUTH["step3p7/plain"]["config"])
    section = {**config["text_config"], "moe_layers_enum": "9" * 5000}
    assert "'moe_layers_enum': numbers of layers" in refused("step3p7/plain", text_config=section)


def test_a_kind_of_block_has_its_own_function():
    assert "unknown value 'silu'" in refused("hf_olmo/a", activation_type="silu")


def test_sides_are_halved_whole():
    assert "4 divides" in refused("UNet2DModel/0", sample_size=18)


def test_speech_is_not_taken_for_the_thinker():
    config = {"thinker_config": TRUTH["qwen2_5_omni_thinker/text"]["config"]}
    whole = {"model_type": "qwen2_5_omni", **config, "talker_config": {"hidden_size": 8}}
    with pytest.raises(InputError, match="token2wav_config"):
        count({**whole, "architectures": ["Qwen2_5OmniModel"]}, 1, 8)
    named = {**whole, "architectures": ["Qwen2_5OmniThinkerForConditionalGeneration"]}
    answer = count(named, 1, 8)
    assert answer["params"] in TRUTH["qwen2_5_omni_thinker/text"]["params"]
    assert f"talker_config: no part of {named['architectures'][0]}" in answer["ignored"]


@pytest.mark.slow
def test_ranks_share_the_work(tmp_path):
    def flop(strategy, sequences):
        table = sc.job(str(path), strategy).bind(b=sequences, l=32).table()
        return sum(table.total("flop", phase=phase) for phase in PHASES)

    config = {**TRUTH["openelm/a"]["config"], "vocab_size": 212, "num_query_heads": [4, 4, 8, 12]}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**config, "num_kv_heads": [2, 4, 2, 4]}), encoding="utf-8")
    alone = flop("", 2)
    assert 1 <= 2 * flop("dp=2,zero=3", 1) / alone <= 1.0001
    assert 1 <= 2 * flop("tp=2,sp", 2) / alone <= 1.01
    assert flop("cp=2", 2) * 2 == alone
