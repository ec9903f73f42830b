"""The structures of a space as programs, and the setup of a structure or of a candidate of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, partial
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from symbolic_cost.explore.candidates import Candidates, Numbers, Shape, Structured
from symbolic_cost.explore.choices import CONTEXT, DEGREES, INSIDE, numbers_of
from symbolic_cost.explore.subject import FREE, Subject
from symbolic_cost.explore.together import Axes, Columns, Floats, Together, together
from symbolic_cost.lazy import forget
from symbolic_cost.records import replace

if TYPE_CHECKING:
    from symbolic_cost.explore.priced import Costs
    from symbolic_cost.jobs.setup import Setup

Progress = Callable[[int, int], None]


def all_priced(
    base: Subject,
    shapes: Mapping[Shape, Sequence[Structured]],
    free: Collection[str] = FREE,
    progress: Progress = lambda *_: None,
) -> Iterator[tuple[Shape, Together[Structured]]]:
    """Yield the program of every shape's structures.

    Args:
        base: the job without a strategy.
        shapes: structures by shape.
        free: names of symbols that stay symbols though the job has numbers for them.
        progress: told the structures that are derived, and all of them.
    """
    derived = _Derived(base, free)
    about = base.facts.about if tuple(free) == FREE else derived.about
    done, every = 0, sum(map(len, shapes.values()))
    for shape, structures in shapes.items():
        own = [(one.positions, one.zero, one.options) for one in structures]
        key = None if about is None else _digest(f"{about}{shape}{own}")
        tick = partial(_tick, progress, done, every)
        yield shape, together(key, structures, derived.structure, derived.space, tick)
        done += len(structures)
    derived.done()


def _digest(text: str) -> str:
    """Return what stands for a text of many pages."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


class _Derived:
    """Where structures of a job are derived; made for the first that must be."""

    def __init__(self, base: Subject, free: Collection[str]) -> None:
        self._base, self._free = base, free

    @cached_property
    def _numbers(self) -> Mapping[str, int | Fraction]:
        from symbolic_cost.explore.priced import bound_numbers

        return bound_numbers(self._base.setup, self._free)

    @property
    def about(self) -> str | None:
        from symbolic_cost.explore.priced import about_setup

        return about_setup(self._base.setup, self._numbers)

    @cached_property
    def _space(self) -> Costs:
        from symbolic_cost.explore.priced import Costs

        return Costs(self._numbers)

    def space(self) -> Costs:
        return self._space

    def done(self) -> None:
        """Let go of what nobody asks for any more."""
        if "_space" in vars(self):
            forget()
            vars(self._space).clear()  # its terms name it: Python would search all for such cycles

    def structure(self, structure: Structured) -> Setup:
        from symbolic_cost.explore.opened import opened
        from symbolic_cost.explore.priced import structure_of

        setup = structure_of(structured_setup(self._base.setup, structure))
        return opened(setup, dict(structure.options), self._space)


def _tick(progress: Progress, before: int, every: int, place: int) -> None:
    progress(before + place, every)


def axes_of(walked: Candidates, shape: Shape) -> Axes:
    """Return the numbers of a shape's rows by the axis that they vary along.

    Rows are orders of ranks, each with every other way, each of these with all degrees.
    """
    run, numbers = walked.ways[shape], _numbers(shape, walked.numbers[shape])
    if len(run) == 1:
        return Axes(({}, {}, numbers), (1, 1, len(walked.numbers[shape])))
    options = numbers_of(run, shape.names, walked.hidden)
    orders = len({way.order for way in run})
    others = len(run) // orders
    along: list[dict[str, Floats]] = [{}, {}]
    for name, column in options.items():
        inside = name.startswith(INSIDE)
        along[not inside][name] = np.array(column[::others] if inside else column[:others])
    return Axes((*along, numbers), (orders, others, len(walked.numbers[shape])))


def columns_of(walked: Candidates, shape: Shape) -> Columns:
    """Return the numbers of every symbol by its name, of a shape's rows."""
    return axes_of(walked, shape).columns()


def _numbers(shape: Shape, listed: Sequence[Numbers]) -> dict[str, Floats]:
    by_name = dict(zip(Numbers._fields, np.array(listed, dtype=float).T, strict=True))
    columns = {name: by_name[name] for name in ("b", "M", "v")}
    for name, _ in shape.degrees:
        columns[DEGREES[name]] = by_name["cp" if name in CONTEXT else name]
    return columns


def structured_setup(base: Setup, structure: Structured, numbers: Numbers | None = None) -> Setup:
    """Return the setup of a structure, or of one candidate of it."""
    from symbolic_cost.jobs.build import setup as make_setup

    values = {**base.numbers, **({} if numbers is None else numbers.bindings())}
    setup = make_setup(
        base.model,
        structure.strategy(numbers),
        values,
        system=base.machine,
        conventions=base.conventions,
        precision=base.training.precision,
        optimizer=base.training.optimizer,
        attention=None if base.attention is None else base.attention.value,
        roofline=base.methods.roofline,
        stack=base.methods.stack,
        **structure.job_options,  # type: ignore[arg-type]  # names of Options
    )
    counted = base.methods.counted
    if setup.methods.counted is counted:
        return setup
    return replace(setup, methods=replace(setup.methods, counted=counted))
