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


if __name__ == "__main__":
    main()
