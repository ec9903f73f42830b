"""Number later is number first, for every class of every degree."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.ledger import Quantity
from symbolic_cost.models.catalog import model
from symbolic_cost.numeric.binding import bind
from symbolic_cost.parallel.communication import sent_by_rank
from symbolic_cost.parallel.memory import Training, memory_table
from symbolic_cost.parallel.microbatch import on_every_rank
from symbolic_cost.parallel.moments import moments, peak
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.parallel.structure import Structure
from symbolic_cost.parallel.table import strategy_table
from symbolic_cost.symbols import M, v
from symbolic_cost.systems.records import machine
from symbolic_cost.systems.step import step_time
from tests.parallel.structures import FAMILIES, GRAPH, jobs
from tests.parallel.test_coverage import STRUCTURES

H100 = machine("h100")


def answers(job, strategy, training, numbers):
    """Peak, moments, traffic and every definition of the step, numbers put in."""
    declared = on_every_rank(model(job.family), strategy)
    stages = Structure(strategy).stages
    stage = stages[job.stage % len(stages)]
    table = memory_table(declared, strategy, STANDARD, training, stage=stage)
    rows = strategy_table(
        declared,
        strategy,
        STANDARD,
        training.recompute,
        stage=stage,
        pipeline=training.pipeline,
    )
    step = step_time(declared, strategy, H100, training, job.methods)
    found = {name: bind(expr, numbers) for name, expr in moments(table).items()}
    found["highest"] = bind(peak(table), numbers)
    found |= {f"sent {k}": bind(e, numbers) for k, e in sent_by_rank(rows).items()}
    for quantity in (Quantity.FLOP, Quantity.READ, Quantity.WRITE, Quantity.SAVED):
        found[quantity] = bind(rows.total(quantity), numbers)
    return found, step.chain


def differing(job):
    """Names whose numbers differ between symbols bound later and numbers given first."""
    numbers = job.values()
    symbolic = Structure(job.strategy).symbolic
    chunks = job.training.chunks if job.training.chunks == 1 else v
    later = Training(**{**vars(job.training), "microbatches": M, "chunks": chunks})
    first, fixed = answers(job, job.strategy, job.training, numbers)
    second, chain = answers(job, symbolic, later, numbers)
    first |= fixed.evaluate({s.name: numbers[s.name] for s in fixed.symbols})
    second |= chain.evaluate({s.name: numbers[s.name] for s in chain.symbols})
    names = ("step", "exposed", "bubble", "optimizer", "clipping", "mfu", "hfu")
    compared = {*names, *moments_and_traffic(first), *moments_and_traffic(second)}
    return {
        name: (first.get(name), second.get(name))
        for name in compared
        if first.get(name, 0) != second.get(name, 0)
    }


def moments_and_traffic(found):
    kept = ("between steps", "end of forward", "backward", "optimizer step", "highest")
    costs = (Quantity.FLOP, Quantity.READ, Quantity.WRITE, Quantity.SAVED)
    return {name for name in found if name in kept or name in costs or name.startswith("sent ")}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "pipelined"), [("gpt", True), ("llama", False), ("mixtral", True)]
)
@settings(max_examples=3)
@given(st.data())
def test_numbers_later_are_numbers_first(family, pipelined, data):
    """Random jobs of every option, each as expressions with symbols and as numbers."""
    job = data.draw(jobs(family, pipelined=pipelined))
    assert differing(job) == {}, (str(job.strategy), job)


@pytest.mark.slow
@pytest.mark.parametrize("pipelined", [False, True])
@pytest.mark.parametrize("family", [*FAMILIES, pytest.param(GRAPH, id="graph")])
@settings(max_examples=5)
@given(st.data())
def test_more_numbers_later_are_numbers_first(family, pipelined, data):
    job = data.draw(jobs(family, pipelined=pipelined))
    assert differing(job) == {}, (str(job.strategy), job)


ALONE = (
    *("tp=1,sp", "cp=1", "ulysses=1", "ring=1", "2d=1x1,panels=4", "2.5d=1x1x1", "3d=1x1x1"),
    *("replicas=1,dp=1,zero=3", "ep=1,dp=1,zero=2", "tp=1,sp,cp=1,dp=1,pp=1,zero=1"),
)
"""Every strategy, of one rank."""


QUICK = ("llama", "lstm")


@pytest.mark.parametrize(
    "family",
    [*QUICK, *(pytest.param(n, marks=pytest.mark.slow) for n in STRUCTURES if n not in QUICK)],
)
def test_one_rank_is_no_strategy(family):
    """Nothing is split, kept in shards, cut into steps or given axes of its own: row by row."""
    declared = model(family)

    def rows(text):
        strategy = parse_strategy(text)
        costs = strategy_table(declared, strategy, STANDARD).rows
        return costs, memory_table(declared, strategy, STANDARD, Training()).rows

    alone = rows("")
    for text in ALONE:
        assert rows(text) == alone, text


@pytest.mark.slow
@pytest.mark.parametrize("text", ALONE)
def test_a_step_of_one_rank_is_that_of_no_strategy(text):
    chains = [
        step_time(model("llama"), parse_strategy(each), H100).chain.definitions
        for each in (text, "")
    ]
    assert chains[0] == chains[1]
