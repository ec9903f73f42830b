"""What `calibrate` prints of kernels and of a cluster's steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from symbolic_cost.emit.sheet import Cell, Sheet, headed
from symbolic_cost.errors import InputError, Problems
from symbolic_cost.jobs.cluster import ClusterFit, fit_cluster, on_cluster
from symbolic_cost.jobs.job import Job
from symbolic_cost.jobs.recorded import RecordedRun, recorded_runs
from symbolic_cost.jobs.steps import Numbered, Steps
from symbolic_cost.reading import csv_rows
from symbolic_cost.records import dataclass
from symbolic_cost.systems.calibration import COLUMNS, MEASURED
from symbolic_cost.systems.kernel_tables import KernelFits, kernel_fits
from symbolic_cost.systems.machines import SYMBOLIC, Machine
from symbolic_cost.systems.records import find_machine


@dataclass(frozen=True)
class Calibrated:
    """A machine with what was measured on it."""

    machine: Machine
    kernels: KernelFits | None
    cluster: ClusterFit | None
    runs: tuple[str, ...]
    refused: dict[str, str]


def has_efficiencies(files: Sequence[str]) -> bool:
    """Tell whether rows are those of GPT runs that `calibration.read_rows` reads."""
    try:
        return bool(files) and all(csv_rows(file, (*COLUMNS, MEASURED)) for file in files)
    except InputError:
        return False


def calibrated(
    system: str, kernels: Sequence[str], rows: Sequence[str], stack: str = ""
) -> Calibrated:
    """Fit a machine: kernels first, then three numbers of the cluster."""
    problems = Problems()
    machine = problems.attempt(find_machine, system)
    if machine is SYMBOLIC:
        problems.texts.append("machine 'symbolic' has no numbers to start from: name another one")
    fits = None
    if kernels and not problems.texts:
        fits = problems.attempt(kernel_fits, kernels, machine)
    runs = problems.attempt(recorded_runs, *rows) if rows else None
    problems.refuse()
    if fits is not None:
        machine = replace(machine, kernels={**machine.kernels, **fits.record})
    if runs is None:
        return Calibrated(machine, fits, None, (), {})
    refused, steps = dict(runs.refused), Steps()
    listed: list[tuple[RecordedRun, Numbered]] = []
    for run in runs.expressed:
        try:
            listed.append((run, steps.of(_on(run, machine, stack))))
        except InputError as error:
            refused[run.name] = "; ".join(error.problems)
    if not listed:
        raise InputError([f"{name}: {reason}" for name, reason in refused.items()])
    cluster = fit_cluster([step for _, step in listed], [run.seconds or 0 for run, _ in listed])
    names = tuple(run.name for run, _ in listed)
    return Calibrated(on_cluster(machine, cluster, len(listed)), fits, cluster, names, refused)


def _on(run: RecordedRun, machine: Machine, stack: str) -> Job:
    """Return the job of a row on the machine that is fitted."""
    own = run.job.machine
    if run.seconds is None:
        raise InputError("no time is printed")
    if own is not None and own.name != machine.name:
        raise InputError(f"ran on {own.name}, not on {machine.name}")
    links = machine.links if own is None else own.links
    job = run.job.replace(
        system=replace(machine, links=links), precision=run.job.training.precision
    )
    return job.replace(stack=stack) if stack else job


def calibrated_sheet(outcome: Calibrated) -> Sheet:
    """Tabulate what was fitted and the errors that remain; outliers and refusals in the notes."""
    rows: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    if outcome.kernels is not None:
        for kind, fit in outcome.kernels.fits.items():
            numbers = ", ".join(f"{name} {number:.4g}" for name, number in fit.values.items())
            rows.append((kind, fit.count, numbers, round(100 * fit.error, 2)))
            notes += [f"{kind}: {name} stands on a bound of the fit" for name in fit.bounds]
            notes += [f"{kind}, outlier: {line}" for line in outcome.kernels.outliers[kind]]
    if outcome.cluster is not None:
        own = outcome.cluster
        for name, factor in own.factors.items():
            figures = f"{factor:.3f} times as long, known to {100 * own.spreads[name]:.0f} %"
            rows.append((name, len(outcome.runs), figures, None))
        for label, errors in (("steps before", own.before), ("steps after", own.after)):
            figures = f"bias {100 * errors.bias:+.1f} %, largest {100 * errors.largest:.1f} %"
            rows.append((label, errors.runs, figures, round(100 * errors.mean, 2)))
        figures = f"spread {100 * own.noise:.1f} % besides, under {', '.join(own.software)}"
        rows.append(("other steps", len(outcome.runs), figures, None))
        notes += [f"outlier, weighs less: {outcome.runs[place]}" for place in own.outliers]
    notes += [f"not expressed: {name}: {reason}" for name, reason in outcome.refused.items()]
    columns = headed("fitted, rows>, numbers, mean error> [%]")
    return Sheet(f"{outcome.machine.name}, calibrated", columns, tuple(rows), tuple(notes))
