"""A proven optimum of some 10**12 combinations: `python reports/benchmarks/proof.py`.

Strategies of gpt3-175b on 512 GPUs together with rates of the machine, by `sc.prove`. The first run
derives the programs or reads them from the folder; the second one has them. Prints Markdown.
"""

from __future__ import annotations

import os
import platform
import resource
import sys
import time

import numpy as np

import symbolic_cost as sc

RATES = {
    "F_m": "1e14:1e15:x1.03",
    "beta_m": "1e12:8e12:x1.03",
    "beta": "1e10:1e11:x1.03",
    "beta_d": "1e11:1e12:x1.03",
}
QUESTIONS = {
    "step": RATES,
    "throughput": {**RATES, "l": "1024:8192:x2"},
    "mfu": {"F_m": RATES["F_m"], "beta_m": RATES["beta_m"], "beta": RATES["beta"], "l": "2048"},
}
LEAST = 10**12


def main() -> None:
    """Print one table."""
    print("# A proven search\n\ngpt3-175b on 512 x a100-80gb, 512 sequences in a step.\n")
    print(
        f"{platform.machine()}; python {platform.python_version()}; numpy {np.__version__}; "
        f"load {os.getloadavg()[0]:.2f}\n"
    )
    print("| objective | run | combinations | boxes | best | bound | proven | CPU [s] | wall [s] |")
    print("|---|---|---:|---:|---:|---:|---|---:|---:|", flush=True)
    for objective in sys.argv[1:] or QUESTIONS:
        for run in ("first", "again"):
            cpu, wall = time.process_time(), time.perf_counter()
            done = sc.prove(
                "gpt3-175b",
                512,
                512,
                system="a100-80gb",
                vary=QUESTIONS[objective],
                objective=objective,
            )
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            print(
                f"| {objective} | {run} | {done.least.combinations:.3g} | {done.least.boxes:,} "
                f"| {done.value:.8g} | {done.bound:.8g} | {'yes' if done.proven else 'no'} "
                f"| {cpu:.1f} | {wall:.1f} |",
                flush=True,
            )
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nPeak memory {most:.0f} MiB. Wanted: at least {LEAST:.0e} combinations below 60 s.")


if __name__ == "__main__":
    main()
