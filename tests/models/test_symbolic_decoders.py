"""Decoder families with symbols: textbook formulas, and presets that agree with configurations."""

import inspect
import json
from pathlib import Path

import pytest
from sympy import expand

from symbolic_cost import models
from symbolic_cost.conventions.presets import preset
from symbolic_cost.errors import UnknownNameError
from symbolic_cost.ledger import Phase
from symbolic_cost.models import decoder_families
from symbolic_cost.models.catalog import CATALOG
from symbolic_cost.models.decoder_families import TRAITS
from symbolic_cost.models.decoder_sizes import DECODER_SIZES
from symbolic_cost.models.shape import DECODE
from symbolic_cost.models.symbolic import symbolic
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


def test_a_sliding_layer_keeps_the_window_less_one():
    cached = table(models.mistral()).total("cached")
    numbers = {b: 1, k: 1, q: 1, n_layers: 1, W: 8}
    assert [cached.xreplace({**numbers, l: length}) for length in (4, 7, 8, 100)] == [8, 14, 14, 14]


@pytest.mark.parametrize("name", TRAITS)
def test_training_is_three_times_forward(name):
    made = table(symbolic(name))
    assert same(made.total("flop"), 3 * made.total("flop", phase=Phase.FORWARD))


def test_every_entry_is_short():
    lines = inspect.getsource(decoder_families).splitlines()
    starts = [place for place, line in enumerate(lines) if line.startswith('        "')]
    ends = [*starts[1:], lines.index("    }")]
    assert len(starts) == len(TRAITS)
    longest = max(end - start for start, end in zip(starts, ends, strict=True))
    assert longest < LONGEST_ENTRY


@pytest.mark.parametrize("size", DECODER_SIZES, ids=lambda size: size.name)
def test_presets_bind_every_symbol(size):
    total = cost(CATALOG[size.name].model(), RULES).total("flop")
    assert value(bind(total, size.bindings())) > 0


def test_presets_agree_with_configurations():
    golden = Path(__file__).parents[1] / "golden" / "torch_truth_decoders.json"
    truth = {entry["id"]: entry for entry in json.loads(golden.read_text(encoding="utf-8"))}
    common = [size for size in DECODER_SIZES if size.name in truth]
    assert len(common) >= 9
    for size in common:
        parameters = cost(CATALOG[size.name].model(), RULES).total("parameter")
        assert value(bind(parameters, size.bindings())) == truth[size.name]["params"]


def test_refuses_an_unknown_family():
    with pytest.raises(UnknownNameError, match="unknown decoder family 'lama': did you mean"):
        symbolic("lama")
    with pytest.raises(AttributeError, match="lama"):
        _ = models.lama
