"""Uneven pipelines: every stage kind, and what all of them hold together."""

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sympy import Integer

from symbolic_cost.conditions import check
from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.errors import DivisibilityError, InputError
from symbolic_cost.ledger import Quantity
from symbolic_cost.models.catalog import model
from symbolic_cost.numeric.binding import bind
from symbolic_cost.parallel.layout import EVEN, UNEVEN, ends, layout
from symbolic_cost.parallel.memory import Training, memory_table
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.parallel.pipeline import Pipeline
from symbolic_cost.parallel.structure import Structure
from symbolic_cost.parallel.table import strategy_table
from symbolic_cost.systems.records import machine
from symbolic_cost.systems.step import step_time


def held(way, total, stages, chunks=1):
    numbers = map(Integer, (total, stages, chunks))
    total, stages, chunks = numbers
    return [int(way.blocks(total, stages, chunks, stage)) for stage in Stage]


def test_as_they_were_run():
    """Llama 3 405B: 126 blocks on 16 stages; DeepSeek-V3 in Megatron: 61, the last stage has 1."""
    assert held(ends(1, 1), 126, 16) == [7, 8, 7]
    assert held(ends(0, 3), 61, 16) == [4, 4, 1]
    assert held(UNEVEN, 126, 16) == [7, 8, 7]
    assert held(UNEVEN, 61, 16) == [3, 4, 2]
    assert held(EVEN, 96, 16) == held(UNEVEN, 96, 16) == [6, 6, 6]
    assert held(UNEVEN, 126, 16, chunks=8) == [7, 8, 7]


@given(st.integers(1, 200), st.integers(3, 24), st.integers(1, 4))
def test_stages_hold_all_blocks(total, stages, chunks):
    first, middle, last = held(UNEVEN, total, stages, chunks)
    assert first + (stages - 2) * middle + last == total
    assert 0 <= middle - last <= stages * chunks / 2 + 1
    numbers = [Integer(n) for n in (total, stages, chunks)]
    if min(first, last) >= (chunks - 1) * middle / chunks:
        check(UNEVEN.conditions(*numbers, "block"), {})
    else:
        with pytest.raises(InputError, match=r"from an end than a (stage|chunk) has"):
            check(UNEVEN.conditions(*numbers, "block"), {})


def test_uneven_stages_without_saying_so_are_refused():
    strategy = parse_strategy("pp=16")
    table = strategy_table(model("gpt"), strategy, STANDARD)
    with pytest.raises(DivisibilityError, match="axis blocks"):
        bind(table, {"n_layers": 126})


@pytest.mark.parametrize("text", ["uneven", "ends=1", "ends=0/2"])
@pytest.mark.parametrize("stages", [2, pytest.param(8, marks=pytest.mark.slow), 16])
@pytest.mark.parametrize("name", ["gpt", "llama", "deepseek-v3"])
def test_all_stages_together_are_the_model(name, stages, text):
    """FLOP, parameters, weights: first and last stage once, the middle one as often as it is."""
    strategy = parse_strategy(f"pp={stages}")
    pipeline = Pipeline(layout=layout(text))
    sizes = {"n_layers": 126, "n_dense": 3} if name == "deepseek-v3" else {"n_layers": 126}
    whole = strategy_table(model(name), parse_strategy(""), STANDARD)
    structure = Structure(strategy)
    tables = {
        stage: strategy_table(model(name), strategy, STANDARD, stage=stage, pipeline=pipeline)
        for stage in structure.stages
    }
    numbers = {s: Integer(sizes.get(s.name, 2)) for t in tables.values() for s in symbols_of(t)}
    for quantity in (Quantity.FLOP, Quantity.PARAMETER, Quantity.READ):
        total = sum(
            structure.alike(stage) * table.total(quantity) for stage, table in tables.items()
        )
        expected = whole.total(quantity)
        if name == "gpt" and quantity is Quantity.PARAMETER:
            expected += tied(whole)
        assert total.xreplace(numbers) == expected.xreplace(numbers), quantity


def symbols_of(table):
    return set().union(*(row.expr.free_symbols | row.count.free_symbols for row in table))


def tied(table):
    """The token table, which first and last stage both hold."""
    (row,) = (r for r in table.select(Quantity.PARAMETER) if r.tensor == "@token")
    return row.total


def test_a_lighter_end_holds_and_computes_less():
    strategy = parse_strategy("pp=16")
    sizes = {"n_layers": 126, "b": 1, "l": 1024, "e": 64, "f": 256, "h": 4, "V": 1000, "M": 32}
    first, middle = (
        memory_table(model("gpt"), strategy, STANDARD, Training(layout="ends=1"), stage=stage)
        for stage in (Stage.FIRST, Stage.MIDDLE)
    )
    weights = [bind(t, sizes).total(Quantity.WEIGHT, path="block") for t in (first, middle)]
    assert Fraction(int(weights[0]), int(weights[1])) == Fraction(7, 8)
    step = step_time(model("gpt"), strategy, machine("h100"), Training(layout="ends=1")).chain
    found = step.evaluate({s.name: sizes[s.name] for s in step.symbols})
    assert found["first.forward.busy"] < found["middle.forward.busy"]
    mean = (found["first.forward"] + 14 * found["middle.forward"] + found["last.forward"]) / 16
    assert found["mean.forward"] == mean


def test_ends_of_two_stages_take_no_more_than_there_is():
    table = strategy_table(
        model("gpt"), parse_strategy("pp=2"), STANDARD, pipeline=Pipeline(layout=layout("ends=99"))
    )
    assert bind(table, {"n_layers": 198}).splits
    with pytest.raises(InputError, match="takes more blocks from the ends than the model has"):
        bind(table, {"n_layers": 196})


@pytest.mark.parametrize("text", ["odd", "ends=", "ends=-1", "ends=1/2/3", "uneven=1"])
def test_refused_layouts(text):
    with pytest.raises(InputError, match="accepted are even, uneven, ends=1 and ends=0/3"):
        layout(text)


@given(st.integers(2, 12), st.integers(1, 40), st.integers(1, 3), st.integers(1, 40))
def test_legal_numbers_are_those_that_the_timeline_takes(stages, microbatches, chunks, blocks):
    """Interleaved: multiples of pp microbatches, and whole chunks of layers."""
    assume(chunks > 1)
    legal = microbatches % stages == 0 and blocks % (stages * chunks) == 0
    numbers = [Integer(n) for n in (microbatches, chunks)]
    conditions = Pipeline("interleaved", *numbers).conditions(Integer(blocks), Integer(stages), "b")
    if legal:
        check(conditions, {})
    else:
        with pytest.raises(DivisibilityError):
            check(conditions, {})


def test_one_chunk_is_1f1b():
    for text in ("pp=4", "pp"):
        one, other = (
            memory_table(model("gpt"), parse_strategy(text), STANDARD, training)
            for training in (Training(schedule="interleaved", chunks=Integer(1)), Training())
        )
        assert one == other
    table = memory_table(
        model("gpt"), parse_strategy("pp"), STANDARD, Training(schedule="interleaved")
    )
    with pytest.raises(InputError, match="one chunk is schedule 1f1b"):
        bind(table, {"v": 1})


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_both_copies_of_one_block_per_stage(stages):
    """Dualpipe keeps blocks twice, also where a stage has one of them and sizes are numbers."""
    strategy = parse_strategy(f"pp={2 * stages}")
    copies = [
        bind(
            memory_table(model("gpt"), strategy, STANDARD, Training(schedule=name)),
            {"n_layers": 2 * stages},
        ).total(Quantity.WEIGHT, path="block")
        for name in ("dualpipe", "1f1b")
    ]
    assert copies[0] == 2 * copies[1]
