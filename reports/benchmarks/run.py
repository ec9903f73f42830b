"""Speed of the library, as ratios within one run: `python reports/benchmarks/run.py`.

Absolute times are this machine's; the ratios travel. Prints Markdown; `output.md` beside this
file holds one run. Nothing here is a test.

SymPy keeps results of what it has done, so that the same work done again seems fast. The first run
of an action is told apart from later ones, and each of these is done with other numbers.
"""

from __future__ import annotations

import compileall
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import symbolic_cost as sc

REPEATS = 9

Action = Callable[[int], object]
"""What is timed, given the number of the run."""


def times(action: Action, repeats: int = REPEATS) -> tuple[float, float]:
    """Return the processor time of the first run, and the median of the later ones [s]."""
    taken = []
    for number in range(repeats + 1):
        start = time.process_time()
        action(number)
        taken.append(time.process_time() - start)
    return taken[0], statistics.median(taken[1:])


def processor_time(*arguments: str) -> float:
    """Return the user and system time of a fresh interpreter [s]."""
    kept = {**os.environ, "SYMBOLIC_COST_CACHE": ""}  # nothing: a line is derived every time
    child = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL, env=kept)
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(arguments)}: status {status}")
    return used.ru_utime + used.ru_stime


def build(n_layers: int) -> Action:
    """Return an action that declares, costs and totals a GPT under tensor and sequence parallel."""

    def action(number: int) -> object:
        model = sc.GPT(n_layers=n_layers + number, e=512 * (number + 2), h=8).model()
        table = sc.cost(model, strategy="tp=2,sp")
        return [table.total(name) for name in ("flop", "saved", "communication", "parameter")]

    return action


def tables(number: int) -> object:
    """Derive all tables of a model of some 400 billion parameters on five mesh axes."""
    width = 128 * (128 + 16 * number)
    model = sc.GPT(e=width, f=4 * width, h=128, V=128256, l=8192, n_layers=126).model()
    job = sc.job(model, "tp=8,sp,cp=2,dp=16,pp=9,zero=1", {"b": 1})
    return job.table(), job.memory(), job.communication()


def step(number: int) -> object:
    """Derive the time of a training step of GPT-3 and evaluate it."""
    job = sc.job("gpt3-175b", "tp=8,sp,pp=8,dp=2,zero=1", system="h100")
    return job.bind(b=1, l=2048 + 64 * number, M=32).time().step


def job(number: int) -> object:
    """Build the job of GPT-3 under five axes and derive the costs of one rank."""
    numbers = {"b": 1, "l": 2048 + 64 * number, "M": 32}
    return sc.job("gpt3-175b", "tp=8,sp,cp=2,dp=2,pp=8,zero=1", numbers, system="h100").rows


COMMANDS = {
    "python -c pass": ("-c", "pass"),
    "import symbolic_cost": ("-c", "import symbolic_cost"),
    "import sympy": ("-c", "import sympy"),
    **{
        f"symbolic-cost {line}": ("-m", "symbolic_cost", *line.split())
        for line in (
            "--help",
            "count llama-3-8b",
            "time gpt3-175b --system a100-80gb --strategy tp=8,sp,pp=8 --set M=64",
            "memory gpt3-175b --strategy tp=8,sp,pp=8,dp=8,zero=1",
            "comm gpt3-175b --strategy tp=8,sp,pp=8,dp=8",
            "table gpt3-175b --strategy tp=8,sp",
        )
    },
}
PROCESSES = 7


def cold() -> None:
    """Print the processor time of fresh processes, commands in turn so that all meet one load."""
    compiled = compileall.compile_dir(Path(sc.__file__).parent, quiet=2)
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(PROCESSES):
        for name, arguments in COMMANDS.items():
            taken[name].append(processor_time(*arguments))
    least = {name: min(times) for name, times in taken.items()}
    bare, sympy = least["python -c pass"], least["import sympy"]
    state = "cached" if compiled else "not cached"
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"# Speed\n\n{os.cpu_count()} cores, Python {platform.python_version()}; load {load}\n")
    print("## Fresh processes\n")
    print(
        f"User and system time; the least of {PROCESSES} runs, and the first. Bytecode of the "
        f"library is {state}, that of packages as pip left it; no answer is kept.\n"
    )
    print("| process | first [ms] | least [ms] | x bare Python | x import sympy |")
    print("|---|---:|---:|---:|---:|")
    for name, times in taken.items():
        numbers = f"{1000 * times[0]:.0f} | {1000 * least[name]:.0f}"
        ratios = f"{least[name] / bare:.1f} | {least[name] / sympy:.2f}"
        print(f"| `{name}` | {numbers} | {ratios} |")


def warm() -> None:
    """Print the times of work within one process, first and repeated with other numbers."""
    actions = {
        "GPT of 2 layers, built and totalled under tp and sp": build(2),
        "GPT of 96 layers": build(96),
        "GPT of 1000 layers": build(1000),
        "all tables, 400B parameters, tp x cp x dp x pp with sp and ZeRO-1": tables,
        "rows of gpt3-175b under tp, sp, cp, dp, pp and ZeRO-1": job,
        "time of a step of gpt3-175b": step,
    }
    print("\n## Within one process, every run with other numbers\n")
    print("| action | first [ms] | later [ms] |\n|---|---:|---:|")
    for name, action in actions.items():
        first, later = times(action)
        print(f"| {name} | {1000 * first:.0f} | {1000 * later:.0f} |")


if __name__ == "__main__":
    cold()
    warm()
