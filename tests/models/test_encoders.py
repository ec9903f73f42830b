"""BERT, T5, ViT, Mamba and Mamba-2 against PyTorch's counts of the same configurations."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from sympy import Integer, expand

import symbolic_cost as sc
from symbolic_cost.conventions.answers import CAUSAL
from symbolic_cost.conventions.presets import PRESETS
from symbolic_cost.errors import InputError
from symbolic_cost.models.bound import bound
from symbolic_cost.models.catalog import CATALOG
from symbolic_cost.models.config import from_config
from symbolic_cost.models.count import count
from symbolic_cost.models.encoders.encoder import TRUNK
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.vision.transformer import VIT, Sizes
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.placement import Placement
from symbolic_cost.symbols import symbol

TRUTH = json.loads(
    (Path(__file__).parents[1] / "golden" / "torch_truth_encoders.json").read_text("utf-8")
)
MODELS = {entry["id"]: entry for entry in TRUTH["models"]}
TORCH = PRESETS["torch-flop-counter"]


def configuration(entry):
    return entry["config"] | {"architectures": [entry["cls"]]}


def table(entry, case):
    shape = Shape(Integer(case["b"]), Integer(case["l"]))
    return cost(bound(from_config(configuration(entry), shape)), TORCH)


def cases(kind):
    return [
        pytest.param(entry, case, id=f"{entry['id']} b={case['b']} l={case['l']}")
        for entry in MODELS.values()
        for case in ([entry[kind]] if isinstance(entry.get(kind), dict) else entry.get(kind, []))
    ]


@pytest.mark.parametrize("name", MODELS)
def test_parameters(name):
    entry = MODELS[name]
    assert table(entry, {"b": 1, "l": 16}).total("parameter") == entry["params"]


@pytest.mark.parametrize(("entry", "case"), cases("flops_fwd"))
def test_forward_flop(entry, case):
    assert table(entry, case).total("flop", phase="forward") == case["total"]


@pytest.mark.parametrize(("entry", "case"), cases("flops_train"))
def test_training_flop(entry, case):
    assert table(entry, case).total("flop") == case["total"]


@pytest.mark.parametrize(("entry", "case"), cases("cache"))
def test_cached_elements(entry, case):
    assert table(entry, case).total("cached") == case["numel"]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("bert", 109_482_240), ("bert-mlm", 109_514_298), ("bert-pretraining", 110_106_428)],
)
def test_heads_of_bert_base(name, parameters):
    sizes = {"e": 768, "f": 3072, "h": 12, "V": 30522, "P": 512, "T": 2, "n_layers": 12}
    rows = cost(bound(CATALOG[name].model(), **sizes), TORCH)
    assert rows.total("parameter") == parameters


def test_vit_with_a_pooler_instead_of_classes():
    numbers = {"N_p": 14, "s_p": 16, "n_ch": 3, "e": 768, "f": 3072, "h": 12, "n_layers": 12}
    model = VIT.declare("vit", Shape(), Sizes(), TRUNK)
    assert cost(bound(model, **numbers), TORCH).total("parameter") == 86_389_248


def test_gated_t5_with_an_untied_head():
    sizes = {"e": 512, "f": 1024, "h": 6, "q": 64, "V": 32128, "n_layers": 8, "n_dec": 8}
    rows = cost(bound(CATALOG["t5-1.1"].model(), **sizes, n_rel=32), TORCH)
    assert rows.total("parameter") == 76_961_152  # published size of flan-t5-small


def test_a_causal_mask_halves_only_what_a_decoder_attends_to_itself():
    causal = replace(TORCH, attention_pairs=CAUSAL)
    model = CATALOG["t5"].model()
    less = expand(cost(model, TORCH).total("flop") - cost(model, causal).total("flop"))
    b, h, q, l_t, n_dec = (symbol(name) for name in ("b", "h", "q", "l_t", "n_dec"))
    kept = l_t * (l_t + 1) / 2
    assert less == expand(n_dec * 3 * 2 * 2 * b * h * q * (l_t**2 - kept))


def test_conventions_without_attention_products_leave_out_those_of_an_encoder():
    rows = cost(CATALOG["bert-mlm"].model(), PRESETS["6nd"])
    assert rows.select(path="block.attention.core").total("flop") == 0


@pytest.mark.parametrize("family", ["bert", "t5", "vit", "mamba", "mamba2"])
def test_families_leave_sizes_as_symbols(family):
    formula = cost(CATALOG[family].model(), TORCH).total("flop")
    assert {"b", "e", "n_layers"} <= {symbol.name for symbol in formula.free_symbols}


def test_decode_step_of_a_state_space_model_does_not_depend_on_what_came_before():
    config = configuration(MODELS["mamba2-130m"])
    steps = [
        cost(bound(from_config(config, Shape(Integer(1), Integer(1), Integer(cached)))), TORCH)
        for cached in (10, 1000)
    ]
    assert steps[0].total("flop", phase="forward") == steps[1].total("flop", phase="forward")


@pytest.mark.parametrize(
    ("name", "change", "text"),
    [
        ("bert-base-uncased (BertModel)", {"num_attention_heads": 7}, "7 heads do not divide"),
        ("vit-b-16-224", {"patch_size": 225}, r"patches of \[225, 225\] do not fit an image"),
        ("mamba2-130m", {"head_dim": 60}, "24 heads of width 60 do not make"),
        ("t5-small", {"d_kv": None}, "null, but t5 needs it"),
    ],
)
def test_contradictory_configurations_are_refused(name, change, text):
    with pytest.raises(InputError, match=text):
        from_config(configuration(MODELS[name]) | change)


def test_decode_step_of_t5_attends_to_both_caches():
    b, c, layers, e, f, V = 2, 24, 6, 512, 2048, 32128
    inner = 8 * 64
    config = configuration(MODELS["t5-small"])
    step = cost(bound(from_config(config, Shape(Integer(b), Integer(1), Integer(c)))), TORCH)
    weights = 4 * e * inner + 2 * e * inner + 2 * e * f  # cross keys and values are in the cache
    attention = 2 * inner * (c // 2 + 1) + 2 * inner * c
    by_hand = 2 * b * (layers * (weights + attention) + e * V)
    assert step.total("flop", phase="forward") == by_hand
    prefill = cost(bound(from_config(config, Shape(Integer(b), Integer(c)))), TORCH)
    assert prefill.total("cached") == layers * 2 * b * inner * (c + c // 2)
    assert step.total("cached") == prefill.total("cached") + layers * 2 * b * inner


def test_half_of_a_source_is_no_target_of_no_tokens(tmp_path):
    config = configuration(MODELS["t5-small"])
    assert "a target of 4 tokens, half of 8" in count(config, 1, 8)["note"]
    with pytest.raises(InputError, match="2 are the least"):
        count(config, 1, 1)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"floor\(l/2\) = 0: at least one token is accepted"):
        sc.job(str(path), "", {"b": 1, "l": 1})


def test_an_encoder_generates_nothing():
    counts = count(configuration(MODELS["bert-base-uncased (BertModel)"]), batch=1, seq=128)
    assert (counts["flops_decode"], counts["kv_cache_elements"]) == (None, 0)


PUBLIC = json.loads(
    (Path(__file__).parents[1] / "golden" / "public_encoder_configs.json").read_text("utf-8")
)


@pytest.mark.parametrize("entry", PUBLIC, ids=lambda entry: entry["name"])
def test_configurations_as_published_are_read(entry):
    assert count(entry["config"])["params"] == entry["params"]


@pytest.mark.parametrize(
    ("name", "change", "text"),
    [
        ("mamba-130m", {"rms_norm": False}, "only root-mean-square norms are declared"),
        ("bert-base-uncased", {"position_embedding_type": "relative_key"}, "only .absolute. is"),
        ("bert-base-uncased", {"num_experts": 4}, "may change the cost"),
        ("resnet-50 with 3 labels", {"depths": [3, 4]}, "2 depths do not go with 4 hidden_sizes"),
        ("resnet-50 with 3 labels", {"hidden_sizes": [1, "2"]}, "positive integers are"),
        ("t5-small", {"feed_forward_proj": "gated-gelo"}, "did you mean gated-gelu"),
        ("vit-base with 12 labels", {"hidden_size": -1}, "it must be a positive integer"),
    ],
)
def test_what_is_not_declared_is_refused(name, change, text):
    (config,) = (entry["config"] for entry in PUBLIC if entry["name"] == name)
    with pytest.raises(InputError, match=text):
        from_config(config | change)


def test_data_parallel_ranks_of_t5_exchange_nothing_within_a_microbatch():
    rows = cost(CATALOG["t5"].model(), PRESETS["standard"], Placement({"dp": 2}, {"b": ("dp",)}))
    moved = rows.select("communication")
    assert {row.per_step for row in moved} == {True}
    assert {row.tensor for row in moved} >= {"dbias.table"}


@pytest.mark.parametrize(
    ("family", "by_hand"),
    [
        ("t5", "softmax of both lengths and of their product, and the perceptrons' activations"),
        ("vit", "the bias of patches, norms and softmax"),
    ],
)
def test_what_the_profiler_counts_besides_products(family, by_hand):
    b, l, l_t, e, f, h, n, n_dec, side = (
        symbol(name) for name in ("b", "l", "l_t", "e", "f", "h", "n_layers", "n_dec", "N_p")
    )
    length = side**2 + 1
    besides = {
        "t5": b * h * (n * l**2 + n_dec * (l_t**2 + l_t * l)) + b * f * (n * l + n_dec * l_t),
        "vit": side**2 * b * e + 5 * (2 * n + 1) * b * length * e + n * b * h * length**2,
    }[family]
    flop, macs = (
        cost(CATALOG[family].model(), PRESETS[name]).total("flop", phase="forward")
        for name in ("flops-profiler", "flops-profiler-macs")
    )
    assert expand(flop - 2 * macs - besides) == 0, by_hand


def test_sparse_attention_is_full_as_far_as_its_blocks_reach():
    config = {
        "model_type": "bigbird_pegasus",
        "d_model": 96,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 6,
        "decoder_attention_heads": 6,
        "encoder_ffn_dim": 176,
        "decoder_ffn_dim": 176,
        "max_position_embeddings": 512,
        "vocab_size": 211,
    }
    full = {**config, "attention_type": "original_full"}
    near, far = ([count(one, 1, n)["flops_fwd"] for one in (config, full)] for n in (64, 1024))
    assert near[0] == near[1]
    assert far[0] < far[1]
