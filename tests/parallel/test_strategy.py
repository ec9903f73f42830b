"""Strategies as text, their refusals, and the tables they make."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from click.testing import CliRunner
from sympy import Integer, expand

from symbolic_cost.axes import At, Role, axes
from symbolic_cost.cli import main
from symbolic_cost.conventions.answers import CAUSAL
from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.errors import InputError, PlacementError
from symbolic_cost.layers import mlp
from symbolic_cost.ledger import CollectiveKind, Quantity
from symbolic_cost.models.config import from_config
from symbolic_cost.models.decoders.gpt import GPT
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.part import Part
from symbolic_cost.parallel.catalogue import STRATEGIES, Entry
from symbolic_cost.parallel.communication import (
    communication_rows,
    sent_by_cluster,
    sent_by_rank,
)
from symbolic_cost.parallel.coverage import Exempt
from symbolic_cost.parallel.memory import memory_table
from symbolic_cost.parallel.moments import moments, peak
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.parallel.pipeline import Pipeline
from symbolic_cost.parallel.schedules import SCHEDULES
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.parallel.table import strategy_table
from symbolic_cost.symbols import Active, M, b, cp, dp, e, l, m1, pp, symbol
from tests.models.test_families_truth import TRUTH

MODEL = GPT().model()


def test_reads_and_prints():
    text = "zero=1,dp=16,pp=4,sp,tp=8,cp=2"
    assert str(parse_strategy(text)) == "tp=8,sp,cp=2,dp=16,pp=4,zero=1"
    assert parse_strategy("tp,sp,cp,dp,pp").mesh == {"tp": m1, "cp": cp, "dp": dp, "pp": pp}
    assert parse_strategy("").mesh == {}
    assert parse_strategy(" tp = 2 , dp ").degree("tp") == 2
    assert parse_strategy("tp=2,dp=3,pp=5").ranks == 30
    assert Strategy({"tp": (2,)}) == Strategy({"tp": 2}) == parse_strategy("tp=2")
    assert parse_strategy("3d=2x3x4").mesh == {"m1": 2, "m2": 3, "m3": 4}
    assert parse_strategy("ep=4,dp=8").mesh == {"ep": 4, "dp": 2}
    assert parse_strategy("ep,dp").ranks == dp
    assert parse_strategy("ep=4,dp=8,tp").bindings() == {"ep": 4, "dp": 8}
    for text in ("2d=2x3,panels=4", "2.5d=1x2x3", "ulysses=2,ring=3", "ep=2,dp=4,replicas=2"):
        assert str(parse_strategy(text)) == text


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


def test_refuses_degrees_that_are_no_numbers():
    for degree in ("2", 2.0, True, None, (2, 2), ("x",)):
        with pytest.raises(InputError, match="tp="):
            Strategy({"tp": degree})
    with pytest.raises(InputError, match="ep=x"):
        Strategy({"ep": "x", "dp": 4})


def test_lists_all_problems():
    with pytest.raises(InputError) as caught:
        parse_strategy("tq=2,sp,dp=0,zero=7")
    assert len(caught.value.problems) == 4


def test_places_only_axes_that_the_model_has():
    ops = (einsum("one", "x[b e], *w[e f] -> y[b f]"),)
    small = Model("small", (Part("all", ops),), {"b": b, "e": e, "f": symbol("f")}, axes=mlp.AXES)
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
    model = Model("blocks", (block,), untied.sizes, axes=untied.axes)
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
            entry.group == "tp" and "position" not in entry.tensor
        )


def test_all_tables_of_a_large_model_on_five_mesh_axes():
    sizes = {"e": 16384, "f": 65536, "h": 128, "V": 128256, "l": 8192, "b": 64, "n_layers": 126}
    model = GPT(**sizes).model()
    strategy = parse_strategy("tp=8,sp,cp=2,dp=16,pp=9,zero=1")
    table = strategy_table(model, strategy, STANDARD)
    memory = memory_table(model, strategy, STANDARD)
    numbers = [moment.xreplace({M: Integer(32)}) for moment in moments(memory).values()]
    assert peak(memory).xreplace({M: Integer(32)}) == max(numbers)
    meshes = {entry.group for entry in communication_rows(table)}
    assert {"tp", "cp", "dp", "pp"} <= {mesh for group in meshes for mesh in group.split("+")}
    assert sent_by_cluster(model, strategy, STANDARD).keys() >= {"tp", "pp"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tp=2,2d=2x2", "2d and tp do not go together: a model has one tensor-parallel scheme"),
        ("2d=2x2,3d=2x2x2", "3d and 2d do not go together"),
        ("cp=2,ring=2", "ring and cp do not go together: keys and values are gathered in one way"),
        ("3d=2x2x2,ring=2", "3d and ring do not go together"),
        ("2.5d=2x2", "2 degrees are given, 2.5d takes 3"),
        ("replicas=2", "replicas needs dp"),
        ("2d=2x2,panels=0", "panels=0: a positive integer or a symbol is accepted"),
    ],
)
def test_refuses_combinations(text, problem):
    with pytest.raises(InputError) as caught:
        parse_strategy(text)
    assert problem in str(caught.value)


def test_panels_are_messages_of_their_own():
    table = strategy_table(MODEL, parse_strategy("2d=2x4,panels=8"), STANDARD)
    whole = strategy_table(MODEL, parse_strategy("2d=2x4"), STANDARD)
    assert expand(table.total("communication") - whole.total("communication")) == 0
    for one, other in zip(
        table.select("communication"), whole.select("communication"), strict=True
    ):
        move, single = one.collective, other.collective
        if move.kind in {CollectiveKind.BROADCAST, CollectiveKind.REDUCE}:
            assert (move.calls, 8 * move.message) == (8, single.message)
            assert one.source == "xu-2021"
    panels = {row.path: row.expr for row in table.select(Quantity.WORKSPACE)}
    whole_panels = {row.path: row.expr for row in whole.select(Quantity.WORKSPACE)}
    numbers = {b: 2, l: 64, e: 32, symbol("f"): 128, symbol("h"): 4, symbol("V"): 100}
    assert panels.keys() == {"m1_buffers", "m2_buffers"}
    for name, size in panels.items():
        assert 8 * size.xreplace(numbers).doit() == whole_panels[name].xreplace(numbers).doit()


def test_rings_send_blocks():
    table = strategy_table(MODEL, parse_strategy("ring"), STANDARD)
    gathered = strategy_table(MODEL, parse_strategy("cp"), STANDARD)
    keys = {
        text: [
            row for row in rows if row.collective and row.collective.axis == "t" and row.expr != 0
        ]
        for text, rows in (("ring", table.select("communication")), ("cp", gathered))
    }
    for row in keys["ring"]:
        move = row.collective
        assert (move.kind, move.calls) == (CollectiveKind.SEND_RECEIVE, cp - 1)
        assert move.message == 2 * b * l * e / cp
    sent = [
        sum(row.expr for row in rows if row.quantity == "communication") for rows in keys.values()
    ]
    assert expand(sent[0] - sent[1]) == 0
    (buffers,) = table.select(Quantity.WORKSPACE)
    assert buffers.expr == Active(cp) * 4 * b * l * e / cp  # a block of keys and one of values


def test_volume_of_exchanged_heads():
    """jacobs-2023, section 3.2: an aggregate message of 4 l e per layer, 1/s1 of it per rank."""
    table = strategy_table(MODEL, parse_strategy("ulysses"), STANDARD)
    s1, n_layers = symbol("s1"), symbol("n_layers")
    moved = table.select(
        "communication",
        phase="forward",
        where=lambda row: row.collective.kind is CollectiveKind.ALL_TO_ALL,
    )
    sent = moved.total() / n_layers
    assert expand(sent - 2 * 4 * b * l * e / s1 * (s1 - 1) / s1) == 0


def test_hybrid_shards():
    """Shards over dp, sums of shards over the replicas."""
    table = strategy_table(MODEL, parse_strategy("dp=4,replicas=2,zero=3"), STANDARD)
    moved = table.select("communication", path="block.mlp.fc1", where=lambda row: "w" in row.tensor)
    found = {(row.collective.kind.value, row.collective.group) for row in moved}
    assert found == {("all-gather", "dp"), ("reduce-scatter", "dp"), ("all-reduce", "replicas")}
    weight = table.select(Quantity.WEIGHT, path="block.mlp.fc1").rows[0]
    assert weight.expr == 2 * e * symbol("f") / 4
    once = {row.collective.group: row.per_step for row in moved if row.phase == "backward_weight"}
    assert once == {"dp": False, "replicas": True}


def test_views_of_one_tensor_have_paths_of_their_own():
    """In three dimensions a result waits under other axes, and is seen under a third."""
    own = parse_strategy("3d").model(from_config(TRUTH["wavlm/voices"]["config"]))
    paths = [f"{part.path}.{op.path}" for part in own.parts for op in part.ops]
    assert len(set(paths)) == len(paths)


def test_model_axes_that_mean_something_else_stay_whole():
    """The kernel of a convolution is k, but no heads."""
    roles = axes("b batch, l token query, e hidden, f inner, k whole")
    ops = (einsum("mix", "x[b l e], *w[k e f] -> y[b l k f]"),)
    sizes = {"b": b, "l": l, "e": e, "f": symbol("f"), "k": Integer(3)}
    placed = parse_strategy("tp").placement(Model("conv", (Part("all", ops),), sizes, axes=roles))
    assert placed.axes == {"f": ("tp",)}


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("stages", [2, 4, 6])
def test_stages_send_what_the_timeline_passes_on(name, stages):
    """Tasks whose successor is on another stage, of every stage, against the rows."""
    chunks, microbatches = {"interleaved": 2, "zb-v": 2}.get(name, 1), 2 * stages
    plan = SCHEDULES[name]
    sent = Counter()
    for microbatch in range(microbatches):
        way = plan.chain(stages, chunks, microbatch)
        for (one, _), (other, _) in pairwise(way):
            if one != other:
                sent[one, "forward"] += 1
                sent[other, "backward_input"] += 1
    places = {0: Stage.FIRST, stages - 1: Stage.LAST}
    for number in range(stages):
        table = strategy_table(
            MODEL,
            parse_strategy(f"pp={stages}"),
            STANDARD,
            stage=places.get(number, Stage.MIDDLE),
            pipeline=Pipeline(name),
        )
        for phase in ("forward", "backward_input"):
            rows = table.select("communication", phase=phase, kind="pipeline")
            count = sum(row.count for row in rows).subs(symbol("v"), 2) if rows.rows else 0
            assert microbatches * count == sent[number, phase], (number, phase)


def test_schedules_place_the_ends():
    def held(schedule, stage):
        table = strategy_table(
            MODEL, parse_strategy("pp=4"), STANDARD, stage=stage, pipeline=Pipeline(schedule)
        )
        shared = {row.tensor for row in table if row.kind == "pipeline" and row.per_step}
        return {path.partition(".")[0] for path in table.paths()} - {"block"}, shared

    assert held("1f1b", Stage.FIRST) == ({"embedding"}, {"d@token"})
    assert held("1f1b", Stage.LAST) == ({"head"}, {"d@token"})
    assert held("zb-v", Stage.FIRST) == ({"embedding", "head"}, set())
    assert held("zb-v", Stage.LAST) == (set(), set())
    for stage in (Stage.FIRST, Stage.LAST):
        assert held("dualpipe", stage) == ({"embedding", "head"}, {"copies"})


def test_causal_pairs_are_shared_evenly():
    """Ranks hold an early and a late chunk each, so that all have the same pairs to compute."""
    causal = replace(STANDARD, attention_pairs=CAUSAL)
    whole = strategy_table(MODEL, parse_strategy(""), causal)
    for text in ("cp=4", "ring=4", "ulysses=4", "ulysses=2,ring=2"):
        split = strategy_table(MODEL, parse_strategy(text), causal)
        core = "block.attention.core"
        assert expand(4 * split.total("flop", path=core) - whole.total("flop", path=core)) == 0


def test_a_strategy_that_is_a_placement_is_an_entry(monkeypatch):
    """Head width over ranks: scores become sums over them, and nothing else is written."""
    monkeypatch.setitem(
        STRATEGIES,
        "width",
        Entry(
            meaning="head width over ranks",
            meshes={"width": symbol("s1")},
            places={"width": (At(Role.WIDTH),)},
            leaves=(Exempt("rest", "all but attention", lambda _: True),),
        ),
    )
    table = strategy_table(MODEL, parse_strategy("width=2"), STANDARD)
    moved = table.select("communication", path="block", phase="forward")
    assert {(row.tensor, row.collective.kind.value) for row in moved} == {
        ("attention.core.scores", "all-reduce"),
        ("attention.summed", "all-reduce"),
    }


def test_the_list_writes_every_degree_of_a_grid():
    listed = CliRunner().invoke(main, ["strategies", "--format", "csv"]).stdout
    assert [line.partition(",")[0] for line in listed.splitlines() if "d=m1" in line] == [
        "2d=m1xm2",
        "2.5d=m1xm2xm3",
        "3d=m1xm2xm3",
    ]
