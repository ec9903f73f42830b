"""What to change in a job: better rates, more memory, other strategies on the same ranks."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from symbolic_cost.emit.sheet import Cell, Sheet, headed
from symbolic_cost.errors import InputError, SymbolicCostError
from symbolic_cost.explore.ask import search
from symbolic_cost.explore.best import Search
from symbolic_cost.explore.fits import MORE
from symbolic_cost.explore.search_table import search_sheet
from symbolic_cost.explore.solve import Solved, answer, question
from symbolic_cost.jobs.job import Job
from symbolic_cost.jobs.quantities import Quantity, quantity
from symbolic_cost.jobs.tables.explained import gains
from symbolic_cost.jobs.timed import Timed
from symbolic_cost.records import dataclass
from symbolic_cost.units import Unit, human

_SIZES = ("b", "l", "n_layers")
_NEAR = 1e-3
"""Share of a step by which two strategies differ that are told apart."""


@dataclass(frozen=True)
class Change:
    """What a change brings: the answer, the table behind it, and how it was looked for."""

    text: str
    sheet: Sheet | None = None
    notes: tuple[str, ...] = ()


def rates_sheet(timed: Timed) -> Sheet:
    """Tabulate how much shorter the step is where one rate of the machine is a tenth better."""
    rows = tuple((name, 100 * gain) for name, gain in gains(timed))
    columns = headed("a tenth better, step is shorter by> [%]")
    return Sheet("What would shorten the step", columns, rows)


def more_memory(run: Job, timed: Timed) -> Change:
    """Say the largest sizes of a job that fit, now and with 10 GiB more on every rank."""
    room = timed.fit.room
    if room is None:
        return Change("The memory of the machine has no bound.")
    # Another microbatch makes no other number of them here.
    own = replace(run, global_batch=None, precise=True)
    stages = [quantity(replace(own, stage=stage), "memory") for stage in own.structure.stages]
    rows: list[tuple[Cell, ...]] = []
    for name in _SIZES:
        try:
            now, then = (_largest(stages, name, size) for size in (room, room + MORE))
        except InputError:  # not a size of the model, or one that nothing held depends on
            continue
        cells = (now.legal, then.legal, now.slope, now.of.run.stage.value, now.binds)
        rows.append((name, run.values.get(name), *cells))
    if not rows:
        return Change("No size of the model changes what a rank holds.")
    columns = headed(
        "size, now>, largest that fits>, with 10 GiB more>, "
        "one more takes> [byte], stage that binds, what binds there"
    )
    said = "; ".join(f"{row[0]} up to {row[2] or 'none'}, then {row[3] or 'none'}" for row in rows)
    sheet = Sheet("Largest sizes of this job, all else as it is", columns, tuple(rows))
    return Change(f"10 GiB more on every rank: {said}.", sheet)


def _largest(stages: list[Quantity], name: str, room: int) -> Solved:
    """Return the largest size with which every stage fits: that of the stage that fits least."""
    asked = question(f"memory <= {room} B")
    answers = [answer(asked, stage, name) for stage in stages]
    return min(answers, key=lambda one: one.legal or 0)


def other_strategies(run: Job, timed: Timed) -> Change:
    """Say which strategies on as many ranks, with as many sequences, have the shortest steps."""
    strategy = run.strategy.numbered(run.values)
    ranks = run.value(strategy.ranks)
    batch = run.value(run.values.get("b", 1) * timed.microbatches * _replicas(run))
    try:
        if not (ranks.is_Integer and batch.is_Integer):
            raise InputError("ranks and sequences have no number")
        base = run.replace(**_bare(run))
        outcome = search(base, int(ranks), int(batch), top=6, choose=_choices(run), progress=False)
    except SymbolicCostError as refused:
        return Change(f"Other strategies were not searched: {_first(refused)}.")
    sheet = search_sheet(outcome)
    lines = tuple(note for note in sheet.notes if note.startswith(_COMMANDS))
    rest = tuple(note for note in sheet.notes if note not in lines)
    return Change(_compared(outcome, timed), replace(sheet, notes=lines), rest)


_COMMANDS = ("run it: ", "Megatron-LM: ")
"""Beginnings of the notes of a search that are commands."""


def _choices(run: Job) -> dict[str, tuple[Any, ...]]:
    """Return what may be chosen: all degrees; options that are seldom slower, and the job's own."""
    own = int(run.values.get("b", 1))
    return {
        "sp": (True,),
        "zero": tuple(sorted({1, run.strategy.zero})),
        "b": tuple(sorted({1, own, 2 * own})),
    }


def _first(refused: SymbolicCostError) -> str:
    return str(refused).partition("\n")[0]


def _replicas(run: Job) -> Any:  # noqa: ANN401 - a number or a formula
    copies = (name for name in ("dp", "ep", "replicas") if name in run.strategy)
    return prod(run.value(run.strategy.degree(name)) for name in copies)


def _bare(run: Job) -> dict[str, Any]:
    """Return the changes that leave of a job what a search takes."""
    chosen = {*run.strategy.bindings(), "b", "M", "v"}
    return {
        "strategy": "",
        "numbers": {name: size for name, size in run.numbers.items() if name not in chosen},
        "global_batch": None,
        "microbatches": None,
        "recompute": "none",
        "schedule": "1f1b",
        "layout": "auto",
        "stage": "first",
        "order": "",
        "overlap": "",
        "offload": "",
        "scattered": False,
        "regather": None,
    }


def _compared(outcome: Search, timed: Timed) -> str:
    """Say how the best of a search stands to a job."""
    step = float(timed.numbers["step"])
    if not outcome.best:
        return f"None of {outcome.considered} strategies on as many ranks fits."
    best = outcome.best[0]
    shorter = 1 - best.outputs["step"] / step
    of = f"of {outcome.considered} on as many ranks, {outcome.fitting} of which fit"
    if not timed.fit:
        return f"This job does not fit; the fastest that does is {best.strategy}, {of}."
    if shorter <= _NEAR:
        return f"No strategy has a shorter step, {of}."
    took = human(best.outputs["step"], Unit.SECOND)
    return f"{best.strategy} takes {took}, {shorter:.1%} less: the fastest {of}."
