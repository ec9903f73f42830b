"""Errors on measured rows that the project does not carry, as figures that it does.

Reads CSV files of one machine (columns of `symbolic_cost.systems.calibration`), one per set of
runs, and writes the figures of the report as JSON:

    python reports/accuracy/measured.py multi-node=FILE.csv single-node=FILE.csv > measured.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

import symbolic_cost as sc

FOLDS = 5
_SEED = 2024

GROUPS: Mapping[str, Callable[[sc.systems.Run], str]] = {
    "tensor parallel": lambda run: f"tp = {run.tp}",
    "pipeline": lambda run: f"pp = {run.pp}",
    "microbatch": lambda run: f"b = {run.micro_batch}",
    "width": lambda run: f"e = {run.e}",
}
"""What runs are grouped by to see where errors are."""

Sets = Mapping[str, Sequence[sc.systems.Measured]]


def figures(sets: Sets) -> dict[str, object]:
    """Return the errors of the shipped efficiencies, by set and group, and of held-out runs."""
    shipped = sc.systems.rates(sc.publication("vtrain-2024").cluster())
    found: dict[str, object] = {}
    held_out = dict(_held_out(sets))
    for name, rows in sets.items():
        predicted = sc.systems.step_seconds([row.run for row in rows], shipped)
        groups = {
            title: {
                key: _errors([rows[n] for n in places], predicted[places])
                for key, places in sorted(_places(rows, group).items(), key=_by_number)
            }
            for title, group in GROUPS.items()
        }
        found[name] = {
            "shipped": _errors(rows, predicted),
            "held out": held_out[name],
            "groups": groups,
        }
    return found


def _held_out(sets: Sets) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the errors of runs that were left out of a calibration, each left out once."""
    chosen = np.random.default_rng(_SEED)
    folds = {name: chosen.permutation(len(rows)) % FOLDS for name, rows in sets.items()}
    predicted = {name: np.zeros(len(rows)) for name, rows in sets.items()}
    for fold in range(FOLDS):
        kept = [
            [row for row, mine in zip(rows, folds[name], strict=True) if mine != fold]
            for name, rows in sets.items()
        ]
        reached = sc.systems.rates(
            sc.systems.calibrate(kept, sc.publication("vtrain-2024").cluster())
        )
        for name, rows in sets.items():
            left = [int(n) for n in np.flatnonzero(folds[name] == fold)]
            predicted[name][left] = sc.systems.step_seconds([rows[n].run for n in left], reached)
    for name, rows in sets.items():
        yield name, _errors(rows, predicted[name])


def _places(
    rows: Sequence[sc.systems.Measured], group: Callable[[sc.systems.Run], str]
) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        found.setdefault(group(row.run), []).append(place)
    return found


def _by_number(item: tuple[str, list[int]]) -> int:
    return int(item[0].rpartition(" ")[2])


def _errors(
    rows: Sequence[sc.systems.Measured], predicted: NDArray[np.float64]
) -> dict[str, float]:
    found = asdict(sc.systems.errors_of(predicted, [row.seconds for row in rows]))
    return {name: round(value, 4) for name, value in found.items()}


if __name__ == "__main__":
    given = dict(argument.split("=", 1) for argument in sys.argv[1:])
    made = figures({name: sc.systems.read_rows(path) for name, path in given.items()})
    sys.stdout.write(json.dumps(made, indent=1) + "\n")
