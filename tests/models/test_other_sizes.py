"""Published sizes of encoders, state-space and recurrent models, and their totals."""

from collections import Counter

import pytest

from symbolic_cost.conventions.presets import PRESETS
from symbolic_cost.models.catalog import CATALOG, model
from symbolic_cost.models.other_families import OTHER_FAMILIES
from symbolic_cost.models.published_size import published
from symbolic_cost.models.vision.cnn import NETWORKS
from symbolic_cost.numeric.binding import bind
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.placement import Placement
from symbolic_cost.references import REFERENCES

PUBLISHED = {
    "bert-base": 109_482_240,
    "bert-large": 335_141_888,
    "t5-small": 60_506_624,
    "t5-base": 222_903_552,
    "t5-large": 737_668_096,
    "t5-3b": 2_851_598_336,
    "t5-11b": 11_307_321_344,
    "flan-t5-small": 76_961_152,
    "flan-t5-base": 247_577_856,
    "flan-t5-large": 783_150_080,
    "flan-t5-xl": 2_849_757_184,
    "flan-t5-xxl": 11_135_332_352,
    "vit-b-16": 86_567_656,
    "vit-l-16": 304_326_632,
    "vit-h-14": 632_045_800,
    "mamba-130m": 129_135_360,
    "mamba-2.8b": 2_768_345_600,
    "mamba2-130m": 128_989_632,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_totals(name):
    made = model(name)
    rows = bind(cost(made, PRESETS["torch-flop-counter"]), made.bindings)
    assert rows.total("parameter") == PUBLISHED[name]


@pytest.mark.parametrize("size", published("others"), ids=lambda size: size.name)
def test_a_size_binds_every_symbol(size):
    made = model(size.name)
    rows = bind(cost(made, PRESETS["exact"]), made.bindings)
    assert rows.total("flop").is_Integer
    assert CATALOG[size.name].source in REFERENCES


@pytest.mark.parametrize("name", OTHER_FAMILIES)
def test_a_family_has_symbols_and_a_reference(name):
    assert model(name).bindings == {}
    assert CATALOG[name].source in REFERENCES
    assert cost(model(name), PRESETS["exact"]).total("parameter").free_symbols


@pytest.mark.parametrize("name", [*OTHER_FAMILIES, *NETWORKS])
def test_data_parallel_ranks_sum_every_gradient_once(name):
    rows = cost(model(name), PRESETS["standard"], Placement({"dp": 2}, {"b": ("dp",)}))
    weights = Counter(f"d{row.tensor}" for row in rows.select("parameter"))
    moved = rows.select("communication")
    assert Counter(row.tensor for row in moved) == weights
    assert all(row.per_step for row in moved)
