"""A sweep that runs: in memory or into a file, with what became of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from importlib.metadata import version
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from symbolic_cost.errors import NothingFitsError, Problems, quote
from symbolic_cost.explore.evaluation import Evaluation
from symbolic_cost.explore.formats import ending, typed
from symbolic_cost.explore.grammar import parsed
from symbolic_cost.explore.plan import Plan
from symbolic_cost.explore.points import Grid
from symbolic_cost.explore.progress import bar
from symbolic_cost.explore.results import Result, Rows, bounds, concatenated
from symbolic_cost.explore.running import OF_BEST, OF_CLUSTER, OF_ROWS, check_engine, results
from symbolic_cost.explore.storage import Store, counted
from symbolic_cost.explore.sweep_question import Mode, sweep_question
from symbolic_cost.records import dataclass

if TYPE_CHECKING:
    import pandas as pd

HISTOGRAM = ("from", "below", "candidates")
"""Columns of a histogram."""


@dataclass(frozen=True)
class Summary:
    """What became of a sweep.

    Args:
        legal: of those, such that every condition is met.
        counted: of those, such that the question is answered by yes.
        ruled_out: candidates by the first condition that rules them out.
    """

    candidates: int
    legal: int
    counted: int
    ruled_out: Mapping[str, int]
    units: Mapping[str, str]
    path: str | None

    @property
    def lines(self) -> tuple[str, ...]:
        """The counts for people."""
        most = sorted(self.ruled_out.items(), key=lambda item: (-item[1], item[0]))
        head = f"{self.candidates:,} candidates, {self.legal:,} legal, {self.counted:,} counted"
        told = [f"ruled out {number:,}: {label}" for label, number in most[:_TOLD]]
        rest = sum(number for _, number in most[_TOLD:])
        return (head, *told, *([f"ruled out {rest:,} by other conditions"] if rest else []))

    def __str__(self) -> str:
        return "\n".join((*self.lines, *((f"written to {self.path}",) if self.path else ())))


_TOLD = 6


@dataclass(frozen=True)
class Outcome:
    """A summary and rows."""

    summary: Summary
    rows: Rows | None
    plan: Plan

    def frame(self) -> pd.DataFrame:
        """Return the rows as a frame, its summary in `attrs`."""
        import pandas as pd

        frame = pd.DataFrame(self.rows)
        frame.attrs["summary"] = str(self.summary)
        return frame


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is wanted of the rows of a sweep, and what runs it.

    Args:
        where: the configurations that count.
        columns: of rows, beside those that vary.
        engine: "threads" or "dask".
        scheduler: address of dask's.
        progress: whether a terminal shows it.
    """

    where: str = ""
    columns: Sequence[str] = ()
    engine: str = "threads"
    scheduler: str = ""
    progress: bool = True

    def check(self, by: Iterable[str], out: str | None) -> None:
        """Refuse what can be refused before anything is derived."""
        problems = Problems()
        for text in filter(str.strip, (self.where, *by)):
            problems.attempt(parsed, text)
        if out is not None:
            problems.attempt(ending, out)
        problems.attempt(check_engine, self.engine, self.scheduler)
        problems.refuse()


class Sweeping:
    """A plan with what is asked of it, to run.

    Args:
        mode: what is kept.
        by: what is made small.
        most: rows to keep.
    """

    def __init__(
        self, plan: Plan, mode: Mode, by: Sequence[str], wanted: Wanted, most: int = 0
    ) -> None:
        self.plan, self._wanted = plan, wanted
        where, columns = wanted.where, wanted.columns
        self._texts = {"where": where, "by": list(by), "top": most, "mode": mode}
        self.asked = sweep_question(plan, mode, where, by, most=most, columns=columns)

    def outcome(self, out: str | None) -> Outcome:
        """Run what is not done."""
        step = OF_ROWS if self.asked.mode == "all" else OF_BEST
        step = OF_CLUSTER if self._wanted.engine == "dask" and step == OF_BEST else step
        if out is None:
            tasks = [(a, min(a + step, self.plan.size)) for a in range(0, self.plan.size, step)]
            return self._in_memory(tasks)
        store = Store(out, self._file_notes(step), self.plan.size)
        complete = store.complete()
        if complete is not None:
            return Outcome(self._summary(counted(complete), out), None, self.plan)
        with store:
            tasks = list(store.tasks())
            done = self.plan.size - sum(stop - start for start, stop in tasks)
            for task, result in self._run(tasks, done):
                store.put(task, result)
            result = store.total(self.asked)
            try:
                self._refuse_nothing(result)
            except NothingFitsError:
                store.remove()
                raise
            best = self._best(result)
            store.finish(result, best)
        return Outcome(self._summary(result, out), best, self.plan)

    def _in_memory(self, tasks: list[tuple[int, int]]) -> Outcome:
        total, parts = Result(), []
        for _, result in self._run(tasks, 0):
            total.count(result)
            if self.asked.mode == "all":
                parts.append(result.rows)
            elif len(result.places):
                total.keep(self.asked, result.places, result.keys)
        self._refuse_nothing(total)
        rows = self._counted(total) if self.asked.mode == "histogram" else self._best(total)
        if rows is None:
            rows = self._sorted(concatenated(parts, self.asked.columns))
        return Outcome(self._summary(total, None), typed(rows), self.plan)

    def _run(
        self, tasks: list[tuple[int, int]], done: int
    ) -> Iterable[tuple[tuple[int, int], Result]]:
        wanted = self._wanted
        running = results(self.plan, self.asked, tasks, wanted.engine, wanted.scheduler)
        with bar("sweeping", "candidates", shown=wanted.progress) as tick:
            tick(done, self.plan.size)
            for task, result in zip(tasks, running, strict=True):
                done += task[1] - task[0]
                tick(done, self.plan.size)
                yield task, result

    def _sorted(self, rows: Rows) -> Rows:
        (key,) = self.asked.keys
        order = np.argsort(
            np.broadcast_to(key.values(rows), len(next(iter(rows.values())))), kind="stable"
        )
        return {name: column[order] for name, column in rows.items()}

    @staticmethod
    def _counted(result: Result) -> Rows:
        """Return how many candidates there are by size, the smallest first."""
        ends = [(*bounds(place), times) for place, times in sorted(result.bins.items())]
        return dict(zip(HISTOGRAM, np.array(ends, dtype=float).T, strict=True))

    def _best(self, result: Result) -> Rows | None:
        if self.asked.mode == "all":
            return None
        return Evaluation(self.plan, self.asked).rows(result.places)

    def _refuse_nothing(self, result: Result) -> None:
        """Refuse a sweep in which nothing counts, and say how near the nearest is."""
        if result.counted:
            return
        summary = self._summary(result, None)
        if not result.legal or self.asked.where is None:
            raise NothingFitsError("no candidate is legal: " + "; ".join(summary.lines))
        row, failures = Evaluation(self.plan, self.asked).failures(result.nearest[1])
        named = ", ".join(f"{n}={_number(row[n])}" for n in self.varied_names if n in row)
        raise NothingFitsError(
            f"nothing satisfies {quote(self.asked.where.text, 200)}; nearest of {result.legal:,} "
            f"legal candidates is {named}: {'; '.join(failures)}"
        )

    @property
    def varied_names(self) -> list[str]:
        """Names of what varies, and of dp where it follows."""
        plan = self.plan
        axes = [a.name for a in (*plan.words.axes, *plan.outer.axes, *plan.inner.axes)]
        return [*axes, *(["dp"] if plan.ranks.follows else [])]

    @property
    def _units(self) -> Mapping[str, str]:
        if self.asked.mode != "histogram":
            return self.asked.units
        unit = self.asked.units.get(self.asked.keys[0].text, "")
        return dict(zip(HISTOGRAM, (unit, unit, "1"), strict=True))

    def _summary(self, result: Result, path: str | None) -> Summary:
        return Summary(
            result.candidates,
            result.legal,
            result.counted,
            dict(result.ruled_out),
            self._units,
            path,
        )

    def _file_notes(self, step: int) -> dict[str, Any]:
        plan, own = self.plan, self.asked
        grids: tuple[Grid, ...] = (plan.words, plan.outer, plan.inner)
        counts = [plan.names[s] for s in ("dp",) if plan.ranks.follows] + ["M", "gpus"]
        counts += [
            axis.name
            for grid in grids
            for axis in grid.axes
            if all(isinstance(value, int) for value in axis.choices)
        ]
        question = {"columns": list(own.columns), **self._texts}
        text = f"{plan.digest}{json.dumps(question, sort_keys=True)}"
        return {
            "sweep": blake2b(text.encode(), digest_size=16).hexdigest(),
            "expressions": plan.digest,
            "library": f"symbolic_cost {version('symbolic_cost')}",
            "job": dict(plan.about),
            "vary": {a.name: [_number(v) for v in a.choices] for g in grids for a in g.axes},
            "question": question,
            "units": dict(own.units),
            "counts": [name for name in own.columns if name in counts],
            "task": step,
        }


def _number(value: Any) -> Any:  # noqa: ANN401 - a number or word
    if isinstance(value, str | int):
        return value
    number = float(value)
    return int(number) if number.is_integer() and abs(number) < inf else number
