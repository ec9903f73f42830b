"""Decoder families with symbols: textbook formulas, and presets that agree with configurations."""

import doctest
import inspect
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from sympy import Integer, expand

from symbolic_cost import models
from symbolic_cost.conventions.presets import preset
from symbolic_cost.errors import InputError, UnknownNameError
from symbolic_cost.layers.attention_core import Core
from symbolic_cost.layers.latent import Expansion, Indexing
from symbolic_cost.ledger import Phase
from symbolic_cost.models.bound import bound
from symbolic_cost.models.catalog import CATALOG
from symbolic_cost.models.count import count
from symbolic_cost.models.decoders import dense as decoder_dense
from symbolic_cost.models.decoders import families as decoder_families
from symbolic_cost.models.decoders import hybrids as decoder_hybrids
from symbolic_cost.models.decoders import mixtures as decoder_mixtures
from symbolic_cost.models.decoders.families import DECODERS, symbolic
from symbolic_cost.models.decoders.kinds import DENSE, FULL, Kind
from symbolic_cost.models.decoders.series import Timed
from symbolic_cost.models.published_size import published
from symbolic_cost.models.shape import DECODE, TRAINING, Shape
from symbolic_cost.numeric.binding import bind, value
from symbolic_cost.ops.derive import cost
from symbolic_cost.symbols import (
    E,
    E_t,
    V,
    W,
    b,
    c,
    d_n,
    d_r,
    d_v,
    e,
    f,
    f_m,
    h,
    k,
    l,
    n_layers,
    q,
    r_kv,
)

RULES = preset("torch-flop-counter")
LONGEST_ENTRY = 20
GOLDEN = Path(__file__).parents[1] / "golden" / "torch_truth_decoders.json"
TRUTH = json.loads(GOLDEN.read_text(encoding="utf-8"))


def table(model):
    return cost(model, RULES)


def same(expr, other):
    return expand(expr - other) == 0


def test_forward_of_llama():
    weights = 2 * e * h * q + 2 * e * k * q + 3 * e * f
    forward = 2 * b * l * (n_layers * weights + e * V) + 4 * b * l**2 * h * q * n_layers
    made = table(models.llama())
    assert same(made.total("flop", phase=Phase.FORWARD), forward)
    assert same(made.total("flop"), 3 * forward)


def test_decode_and_cache_of_llama():
    weights = 2 * e * h * q + 2 * e * k * q + 3 * e * f
    step = 2 * b * (n_layers * weights + e * V) + 4 * b * h * q * (c + 1) * n_layers
    assert same(table(models.llama(DECODE)).total("flop", phase=Phase.FORWARD), step)
    assert same(table(models.llama()).total("cached"), 2 * b * l * k * q * n_layers)


def test_parameters_of_mixtral():
    attention = 2 * e * h * q + 2 * e * k * q + 2 * e
    experts = 3 * E * e * f_m + e * E
    total = 2 * V * e + n_layers * (attention + experts) + e
    assert same(table(models.mixtral()).total("parameter"), total)


def test_experts_cost_what_is_chosen():
    made = table(models.mixtral()).select(path="block.mlp.experts")
    assert same(made.total("flop", phase=Phase.FORWARD), 6 * b * l * E_t * e * f_m * n_layers)


def test_a_latent_is_what_is_cached_and_expanded_again():
    assert same(table(models.deepseek_v2()).total("cached"), b * l * (r_kv + d_r) * n_layers)
    step = table(models.deepseek_v2(DECODE)).total("flop", phase=Phase.FORWARD)
    expansion = 2 * b * r_kv * h * (d_n + d_v) * n_layers
    scores = 2 * b * h * (d_n + d_r + d_v) * n_layers
    assert same(step.diff(c), expansion + scores)


def test_attention_to_latents_expands_nothing():
    traits = DECODERS["deepseek_v3"].attended(expansion=Expansion.NEVER)
    absorbed, expanded = (table(symbolic("deepseek_v3", DECODE, decoder=t)) for t in (traits, None))
    for quantity in ("parameter", "cached"):
        assert same(absorbed.total(quantity), expanded.total(quantity))
    step = absorbed.total("flop", phase=Phase.FORWARD)
    assert same(step.diff(c), 2 * b * h * (2 * r_kv + d_r) * n_layers)
    config = next(entry for entry in TRUTH if entry["id"] == "deepseek-v3")["config"]
    served = count({**config, "attn_implementation": "absorbed"}, 1, 4096)
    assert served["params"] == 671026404352
    assert served["flops_decode"] * 50 < count(config, 1, 4096)["flops_decode"]


def test_a_sliding_layer_keeps_the_window_less_one():
    cached = table(models.mistral()).total("cached")
    numbers = {b: 1, k: 1, q: 1, n_layers: 1, W: 8}
    assert [cached.xreplace({**numbers, l: length}) for length in (4, 7, 8, 100)] == [8, 14, 14, 14]


OPEN = [
    name
    for name, family in DECODERS.items()
    if not (family.mixers or family.reads.kinds or isinstance(family, Timed))
]
"""Families whose layers follow a rule, so that their number may stay open."""


INDEXED = [
    name for name in OPEN if getattr(DECODERS[name].attention, "indexed", None) is Indexing.OWN
]
"""Families of which a part learns nothing: it chooses what is attended to."""


@pytest.mark.parametrize("name", INDEXED)
def test_an_indexer_has_no_backward(name):
    made = table(symbolic(name)).select(path="dense.block.attention")
    assert made.select(path="dense.block.attention.index_scores").total("flop") != 0
    phases = made.select(path="dense.block.attention.index_scores").select("flop")
    assert {row.phase for row in phases} == {Phase.FORWARD}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if place % 2 else ())
        for place, name in enumerate(sorted(set(OPEN) - set(INDEXED)))
    ],
)
def test_training_is_three_times_forward(name):
    made = table(symbolic(name))
    assert same(made.total("flop"), 3 * made.total("flop", phase=Phase.FORWARD))


@pytest.mark.parametrize("name", sorted(DECODERS.keys() - set(OPEN)))
def test_which_layers_a_hybrid_has_is_not_guessed(name):
    with pytest.raises(InputError, match=r"only a configuration says (which layer|the sizes)"):
        symbolic(name)


def test_every_entry_is_short():
    for module in (decoder_families, decoder_dense, decoder_hybrids, decoder_mixtures):
        lines = inspect.getsource(module).splitlines()
        entry = re.compile(r' {4}("[\w.-]+": |\*\*dict\.fromkeys\()')
        starts = [place for place, line in enumerate(lines) if entry.match(line)]
        ends = [*starts[1:], lines.index("}", starts[0])]
        assert max(b - a for a, b in zip(starts, ends, strict=True)) < LONGEST_ENTRY


@pytest.mark.parametrize("size", published("decoders"), ids=lambda size: size.name)
def test_presets_bind_every_symbol(size):
    total = cost(CATALOG[size.name].model(), RULES).total("flop")
    assert value(bind(total, size.bindings())) > 0


def test_presets_agree_with_configurations():
    truth = {entry["id"]: entry for entry in TRUTH}
    common = [size for size in published("decoders") if size.name in truth]
    assert len(common) >= 9
    for size in common:
        parameters = cost(CATALOG[size.name].model(), RULES).total("parameter")
        assert value(bind(parameters, size.bindings())) == truth[size.name]["params"]


def test_refuses_an_unknown_family():
    with pytest.raises(UnknownNameError, match="unknown decoder family 'lama': did you mean"):
        symbolic("lama")
    with pytest.raises(AttributeError, match="lama"):
        _ = models.lama


def pairs_by_hand(queries, cached, window):
    """Pairs of every query with the keys that it sees: its own, earlier ones, no more than fit."""
    return sum(min(cached + query + 1, window) for query in range(queries))


@pytest.mark.parametrize(
    ("queries", "cached"), [(1, 0), (5, 0), (8, 0), (20, 0), (1, 3), (1, 7), (1, 50), (4, 6)]
)
def test_a_causal_mask_and_a_window_keep_pairs(queries, cached):
    shape = Shape(Integer(1), Integer(queries), Integer(cached))
    sizes = {"n_layers": 1, "e": 8, "f": 8, "h": 2, "k": 1, "q": 4, "V": 8, "W": 8}
    rules = preset("model-flop-causal")
    for name, window in (("mistral", 8), ("llama", 10**9)):
        made = cost(bound(symbolic(name, shape), **sizes), rules).select(
            path="block.attention.core"
        )
        per_pair = 2 * 2 * 2 * 4  # two products, two heads, width 4
        expected = per_pair * pairs_by_hand(queries, cached, window)
        assert made.total("flop", phase=Phase.FORWARD) == expected


def test_fused_attention_computes_again_what_counters_do_not_count():
    family = DECODERS["llama"]
    fused = family.attended(core=replace(family.attention.core, kernel=Core.FLASH))
    layers = Kind(FULL, DENSE, n_layers)
    model = fused.declare("llama", (layers,), TRAINING)
    counted, done = (cost(model, preset(name)) for name in ("torch-flop-counter", "standard"))
    assert same(counted.total("flop"), 3 * counted.total("flop", phase=Phase.FORWARD))
    assert done.total("flop", phase=Phase.RECOMPUTE) != 0


def test_a_further_token_is_predicted_by_one_more_block_and_the_same_head():
    config = next(entry for entry in TRUTH if entry["id"] == "deepseek-v3")["config"]
    ends = ("DeepseekV3ForCausalLM", "DeepseekV3ForCausalLMNextN")
    main, both = (
        table(bound(models.from_config({**config, "architectures": [end]}))) for end in ends
    )
    block = main.select(path="experts.block").once().total("parameter")
    named = table(bound(models.model("deepseek-v3", 1)))
    assert named.total("parameter") == both.total("parameter")
    width = 7168
    more = both.total("parameter") - main.total("parameter")
    assert more == block + 2 * width**2 + 3 * width
    assert same(both.total("flop"), 3 * both.total("flop", phase=Phase.FORWARD))


def test_further_tokens_of_single_layers_are_an_attention_and_experts_each():
    """The module of Nemotron 3 is "*E": its last layer may be a state space."""
    model = models.model("nemotron-3-super", 2)
    parts = [part.path for part in model.parts if part.path.startswith("prediction")]
    each = ("join", "full.block", "experts.block", "head")
    assert parts == [f"{scope}.{name}" for scope in ("prediction", "prediction_2") for name in each]
    with pytest.raises(InputError, match=r"llama-3-8b: only models of .* predict further tokens"):
        models.model("llama-3-8b", 1)


def test_depth_and_experts_cost_nothing_to_declare():
    config = {
        "model_type": "qwen3_moe",
        "hidden_size": 4096,
        "moe_intermediate_size": 1536,
        "num_attention_heads": 64,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "num_hidden_layers": 94,
        "num_key_value_heads": 4,
        "vocab_size": 151936,
    }
    small = {**config, "num_hidden_layers": 1, "num_experts": 8}
    assert len(table(models.from_config(config))) == len(table(models.from_config(small)))


def test_the_example_of_a_new_family_holds():
    assert doctest.testmod(decoder_families) == (0, 3)
