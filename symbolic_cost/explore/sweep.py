"""A sweep: every combination of the values, evaluated; kept are all, the best, or a front."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from symbolic_cost.errors import InputError, Problems, quote
from symbolic_cost.explore.plan import Plan, planned
from symbolic_cost.explore.progress import bar
from symbolic_cost.explore.ranges import Given
from symbolic_cost.explore.sweep_axes import Varied, varied
from symbolic_cost.explore.sweep_question import Mode, check_names
from symbolic_cost.explore.sweep_run import Summary, Sweeping, Wanted
from symbolic_cost.jobs.job import Job

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS, MOST, MOST_EVER = 10**6, 10**8, 2**60
"""Candidates beyond which all rows, or the best of them, are asked for on purpose; and the end."""


_SECONDS = 3e-7
"""What one candidate takes, for the time that is expected of a sweep before it is tried."""


def sweep(
    job: Job,
    vary: Mapping[str, str | int | Iterable[str | int]],
    *,
    gpus: int | None = None,
    global_batch: int | None = None,
    where: str = "",
    by: str = "",
    top: int | None = None,
    histogram: str = "",
    columns: Sequence[str] = (),
    out: str | None = None,
    engine: str = "threads",
    scheduler: str = "",
    progress: bool = True,
    yes: bool = False,
) -> pd.DataFrame | Summary:
    """Evaluate a job for every combination of values.

    >>> import symbolic_cost as sc
    >>> rows = sc.sweep(sc.job("gpt2", system="h100"), {"tp": "1,2", "b": [1, 2]}, gpus=4,
    ...                 global_batch=16)  # steps [s], memory of a rank [byte]
    >>> rows.columns.tolist(), len(rows)
    (['tp', 'b', 'dp', 'M', 'step', 'mfu', 'tokens_per_second', 'memory', 'fits'], 4)

    Args:
        job: what does not vary; a degree that neither varies nor has a number follows.
        vary: values by name, as in {"tp": "1:16:x2", "b": [1, 2], "recompute": "none,full"}: of
            degrees, sizes, M, v, gpus, global_batch, zero, and options of the job.
        gpus: devices; dp follows from the other degrees.
        global_batch: sequences of one step; M follows.
        where: the configurations that count, as in "memory < 80 GiB and tp*pp <= 64".
        by: what is made small; the step unless given. Of a rate alone (mfu) more is better.
        top: rows to keep.
        histogram: an expression; how many candidates there are by its size, in place of rows.
        columns: of the rows, beside what varies.
        out: .parquet, .csv or .jsonl file for the rows; a sweep that was interrupted goes on.
        engine: "threads" of this process, or "dask".
        scheduler: address of dask's.
        progress: whether a terminal shows it.
        yes: sweep however many candidates there are.

    Returns:
        The rows in base units; with `out`, what became of the sweep.

    Raises:
        InputError: every name, value and question that is refused, nothing that is legal or
            counts, or a file that cannot be written.
    """
    mode = kept_of(by, top, histogram, out)
    wanted = Wanted(
        where=where, columns=columns, engine=engine, scheduler=scheduler, progress=progress
    )
    wanted.check((by, histogram), out)
    own = bounded(job, vary, gpus, global_batch, few=mode == "all" and out is None, yes=yes)
    key = histogram or by or usual_key(job)
    done = Sweeping(told_plan(own, wanted, (key,)), mode, (key,), wanted, top or 0).outcome(out)
    return done.summary if out is not None else done.frame()


def usual_key(job: Job) -> str:
    """Return what is made small where nothing is said."""
    return "step" if job.machine is not None else "memory"


def kept_of(by: str, top: int | None, histogram: str, out: str | None) -> Mode:
    """Return what is kept of a sweep.

    Raises:
        InputError: no rows to keep, or a histogram of rows that are kept or written.
    """
    if top is not None and top < 1:
        raise InputError(f"top = {quote(top)}: a positive integer is accepted")
    beside = {"by": by, "top": top, "out": out}
    said = [name for name, value in beside.items() if value not in ("", None)]
    if histogram and said:
        raise InputError(f"histogram keeps no rows: {', '.join(said)} does not go with it")
    return "histogram" if histogram else "all" if top is None else "top"


def pareto(
    job: Job,
    vary: Mapping[str, str | int | Iterable[str | int]],
    *,
    gpus: int | None = None,
    global_batch: int | None = None,
    axes: tuple[str, str] = ("step", "memory"),
    where: str = "",
    columns: Sequence[str] = (),
    engine: str = "threads",
    scheduler: str = "",
    progress: bool = True,
    yes: bool = False,
) -> pd.DataFrame:
    """Return the configurations that no other beats in one of two figures and equals in the other.

    The axes are two expressions that are made small, of a rate alone (mfu) large; all other
    arguments are those of `sweep`.

    Returns:
        Rows in base units, by the first figure.

    Raises:
        InputError: as of `sweep`.
    """
    problems = Problems()
    if len({*axes}) != len("xy"):
        problems.texts.append(f"axes {quote(axes)}: two figures are accepted")
    wanted = Wanted(
        where=where, columns=columns, engine=engine, scheduler=scheduler, progress=progress
    )
    problems.attempt(wanted.check, axes, None)
    problems.refuse()
    own = bounded(job, vary, gpus, global_batch, few=False, yes=yes)
    return Sweeping(told_plan(own, wanted, axes), "front", axes, wanted).outcome(None).frame()


def bounded(
    job: Job,
    vary: Mapping[str, Given],
    gpus: int | None,
    global_batch: int | None,
    *,
    few: bool,
    yes: bool,
) -> Varied:
    """Return what varies, if it is not more than anybody asks for by chance."""
    own = varied(job, vary, gpus, global_batch)
    size = own.words.size * own.outer.size * own.inner.size
    most = MOST_EVER if yes else MOST_ROWS if few else MOST
    if size > most:
        axes = (axis for grid in (own.words, own.outer, own.inner) for axis in grid.axes)
        varies = " x ".join(f"{axis.name} ({len(axis.choices):,})" for axis in axes)
        wait = f"{varies}: {size:.3g} candidates, which take {_duration(size * _SECONDS)}"
        more = "ask for the best (top), a file (out), or say yes" if few else "say yes"
        ways = "vary less" if yes else f"{more} if this is meant"
        raise InputError(f"{wait}; up to {most:.0e} are accepted: {ways}")
    return own


def _duration(seconds: float) -> str:
    for size, name in ((86400 * 365, "years"), (86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds > size:
            return f"about {seconds / size:.3g} {name}"
    return f"about {seconds:.2g} s"


def told_plan(own: Varied, wanted: Wanted, by: Sequence[str]) -> Plan:
    """Return the plan of what varies; a terminal shows how many structures are derived."""
    check_names(own, wanted.where, by, wanted.columns)
    with bar("deriving", "structures", shown=wanted.progress) as tick:
        return planned(own, tick)
