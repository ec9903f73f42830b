"""Speed of searches, beside what the machine takes to import SymPy: `python .../search.py`.

Every figure is processor time, of a fresh process where it says so, with bytecode as an installed
package has it; `search.md` and `search.json` beside this file hold one run. Nothing here is a test.
"""

from __future__ import annotations

import compileall
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import symbolic_cost as sc

SEARCHES = (
    ("gpt3-175b", "a100-80gb", 512, 512),
    ("llama-3-70b", "h100", 256, 512),
)
_OVERLAP = [
    f"{tp}+{dp}" for tp in ("tp=none", "tp=partial=0.5", "tp=full") for dp in ("dp=none", "dp=full")
]
CALCULON: dict[str, object] = {
    "cp": 1,
    "zero": (0, 1),
    "overlap": _OVERLAP,
    "order": "all",
    "regather": ("on", "off"),
    "scattered": (True, False),
}
"""Options of Calculon (isaev-2023); it tells tiers by number, where this is an order of ranks."""

OFFLOADING = CALCULON | {
    "overlap": [f"{one}{host}" for one in _OVERLAP for host in ("", "+host=full")],
    "offload": [
        *("", "weight", "saved", "optimizer", "weight+saved", "weight+optimizer"),
        *("saved+optimizer", "weight+saved+optimizer"),
    ],
}
BIG = {"n_layers": 128, "e": 25600, "f": 102400, "h": 160, "l": 2048, "V": 51200}
SPACES: tuple[tuple[str, str, dict[str, int], str, int, dict[str, object]], ...] = (
    ("952,776 in 590 s", "gpt3-175b", {}, "a100-80gb", 512, CALCULON),
    ("1,053,228 in 521 s", "gpt", BIG, "a100-80gb", 4096, CALCULON),
    ("3,232,128 in 3,077 s", "gpt3-175b", {}, "h100", 64, OFFLOADING),
)
"""What Calculon takes for as many candidates, and the question."""

SWEPT = (
    "-m symbolic_cost sweep llama-3-70b --system h100 --gpus 1024 --global-batch 1024 "
    "--vary tp=1:8:x2 --vary pp=1:16:x2 --vary b=1,2,4 --vary l=1024:131072:1024 "
    "--vary f=8192:65536:1024"
)
SWEEPS = {
    "sweep of 10,944,000 candidates, the best 20": "--vary e=4096:16384:512 --top 20",
    "sweep of 437,760 candidates, all that count as Parquet": "-o out.parquet",
}

LINE = "-m symbolic_cost search {} --system {} --gpus {} --global-batch {} --choose cp=1"
BARE, IMPORT = "bare Python, fresh process [s]", "import of SymPy, fresh process [s]"


def sweeps() -> dict[str, float]:
    """Return the figures of SWEEPS, each from an empty folder."""
    figures: dict[str, float] = {}
    for name, rest in SWEEPS.items():
        with tempfile.TemporaryDirectory() as folder:
            seconds, memory = spent([*SWEPT.split(), *rest.split()], folder)
        figures[f"{name}: nothing kept, fresh process [s]"] = seconds
        figures[f"{name}: peak memory [MiB]"] = memory
    return figures


def spent(line: list[str], folder: str) -> tuple[float, float]:
    """Return processor time [s] and peak memory [MiB] of a fresh interpreter."""
    child = subprocess.Popen(
        [sys.executable, *line],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "SYMBOLIC_COST_CACHE": folder},
        cwd=folder,
    )
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(line)}: status {status}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def asked(place: int) -> None:
    """Ask one question of SPACES three times, and print what it took as JSON."""
    _, model, numbers, system, gpus, choose = SPACES[place]
    job = sc.job(model, "", numbers, system=system, precision="bf16-mixed")
    taken = []
    for _ in range(3):
        start = time.process_time()
        found = sc.search(job, gpus, gpus, choose=choose, progress=False)
        taken.append(time.process_time() - start)
    print(json.dumps([taken, found.considered, found.structures]))


def line_of(place: int) -> list[str]:
    """Return the command line of a question of SPACES."""
    _, model, numbers, system, gpus, choose = SPACES[place]
    ranks = ["--gpus", str(gpus), "--global-batch", str(gpus)]
    line = ["-m", "symbolic_cost", "search", model, "--system", system, *ranks]
    if numbers:
        line += ["--set", ",".join(f"{name}={size}" for name, size in numbers.items())]
    for name, values in choose.items():
        listed = values if isinstance(values, list | tuple) else [values]
        words = [_word(one) for one in listed]
        line += ["--choose", f"{name}={','.join(words)}"]
    return line


def _word(value: object) -> str:
    switches = {True: "on", False: "off", "": "none"}
    named = isinstance(value, bool) or value == ""
    return switches[value] if named else str(value)  # type: ignore[index]


def spaces(folder: str) -> dict[str, float]:
    """Return the figures of SPACES: the option space of another tool as one question."""
    figures: dict[str, float] = {}
    for place, (theirs, model, _, _, gpus, _) in enumerate(SPACES):
        name = f"every option of Calculon ({theirs}): {model} on {gpus}"
        line = line_of(place)
        first = spent(line, folder)
        kept = min(spent([*line, "--top", str(top)], folder) for top in range(3, 6))
        for state, (seconds, memory) in (("nothing kept", first), ("programs kept", kept)):
            figures[f"{name}: {state}, fresh process [s]"] = seconds
            figures[f"{name}: {state}, beside SymPy's import"] = seconds / import_of_sympy(folder)
            figures[f"{name}: peak memory [MiB], {state}"] = memory
        told = subprocess.run(
            [sys.executable, __file__, str(place)],
            stdout=subprocess.PIPE,
            env={**os.environ, "SYMBOLIC_COST_CACHE": folder},
            check=True,
        ).stdout
        taken, considered, structures = json.loads(told)
        figures[f"{name}: candidates"] = considered
        figures[f"{name}: structures"] = structures
        figures[f"{name}: asked again in one process [s]"] = min(taken[1:])
    return figures


@cache
def import_of_sympy(folder: str) -> float:
    """Return what a fresh process takes to import SymPy [s]."""
    return least(["-c", "import sympy"], folder)[0]


def least(line: list[str], folder: str, repeats: int = 5) -> tuple[float, float]:
    """Return the least of several runs."""
    return min(spent(line, folder) for _ in range(repeats))


def measured() -> dict[str, float]:
    """Return every figure by name."""
    figures: dict[str, float] = {}
    compileall.compile_dir(Path(sc.__file__).parent, quiet=2)
    with tempfile.TemporaryDirectory() as folder:
        figures[BARE] = least(["-c", "pass"], folder)[0]
        figures[IMPORT] = import_of_sympy(folder)
        os.environ["SYMBOLIC_COST_CACHE"] = folder
        for model, system, gpus, batch in SEARCHES:
            name = f"{model} on {gpus} {system}"
            line = LINE.format(model, system, gpus, batch).split()
            first, _ = spent(line, folder)
            figures[f"{name}: nothing kept, fresh process [s]"] = first
            figures[f"{name}: nothing kept, beside SymPy's import"] = first / figures[IMPORT]
            figures[f"{name}: the same line again, fresh process [s]"], _ = least(line, folder)
            asked = [spent([*line, "--top", str(top)], folder) for top in range(3, 8)]
            seconds, memory = min(asked)
            figures[f"{name}: another question, programs kept, fresh process [s]"] = seconds
            figures[f"{name}: programs kept, beside SymPy's import"] = seconds / figures[IMPORT]
            figures[f"{name}: peak memory [MiB]"] = memory
        figures |= spaces(folder) | sweeps()
        for model, system, gpus, batch in SEARCHES:  # last: a child's peak is no less than ours
            figures |= again(model, system, gpus, batch)
    return figures


def again(model: str, system: str, gpus: int, batch: int) -> dict[str, float]:
    """Return the figures of a search that this process asks for the second time."""
    name = f"{model} on {gpus} {system}"
    job = sc.job(model, system=system, precision="bf16-mixed")
    found = sc.search(job, gpus, batch, choose={"cp": 1})
    start = time.process_time()
    sc.search(job, gpus, batch, choose={"cp": 1})
    taken = time.process_time() - start
    return {
        f"{name}: candidates": found.considered,
        f"{name}: structures": found.structures,
        f"{name}: asked again in one process [s]": taken,
        f"{name}: per candidate [us]": 1e6 * taken / found.considered,
    }


def main() -> None:
    """Write the figures as Markdown and JSON."""
    if len(sys.argv) > 1:
        asked(int(sys.argv[1]))
        return
    figures = measured()
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    rows = "\n".join(f"| {name} | {value:.4g} |" for name, value in figures.items())
    text = f"# Searches\n\n{machine}; load {load}\n\n| figure | measured |\n|---|---:|\n{rows}\n"
    here = Path(__file__).parent
    (here / "search.md").write_text(text, encoding="utf-8")
    held = {"machine": machine, "load": load, "figures": figures}
    (here / "search.json").write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
