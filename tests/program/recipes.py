"""Random graphs, adversarial where floats are, and the programs of real jobs."""

from functools import cache

import numpy as np
from hypothesis import strategies as st

from symbolic_cost.conventions.presets import preset
from symbolic_cost.models.catalog import model
from symbolic_cost.parallel.memory import Training, memory_table
from symbolic_cost.parallel.microbatch import on_every_rank
from symbolic_cost.parallel.moments import peak
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.program.graph import Graph
from symbolic_cost.program.lowering import lowered
from symbolic_cost.program.program import of_graph
from symbolic_cost.symbols import M
from symbolic_cost.systems import machine
from symbolic_cost.systems.step import step_time

SYMBOLS = {"b": True, "m1": True, "V": True, "beta": False, "alpha": False}
ONE = ("ceiling", "floor", "square_root", "log2", "active")
TWO = ("add", "sub", "mul", "over", "max", "min", "at_least", "more")
SMOOTH = ("add", "mul", "over", "max", "min")


@st.composite
def graphs(draw, kinds=(*ONE, *TWO, "select"), most=12, *, rates=True):
    """Programs of one output, of random steps each on random earlier nodes."""
    graph = Graph(SYMBOLS)
    nodes = [graph.symbol(name) for name in SYMBOLS if rates or SYMBOLS[name]]
    nodes += [graph.number(draw(st.fractions(1, 100, max_denominator=75))) for _ in range(2)]
    for _ in range(draw(st.integers(1, most))):
        kind = draw(st.sampled_from(kinds))
        one, two, three = (draw(st.sampled_from(nodes)) for _ in range(3))
        nodes.append(step(graph, kind, one, two, three))
    return of_graph(graph, {"out": nodes[-1], "last": nodes[-2]})


def step(graph, kind, one, two, three):
    if kind in ("add", "sub"):
        return graph.sum([(one, 1), (two, 1 if kind == "add" else -1)])
    if kind == "mul":
        return graph.product([(one, 1), (two, 1)])
    if kind in ("max", "min"):
        return graph.extremum(kind, [one, two])
    if kind == "select":
        return graph.select(graph.at_least(one, two), two, three)
    return getattr(graph, kind)(*((one,) if kind in ONE else (one, two)))


def values(most=4096):
    count = st.integers(1, most)
    rate = st.fractions(1, 1000, max_denominator=64)
    return st.fixed_dictionaries({n: count if SYMBOLS[n] else rate for n in SYMBOLS})


JOBS = {
    "gpt3-175b": "tp,sp,pp,dp,zero=1",
    "llama-3-70b": "tp,sp,pp,dp,zero=1",
    "deepseek-v3": "tp,sp,ep,dp,zero=1",
}


@cache
def real(name):
    """Step and peak memory of a job, all sizes and degrees symbols."""
    strategy, training = parse_strategy(JOBS[name]), Training(microbatches=M)
    declared = on_every_rank(model(name), strategy)
    made = step_time(declared, strategy, machine("h100"), training)
    definitions = dict(made.chain.definitions)
    stages = tuple(Stage) if "pp" in JOBS[name] else (Stage.FIRST,)
    peaks = [f"peak {stage.value}" for stage in stages]
    for stage, own in zip(stages, peaks, strict=True):
        rows = memory_table(declared, strategy, preset("standard"), training, stage=stage)
        definitions[own] = peak(rows)
    return lowered(definitions, ["step", *peaks])


def configurations(program, size, seed=0):
    """Sizes that may be anything; the formulas hold for them all."""
    rng = np.random.default_rng(seed)
    small = {"m1", "dp", "pp", "ep", "b", "k", "E_t", "n_dense"}
    return {
        name: rng.integers(1, 65 if name in small else 100_000, size).astype(float)
        for name in program.inputs
    }
