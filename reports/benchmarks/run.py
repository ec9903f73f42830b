"""Speed of the library, as ratios within one run: `python reports/benchmarks/run.py`.

Absolute times are this machine's; the ratios travel. Prints Markdown; `output.md` beside this
file holds one run. Nothing here is a test.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import symbolic_cost as sc
from symbolic_cost.parallel.communication import communication_rows
from symbolic_cost.parallel.memory import memory_table, moments
from symbolic_cost.parallel.table import strategy_table
from symbolic_cost.systems.records import machine
from symbolic_cost.systems.step import step_time

REPEATS = 15


def seconds(action: Callable[[], object], repeats: int = REPEATS) -> float:
    """Median time of an action [s]."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def process(*arguments: str) -> Callable[[], object]:
    """Return an action that runs a fresh interpreter."""
    return lambda: subprocess.run(
        [sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL
    )


def build(n_layers: int) -> Callable[[], object]:
    """Return an action that declares, costs and totals a GPT under tensor and sequence parallel."""

    def action() -> object:
        model = sc.GPT(n_layers=n_layers).model()
        placement = sc.parse_strategy("tp,sp").placement(model)
        table = sc.cost(model, sc.preset("standard"), placement)
        return [table.total(name) for name in ("flop", "saved", "communication", "parameter")]

    return action


def tables() -> object:
    """Derive all tables of a model of 400 billion parameters on five mesh axes."""
    sizes = {"e": 16384, "f": 65536, "h": 128, "V": 128256, "l": 8192, "b": 64, "n_layers": 126}
    model = sc.GPT(**sizes).model()
    strategy = sc.parse_strategy("tp=8,sp,cp=2,dp=16,pp=9,zero=1")
    table = strategy_table(model, strategy, sc.preset("standard"))
    memory = memory_table(model, strategy, sc.preset("standard"))
    return moments(memory), communication_rows(table)


def timed_step() -> Callable[[], object]:
    """Return an action that evaluates the chain of a training step exactly."""
    model = sc.model("gpt3-175b")
    strategy = sc.parse_strategy("tp=8,sp,pp=8,dp=2,zero=1")
    step = step_time(model, strategy, machine("h100"))
    values = {**model.bindings, "b": 2, "M": 32}
    return lambda: step.chain.evaluate(values)


def main() -> None:
    """Measure and print."""
    bare = seconds(process("-c", "pass"))
    cold = {
        "python -c pass": bare,
        "import symbolic_cost": seconds(process("-c", "import symbolic_cost")),
        "symbolic-cost --help": seconds(process("-m", "symbolic_cost", "--help")),
        "import sympy": seconds(process("-c", "import sympy")),
        "symbolic-cost table gpt3-175b": seconds(
            process("-m", "symbolic_cost", "table", "gpt3-175b", "--strategy", "tp=4,sp")
        ),
    }
    print("# Speed\n\n## Cold start\n")
    print("| process | ms | times bare Python |\n|---|---|---|")
    for name, taken in cold.items():
        print(f"| `{name}` | {1000 * taken:.0f} | {taken / bare:.1f} |")
    build(2)()
    layers = {count: seconds(build(count)) for count in (2, 96, 1000)}
    print("\n## Building and totalling a GPT under tensor and sequence parallelism, warm\n")
    print("| n_layers | ms | times 2 layers |\n|---|---|---|")
    for count, taken in layers.items():
        print(f"| {count} | {1000 * taken:.1f} | {taken / layers[2]:.2f} |")
    whole = layers[96]
    actions = {
        "all tables, 400B parameters, tp x cp x dp x pp with sp and ZeRO-1": tables,
        "exact evaluation of the chain of a training step": timed_step(),
    }
    print("\n## Larger work, warm\n")
    print("| action | ms | times building a GPT |\n|---|---|---|")
    for name, action in actions.items():
        taken = seconds(action, 5)
        print(f"| {name} | {1000 * taken:.0f} | {taken / whole:.1f} |")


if __name__ == "__main__":
    main()
