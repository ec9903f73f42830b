"""Sweeps as typed on a command line, and their rows for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from symbolic_cost.emit.front import Front
from symbolic_cost.emit.sheet import Cell, Column, Sheet
from symbolic_cost.errors import InputError, Problems, shown
from symbolic_cost.explore.sweep import Outcome, Sweeping, bounded, told_plan
from symbolic_cost.explore.varied import Varied
from symbolic_cost.jobs.numbers import degree_names
from symbolic_cost.units import Unit

if TYPE_CHECKING:
    from symbolic_cost.cli.options import Choices

_UNITS: Mapping[str, Unit | str | None] = {
    "byte": Unit.BYTE,
    "s": Unit.SECOND,
    "1/s": "1/s",
    "FLOP/s": Unit.FLOP_PER_SECOND,
}


def sweep_line(
    choices: Choices,
    model: str,
    trained: dict[str, Any],
    sweeping: dict[str, Any],
    *,
    by: str,
    top: int | None,
    out: str | None,
) -> Sheet | str:
    """Return the table of a sweep, or what became of one that a file takes.

    Raises:
        InputError: everything that is refused.
    """
    if top is not None and top < 1:
        raise InputError(f"--top {shown(top)}: a positive integer is accepted")
    own = _varied(choices, model, trained, sweeping, few=top is None and out is None)
    columns = _listed(sweeping["columns"])
    keys = (by or ("step" if own.job.machine is not None else "memory"),)
    made = Sweeping(
        told_plan(own),
        "all" if top is None else "top",
        where=sweeping["where"],
        by=keys,
        most=top or 0,
        columns=columns,
    )
    done = made.outcome(out, sweeping["engine"], sweeping["scheduler"])
    return str(done.summary) if out is not None else sheet(done, f"the least {keys[0]}")


def pareto_lines(
    choices: Choices,
    model: str,
    trained: dict[str, Any],
    sweeping: dict[str, Any],
    axes: Iterable[str],
) -> list[Front]:
    """Return a front for every pair of figures.

    Raises:
        InputError: everything that is refused.
    """
    own = _varied(choices, model, trained, sweeping, few=False)
    pairs = [_listed(text) for text in axes] or [["step", "memory"], ["step", "cost"]]
    wrong = [
        f"--axes {','.join(p)}: two figures are accepted" for p in pairs if len(p) != len("xy")
    ]
    if wrong:
        raise InputError(wrong)
    plan, fronts = told_plan(own), []
    for pair in pairs:
        columns = _listed(sweeping["columns"])
        made = Sweeping(plan, "front", where=sweeping["where"], by=pair, columns=columns)
        done = made.outcome(None, sweeping["engine"], sweeping["scheduler"])
        fronts.append(_front(done, made, pair))
    return fronts


def _varied(
    choices: Choices,
    model: str,
    trained: dict[str, Any],
    sweeping: dict[str, Any],
    *,
    few: bool,
) -> Varied:
    """Return what varies, of a job without the global batch, which decides over M later.

    Raises:
        InputError: every problem of the job and of what varies.
    """
    problems = Problems()
    texts = [piece for text in (*sweeping["vary"], *sweeping["more"]) for piece in text.split()]
    vary: dict[str, str] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not name:
            problems.found.append(f"--vary {shown(text)}: NAME=VALUES is accepted, as in tp=1,2,4")
        elif name in vary:
            problems.found.append(f"--vary {name} is given twice")
        vary[name] = values
    batch = trained.pop("global_batch")
    devices = sweeping["gpus"] is not None or "gpus" in vary
    text = _with_names(choices.strategy, [*vary, *(["dp"] if devices else [])])
    job = problems.attempt(lambda: replace(choices, strategy=text).job(model, **trained))
    problems.refuse()
    return bounded(job, vary, sweeping["gpus"], batch, few=few, yes=sweeping["yes"])


def _with_names(strategy: str, names: Iterable[str]) -> str:
    """Return a strategy with the names that vary, so that "sp,zero=1" needs no tp and dp."""
    held = [part.partition("=")[0].strip() for part in strategy.split(",") if part.strip()]
    more = [name for name in names if name in degree_names() and name not in held]
    return ",".join([*filter(None, [strategy]), *dict.fromkeys(more)])


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def sheet(done: Outcome, title: str) -> Sheet:
    """Tabulate the rows of a sweep."""
    rows = done.rows or {}
    units = done.summary.units
    columns = tuple(
        Column(name, "left" if units[name] == "word" else "right", _UNITS.get(units[name]))
        for name in rows
    )
    cells: list[list[Cell]] = [column.tolist() for column in rows.values()]
    lines = (*done.summary.lines, *(f"{name}: {text}" for name, text in done.plan.about.items()))
    return Sheet(f"{done.plan.title}: {title}", columns, tuple(zip(*cells, strict=True)), lines)


def _front(done: Outcome, made: Sweeping, pair: list[str]) -> Front:
    rows, units = done.rows or {}, done.summary.units
    across, up = (abs(key.values(rows)).tolist() for key in made.asked.keys)
    held = {name: rows[name].tolist() for name in made.varied_names if name in rows}
    alike = [f"{name}={own[0]}" for name, own in held.items() if len(set(own)) == 1]
    differ = {name: own for name, own in held.items() if len(set(own)) > 1}
    labels = [
        " ".join(f"{name}={value}" for name, value in zip(differ, row, strict=True))
        for row in zip(*differ.values(), strict=True)
    ]
    return Front(
        x=pair[0],
        y=pair[1],
        unit_x=units.get(pair[0], ""),
        unit_y=units.get(pair[1], ""),
        across=across,
        up=up,
        labels=labels or [""],
        alike=" ".join(alike),
        title=done.plan.title,
        sheet=sheet(done, f"no other has less {pair[0]} and {pair[1]}"),
    )
