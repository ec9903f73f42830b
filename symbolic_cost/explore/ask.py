"""The search as a question of a script: a job, its GPUs, and what may be chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from sympy import Expr

from symbolic_cost.axes import At, Role
from symbolic_cost.checking import checked
from symbolic_cost.errors import InputError, Problems, looked_up, shown, unknown
from symbolic_cost.explore.best import Search
from symbolic_cost.explore.best import search as searched
from symbolic_cost.explore.candidates import Numbers, candidates
from symbolic_cost.explore.choices import UNSAID
from symbolic_cost.explore.progress import bar
from symbolic_cost.explore.space import Space
from symbolic_cost.jobs.build import DEFAULT_PRECISION, Modelled
from symbolic_cost.jobs.job import Job, job
from symbolic_cost.symbols import exact

if TYPE_CHECKING:
    from symbolic_cost.explore.fits import Fits
    from symbolic_cost.explore.proven import Proof

CHOICES = tuple(f.name for f in fields(Space) if f.name not in ("gpus", "global_batch"))
"""What may be chosen, by name."""

Choice: TypeAlias = int | str | bool

USUAL = ("l", "b", "n_layers")
"""Sizes that are asked for where nothing is said."""

LONG = 16384
"""Positions from which on a search splits them where nothing is said."""

_SWITCH = {"on": True, "off": False}


@checked
def search(
    of: Job | Modelled,
    gpus: int,
    global_batch: int,
    *,
    system: str | None = None,
    objective: str = "step",
    top: int = 10,
    choose: Mapping[str, Choice | Iterable[Choice]] | None = None,
    progress: bool = True,
) -> Search:
    """Price every strategy of a job on a number of GPUs, and keep the best.

    Args:
        of: a job without a strategy, or a model by name.
        gpus: ranks.
        global_batch: sequences of one step.
        system: machine, for a model by name.
        objective: "step", "memory", "mfu", "throughput", "tokens-per-dollar" or "energy".
        top: how many candidates are kept.
        choose: what may be chosen, by name of a choice, as in {"tp": (1, 2, 4), "zero": (1,)}.
            What is not named takes every value that is legal; but for positions, which are split
            from LONG of them on.
        progress: whether a terminal shows it.

    Returns:
        The best candidates with step [s] and memory [byte], and what was ruled out by what.

    Raises:
        InputError: every problem of every argument.
    """
    run, space = _asked(of, system, (gpus, global_batch), choose or {}, top)
    with bar("deriving", "structures", shown=progress) as tick:
        return searched(run, _usual(run, space, choose or {}), objective, top, tick)


@checked
def prove(
    of: Job | Modelled,
    gpus: int,
    global_batch: int,
    *,
    vary: Mapping[str, str | int | Iterable[str | int | Fraction]],
    system: str | None = None,
    objective: str = "step",
    choose: Mapping[str, Choice | Iterable[Choice]] | None = None,
) -> Proof:
    """Find the best of all combinations of a strategy with sizes and rates, and prove it.

    Args:
        of: a job without a strategy, or a model by name.
        gpus: ranks.
        global_batch: sequences of one step.
        vary: values by symbol: of sizes (l, s) and of rates of the machine, in base units, as in
            {"l": "1024:8192:x2", "beta": "1e10:1e11:x1.1"}.
        system: machine, for a model by name.
        objective: "step", "memory", "mfu", "throughput", "tokens-per-dollar" or "energy".
        choose: what may be chosen, as of `search`.

    Returns:
        The best combination, a bound that no other is better than, and what the proof covers.

    Raises:
        InputError: every problem of every argument.
    """
    from symbolic_cost.explore.proven import proof

    run, space = _asked(of, system, (gpus, global_batch), choose or {})
    return proof(run, _usual(run, space, choose or {}), vary, objective)


@checked
def fit(
    of: Job | Modelled,
    gpus: int,
    global_batch: int | None = None,
    *,
    system: str | None = None,
    symbols: Iterable[str] = USUAL,
    choose: Mapping[str, Choice | Iterable[Choice]] | None = None,
) -> Fits:
    """Ask what fits: the job, the largest sizes on these GPUs, the fewest GPUs that hold it.

    Args:
        of: a job without a strategy, or a model by name.
        gpus: ranks.
        global_batch: sequences of one step; one per rank unless given.
        system: machine, for a model by name.
        symbols: what is to be large: "b" or sizes of the model; those it does not have are left
            out of the usual three.
        choose: what may be chosen, as of `search`; sequence parallelism on, ZeRO 1 and 3 and
            schedule 1f1b where nothing is said.

    Raises:
        InputError: every problem of every argument.
    """
    from symbolic_cost.explore.fits import what_fits

    chosen = {"sp": (True,), "zero": (1, 3), "schedule": ("1f1b",), **(choose or {})}
    run, space = _asked(of, system, (gpus, global_batch or gpus), chosen)
    names = {s.name for size in run.model.sizes.values() for s in size.free_symbols}
    names |= {s.name for part in run.model.parts for s in part.repeat.free_symbols}
    usual = tuple(symbols) == USUAL
    asked = [name for name in symbols if not usual or name == "b" or name in names]
    return what_fits(run, _usual(run, space, choose or {}), asked)


def _asked(
    of: Job | Modelled,
    system: str | None,
    ranks: tuple[int, int],
    choose: Mapping[str, Choice | Iterable[Choice]],
    top: int = 1,
) -> tuple[Job, Space]:
    """Return the job and the space of a question, of so many GPUs and sequences.

    Raises:
        InputError: every problem of every argument.
    """
    problems = Problems()
    space = problems.attempt(space_of, *ranks, choose)
    run = problems.attempt(_job, of, system)
    if top < 1:
        problems.texts.append(f"top = {top}: a positive integer is accepted")
    problems.refuse()
    return run, space


def _refuse_unread(run: Job, space: Space, choose: Mapping[str, object]) -> None:
    """Refuse numbers and choices that would change nothing.

    Raises:
        InputError: numbers of the job that a search chooses itself, and choices that no candidate
            has.
    """
    problems = [
        f"{name}={run.numbers[name]} is not read: a search chooses it"
        for name in ("b", "M", "v")
        if name in run.numbers
    ]
    shapes = candidates(space, run).numbers
    for name in Numbers._fields:
        used = {getattr(one, name) for listed in shapes.values() for one in listed}
        chosen = getattr(space, name, ()) if name in choose else ()
        problems += [f"choose {name}={n}: no candidate has it" for n in chosen if n not in used]
    names = {name for shape in shapes for name in shape.names}
    if "context" in choose:
        problems += [f"choose context={one}: cp is 1" for one in space.context if one not in names]
    if problems:
        raise InputError(dict.fromkeys(problems))


def _usual(run: Job, space: Space, choose: Mapping[str, object]) -> Space:
    """Return the space with positions whole where nothing is said and the sequence is short."""
    length = max((run.value(size) for size in _lengths(run)), default=exact(LONG), key=_known)
    short = length.is_Integer is True and length < LONG
    own = replace(space, cp=(1,)) if short and not {"cp", "context"} & {*choose} else space
    _refuse_unread(run, own, choose)
    return own


def _lengths(run: Job) -> list[Expr]:
    return [run.model.sizes[axis.name] for axis in run.model.placed(At(Role.TOKEN))]


def _known(size: Expr) -> int:
    return int(size) if size.is_Integer else LONG


def _job(of: Job | Modelled, system: str | None) -> Job:
    if not isinstance(of, Job):
        return job(of, system=system, precision=DEFAULT_PRECISION)
    if system is not None:
        raise InputError(f"system {shown(system)} is not read: the job names its own")
    return of


def space_of(gpus: int, global_batch: int, choose: Mapping[str, Iterable[Any]]) -> Space:
    """Return a space.

    Raises:
        InputError: every name that is no choice, and every value that is refused.
    """
    problems = [unknown("choice", name, CHOICES) for name in choose if name not in CHOICES]
    if problems:
        raise InputError(problems)
    listed = {name: _listed(values, UNSAID.get(name)) for name, values in choose.items()}
    return Space(gpus, global_batch, **listed)


def _listed(values: Iterable[Any], unsaid: str | None) -> tuple[Any, ...]:
    listed = (values,) if isinstance(values, str | int) else values
    return tuple("" if one == unsaid else one for one in listed)


def read_ranges(texts: Iterable[str]) -> dict[str, str]:
    """Return what varies, typed as "l=1024:8192:x2" or several of these with blanks between them.

    Raises:
        InputError: every text that is none.
    """
    problems: list[str] = []
    ranges: dict[str, str] = {}
    for text in (piece for whole in texts for piece in whole.split()):
        name, equals, values = text.partition("=")
        if not equals or not name or not values:
            problems.append(f"--vary {shown(text)}: NAME=VALUES is accepted, as in l=1024,2048")
        elif name in ranges:
            problems.append(f"--vary {name} is given twice")
        ranges[name] = values
    if problems:
        raise InputError(problems)
    return ranges


def read_choices(texts: Iterable[str]) -> dict[str, tuple[int | str | bool, ...]]:
    """Return choices typed as "tp=1,2,4" or "recompute=none,full".

    Raises:
        InputError: every text that is none.
    """
    problems: list[str] = []
    choices: dict[str, tuple[int | str | bool, ...]] = {}
    for text in texts:
        name, equals, values = (piece.strip() for piece in text.partition("="))
        if not equals or not values:
            problems.append(f"{shown(text)}: NAME=VALUE,VALUE is accepted, as in tp=1,2,4")
        elif name not in CHOICES:
            problems.append(unknown("choice", name, CHOICES))
        elif name in choices:
            problems.append(f"choice {name} is given twice")
        else:
            pieces = [piece.strip() for piece in values.split(",")]
            choices[name] = tuple(_value(name, piece, problems) for piece in pieces)
    if problems:
        raise InputError(problems)
    return choices


def _value(name: str, text: str, problems: list[str]) -> int | str | bool:
    if name in ("sp", "scattered"):
        try:
            return looked_up(name, text, _SWITCH)
        except InputError as error:
            problems.extend(error.problems)
            return False
    if name not in ("recompute", "schedule", "context", *UNSAID):
        if not (text.isascii() and text.isdigit() and len(text) < 10):  # noqa: PLR2004 - a count
            problems.append(f"{name} = {shown(text)}: an integer is accepted")
            return 1
        return int(text)
    return "" if text == UNSAID.get(name) else text
