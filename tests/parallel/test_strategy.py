"""Strategies as text, their refusals, and the tables they make."""

import time

import pytest
from sympy import Integer, expand

from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.errors import InputError, PlacementError
from symbolic_cost.ledger import CollectiveKind, Quantity
from symbolic_cost.models.gpt import GPT
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.graph import Model, Part
from symbolic_cost.parallel.communication import (
    communication_rows,
    sent_by_cluster,
    sent_by_rank,
)
from symbolic_cost.parallel.memory import memory_table, moments, peak
from symbolic_cost.parallel.stages import Stage
from symbolic_cost.parallel.strategy import Strategy, parse_strategy
from symbolic_cost.parallel.table import strategy_table
from symbolic_cost.symbols import M, b, cp, dp, e, l, m1, pp, symbol

MODEL = GPT().model()


def test_reads_and_prints():
    text = "zero=1,dp=16,pp=4,sp,tp=8,cp=2"
    assert str(parse_strategy(text)) == "tp=8,sp,cp=2,dp=16,pp=4,zero=1"
    assert parse_strategy("tp,sp,cp,dp,pp").mesh == {"tp": m1, "cp": cp, "dp": dp, "pp": pp}
    assert parse_strategy("").mesh == {}
    assert parse_strategy(" tp = 2 , dp ").degree("tp") == 2
    assert parse_strategy("tp=2,dp=3,pp=5").ranks == 30
    assert Strategy({"tp": (2,)}) == parse_strategy("tp=2")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tq=3", "unknown strategy 'tq': did you mean tp?"),
        ("tp=0", "tp=0: 0 is not a positive integer"),
        ("tp=-1", "'-1' is not a positive integer"),
        ("tp=1.5", "'1.5' is not a positive integer"),
        ("tp=1e3", "'1e3' is not a positive integer"),
        ("tp=", "'' is not a positive integer"),
        ("tp=99999999999999999999", "is not a positive integer up to 16777216"),
        ("tp=" + "9" * 5000, "is not a positive integer up to 16777216"),
        ("tp=2,tp=2", "'tp' is given twice"),
        ("tp=2x2", "2 degrees are given, tp takes 1"),
        ("sp", "sp needs tp"),
        ("sp=2,tp", "1 degrees are given, sp takes 0"),
        ("zero=1", "zero=1 needs one of"),
        ("dp,zero", "zero takes one number"),
        ("dp,zero=4", "accepted levels are 0, 1, 2 and 3"),
        ("__import__('os')", "unknown strategy"),
    ],
)
def test_refuses(text, problem):
    with pytest.raises(InputError) as caught:
        parse_strategy(text)
    assert problem in str(caught.value)


def test_lists_all_problems():
    with pytest.raises(InputError) as caught:
        parse_strategy("tq=2,sp,dp=0,zero=7")
    assert len(caught.value.problems) == 4


def test_places_only_axes_that_the_model_has():
    ops = (einsum("one", "x[b e], *w[e f] -> y[b f]"),)
    small = Model("small", (Part("all", ops),), {"b": b, "e": e, "f": symbol("f")})
    assert parse_strategy("tp,dp").placement(small).axes == {"f": ("tp",), "b": ("dp",)}
    with pytest.raises(PlacementError, match="cp: model 'small' has none of its axes"):
        parse_strategy("cp").placement(small)
    with pytest.raises(PlacementError, match="repeats no part"):
        strategy_table(small, parse_strategy("pp"), STANDARD)


def test_stages_add_up_to_the_model():
    whole = strategy_table(MODEL, parse_strategy(""), STANDARD)
    stages = parse_strategy("pp=4")
    first, middle, last = (strategy_table(MODEL, stages, STANDARD, stage=stage) for stage in Stage)
    flop = [table.total(Quantity.FLOP) for table in (first, middle, middle, last)]
    assert expand(sum(flop) - whole.total(Quantity.FLOP)) == 0
    (split,) = (split for split in first.splits if split.axis == "blocks")
    assert split.degrees == (("pp", Integer(4)),)


@pytest.mark.parametrize(("stage", "sends"), [(Stage.FIRST, 1), (Stage.MIDDLE, 2), (Stage.LAST, 1)])
def test_stages_send_to_their_neighbours(stage, sends):
    table = strategy_table(MODEL, parse_strategy("tp,sp,pp"), STANDARD, stage=stage)
    moved = table.select(
        where=lambda row: (
            row.collective is not None and row.collective.kind is CollectiveKind.SEND_RECEIVE
        )
    )
    assert [row.collective.message for row in moved] == [2 * b * l * e / m1] * sends
    ends = [row for row in table if row.kind == "pipeline" and row.per_step]
    assert len(ends) == (stage is not Stage.MIDDLE)  # the tied embedding


def test_volumes_of_zero():
    """rajbhandari-2019, section 7: 2, 2, 2 and 3 times the parameters."""
    untied = GPT(dropout=False).model()
    block = untied.parts[1]
    model = Model("blocks", (block,), untied.sizes)
    for zero, times in ((0, 2), (1, 2), (2, 2), (3, 3)):
        text = f"dp,zero={zero}" if zero else "dp"
        table = strategy_table(model, parse_strategy(text), STANDARD)
        weights = strategy_table(model, parse_strategy(""), STANDARD).total(Quantity.WEIGHT)
        numbers = {dp: 2**20, M: 1}
        sent = sent_by_rank(table)["dp"].xreplace(numbers)
        biases_and_norms = table.total(Quantity.PARAMETER)  # read in forward alone
        ratio = (sent / weights).subs({e: 10**6, symbol("f"): 4 * 10**6})
        assert abs(ratio - times) < Integer(1) / 1000, (zero, biases_and_norms)


def test_cluster_is_the_sum_of_all_ranks():
    strategy = parse_strategy("tp=2,dp=3,pp=4")
    sent = sent_by_cluster(MODEL, strategy, STANDARD, microbatches=Integer(8))
    passed = 2 * b * l * e / 3  # bytes of a boundary on one rank
    tied = 2 * symbol("V") * e / 2  # bytes of the table's gradient, summed by both ends
    numbers = {symbol("V"): 50, b: 6, e: 12, l: 4}
    expected = 6 * (2 * 3 * 8 * passed + 2 * tied)
    assert sent["pp"].xreplace(numbers) == expected.xreplace(numbers)


def test_rows_count_microbatches():
    table = strategy_table(MODEL, parse_strategy("tp,dp"), STANDARD)
    for entry in communication_rows(table):
        assert (M in entry.calls.free_symbols) == (
            entry.mesh_axis == "tp" and "position" not in entry.tensor
        )


def test_large_model_with_all_tables_is_quick():
    """Five mesh axes, a model of 400 billion parameters: below half a second."""
    sizes = {"e": 16384, "f": 65536, "h": 128, "V": 128256, "l": 8192, "b": 64, "n_layers": 126}
    model = GPT(**sizes).model()
    strategy = parse_strategy("tp=8,sp,cp=2,dp=16,pp=9,zero=1")
    strategy_table(MODEL, strategy, STANDARD)  # warm
    start = time.perf_counter()
    table = strategy_table(model, strategy, STANDARD)
    memory = memory_table(model, strategy, STANDARD)
    moments(memory), peak(memory)
    communication_rows(table)
    sent_by_cluster(model, strategy, STANDARD)
    assert time.perf_counter() - start < 0.5
