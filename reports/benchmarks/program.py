"""Speed of programs, beside what the machine can do: `python reports/benchmarks/program.py`.

CPU seconds of one thread, the least of several runs, each with other numbers. Rates of memory,
sums and divisions are measured in the same run, by programs of nothing else; the share is that of
the time that they would take alone. Prints Markdown and, with `--json`, the same figures as JSON.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import sys
import time
from collections.abc import Callable

import numpy as np
import sympy
from llvmlite import binding

import symbolic_cost as sc

MANY = 1 << 20
STAGES = ("first", "middle", "last")
STRATEGY = "tp,sp,pp,dp,zero=1"
TARGETS = {
    "lowering [ms]": 15,
    "machine code, compiled [ms]": 50,
    "machine code, from the folder [ms]": 5,
    "one configuration, floats [us]": 40,
    "one configuration, exact [ms]": 2,
    "flat 1e6, machine code [ns]": 45,
    "flat 1e6, NumPy [ns]": 700,
    "grid of 1.7e7, NumPy [s]": 0.6,
    "grid of 1.07e9, machine code [s]": 2.0,
}

Figures = dict[str, float]


def least(action: Callable[[int], object], repeats: int = 5) -> float:
    """Return the least CPU time of several runs [s]; a run is given its number."""
    taken = []
    for number in range(repeats):
        start = time.process_time()
        action(number)
        taken.append(time.process_time() - start)
    return min(taken)


def job() -> tuple[dict[str, object], list[str]]:
    """Return definitions of step and memory of gpt3-175b, and which of them are results."""
    strategy, training = sc.parse_strategy(STRATEGY), sc.Training(microbatches=sc.symbols.M)
    declared = sc.on_every_rank(sc.model("gpt3-175b"), strategy)
    made = sc.systems.step_time(declared, strategy, sc.systems.machine("a100-80gb"), training)
    definitions = dict(made.chain.definitions)
    for stage in STAGES:
        own = sc.job("gpt", STRATEGY, stage=stage)
        definitions[f"peak {stage}"] = own.memory().peak
    return definitions, ["step", *(f"peak {stage}" for stage in STAGES)]


def configurations(program: sc.program.Program, size: int, seed: int) -> dict[str, np.ndarray]:
    """Return sizes and degrees, other ones for every seed."""
    rng = np.random.default_rng(seed)
    small = {"m1", "dp", "pp", "b"}
    return {
        name: rng.integers(1, 65 if name in small else 100_000, size).astype(float)
        for name in program.inputs
    }


# ---------------------------------------------------------------------- the machine


def _flat_plan(program: sc.program.Program) -> sc.program.Plan:
    """Return the plan of one loop over arrays."""
    return sc.program.Plan(dict.fromkeys(program.inputs, 0), (0,), 0)


def rates() -> Figures:
    """Return what the machine does: sums [1/s], divisions [1/s], bytes moved [byte/s]."""
    return {"operations": _rate("mul"), "divisions": _rate("div"), "bytes": _stream()}


def _rate(kind: str) -> float:
    """Return operations per second of independent chains of one kind, in registers."""
    graph = sc.program.Graph({"b": False, "l": False})
    one, two = graph.symbol("b"), graph.symbol("l")
    steps, chains = 0, [graph.sum([(one, 1)], start + 2) for start in range(12)]
    for link in range(40):  # side by side, so that none waits for another
        for place, node in enumerate(chains):
            added = graph.sum([(node, 1)], link + 1)
            product = graph.product([(added, 1), (two, 1)])
            chains[place] = product if kind == "mul" else graph.divided(node, two)
            steps += 2 if kind == "mul" else 1
    results = [(node, 1) for node in chains]
    program = sc.program.of_graph(graph, {"x": graph.sum(results)})
    function, size = sc.program.NativeFlat(program.tape), 4096
    values = {name: np.full(size, 1.0 + 1e-9) for name in program.inputs}
    function(values, size)
    taken = least(lambda _: [function(values, size) for _ in range(20)])
    return 20 * steps * size / taken


def _stream() -> float:
    """Return bytes read and written per second of b + 3 l over arrays beyond the caches."""
    graph = sc.program.Graph({"b": False, "l": False})
    total = graph.sum([(graph.symbol("b"), 1), (graph.symbol("l"), 3)])
    program = sc.program.of_graph(graph, {"x": total})
    size = 1 << 22
    kernel = sc.program.Kernel(program.tape, _flat_plan(program))
    values = {name: np.ones(size) for name in program.inputs}
    result = np.ones(size)
    return 4 * 8 * size / least(lambda _: kernel([size // sc.program.LANES], values, [result]))


# ---------------------------------------------------------------------- programs


def made(definitions: dict[str, object], outputs: list[str]) -> tuple[Figures, sc.program.Program]:
    """Return the time to make a program and its machine code [ms]."""
    program = sc.program.lowered(definitions, outputs)
    plan = _flat_plan(program)

    def low(number: int) -> object:
        values = {"P": 2048 + number}  # another number each time
        return sc.program.lowered(definitions, outputs, values).tape

    os.environ["SYMBOLIC_COST_CACHE"] = ""
    compiled = least(lambda _: sc.program.Kernel(program.tape, plan))
    os.environ["SYMBOLIC_COST_CACHE"] = "/tmp/symbolic_cost_bench"  # noqa: S108 - of this run
    sc.program.Kernel(program.tape, plan)
    figures = {
        "lowering [ms]": 1e3 * least(low, 9),
        "machine code, compiled [ms]": 1e3 * compiled,
        "machine code, from the folder [ms]": 1e3
        * least(lambda _: sc.program.Kernel(program.tape, plan)),
    }
    return figures, program


def one(program: sc.program.Program) -> Figures:
    """Return the time of one configuration."""
    columns = configurations(program, 64, 1)
    rows = [[float(column[row]) for column in columns.values()] for row in range(64)]
    function = sc.program.function(program.tape)
    exact = [{n: int(v) for n, v in zip(columns, row, strict=True)} for row in rows]
    return {
        "one configuration, floats [us]": 1e6 * least(lambda i: function(*rows[i]), 50),
        "one configuration, exact [ms]": 1e3 * least(lambda i: program.exact(exact[i]), 20),
    }


def flat(program: sc.program.Program, machine_rates: Figures) -> Figures:
    """Return the time of a configuration of many [ns], and the share of what is possible."""
    tape, native = program.tape, sc.program.NativeFlat(program.tape)
    many = [configurations(program, MANY, seed) for seed in range(3)]
    native(many[0], MANY)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    numpy = least(lambda i: sc.program.evaluated(tape, many[i], MANY), 3)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    fast = least(lambda i: native(many[i], MANY), 3)
    divisions = sum(kind in ("div", "inv") for kind, _ in tape.steps)
    possible = max(
        (len(tape.steps) - divisions) / machine_rates["operations"]
        + divisions / machine_rates["divisions"],
        8 * (len(tape.inputs) + 2 * len(tape.outputs)) / machine_rates["bytes"],
    )
    return {
        "operations of the program": len(tape.steps),
        "of them divisions": divisions,
        "flat 1e6, NumPy [ns]": 1e9 * numpy / MANY,
        "flat 1e6, NumPy: memory beside the inputs [MiB]": grown,
        "flat 1e6, machine code [ns]": 1e9 * fast / MANY,
        "flat 1e6, machine code: share of the possible [%]": 100 * possible * MANY / fast,
    }


def lambdified(
    definitions: dict[str, object], outputs: list[str], program: sc.program.Program
) -> Figures:
    """Return the time of a configuration by SymPy's lambdify with its common subexpressions."""
    steps = [(sympy.Symbol(f"s{i}"), expr) for i, expr in enumerate(definitions.values())]
    places = {
        sc.symbols.named(name): step[0] for name, step in zip(definitions, steps, strict=True)
    }
    steps = [(own, expr.xreplace(places)) for own, expr in steps]
    function = sympy.lambdify(
        [sc.symbols.GLOSSARY[name].symbol for name in program.inputs],
        [places[sc.symbols.named(name)] for name in outputs],
        modules="numpy",
        cse=lambda results: (steps, results),
    )
    size = 1 << 17
    many = [list(configurations(program, size, seed).values()) for seed in range(3)]
    return {
        "flat 1.3e5, SymPy's lambdify, whole arrays [ns]": 1e9
        * least(lambda i: function(*many[i]), 3)
        / size
    }


# ---------------------------------------------------------------------- grids


def axes(length: int, names: int, shift: int) -> list[dict[str, np.ndarray]]:
    """Return axes of one length."""
    steps = np.arange(1 + shift, 1 + shift + length)
    columns = {
        "b": steps,
        "l": 1024 * steps,
        "m1": 2.0 ** np.arange(length),
        "dp": 2.0 ** np.arange(length),
        "M": 64 * steps,
        "pp": steps + 2,
        "n_layers": 96 * steps,
        "V": 51200 * steps,
        "e": 1024 * steps,
        "f": 4096 * steps,
    }
    return [{name: columns[name]} for name in list(columns)[:names]]


def grid(program: sc.program.Program) -> Figures:
    """Return the time of the best of a grid [s]."""
    fixed = {"e": 12288.0, "f": 49152.0, "h": 96.0, "P": 2048.0}
    graph, places = program.graph()
    peaks = [places[program.outputs[f"peak {stage}"]] for stage in STAGES]
    fits = graph.at_least(graph.number(80 * 2**30), graph.extremum("max", peaks))
    wanted = sc.program.of_graph(graph, {"step": places[program.outputs["step"]], "fits": fits})
    fewer = [sc.program.gridded(wanted.tape, axes(8, 8, shift), fixed) for shift in range(2)]
    inner = {name: value for name, value in fixed.items() if name not in ("e", "f")}
    more = [sc.program.gridded(wanted.tape, axes(8, 10, shift), inner) for shift in range(2)]
    numpy = least(lambda i: sc.program.reduced(fewer[i], sc.program.Top("step", 1, "fits")), 2)
    start = time.process_time()
    best = sc.program.NativeTop(more[0], "step", "fits")
    compiled = time.process_time() - start
    native = least(lambda i: best(more[i]), 2)
    return {
        "grid of 1.7e7, NumPy [s]": numpy,
        "grid of 1.7e7, NumPy: per point [ns]": 1e9 * numpy / fewer[0].size,
        "grid of 1.07e9, machine code: compiled [s]": compiled,
        "grid of 1.07e9, machine code [s]": native,
        "grid of 1.07e9, machine code: per point [ns]": 1e9 * native / more[0].size,
    }


def main() -> None:
    """Print all figures."""
    definitions, outputs = job()
    machine_rates = rates()
    figures, program = made(definitions, outputs)
    figures |= one(program) | flat(program, machine_rates)
    figures |= lambdified(definitions, outputs, program) | grid(program)
    figures["peak memory [MiB]"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    about = {
        "processor": binding.get_host_cpu_name(),
        "lanes": sc.program.LANES,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "operations [1/ns]": machine_rates["operations"] / 1e9,
        "divisions [1/ns]": machine_rates["divisions"] / 1e9,
        "bytes [1/ns]": machine_rates["bytes"] / 1e9,
        "load": os.getloadavg()[0],
    }
    if "--json" in sys.argv:
        print(json.dumps({"machine": about, "figures": figures}, indent=1))
        return
    print("# Programs\n\nStep and peak memory of gpt3-175b under " + STRATEGY + ".\n")
    print(
        "; ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in about.items())
    )
    print("\n| figure | measured | wanted |\n|---|---:|---:|")
    for name, value in figures.items():
        print(f"| {name} | {value:.3g} | {TARGETS.get(name, '')} |")


if __name__ == "__main__":
    main()
