"""What `calibrate` does and prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from symbolic_cost.emit.sheet import Column, Sheet
from symbolic_cost.errors import Problems
from symbolic_cost.systems.calibration import (
    Errors,
    Measured,
    calibrate,
    errors_of,
    read_rows,
)
from symbolic_cost.systems.machines import SYMBOLIC, Machine
from symbolic_cost.systems.records import find_machine
from symbolic_cost.systems.runs import rates, step_seconds


@dataclass(frozen=True, slots=True)
class Fitted:
    """A calibrated machine, and the errors that remain by file.

    Args:
        machine: with the fitted efficiencies.
        errors: of its predictions on the rows that they were fitted to.
    """

    machine: Machine
    errors: dict[str, Errors]


def fitted(system: str, files: Sequence[str]) -> Fitted:
    """Calibrate a machine on measured rows.

    Raises:
        InputError: every problem of the machine and the files.
    """
    problems = Problems()
    start = problems.attempt(find_machine, system)
    sets = [problems.attempt(read_rows, file) for file in files]
    if start is SYMBOLIC:
        problems.found.append("machine 'symbolic' has no numbers to start from: name another one")
    problems.refuse()
    machine = calibrate(sets, start)
    errors = {file: _errors(machine, rows) for file, rows in zip(files, sets, strict=True)}
    return Fitted(machine, errors)


def fitted_sheet(found: Fitted) -> Sheet:
    """Tabulate the errors that remain, the fitted numbers in the notes."""
    rows = tuple(
        (
            file,
            errors.runs,
            *(
                round(100 * share, 2)
                for share in (errors.mean, errors.median, errors.bias, errors.largest)
            ),
        )
        for file, errors in found.errors.items()
    )
    shares = ("mean", "median", "bias", "largest")
    columns = (
        Column("rows"),
        Column("runs", "right"),
        *(Column(name, "right", "%") for name in shares),
    )
    notes = tuple(
        f"{place} = {float(figure.value):.4g} ({figure.includes})"
        for place, figure in found.machine.figures()
        if place.startswith("efficiencies.") or place.endswith((".efficiency", ".latency"))
    )
    return Sheet(f"{found.machine.name}, calibrated: errors on these rows", columns, rows, notes)


def _errors(machine: Machine, rows: Sequence[Measured]) -> Errors:
    predicted = step_seconds([row.run for row in rows], rates(machine))
    return errors_of(predicted, [row.seconds for row in rows])
