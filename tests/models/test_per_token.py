"""FLOP per token under the conventions of frameworks, against the numbers that these print."""

import pytest
from sympy import Integer

import symbolic_cost as sc
from symbolic_cost import symbols
from symbolic_cost.conventions.per_token import TOKEN_PRESETS, TokenConventions
from symbolic_cost.conventions.token_questions import Causal, Weights, Window
from symbolic_cost.models.token_flop.per_token import flops_per_token

# torchtitan, pull request 4300: exact values before and after windows were counted.
TORCHTITAN = [
    ("qwen3-30b-a3b", 8192, "torchtitan", 37_578_559_488),
    ("gpt-oss-120b", 4096, "torchtitan-2025", 38_044_854_144),
    ("gpt-oss-120b", 4096, "torchtitan", 34_534_221_696),
    ("gpt-oss-20b", 4096, "torchtitan-2025", 26_481_681_792),
    ("gpt-oss-20b", 4096, "torchtitan", 24_141_260_160),
    # every expert counted as active, and the table: what another path of torchtitan reported
    ("qwen3-30b-a3b", 8192, "nanogpt", 192_856_412_160),
]


@pytest.mark.parametrize(("model", "seq", "conventions", "printed"), TORCHTITAN)
def test_torchtitan(model, seq, conventions, printed):
    assert flops_per_token(model, seq, conventions).total == printed


def config(model_type, *sizes, **more):
    layers, e, f, heads, kv, vocabulary = sizes
    own = {
        "num_hidden_layers": layers,
        "hidden_size": e,
        "intermediate_size": f,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "vocab_size": vocabulary,
    }
    return {"model_type": model_type, **own, **more}


_QWEN3_MOE = {"moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8}
_LATENT = {
    "moe_intermediate_size": 2048,
    "first_k_dense_replace": 3,
    "n_routed_experts": 256,
    "num_experts_per_tok": 8,
    "n_shared_experts": 1,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "qk_nope_head_dim": 128,
    "q_lora_rank": 1536,
}
_GPT_OSS = {
    "num_local_experts": 32,
    "num_experts_per_tok": 4,
    "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"] * 12,
}
_GEMMA = {"head_dim": 256, "sliding_window": 1024, "sliding_window_pattern": 6}

# verl, tests/utils/test_flops_counter.py at 7de1304f: FLOP of two ragged batches.
SHORT, LONG = [512, 1024, 2048], [4096, 4096, 4096]
VERL = [
    (config("llama", 32, 4096, 11008, 32, 32, 32000), 149226491215872, 536372695793664),
    (config("qwen2", 28, 3584, 18944, 28, 4, 152064), 167073690943488, 591764889010176),
    (
        config("qwen3", 36, 4096, 12288, 32, 8, 151936, head_dim=128),
        180997438046208,
        648394032807936,
    ),
    (
        config("qwen3_moe", 48, 2048, 6144, 32, 4, 151936, head_dim=128, **_QWEN3_MOE),
        78593069678592,
        306570470621184,
    ),
    (
        config("deepseek_v3", 61, 7168, 18432, 128, 128, 129280, **_LATENT),
        848766538088448,
        3145850406567936,
    ),
    (
        config("mistral", 40, 5120, 32768, 32, 8, 131072, head_dim=128, sliding_window=None),
        512303699066880,
        1787393589903360,
    ),
    (
        config("gemma3_text", 48, 3840, 15360, 16, 8, 262208, **_GEMMA),
        279084659638272,
        963929979224064,
    ),
    (
        config("apertus", 32, 4096, 21504, 32, 32, 131072, hidden_act="xielu"),
        194825353691136,
        692711652851712,
    ),
    (
        config("gpt_oss", 24, 2880, 2880, 64, 8, 201088, head_dim=64, **_GPT_OSS),
        91780464771072,
        323953008574464,
    ),
]


@pytest.mark.parametrize(("made", "short", "long"), VERL, ids=lambda one: str(one)[:30])
def test_verl(made, short, long):
    count = flops_per_token(sc.from_config(made), None, "verl")
    assert (count.batch(SHORT), count.batch(LONG)) == (short, long)


PRODUCTS = TokenConventions(
    "products",
    "what the derivation calls model FLOP",
    "test",
    frozenset({Weights.HEAD, Weights.PRODUCTS, Weights.ROUTER, Weights.EXPERTS}),
)


@pytest.mark.parametrize(
    "name", ["llama-3-8b", "gpt3-175b", "qwen3-30b-a3b", "deepseek-v3", "gemma-2-9b", "t5-small"]
)
def test_products_are_those_of_the_derivation(name):
    """2 FLOP per multiply-accumulate of every product, derived op by op: another way to count."""
    model = sc.model(name)
    numbers = {"b": 2, **model.bindings}
    table = sc.bind(sc.cost(model, "model-flop"), numbers)
    tokens = sc.bind(model.work[1], numbers)
    count = flops_per_token(model, None, PRODUCTS, numbers)
    assert count.total * tokens == table.total("flop")


def test_ragged_batches_are_sums_of_lengths_and_squares():
    count = flops_per_token("llama-3-8b", None, "palm")
    weights, pairs = count.at(1) * 2 - count.at(2), count.at(2) - count.at(1)
    lengths = [100, 17, 17, 4000]
    squares = sum(one**2 for one in lengths)
    assert count.batch(lengths) == weights * sum(lengths) + pairs * squares
    assert count.batch([64]) == 64 * count.at(64)


def test_windows_as_min_and_as_exact_pairs():
    def pairs(window, causal="full"):
        rules = {"window": Window(window), "causal": Causal(causal), "counted": frozenset()}
        return flops_per_token("gpt-oss-20b", 1000, TokenConventions("w", "w", "w", **rules)).total

    per_layer = 6 * 64 * (64 + 64)
    brute = [min(i, 128) for i in range(1, 1001)]
    assert pairs("ignored") == per_layer * 24 * 1000
    assert pairs("min") == per_layer * 12 * (1000 + 128)
    assert pairs("ignored", "half") == per_layer * 12 * 1000
    full = Integer(sum(range(1, 1001)))
    assert pairs("exact", "exact") == per_layer * 12 * (full + sum(brute)) / 1000


def test_tied_tables():
    untied, tied = (flops_per_token(name, 1024, "6nd").formula for name in ("llama", "gpt"))
    V, e = symbols.V, symbols.e
    assert untied.coeff(V) == 12 * e
    assert tied.coeff(V) == 6 * e
    assert flops_per_token("gpt", 1024, "verl").formula.coeff(V) == 12 * e
    assert flops_per_token("gpt", 1024, "transformers").formula.coeff(V) == 0
    assert flops_per_token("gpt", 1024, "torchtitan").formula.coeff(V) == 6 * e


def test_published_formulas():
    """72 n d^2 + 12 n d l, 6 N + 12 L H Q T and Kaplan's 6 N + 6 n l d where f = 4 e."""
    e, n, l = symbols.e, symbols.n_layers, symbols.l
    gpt = sc.GPT(f=4 * e).model()
    count = {name: flops_per_token(gpt, None, name).formula.expand() for name in TOKEN_PRESETS}
    assert sc.equal(count["deepseek"], 72 * n * e**2 + 12 * n * e * l)
    assert sc.equal(count["kaplan"], 72 * n * e**2 + 6 * n * e * l)
    params = sc.cost(gpt).total("parameter")
    positions = sc.cost(gpt).select("parameter", path="embedding.position").total()
    assert sc.equal(count["nanogpt"], 6 * (params - positions) + 12 * n * e * l)
    assert sc.equal(count["palm"], 6 * params + 12 * n * e * l)
    assert sc.equal(count["6nd"], 6 * params)
    logits = 6 * symbols.V * e
    assert sc.equal(count["megatron-lm"], 72 * n * e**2 + 6 * n * e * l + logits)
    softmax = 9 * n * symbols.h * l
    assert sc.equal(count["chinchilla"], 72 * n * e**2 + 12 * n * e * l + softmax + 2 * logits)


OWN = """
meaning = "ours"
source = "our trainer"
counted = ["products", "head"]
causal = "half"
"""


def test_a_file_of_answers(tmp_path):
    file = tmp_path / "ours.toml"
    file.write_text(OWN)
    own = flops_per_token("llama-3-8b", 4096, str(file))
    assert own.conventions.name == "ours"
    assert own.total == flops_per_token("llama-3-8b", 4096, "megatron-lm").total


def test_every_problem_of_a_file_is_told(tmp_path):
    file = tmp_path / "bad.toml"
    file.write_text('source = "x"\ncounted = ["head", "heads"]\ncausal = "third"\nwindows = 1\n')
    with pytest.raises(sc.errors.InputError) as refused:
        flops_per_token("llama-3-8b", 4096, str(file))
    told = str(refused.value)
    for part in ("meaning is missing", "'heads'", "causal = 'third'", "'windows'"):
        assert part in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("resnet-50",), "works off samples: .*formula flops resnet-50"),
        (("llama-3-8b", 0), "seq = 0"),
        (("llama-3-8b", 64, "torchtita"), "torchtitan"),
        (("llama-3-8b", 64, "no.toml"), "cannot be read"),
        (("mamba-2.8b", 64, "torchtitan"), "has formulas for delta states"),
        (("llama-3-8b", 64, "palm", {"m1": 2}), "unknown size of the model 'm1'"),
    ],
)
def test_refusals(arguments, told):
    with pytest.raises(sc.errors.InputError, match=told):
        flops_per_token(*arguments)


@pytest.mark.parametrize("lengths", [[], [0], [1.5], [True], ["8"]])
def test_lengths_are_positive_integers(lengths):
    with pytest.raises(sc.errors.InputError, match="positive integers"):
        flops_per_token("llama-3-8b").batch(lengths)


def test_every_preset_has_a_source():
    assert all(one.source and one.meaning for one in TOKEN_PRESETS.values())


def test_states_that_are_not_counted_are_named():
    terms = {one.name: one for one in flops_per_token("mamba-2.8b", 64, "6nd").terms}
    term = terms["states"]
    assert term.answer == "not counted: products of states"
    assert any(path.endswith("scan") for path in term.paths)
