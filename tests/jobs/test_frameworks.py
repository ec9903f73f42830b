"""FLOP per token of frameworks against their own formulas, written down plainly."""

import json

import pytest

import symbolic_cost as sc
from symbolic_cost.errors import InputError

S = 8192
LLAMA = {"h": 4096, "V": 128256, "H": 32, "K": 8, "D": 128, "full": 32}
LLAMA["mlp"] = {"f": 14336, "n": 32}
MIXTRAL = {
    **LLAMA,
    "V": 32000,
    "mlp": None,
    "moe": {"f": 14336, "E": 8, "k": 2, "n": 32},
}
OLMOE = {
    "h": 2048,
    "V": 50304,
    "H": 16,
    "K": 16,
    "D": 128,
    "full": 16,
    "moe": {"f": 1024, "E": 64, "k": 8, "n": 16},
}
QWEN3_MOE = {
    "h": 2048,
    "V": 151936,
    "H": 32,
    "K": 4,
    "D": 128,
    "full": 48,
    "moe": {"f": 768, "E": 128, "k": 8, "n": 48},
}
GEMMA = {
    "h": 3584,
    "V": 256000,
    "H": 16,
    "K": 8,
    "D": 256,
    "full": 21,
    "windows": {"n": 21, "W": 4096},
    "mlp": {"f": 14336, "n": 42},
}
OSS = {
    "h": 2880,
    "V": 201088,
    "H": 64,
    "K": 8,
    "D": 64,
    "full": 18,
    "windows": {"n": 18, "W": 128},
    "moe": {"f": 2880, "E": 128, "k": 4, "n": 36},
}
DEEPSEEK = {
    "h": 7168,
    "V": 129280,
    "H": 128,
    "latent": {"q": 1536, "kv": 512, "nope": 128, "rope": 64, "v": 128},
    "full": 61,
    "mlp": {"f": 18432, "n": 3},
    "moe": {"f": 2048, "E": 256, "k": 8, "shared": 2048, "n": 58},
}
NEXT = {
    "h": 2048,
    "V": 151936,
    "H": 16,
    "K": 2,
    "D": 256,
    "full": 12,
    "gate": 1,
    "delta": {"kh": 16, "vh": 32, "k": 128, "v": 128, "conv": 4, "n": 36},
    "moe": {"f": 512, "E": 512, "k": 10, "shared": 512, "shared_gate": 1, "n": 48},
}
NEMOTRON = {
    "h": 4096,
    "V": 131072,
    "H": 32,
    "K": 8,
    "D": 128,
    "full": 4,
    "products": 2,
    "mlp": {"f": 21504, "n": 24},
    "dual": {"h": 128, "d": 64, "g": 8, "N": 128, "n": 24},
}
NANO = {
    "h": 2688,
    "V": 131072,
    "H": 32,
    "K": 2,
    "D": 128,
    "full": 6,
    "products": 2,
    "moe": {"f": 1856, "E": 128, "k": 6, "shared": 3712, "n": 23},
    "dual": {"h": 64, "d": 64, "g": 8, "N": 128, "n": 23},
}
MAMBA2 = {"h": 2560, "V": 50288, "H": 0, "dual": {"h": 80, "d": 64, "g": 1, "N": 128, "n": 64}}
GPT3 = {"h": 12288, "V": 50257, "H": 96, "K": 96, "D": 128, "full": 96, "products": 2}
GPT3["mlp"] = {"f": 49152, "n": 96}
MODELS = {
    "llama-3-8b": LLAMA,
    "mixtral-8x7b": MIXTRAL,
    "olmoe-1b-7b": OLMOE,
    "qwen3-30b-a3b": QWEN3_MOE,
    "gemma-2-9b": GEMMA,
    "gpt-oss-120b": OSS,
    "deepseek-v3": DEEPSEEK,
    "qwen3-next-80b-a3b": NEXT,
    "nemotron-h-8b": NEMOTRON,
    "nemotron-3-nano": NANO,
    "mamba2-2.7b": MAMBA2,
    "gpt3-175b": GPT3,
}


def attention(m, *, gate=True):
    """Weights of the projections of one attention layer."""
    if "latent" in m:
        z = m["latent"]
        down = m["h"] * (z["q"] + z["kv"] + z["rope"])
        up = z["q"] * (z["nope"] + z["rope"]) + z["kv"] * (z["nope"] + z["v"])
        return down + m["H"] * (up + z["v"] * m["h"])
    gates = m.get("gate", 0) if gate else 0
    return m["h"] * m["D"] * (2 * m["H"] + 2 * m["K"] + gates * m["H"])


def widths(m):
    """Width of a query with a key, and of a value, of all heads."""
    if "latent" in m:
        return m["H"] * (m["latent"]["nope"] + m["latent"]["rope"] + m["latent"]["v"])
    return 2 * m["H"] * m["D"]


def experts(m, *, router, shared=True):
    z, n = m.get("moe"), m.get("products", 3)
    if not z:
        return 0
    one = n * m["h"] * (z["f"] * z["k"] + shared * z.get("shared", 0))
    return z["n"] * (one + router * m["h"] * (z["E"] + z.get("shared_gate", 0)))


def dense(m, products=None):
    z = m.get("mlp") or {"f": 0, "n": 0}
    return z["n"] * (products or m.get("products", 3)) * m["h"] * z["f"]


def delta(m, state, *, conv=True):
    """Weights of a gated delta layer, and what its state costs per token and pass, over 2."""
    z = m.get("delta")
    if not z:
        return 0
    keys, values = z["kh"] * z["k"], z["vh"] * z["v"]
    weights = m["h"] * (2 * keys + 2 * values + 2 * z["vh"] + values)
    weights += conv * z["conv"] * (2 * keys + values)
    return z["n"] * (weights + state * z["vh"] * z["k"] * z["v"] / 2)


def dual(m, state, inner):
    z = m.get("dual")
    if not z:
        return 0
    weights = m["h"] * (2 * inner + 2 * z["g"] * z["N"] + z["h"]) + inner * m["h"]
    return z["n"] * (weights + state * inner * z["N"] / 2)


def layers(m):
    return m.get("full", 0) + m.get("windows", {"n": 0})["n"]


def pairs(m, s, *, window, half=True):
    """Keys that a query meets, of all layers, times the width of heads."""
    if not layers(m):
        return 0
    z = m.get("windows", {"n": 0, "W": s})
    total = m["full"] * s + z["n"] * (min(s, z["W"]) if window else s)
    return total * widths(m) / (2 if half else 1)


def megatron(m, s):
    norms = layers(m) * sum(m["latent"][name] for name in ("q", "kv")) if "latent" in m else 0
    core = pairs(m, s, window=False)
    weights = layers(m) * attention(m) if layers(m) else 0
    weights += norms + dense(m) + experts(m, router=0) + m["h"] * m["V"]
    return 6 * (weights + delta(m, 8) + dual(m, 7, 2 * m["h"])) + 6 * core


def nemo_hybrid(m, s):
    z = m["dual"]
    heads = 2 * m["h"] * m["h"] * (1 + m["K"] / m["H"]) + m["h"] * s
    weights = m["full"] * heads + dense(m, 3) + m["h"] * m["V"]
    return 6 * (weights + dual(m, 2, z["h"] * z["d"]))


def maxtext(m, s):
    weights = layers(m) * attention(m, gate=False) + dense(m) + m["h"] * m["V"]
    moe = m.get("moe")
    weights += experts({**m, "moe": moe and {**moe, "shared_gate": 0}}, router=1)
    windows = m in (GEMMA, OSS)
    return 6 * (weights + delta(m, 8)) + 6 * pairs(m, s, window=windows)


def verl(m, s):
    weights = 2 * m["h"] * m["V"] + layers(m) * attention(m) + dense(m) + experts(m, router=1)
    return 6 * (weights + delta(m, 5)) + 6 * pairs(m, s, window=m is OSS)


def olmo_delta(m, s):
    weights = m["h"] * m["V"] + layers(m) * attention(m) + experts(m, router=1)
    norms = m["full"] * 2 * m["D"]
    return 6 * (weights + norms + delta(m, 8)) + 6 * pairs(m, s, window=True, half=False)


CASES = {
    "megatron-lm": (megatron, [*MODELS]),
    "nemo": (nemo_hybrid, ["nemotron-h-8b"]),
    "maxtext": (maxtext, [*MODELS][:8]),
    "verl": (verl, ["llama-3-8b", "qwen3-30b-a3b", "deepseek-v3", "gpt-oss-120b"]),
    "olmo": (olmo_delta, ["qwen3-next-80b-a3b"]),
}


@pytest.mark.parametrize(
    ("framework", "model"), [(name, one) for name, (_, own) in CASES.items() for one in own]
)
def test_a_framework_counts_as_its_own_formula(framework, model):
    formula, _ = CASES[framework]
    assert sc.flops_per_token(model, S, framework).total == int(formula(MODELS[model], S))


def test_torchtitan_charges_the_delta_rule_18_per_element_of_a_state():
    with_states = sc.flops_per_token("qwen3-next-80b-a3b", S, "torchtitan")
    (state,) = (term.flop for term in with_states.terms if term.name == "states")
    assert state.xreplace(dict(with_states.numbers)) == 36 * 18 * 32 * 128 * 128


REFUSED = {
    "mamba-2.8b": ("torchtitan", "megatron-lm", "verl", "nemo", "maxtext", "olmo"),
    "mamba2-2.7b": ("torchtitan", "torchtitan-2025", "verl", "nemo", "maxtext", "olmo"),
    "nemotron-3-nano": ("nemo",),
    "qwen3-next-80b-a3b": ("verl", "nemo", "torchtitan-2025"),
}


@pytest.mark.parametrize(
    ("model", "framework"), [(model, name) for model, own in REFUSED.items() for name in own]
)
def test_what_a_framework_has_no_formula_for_is_refused(model, framework):
    with pytest.raises(InputError, match="formula"):
        sc.flops_per_token(model, S, framework)


def vision(text, lengths):
    """The part of verl's integers that is no text: 27 layers of a vision encoder, and a merger."""
    wide = 1152 * 4
    own = 1152 * 3 * 2 * 16 * 16 + 27 * (1152 * 4304 * 2 + 1152 * 4 * 1152)
    merger = (text + wide) * wide
    squares = sum(one * one for one in lengths)
    return 6 * own * sum(lengths) + 6 * merger * sum(lengths) + 12 * squares * 72 * 16 * 27


QWEN35 = {
    "vocab_size": 248320,
    "num_attention_heads": 16,
    "head_dim": 256,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
}
QWEN35_DENSE = {
    **QWEN35,
    "model_type": "qwen3_5_text",
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_hidden_layers": 32,
    "num_key_value_heads": 4,
}
QWEN35_MOE = {
    **QWEN35,
    "model_type": "qwen3_5_moe_text",
    "hidden_size": 2048,
    "num_hidden_layers": 40,
    "num_key_value_heads": 2,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
    "num_experts_per_tok": 8,
    "num_experts": 256,
}


@pytest.mark.parametrize(
    ("config", "printed"),
    [
        (QWEN35_DENSE, (206090394402816, 724521757704192)),
        (QWEN35_MOE, (88082762170368, 321470349705216)),
    ],
)
def test_the_integers_of_verl_for_gated_delta_rules(tmp_path, config, printed):
    place = tmp_path / "config.json"
    place.write_text(json.dumps(config))
    made = sc.flops_per_token(str(place), None, "verl")
    for lengths, expected in zip(([512, 1024, 2048], [4096] * 3), printed, strict=True):
        assert made.batch(lengths) + vision(config["hidden_size"], lengths) == expected
