"""Calibration: efficiencies of a machine from step times that were measured on it.

A few physical numbers are fitted to all runs together: shares of the peak rates, the size of
products that reach half of theirs, latencies of links, and how fast the host issues ops. No run
has a number of its own.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbolic_cost.errors import InputError, quote, refuse
from symbolic_cost.reading import csv_rows, in_digits
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact
from symbolic_cost.systems.machines import Figure, Machine, figures_of
from symbolic_cost.systems.runs import Run, rates, step_seconds

Array = NDArray[np.float64]

FITTED = ("F_m", "n_half", "beta_m", "t_h", "beta_d", "alpha_d", "beta", "alpha")
"""What is fitted, by the symbol of `runs.rates`."""

COLUMNS = ("global_batch", "micro_batch", "e", "h", "n_layers", "l", "tp", "dp", "pp")
MEASURED = "iteration_time_ms"
VOCABULARY = 50257
"""Vocabulary of rows that give none."""

_START = {"n_half": 1e10, "t_h": 5e-5}
"""Where the search starts for what a machine neglects."""

_NEAR = 0.03
"""Logarithmic errors below this count squared, above it as they are: outliers do not decide."""

_REACH = np.log(1000)
"""How far the search goes from its start, for numbers that the runs do not determine."""

_ITERATIONS = 60
_STEP = 1e-4
_SMALL_GAIN = 1e-7


@dataclass(frozen=True, slots=True)
class Measured:
    """One measured run.

    Args:
        seconds: of one step [s].
    """

    run: Run
    seconds: float


@dataclass(frozen=True, slots=True)
class Errors:
    """Relative errors of predictions, as shares.

    Args:
        mean: absolute error in the mean.
        median: absolute error of the run in the middle.
    """

    runs: int
    mean: float
    median: float
    bias: float
    largest: float


def calibrate(sets: Sequence[Sequence[Measured]], machine: Machine) -> Machine:
    """Return a machine with the efficiencies that fit measured runs best.

    Args:
        sets: of runs; every set counts as much as any other, however many runs it has.
        machine: where the runs were made; its rates and links bound what may be reached. Launches
            of kernels are no longer counted: the host's time per op takes their place. So does a
            curve for a table of matmul efficiencies.

    Raises:
        InputError: fewer runs than fitted numbers, or a machine of other than two tiers.
    """
    count = sum(map(len, sets))
    if count < len(FITTED) or not all(sets):
        raise InputError(
            f"{count} runs are given; at least {len(FITTED)} are needed, in every set one"
        )
    machine = replace(machine, efficiencies=replace(machine.efficiencies, products=()))
    top = rates(_at_peak(machine))
    start = {
        name: _START.get(name, 0) if value == 0 else value for name, value in rates(machine).items()
    }
    start["t_k"] = 0.0
    runs = [one.run for group in sets for one in group]
    measured = np.log([one.seconds for group in sets for one in group])
    weights = np.concatenate([np.full(len(group), 1 / len(group)) for group in sets])

    def errors(logs: Array) -> Array:
        trial = start | dict(zip(FITTED, np.exp(logs), strict=True))
        return np.asarray(np.log(step_seconds(runs, trial)) - measured)

    first = np.log([start[name] for name in FITTED])
    bounds = np.log([top[name] if name in _BOUNDED else np.inf for name in FITTED])
    reach = first - _REACH, np.minimum(first + _REACH, bounds)
    best = np.exp(_descent(errors, np.minimum(first, bounds), reach, weights))
    return _with(machine, dict(zip(FITTED, map(float, best), strict=True)), count)


def errors_of(predicted: Iterable[float], measured: Iterable[float]) -> Errors:
    """Return the errors of predicted numbers.

    Args:
        predicted: numbers.
        measured: numbers, in the same unit and order.
    """
    pairs = zip(predicted, measured, strict=True)
    errors = np.array([guess / truth - 1 for guess, truth in pairs])
    size = np.abs(errors)
    return Errors(
        runs=len(errors),
        mean=float(size.mean()),
        median=float(np.median(size)),
        bias=float(errors.mean()),
        largest=float(size.max()),
    )


# ---------------------------------------------------------------------- least squares


def _descent(
    errors: Callable[[Array], Array], start: Array, reach: tuple[Array, Array], weights: Array
) -> Array:
    """Minimise a weighted sum of near-absolute errors: reweighted, damped least squares."""
    at, damping = start, 1e-2
    now = errors(at)
    for _ in range(_ITERATIONS):
        slopes = np.stack(
            [(errors(at + step) - now) / _STEP for step in _STEP * np.eye(len(at))], 1
        )
        share = weights / np.maximum(np.abs(now), _NEAR)
        normal, downhill = slopes.T @ (share[:, None] * slopes), slopes.T @ (share * now)
        gain = 0.0
        for _ in range(12):
            ridge = damping * np.diag(np.diag(normal) + 1e-9)
            tried = np.clip(at - np.linalg.solve(normal + ridge, downhill), *reach)
            then = errors(tried)
            gain = _sum(now, weights) - _sum(then, weights)
            if gain > 0:
                at, now, damping = tried, then, damping / 3
                break
            damping *= 4
        if gain < _SMALL_GAIN:
            break
    return at


def _sum(errors: Array, weights: Array) -> float:
    size = np.abs(errors)
    return float(weights @ np.where(size < _NEAR, (size**2 / _NEAR + _NEAR) / 2, size))


# ---------------------------------------------------------------------- machines

_BOUNDED = ("F_m", "beta_m", "beta_d", "beta")
"""Rates that are no more than the machine's own."""

_DIGITS = 3


def _at_peak(machine: Machine) -> Machine:
    """Return a machine that reaches all of its rates."""
    one = Figure(exact(1))
    links = tuple(replace(link, efficiency=one) for link in machine.links)
    reached = replace(machine.efficiencies, matrix=one, memory=one)
    return replace(machine, links=links, efficiencies=reached)


def _with(machine: Machine, fitted: Mapping[str, float], count: int) -> Machine:
    """Return a machine with fitted numbers, rounded."""
    top = rates(_at_peak(machine))
    inside, outside = machine.links
    note = f"fitted to {count} measured steps"

    def figure(value: float) -> Figure:
        return Figure(exact(float(f"{value:.{_DIGITS}g}")), "calibration", note)

    def share(name: str) -> Figure:
        return figure(fitted[name] / top[name])

    return replace(
        machine,
        sources={**machine.sources, "calibration": f"efficiencies {note} by `calibrate`"},
        links=(
            replace(inside, efficiency=share("beta_d"), latency=figure(fitted["alpha_d"])),
            replace(outside, efficiency=share("beta"), latency=figure(fitted["alpha"])),
        ),
        efficiencies=replace(
            machine.efficiencies,
            matrix=share("F_m"),
            half=figure(fitted["n_half"]),
            memory=share("beta_m"),
            launch=Figure(exact(0), "calibration", "in the time of the host"),
            host=figure(fitted["t_h"]),
        ),
    )


def record(machine: Machine) -> str:
    """Write a machine as the TOML record that `records.load_machine` reads."""
    lines = [
        f"name = {_text(machine.name)}",
        f"meaning = {_text(machine.meaning)}",
        "",
        "[sources]",
    ]
    lines += [f"{key} = {_text(text)}" for key, text in machine.sources.items()]
    for units in ("matrix", "vector"):
        lines += ["", f"[{units}]", *_figures(getattr(machine, units))]
    names = ("bandwidth", "capacity", "usable", "latency")
    lines += ["", "[memory]", *_figures({name: getattr(machine, name) for name in names})]
    for table, parts in (("caches", machine.caches), ("links", machine.links)):
        for part in parts:
            own = figures_of(part)
            lines += ["", f"[[{table}]]", f"name = {_text(part.name)}", *_figures(own)]
    if machine.host is not None:
        named = f"name = {_text(machine.host.name)}"
        lines += ["", "[host]", named, *_figures(figures_of(machine.host))]
    lines += ["", "[efficiencies]", *_figures(figures_of(machine.efficiencies))]
    lines += _tables("kernels", machine.kernels) + _tables("cluster", machine.cluster)
    return "\n".join(lines) + "\n"


def _tables(place: str, tables: Mapping[str, Any]) -> list[str]:
    """Return tables of numbers as TOML."""
    lines = []
    numbers = {key: one for key, one in tables.items() if not isinstance(one, Mapping)}
    if numbers:
        lines += ["", f"[{place}]", *(f"{_text(k)} = {one!r}" for k, one in numbers.items())]
    for key, one in tables.items():
        if isinstance(one, Mapping):
            lines += _tables(f"{place}.{key}", one)
    return lines


def _figures(figures: Mapping[str, Figure]) -> list[str]:
    return [
        f"{name} = {{ value = {_number(figure)}, source = {_text(figure.source)}, "
        f"includes = {_text(figure.includes)} }}"
        for name, figure in figures.items()
    ]


def _number(figure: Figure) -> str:
    return str(int(figure.value)) if figure.value.is_Integer else repr(float(figure.value))


def _text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# ---------------------------------------------------------------------- rows


def read_rows(path: str | Path) -> list[Measured]:
    """Read measured runs from a CSV file.

    Columns are those of `COLUMNS`, `MEASURED` [ms] and, unless it is 50257, V; others are left out.

    Raises:
        InputError: the file cannot be read, or everything that is wrong with its rows.
    """
    place = f"rows file {quote(str(path), 200)}"
    rows = csv_rows(path, (*COLUMNS, MEASURED), place)
    problems: list[str] = []
    runs = [_measured(row, f"{place}, row {n}", problems) for n, row in enumerate(rows, 1)]
    refuse(problems)
    return [one for one in runs if one is not None]


def _measured(row: Mapping[str, str], place: str, problems: list[str]) -> Measured | None:
    before = len(problems)
    sizes = {
        name: _count(row.get(name), name, place, problems)
        for name in (*COLUMNS, *(("V",) if row.get("V") else ()))
    }
    try:
        seconds = in_digits(row[MEASURED]) / 1000
    except (TypeError, ValueError):
        seconds = 0.0
    if not 0 < seconds < np.inf:
        said = quote(row[MEASURED])
        problems.append(f"{place}: {MEASURED} is {said}: a positive number is accepted")
    if len(problems) > before:
        return None
    run = Run(**{"V": VOCABULARY, **sizes})
    problems += [f"{place}: {problem}" for problem in run.problems()]
    return Measured(run, seconds)


def _count(text: str | None, name: str, place: str, problems: list[str]) -> int:
    number = _WHOLE.fullmatch(text.strip()) if text is not None else None
    if number is not None and int(number[1]) > 0:
        return int(number[1])
    problems.append(f"{place}: {name} is {quote(text)}: a positive integer is accepted")
    return 0


_WHOLE = re.compile(r"([0-9]{1,9})(?:\.0*)?")
"""An integer, as spreadsheets write it too: 1024 or 1024.0."""
