"""Recorded runs: rows of a table of measured steps, each as the job that ran.

A row names a model or gives its sizes; then machine, degrees, batch, precision, recomputation, and
what was measured. What a row leaves out is assumed and said; what cannot be expressed is refused
with the reason, row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from symbolic_cost.errors import InputError, Problems, quote, refuse
from symbolic_cost.jobs.job import Job
from symbolic_cost.jobs.recorded_row import NEEDED, SIZES, RowRead, number_in
from symbolic_cost.reading import csv_rows, package_data
from symbolic_cost.records import dataclass

WORDS: Mapping[str, Any] = package_data("jobs/recorded.toml")["columns"]
"""Columns by other names."""

_NAMES = {other: name for name, others in WORDS.items() for other in others}

_TIMES = ("measured_step_s", "iteration_time_ms", "tokens_per_s_per_gpu")

_DIFFERENCE = 0.02
"""By how much of each other two printed times of one step may differ: printed digits are few."""


@dataclass(frozen=True)
class RecordedRun:
    """One row.

    Args:
        cells: by column, empty ones left out.
        place: file and row, as errors name them.
        seconds: of one step [s]; None where the row prints none.
    """

    cells: Mapping[str, str]
    place: str
    seconds: float | None

    @property
    def name(self) -> str:
        """The row's own name, or its place."""
        return self.cells.get("id", self.place)

    @property
    def source(self) -> str:
        """Where the row was published; runs of one source have one vote."""
        return self.cells.get("source", self.place.partition(",")[0])

    @property
    def peak_bytes(self) -> float | None:
        """What the row prints of memory [byte]."""
        text = self.cells.get("peak_mem_gib")
        return None if text is None else number_in(text) * 2**30

    @cached_property
    def _read(self) -> RowRead:
        return RowRead(self.cells)

    @property
    def assumed(self) -> tuple[str, ...]:
        """What the row leaves out, and what holds instead."""
        self.job  # noqa: B018 - reads the row
        told = (*self._read.assumed, self.cells.get("assumed"))
        return tuple(dict.fromkeys(filter(None, told)))

    @cached_property
    def job(self) -> Job:
        """The job that ran.

        Raises:
            InputError: why the row cannot be expressed, every reason.
        """
        return self._read.job()


@dataclass(frozen=True)
class RecordedRuns:
    """The rows of one or several tables.

    Args:
        refused: the others by name, with the reason.
    """

    expressed: tuple[RecordedRun, ...]
    refused: Mapping[str, str]


def recorded_runs(*paths: str | Path) -> RecordedRuns:
    """Read tables of measured steps, every row as the job that ran.

    Columns: model, or n_layers, hidden, heads, kv_heads, head_dim, ffn, gated, vocab, family; seq,
    micro_batch, global_batch, gpus, tp, sp, pp, vpp, cp, ep, dp, zero, shard_ranks; system,
    gpus_per_node, internode_GBps_per_gpu; predicted (further tokens); precision, recompute,
    attention, optimizer, offload, overlap, layout; measured_step_s, iteration_time_ms or
    tokens_per_s_per_gpu; peak_mem_gib.

    Raises:
        InputError: a file that cannot be read, and every problem of its columns and numbers.
    """
    problems = Problems()
    runs = [run for path in paths for run in problems.attempt(_table, path) or ()]
    problems.refuse()
    refused = {}
    for run in runs:
        try:
            run.job  # noqa: B018 - reads the row
        except InputError as error:
            refused[run.name] = "; ".join(error.problems)
    return RecordedRuns(tuple(run for run in runs if run.name not in refused), refused)


def _table(path: str | Path) -> list[RecordedRun]:
    place = f"rows file {quote(str(path), 200)}"
    table = csv_rows(path, place=place)
    rows = [_renamed(row) for row in table]
    known = {_NAMES.get(name, name) for name in table[0]}
    problems = [f"{place}: column {name!r} is missing" for name in NEEDED if name not in known]
    if not known & {"model", *SIZES}:
        problems.append(f"{place}: columns model, or {', '.join(SIZES)}, are missing")
    if not known & {*_TIMES, "peak_mem_gib"}:
        problems.append(f"{place}: no column is measured: {', '.join(_TIMES)} are accepted")
    if not problems:
        problems += _repeated([row.get("id") for row in rows], place)
        runs = [_run(row, f"{place}, row {n}", problems) for n, row in enumerate(rows, 1)]
    refuse(problems)
    return runs


def _repeated(names: Sequence[str | None], place: str) -> list[str]:
    printed = [name for name in names if name is not None]
    twice = sorted({name for name in printed if printed.count(name) > 1})
    return [f"{place}: id {quote(name)} stands {printed.count(name)} times" for name in twice]


def _renamed(row: Mapping[str, str]) -> dict[str, str]:
    """Return the cells that say something, by the names of the columns."""
    cells = {_NAMES.get(key, key): (text or "").strip() for key, text in row.items()}
    return {key: text for key, text in cells.items() if text}


def _run(cells: dict[str, str], place: str, problems: list[str]) -> RecordedRun:
    times = dict(_seconds(cells, place, problems))
    memory = cells.get("peak_mem_gib")
    if memory is not None and not 0 < number_in(memory) < 10**4:
        problems.append(f"{place}: peak_mem_gib is {quote(memory)}: a number of GiB is accepted")
    low, high = min(times.values(), default=0), max(times.values(), default=0)
    if high > low * (1 + _DIFFERENCE):
        said = " and ".join(f"{name} = {cells[name]} ({s:.4g} s)" for name, s in times.items())
        problems.append(f"{place}: {said} contradict each other: are the units the same?")
    return RecordedRun(cells, place, next(iter(times.values()), None))


def _seconds(
    cells: Mapping[str, str], place: str, problems: list[str]
) -> Iterable[tuple[str, float]]:
    """Yield the time of a step as every column says it that is there [s]."""
    for name, scale in (("measured_step_s", 1.0), ("iteration_time_ms", 1e-3)):
        if name in cells:
            yield from _positive(cells, name, place, problems, scale.__mul__)
    if "tokens_per_s_per_gpu" in cells and {"gpus", "seq", "global_batch"} <= cells.keys():
        tokens, gpus = (number_in(cells[n]) for n in ("seq", "gpus"))
        batch = number_in(cells["global_batch"])
        column = "tokens_per_s_per_gpu"
        yield from _positive(cells, column, place, problems, (tokens * batch / gpus).__truediv__)


def _positive(
    cells: Mapping[str, str],
    name: str,
    place: str,
    problems: list[str],
    scaled: Callable[[float], float],
) -> Iterable[tuple[str, float]]:
    number = number_in(cells[name])
    if 0 < number < float("inf"):
        yield name, scaled(number)
    else:
        problems.append(f"{place}: {name} is {quote(cells[name])}: a positive number is accepted")
