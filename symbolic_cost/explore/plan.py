"""The plan of a sweep: everything that evaluates its points, without a formula or a model.

It is plain data, so that it goes to other processes and machines once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from hashlib import blake2b
from itertools import product

import numpy as np

from symbolic_cost.errors import InputError, Problems
from symbolic_cost.explore.choices import as_option
from symbolic_cost.explore.points import ALIKE, ONE, TWO, Grid, Key, Ranks
from symbolic_cost.explore.priced import Costs, about_setup, bound_numbers, structure_of
from symbolic_cost.explore.ranges import Value
from symbolic_cost.explore.structured import tape_of
from symbolic_cost.explore.sweep_axes import Varied, numbers_missing
from symbolic_cost.explore.together import together
from symbolic_cost.grouping import grouped
from symbolic_cost.jobs.header import beyond
from symbolic_cost.jobs.job import Job
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.ops.graph import ALL
from symbolic_cost.parallel.layout import AUTO
from symbolic_cost.parallel.schedules import schedule
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.program.stored import written_tape
from symbolic_cost.program.tape import Tape
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import ep, v
from symbolic_cost.systems.stacks import stack_name

Tell = Callable[[int, int], None]
"""Takes how many structures are derived, and of how many."""

_SCANNED = 1 << 20
"""Points whose structure is looked at together."""


@dataclass(frozen=True)
class Case:
    """One choice of all words.

    Args:
        words: value by name.
        chunks: of a stage: their number, or "v".
        layout: of blocks over stages; "auto" is even where they divide these.
        capacity: of one device [byte]; None where it is not bounded.
    """

    words: Mapping[str, Value]
    chunks: str
    layout: str
    capacity: float | None


@dataclass(frozen=True)
class Plan:
    """What is evaluated.

    Args:
        words: slowest axes.
        outer: axes that decide over degrees and structure.
        inner: axes of sizes that are numbers alone.
        ranks: how degrees follow.
        cases: by place on the axes of words.
        programs: by case and code of the structure; a text says why there is none.
        about: what the job is, as text by name.
    """

    title: str
    words: Grid
    outer: Grid
    inner: Grid
    ranks: Ranks
    names: Mapping[str, str]
    cases: tuple[Case, ...]
    programs: Mapping[tuple[int, int], Tape | str]
    about: Mapping[str, str]

    @property
    def numbers(self) -> int:
        """Candidates of one case."""
        return self.outer.size * self.inner.size

    @property
    def size(self) -> int:
        """All candidates."""
        return len(self.cases) * self.numbers

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Outputs that every program has."""
        first, *rest = (p.outputs for p in self.programs.values() if isinstance(p, Tape))
        return tuple(name for name in first if all(name in one for one in rest))

    @cached_property
    def digest(self) -> str:
        """Hash of everything that decides over the results."""
        digest = blake2b(digest_size=16)
        axes = (self.words.axes, self.outer.axes, self.inner.axes)
        digest.update(
            repr([[(a.name, a.symbol, a.choices) for a in grid] for grid in axes]).encode()
        )
        digest.update(repr((sorted(self.ranks.numbers.items()), self.ranks.degrees)).encode())
        digest.update(repr(sorted(self.about.items())).encode())
        for place, program in sorted(self.programs.items(), key=lambda item: item[0]):
            text = program if isinstance(program, str) else written_tape(program)
            digest.update(f"{place}{text}".encode())
        return digest.hexdigest()


def planned(own: Varied, tell: Tell = lambda _done, _all: None) -> Plan:
    """Return the plan of what varies; each structure that occurs is derived once.

    Raises:
        InputError: no structure can be derived, or numbers are missing.
    """
    jobs = list(_jobs(own))
    cases = tuple(_case(words, job) for words, job in jobs)
    codes: dict[tuple[str, str], list[int]] = {}
    unmet: dict[str, None] = {}
    for case in cases:
        kind = (case.chunks, case.layout)
        codes[kind] = codes.get(kind) or _codes(own, *kind, unmet)
    wanted = grouped(
        (code, place)
        for place, case in enumerate(cases)
        for code in codes[case.chunks, case.layout]
    )
    if not wanted:
        raise InputError(f"no candidate is legal; none meets all of: {'; '.join(unmet)}")
    programs: dict[tuple[int, int], Tape | str] = {}
    done, every = 0, sum(map(len, wanted.values()))
    for code, places in wanted.items():
        tell(done, every)
        ours = {place: jobs[place][1] for place in places}
        for place, program in _programs(own, ours, own.ranks.key(code)).items():
            programs[place, code] = program
        done += len(places)
    tell(every, every)
    _refuse(own, programs)
    title = f"{own.job.model.name}" + (f" on {own.job.machine.name}" if own.job.machine else "")
    return Plan(
        title,
        own.words,
        own.outer,
        own.inner,
        own.ranks,
        own.names,
        cases,
        programs,
        _job_facts(own),
    )


def _refuse(own: Varied, programs: Mapping[tuple[int, int], Tape | str]) -> None:
    derived = [program for program in programs.values() if isinstance(program, Tape)]
    if programs and not derived:
        raise InputError(dict.fromkeys(str(text) for text in programs.values()))
    numbers_missing(own, {name for program in derived for name in program.inputs})


def _jobs(own: Varied) -> Iterator[tuple[dict[str, Value], Job]]:
    """Yield every choice of words, and the job that has it."""
    problems = Problems()
    jobs = []
    axes = own.words.axes
    for chosen in product(*(axis.choices for axis in axes)):
        words = {axis.name: value for axis, value in zip(axes, chosen, strict=True)}
        jobs.append((words, problems.attempt(_worded, own.job, words)))
    problems.refuse()
    yield from jobs


def _worded(job: Job, words: Mapping[str, Value]) -> Job:
    own = {name: word for name, word in words.items() if name not in ("zero", "sp")}
    options = {name: as_option(name, word) for name, word in own.items()}
    degrees = dict(job.strategy.degrees)
    if words.get("sp") == "off":
        degrees.pop("sp", None)
        if "cp" not in degrees:
            options.pop("regather", None)  # nothing is gathered
    zero = words.get("zero", job.strategy.zero)
    reshard = job.strategy.reshard if zero == job.strategy.zero else 0
    strategy = Strategy(degrees, int(zero), job.strategy.panels, reshard=reshard)
    return job.replace(strategy=strategy, **options)  # type: ignore[arg-type]  # job checks them


def _case(words: Mapping[str, Value], job: Job) -> Case:
    chunks = schedule(job.training.schedule).chunks
    room = None if job.machine is None else job.machine.room
    return Case(
        words,
        "v" if chunks == v else str(chunks),
        job.training.layout,
        None if room is None else float(room),
    )


def _codes(own: Varied, chunks: str, layout: str, unmet: dict[str, None]) -> list[int]:
    """Return the structures that occur, and enter the conditions that some do not meet."""
    needs = {*own.ranks.degrees, "R", *(("v",) if chunks == "v" else ()), *own.ranks.shape.inputs}
    grid = Grid(tuple(axis for axis in own.outer.axes if axis.symbol in needs))
    ranks = replace(own.ranks, numbers={n: x for n, x in own.ranks.numbers.items() if n != "B"})
    codes_met: set[int] = set()
    for start in range(0, grid.size, _SCANNED):
        points = np.arange(start, min(start + _SCANNED, grid.size))
        known, legal = ranks.filled(grid.arrays(points), len(points))
        unmet |= dict.fromkeys(label for label, met in legal.items() if not met.all())
        lawful = np.logical_and.reduce([np.ones(len(points), bool), *legal.values()])
        some = {name: array[lawful] for name, array in known.items()}
        codes = ranks.codes(some, int(lawful.sum()), chunks, auto=layout == AUTO)
        codes_met |= set(np.unique(codes).tolist())
    return sorted(codes_met)


def _programs(own: Varied, jobs: Mapping[int, Job], key: Key) -> dict[int, Tape | str]:
    """Return by case the program of a structure, or why there is none; alike ones are one."""
    programs: dict[int, Tape | str] = {}
    setups: dict[str, Setup] = {}
    alike: dict[int, str] = {}
    keyed = True
    for place, job in jobs.items():
        try:
            setup = structure_of(_structured(job, key))
        except InputError as error:
            programs[place] = "; ".join(error.problems)
            continue
        about = about_setup(setup, bound_numbers(setup, own.free))
        keyed = keyed and about is not None
        alike[place] = f"case {place}" if about is None else about
        setups[alike[place]] = setup
    if not setups:
        return programs
    space = partial(Costs, bound_numbers(next(iter(setups.values())), own.free))
    names = tuple(setups)
    make = partial(tape_of, space, names, setups.__getitem__)
    joined = together("".join(names) if keyed else None, names, make)
    refused = joined.refused
    return programs | {p: refused.get(name) or joined.alone(name) for p, name in alike.items()}


def _structured(job: Job, key: Key) -> Job:
    """Return the job with the class of every degree."""
    classes = dict(key.classes)
    degrees = {
        name: tuple(_degree(degree, classes) for degree in own)
        for name, own in job.strategy.degrees.items()
    }
    strategy = replace(job.strategy, degrees=degrees, copies=key.copies)
    numbers: dict[str, int | Fraction] = {**job.numbers, **({"v": 1} if key.chunks == 1 else {})}
    return job.replace(
        strategy=strategy,
        numbers=numbers,
        layout=key.layout if job.training.layout == AUTO else job.training.layout,
    )


def _degree(degree: object, classes: Mapping[str, int]) -> object:
    name = str(degree)
    kind = classes.get(name)
    if kind == ALIKE:
        return ep
    return {ONE: 1, TWO: 2}.get(kind or -1, degree)


def _job_facts(own: Varied) -> dict[str, str]:
    job = own.job
    varies = {{"system": "machine"}.get(axis.name, axis.name) for axis in own.words.axes}
    about = {
        "model": job.model.name,
        "strategy": str(job.strategy),
        "machine": "none" if job.machine is None else job.machine.name,
        "stack": stack_name(job.methods.stack),
        "conventions": job.conventions.name,
        "precision": job.training.precision,
        "optimizer": job.training.optimizer,
        "schedule": job.training.schedule,
        "recompute": str(job.training.recompute.name),
        "attention": str(job.attention),
        **({} if job.model.trains == ALL else {"trained": job.model.trains}),
        "numbers": ", ".join(f"{n}={x}" for n, x in sorted(job.values.items())),
        **{
            name: f"{own.ranks.numbers[symbol]:.0f}"
            for symbol, name in (("R", "gpus"), ("B", "global batch"))
            if symbol in own.ranks.numbers
        },
    }
    if "machine" in varies and job.machine is None:
        varies.add("stack")  # the usual one of each
    about = {name: "varies" if name in varies else text for name, text in about.items()}
    axes = (*own.outer.axes, *own.inner.axes)
    most = {axis.symbol: max(n for n in axis.choices if not isinstance(n, str)) for axis in axes}
    longer = "; ".join(beyond(job, most))
    return about | ({"positions": longer} if longer else {})
