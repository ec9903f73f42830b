"""Sweeps as typed on a command line, and their rows for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from symbolic_cost.emit.front import Front
from symbolic_cost.emit.sheet import Cell, Column, Sheet
from symbolic_cost.errors import InputError, Problems, refuse
from symbolic_cost.explore.ranges import named, values
from symbolic_cost.explore.sweep import bounded, kept_of, told_plan, usual_key
from symbolic_cost.explore.sweep_axes import Varied
from symbolic_cost.explore.sweep_run import Outcome, Sweeping, Wanted
from symbolic_cost.jobs.job import Job
from symbolic_cost.jobs.numbers import degree_names
from symbolic_cost.records import dataclass
from symbolic_cost.systems.results import SHARES
from symbolic_cost.units import Unit

_UNITS: Mapping[str, Unit | str | None] = {
    "byte": Unit.BYTE,
    "s": Unit.SECOND,
    "1/s": "1/s",
    "FLOP/s": Unit.FLOP_PER_SECOND,
}


@dataclass(frozen=True, kw_only=True)
class Line:
    """What varies, as typed.

    Args:
        make: the job of a strategy as text.
        texts: each NAME=VALUES, or several with blanks between them.
        bound: of the candidates: "usual", or "none".
    """

    make: Callable[[str], Job]
    strategy: str
    texts: tuple[str, ...]
    gpus: int | None
    batch: int | None
    wanted: Wanted
    bound: str

    def varied(self, by: Iterable[str], out: str | None, *, few: bool) -> Varied:
        """Return what varies."""
        problems = Problems()
        vary = named(self.texts, problems, "tp=1,2,4")
        devices = self.gpus is not None or "gpus" in vary
        names = [*vary, *(["dp"] if devices else [])]
        job = problems.attempt(self.make, _with_names(self.strategy, names))
        if not problems.texts:
            own = problems.attempt(
                lambda: bounded(job, vary, self.gpus, self.batch, few=few, yes=self.bound == "none")
            )
        else:
            for name, listed in vary.items():
                problems.attempt(values, name, listed)
        problems.attempt(self.wanted.check, by, out)
        problems.refuse()
        return own


def sweep_line(
    line: Line, *, by: str, top: int | None, out: str | None, histogram: str = ""
) -> Sheet | str:
    """Return the table of a sweep, or what became of one that a file takes."""
    mode = kept_of(by, top, histogram, out)
    own = line.varied((by, histogram), out, few=mode == "all" and out is None)
    key = histogram or by or usual_key(own.job)
    plan = told_plan(own, line.wanted, (key,))
    done = Sweeping(plan, mode, (key,), line.wanted, top or 0).outcome(out)
    return str(done.summary) if out is not None else sheet(done, f"by {key}")


def pareto_lines(line: Line, axes: Iterable[str]) -> list[Front]:
    """Return a front for every pair of figures."""
    pairs = [comma_separated(text) for text in axes] or [["step", "memory"], ["step", "cost"]]
    refuse(
        f"--axes {','.join(p)}: two figures are accepted" for p in pairs if len({*p}) != len("xy")
    )
    own = line.varied([name for pair in pairs for name in pair], None, few=False)
    if own.job.machine is None and not axes:
        raise InputError("step and cost need a machine: --system h100, or name other --axes")
    plan = told_plan(own, line.wanted, [name for pair in pairs for name in pair])
    sweeps = ((pair, Sweeping(plan, "front", pair, line.wanted)) for pair in pairs)
    return [_front(sweeping.outcome(None), sweeping, pair) for pair, sweeping in sweeps]


def _with_names(strategy: str, names: Iterable[str]) -> str:
    """Return a strategy with the names that vary, so that "sp,zero=1" needs no tp and dp."""
    held = [part.partition("=")[0].strip() for part in strategy.split(",") if part.strip()]
    more = [name for name in names if name in degree_names() and name not in held]
    return ",".join([*filter(None, [strategy]), *dict.fromkeys(more)])


def comma_separated(text: str) -> list[str]:
    """Return the names in a text."""
    return [name.strip() for name in text.split(",")] if text.strip() else []


def sheet(done: Outcome, title: str) -> Sheet:
    """Tabulate the rows of a sweep, and say how many of them the machine has no room for."""
    rows = done.rows or {}
    units = done.summary.units
    columns = tuple(
        Column(
            name,
            "left" if units[name] == "word" else "right",
            Unit.RATIO if name.replace("_", " ") in SHARES else _UNITS.get(units[name]),
        )
        for name in rows
    )
    cells: list[list[Cell]] = [
        [bool(one) for one in column] if name == "fits" else column.tolist()
        for name, column in rows.items()
    ]
    over = sum(not one for one in rows.get("fits", ()))
    beyond = (f"{over} of these rows do not fit: --where fits leaves them out",) if over else ()
    meant = ("cost: seconds of all devices together for one token or sample",)
    lines = (
        *done.summary.lines,
        *beyond,
        *(meant if "cost" in rows else ()),
        *(f"{name}: {text}" for name, text in done.plan.about.items()),
    )
    return Sheet(f"{done.plan.title}: {title}", columns, tuple(zip(*cells, strict=True)), lines)


def _front(done: Outcome, sweeping: Sweeping, pair: list[str]) -> Front:
    rows, units = done.rows or {}, done.summary.units
    across, up = (abs(key.values(rows)).tolist() for key in sweeping.asked.keys)
    held = {name: rows[name].tolist() for name in sweeping.varied_names if name in rows}
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
