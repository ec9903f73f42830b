"""What a search reads of a job, read from the job."""

from __future__ import annotations

from collections.abc import Iterator

from sympy import Expr

from symbolic_cost.axes import At, Role
from symbolic_cost.errors import InputError
from symbolic_cost.explore.priced import about_setup, bound_numbers
from symbolic_cost.explore.subject import FREE, Facts, Subject, run_note
from symbolic_cost.jobs.header import beyond, trained
from symbolic_cost.jobs.launch_files import launched
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.lazy import Recent
from symbolic_cost.ops.graph import ALL
from symbolic_cost.parallel.stages import block_count
from symbolic_cost.systems.stacks import stack_name, usual, usual_attention

_LONG = 1 << 62
"""Stands for a length without a number, which is not short."""

_SUBJECTS: Recent[tuple[Setup, Subject]] = Recent(8)


def subject(setup: Setup) -> Subject:
    """Return a job as a search takes it."""
    return _SUBJECTS.of(id(setup), lambda: (setup, _subject(setup)))[1]


def _subject(setup: Setup) -> Subject:
    machine = setup.machine
    file = launched(setup.model.name)
    problems = [] if machine is not None else ["a search needs a machine: --system h100"]
    if setup.strategy.degrees:
        problems.append(f"strategy {setup.strategy} is not read: choose degrees, as in tp=(8,)")
    if machine is None or problems:
        raise InputError(problems)
    model, stack, trains = setup.model, setup.methods.stack, setup.model.trains
    heads = [_integer(setup, model.sizes[axis]) for axis in model.grouped]
    sizes = [setup.model.sizes[axis.name] for axis in setup.model.placed(At(Role.TOKEN))]
    known = [_integer(setup, size) for size in sizes]
    longest = max((_LONG if one is None else one for one in known), default=_LONG)
    given = {**model.fixed, **setup.numbers}
    facts = Facts(
        model=model.name,
        machine=machine.name,
        capacity=None if machine.room is None else float(machine.room),
        numbers=tuple((name, str(number)) for name, number in given.items()),
        length=None if longest == _LONG else longest,
        experts=len(model.placed(At(Role.EXPERT))),
        blocks=_integer(setup, block_count(model)),
        heads=tuple(sorted({n for n in heads if n})) if all(heads) else (),
        hidden="" if stack is None else stack.overlap,
        unhosted=""
        if machine.host
        else f"machine {machine.name} has no link to the host on record",
        trains="" if trains == ALL else str(trains),
        notes=(
            *(run_note(setup), *model.notes, *trained(setup)),
            *(*beyond(setup), *said_otherwise(setup)),
        ),
        words=(f"--system {machine.file or machine.name}", *_words(setup)),
        launched=None if file is None else tuple(file.recipe.run.get("overlap", "").split(",")),
        about=about_setup(setup, bound_numbers(setup, FREE)),
    )
    return Subject(facts, lambda: setup)


def said_otherwise(setup: Setup) -> Iterator[str]:
    """Say what of a launch file is not read, for a search chooses it."""
    file = launched(setup.model.name)
    if file is not None and file.dropped:
        yield file.dropped


def _words(setup: Setup) -> Iterator[str]:
    """Yield the options by which `symbolic-cost time` runs the same job.

    Of a launch file all are said, for the usual ones are those of the file.
    """
    runs, training = setup.methods.stack, setup.training
    every = launched(setup.model.name) is not None
    yield f"--precision {training.precision}"
    if every or stack_name(runs) != usual(setup.machine, setup.methods.roofline):
        yield f"--stack {stack_name(runs)}"
    if setup.attention is not None and (every or setup.attention != usual_attention(runs)):
        yield f"--attention {setup.attention}"
    if every or training.optimizer != "adam":
        yield f"--optimizer {training.optimizer}"
    if setup.model.trains != ALL:
        yield f"--train {setup.model.trains}"
    if setup.conventions.name != "standard":
        yield f"--conventions {setup.conventions.name}"


def _integer(setup: Setup, expr: Expr) -> int | None:
    number = setup.value(expr)
    return int(number) if number.is_Integer else None
