"""Malformed configurations: each refused with what is wrong, where, and what is accepted."""

import json

import pytest

from symbolic_cost.errors import InputError
from symbolic_cost.models.configfile import LARGEST_FILE
from symbolic_cost.models.count import count

LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 176,
    "num_attention_heads": 8,
    "num_hidden_layers": 3,
    "num_key_value_heads": 2,
    "vocab_size": 101,
}
MIXTRAL = {
    **LLAMA,
    "model_type": "mixtral",
    "architectures": ["MixtralForCausalLM"],
    "num_experts_per_tok": 2,
    "num_local_experts": 4,
}
GPT_OSS = {
    **MIXTRAL,
    "model_type": "gpt_oss",
    "architectures": ["GptOssForCausalLM"],
    "sliding_window": 16,
}
DEEPSEEK = {
    **LLAMA,
    "model_type": "deepseek_v3",
    "architectures": ["DeepseekV3ForCausalLM"],
    "num_key_value_heads": 8,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 8,
    "moe_intermediate_size": 32,
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
}

CHANGED = [
    ("missing width", LLAMA, {"hidden_size": ...}, ["'hidden_size' (or n_embd", "is missing"]),
    ("missing layers", LLAMA, {"num_hidden_layers": ...}, ["num_hidden_layers", "is missing"]),
    ("missing heads", LLAMA, {"num_attention_heads": ...}, ["num_attention_heads", "missing"]),
    ("missing vocabulary", LLAMA, {"vocab_size": ...}, ["vocab_size", "missing"]),
    ("missing MLP width", LLAMA, {"intermediate_size": ...}, ["intermediate_size", "missing"]),
    (
        "null width",
        LLAMA,
        {"hidden_size": None},
        ["line 6, key 'hidden_size': null, but llama needs it"],
    ),
    ("null vocabulary", LLAMA, {"vocab_size": None}, ["key 'vocab_size': null"]),
    ("negative width", LLAMA, {"hidden_size": -64}, ["'hidden_size': -64", "positive integer"]),
    ("no layers", LLAMA, {"num_hidden_layers": 0}, ["'num_hidden_layers': 0 is not accepted"]),
    ("text for a size", LLAMA, {"hidden_size": "64"}, ["'64' is not accepted"]),
    ("fraction", LLAMA, {"hidden_size": 64.5}, ["64.5 is not accepted"]),
    ("float", LLAMA, {"hidden_size": 64.0}, ["64.0 is not accepted"]),
    ("truth for a size", LLAMA, {"num_hidden_layers": True}, ["True is not accepted"]),
    ("list for a size", LLAMA, {"hidden_size": [64]}, ["[64] is not accepted"]),
    ("object for a size", LLAMA, {"vocab_size": {"size": 3}}, ["{'size': 3} is not accepted"]),
    ("huge size", LLAMA, {"hidden_size": 10**40}, ["is not a number that is accepted"]),
    (
        "infinite size",
        LLAMA,
        {"hidden_size": float("inf")},
        ["'hidden_size': inf is not accepted"],
    ),
    ("too many layers", LLAMA, {"num_hidden_layers": 10**9}, ["more than any model has"]),
    ("heads and width", LLAMA, {"hidden_size": 65}, ["8 heads do not divide a width of 65"]),
    ("key/value heads", LLAMA, {"num_key_value_heads": 3}, ["3 key/value heads do not divide 8"]),
    ("more key/value heads", LLAMA, {"num_key_value_heads": 16}, ["16 key/value heads"]),
    ("head_dim text", LLAMA, {"head_dim": "wide"}, ["'wide' is not accepted"]),
    ("alias contradicts", LLAMA, {"n_embd": 128}, ["contradicts: hidden_size = 64, n_embd = 128"]),
    ("flag is a number", LLAMA, {"attention_bias": 1}, ["1 is not accepted", "true or false"]),
    ("tie is text", LLAMA, {"tie_word_embeddings": "no"}, ["'no' is not accepted"]),
    ("activation", LLAMA, {"hidden_act": "sillu"}, ["unknown value 'sillu'", "silu"]),
    ("activation number", LLAMA, {"hidden_act": 3}, ["3 is not accepted", "text"]),
    ("unknown size key", LLAMA, {"num_extra_layers": 4}, ["'num_extra_layers': not understood"]),
    ("misspelt key", LLAMA, {"num_hiden_layers": 4}, ["'num_hiden_layers': not understood"]),
    ("vision", LLAMA, {"vision_config": {"hidden_size": 3}}, ["'vision_config': not understood"]),
    ("key of nobody", LLAMA, {"extra_mixer": 4}, ["'extra_mixer': not understood"]),
    ("depth of nobody", LLAMA, {"depth": 4}, ["'depth': not understood"]),
    ("switch of nobody", LLAMA, {"use_new_block": True}, ["'use_new_block': not understood"]),
    ("word of nobody", LLAMA, {"mixer": "mamba"}, ["'mixer': not understood"]),
    (
        "other than declared",
        {**LLAMA, "model_type": "starcoder2", "architectures": None},
        {"mlp_type": "gated"},
        ["'mlp_type': 'gated': only \"default\" is declared for starcoder2"],
    ),
    (
        "vision beside",
        {"model_type": "gemma3", "text_config": LLAMA},
        {"vision_config": {"hidden_size": 3}},
        ["12 heads do not divide a hidden_size of 3"],
    ),
    ("experts in a dense family", LLAMA, {"num_local_experts": 8}, ["'num_local_experts'"]),
    ("cross-attention", LLAMA, {"add_cross_attention": True}, ["'add_cross_attention': not un"]),
    ("pruned heads", LLAMA, {"pruned_heads": {"0": [1]}}, ["'pruned_heads': not understood"]),
    ("no family", LLAMA, {"model_type": ...}, ["'model_type' is missing"]),
    ("null family", LLAMA, {"model_type": None}, ["'model_type' is missing"]),
    ("unknown family", LLAMA, {"model_type": "lama"}, ["unknown model_type 'lama'", "llama"]),
    ("family is a number", LLAMA, {"model_type": 3}, ["3 is not a family's name"]),
    ("unknown head", LLAMA, {"architectures": ["LlamaForCasualLM"]}, ["LlamaForCausalLM"]),
    ("head of another", LLAMA, {"architectures": ["GPT2Model"]}, ["unknown architecture"]),
    ("head is text", LLAMA, {"architectures": "LlamaModel"}, ["must be a list of one name"]),
    ("head is a number", LLAMA, {"architectures": [1]}, ["must be a list of one name"]),
    ("too many chosen", MIXTRAL, {"num_experts_per_tok": 5}, ["5 experts per token are more"]),
    ("no experts", MIXTRAL, {"num_local_experts": None}, ["num_local_experts': null"]),
    ("negative experts", MIXTRAL, {"num_local_experts": -1}, ["-1 is not accepted"]),
    (
        "short list of layers",
        GPT_OSS,
        {"layer_types": ["full_attention"]},
        ["1 entries contradict"],
    ),
    ("kind of layer", GPT_OSS, {"layer_types": ["slow"] * 3}, ["'slow'", "sliding_attention"]),
    ("layers no list", GPT_OSS, {"layer_types": "full"}, ["'full' is not accepted", "a list"]),
    (
        "sliding without window",
        GPT_OSS,
        {"layer_types": ["sliding_attention"] * 3, "sliding_window": None},
        ["need a sliding_window"],
    ),
    ("window text", GPT_OSS, {"sliding_window": "16"}, ["'16' is not accepted"]),
    ("no latent", DEEPSEEK, {"kv_lora_rank": ...}, ["kv_lora_rank", "missing"]),
    ("negative latent", DEEPSEEK, {"q_lora_rank": -1}, ["-1 is not accepted"]),
    ("no section", {"model_type": "gemma3"}, {}, ["'text_config': an object"]),
    ("section no object", {"model_type": "gemma3"}, {"text_config": 3}, ["'text_config': an obj"]),
    ("some layers only", DEEPSEEK, {"moe_layer_freq": 2}, ["only 1 is declared"]),
]


def written(tmp_path, text):
    path = tmp_path / "config.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("base", "change", "texts"),
    [case[1:] for case in CHANGED],
    ids=[case[0] for case in CHANGED],
)
def test_refuses(tmp_path, base, change, texts):
    config = {key: value for key, value in {**base, **change}.items() if value is not ...}
    path = written(tmp_path, json.dumps(config, indent=1))
    with pytest.raises(InputError) as caught:
        count(path, 1, 8)
    message = str(caught.value)
    assert "config.json: " in message
    for text in texts:
        assert text in message


BROKEN = [
    ("empty", "", "line 1: is not JSON"),
    ("truncated", json.dumps(LLAMA, indent=1)[:60], "line 4: is not JSON"),
    ("list", "[1, 2]", "only a JSON object"),
    ("number", "7", "only a JSON object"),
    ("twice", '{\n"vocab_size": 1,\n"vocab_size": 2}', "'vocab_size': given more than once"),
    ("deep", '{"a":' * 100_000 + "1" + "}" * 100_000, "nested too deeply"),
    ("digits", '{"hidden_size": ' + "9" * 5000 + "}", "is not a number that is accepted"),
    ("large", '{"a": "' + " " * 20 * 2**20 + '"}', f"at most {LARGEST_FILE} are read"),
    ("binary", b"\xff\xfe\x00\x01", "not a text file in UTF-8"),
]


@pytest.mark.parametrize(
    ("text", "expected"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN]
)
def test_refuses_text(tmp_path, text, expected):
    with pytest.raises(InputError, match=r"config\.json: ") as caught:
        count(written(tmp_path, text), 1, 8)
    assert expected in str(caught.value)


def test_says_what_is_ignored():
    harmless = {"extra_mixer": 0, "use_new_block": False, "rope_theta": 1e6, "depth": None}
    assert count({**LLAMA, **harmless}, 1, 8) == count(LLAMA, 1, 8)
    ignored = count({**LLAMA, "auto_map": {"AutoModel": "mine.Model"}}, 1, 8)["ignored"]
    assert ignored == "auto_map: the layers of the family are assumed, not the code it names"


def test_refuses_a_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"nothing\.json: cannot be read: No such file"):
        count(tmp_path / "nothing.json", 1, 8)


def test_tells_all_problems_at_once():
    with pytest.raises(InputError) as caught:
        count({**LLAMA, "hidden_size": -1, "vocab_size": "many", "num_extra_layers": 1}, 1, 8)
    assert len(caught.value.problems) >= 3


@pytest.mark.parametrize("arguments", [(0, 8), (1, -1), (True, 8), (1, 2.0), ("1", 8)])
def test_refuses_a_shape(arguments):
    with pytest.raises(InputError, match="a positive integer is accepted"):
        count(LLAMA, *arguments)


def test_reads_a_folder(tmp_path):
    written(tmp_path, json.dumps(LLAMA))
    assert count(tmp_path, 1, 8) == count(LLAMA, 1, 8)
