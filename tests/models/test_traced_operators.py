"""Exported modules of a few operators each: counts of PyTorch; what decompositions leave."""

import json
import zipfile
from pathlib import Path

import pytest

import symbolic_cost as sc
from symbolic_cost import symbols
from symbolic_cost.errors import InputError
from symbolic_cost.models.traced.history import SWITCHED, UNTOLD
from symbolic_cost.models.traced.imported import traced

with zipfile.ZipFile(Path(__file__).parents[1] / "golden" / "pt2" / "operators.zip") as _archive:
    MODULES = {n.removesuffix(".pt2"): _archive.read(n) for n in _archive.namelist() if "pt2" in n}
    TRUTH = json.loads(_archive.read("truth.json"))

COUNTED = sc.preset("torch-flop-counter")
UNTOLD_OF = "stops_untold"
"""The one of which PyTorch's counts are less: its file does not say what had no gradient."""


def totals(table, model, size):
    given = {
        "b": size["b"],
        "l": size["l"],
        **model.bindings,
        **dict.fromkeys(("m1", "s1", "cp", "dp"), 2),
    }
    numbers = {symbols.symbol(name): number for name, number in given.items()}
    sums = (
        table.total("parameter"),
        table.total("flop", phase="forward"),
        table.total("flop"),
    )
    return [expr.subs(numbers) for expr in sums]


@pytest.mark.parametrize("name", sorted(TRUTH.keys() - {UNTOLD_OF, "distances"}))
def test_counts_are_those_of_pytorch(name):
    imported = traced(MODULES[name], name)
    assert UNTOLD not in imported.notes
    table = sc.cost(imported.model, COUNTED)
    for size in TRUTH[name]["sizes"]:
        wanted = [TRUTH[name]["params"], size["flops_fwd"], size["flops_train"]]
        assert totals(table, imported.model, size) == wanted


def test_products_that_are_seen_in_backward_alone_are_refused():
    """PyTorch counts no FLOP of these distances forward, and two products backward."""
    size = TRUTH["distances"]["sizes"][0]
    linear = 2 * size["b"] * size["l"] * 32 * 8
    assert size["flops_fwd"] == linear
    assert size["flops_train"] > 2 * linear
    with pytest.raises(InputError, match="compute_mode='donot_use_mm_for_euclid_dist' and p other"):
        traced(MODULES["distances"], "distances")


def test_what_lost_its_history_is_told():
    imported = traced(MODULES[UNTOLD_OF], UNTOLD_OF)
    assert imported.notes[UNTOLD] == 1
    size = TRUTH[UNTOLD_OF]["sizes"][0]
    table = sc.cost(imported.model, COUNTED)
    assert totals(table, imported.model, size)[2] > size["flops_train"]


def test_gradients_that_were_switched_are_taken_for_off_and_told():
    notes = traced(MODULES["stops"], "stops").notes
    assert notes[SWITCHED] == 5  # of one linear layer: views, a transpose, a product, a detach
    assert SWITCHED not in traced(MODULES["decomposed"], "decomposed").notes


@pytest.mark.parametrize("strategy", ["", "tp", "dp,zero=3", "tp,dp,zero=3"])
def test_a_decomposed_block_is_the_block(strategy):
    plain, decomposed = (traced(MODULES[name], name).model for name in ("plain", "decomposed"))
    one, other = (sc.cost(model, COUNTED, strategy) for model in (plain, decomposed))
    size = {"b": 4, "l": 48}
    assert totals(one, plain, size) == totals(other, decomposed, size)
    saved = [
        table.total("saved").subs(model.bindings)
        for table, model in ((one, plain), (other, decomposed))
    ]
    assert saved[0] == saved[1] != 0
    sent = [
        sorted(
            (str(row.phase), str(row.collective.kind), str(row.total.subs(model.bindings)))
            for row in table.select("communication")
        )
        for table, model in ((one, plain), (other, decomposed))
    ]
    assert sent[0] == sent[1]
    assert bool(sent[0]) is bool(strategy)
