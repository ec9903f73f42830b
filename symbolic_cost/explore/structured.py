"""The structures of a space as programs, and the setup of a structure or of a candidate of it.

No array is needed for any of it: what derives programs does not load NumPy.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from symbolic_cost.errors import InputError
from symbolic_cost.explore.candidates import Numbers, Shape, Structured
from symbolic_cost.explore.subject import FREE, Subject
from symbolic_cost.lazy import forget
from symbolic_cost.program.tape import Tape, recorded
from symbolic_cost.records import replace

if TYPE_CHECKING:
    from symbolic_cost.explore.priced import Costs
    from symbolic_cost.jobs.setup import Setup

StructureT = TypeVar("StructureT")

Progress = Callable[[int, int], None]

REFUSED = "refused: "
"""The one output of a structure that the model refuses begins so; the reason follows."""


class Program(NamedTuple):
    """What a program is derived from.

    Args:
        about: everything that it rests on; none where a user's function does.
        make: derives it.
    """

    shape: Shape
    structures: Sequence[Structured]
    about: str | None
    make: Callable[[], Tape]


class Derived:
    """Where structures of a job are derived; made for the first that must be.

    Args:
        base: the job without a strategy.
        free: names of symbols that stay symbols though the job has numbers for them.
        progress: told the structures that are derived, and all of them.
    """

    def __init__(
        self, base: Subject, free: Collection[str] = FREE, progress: Progress = lambda *_: None
    ) -> None:
        self._base, self._free, self._progress = base, free, progress

    def programs(self, shapes: Mapping[Shape, Sequence[Structured]]) -> Iterator[Program]:
        """Yield the program of every shape's structures."""
        about = self._base.facts.about if tuple(self._free) == FREE else self._about
        done, every = 0, sum(map(len, shapes.values()))
        for shape, structures in shapes.items():
            own = [(one.positions, one.zero, one.options) for one in structures]
            key = None if about is None else _digest(f"{about}{shape}{own}")
            tick = partial(_tick, self._progress, done, every)
            make = partial(tape_of, lambda: self._space, structures, self._structure, tick)
            yield Program(shape, structures, key, make)
            done += len(structures)

    @cached_property
    def _numbers(self) -> Mapping[str, int | Fraction]:
        from symbolic_cost.explore.priced import bound_numbers

        return bound_numbers(self._base.setup, self._free)

    @property
    def _about(self) -> str | None:
        from symbolic_cost.explore.priced import about_setup

        return about_setup(self._base.setup, self._numbers)

    @cached_property
    def _space(self) -> Costs:
        from symbolic_cost.explore.priced import Costs

        return Costs(self._numbers)

    def done(self) -> None:
        """Let go of what nobody asks for any more."""
        if "_space" in vars(self):
            forget()
            vars(self._space).clear()  # its terms name it: Python would search all for such cycles

    def _structure(self, structure: Structured) -> Setup:
        from symbolic_cost.explore.opened import opened
        from symbolic_cost.explore.priced import structure_of

        setup = structure_of(structured_setup(self._base.setup, structure))
        return opened(setup, dict(structure.options), self._space)


def _digest(text: str) -> str:
    """Return what stands for a text of many pages."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _tick(progress: Progress, before: int, every: int, place: int) -> None:
    progress(before + place, every)


def tape_of(
    space: Callable[[], Costs],
    structures: Sequence[StructureT],
    setup: Callable[[StructureT], Setup],
    tick: Callable[[int], None] = lambda _: None,
) -> Tape:
    """Derive several structures as one program, outputs "place|name".

    Python looks for garbage seldom meanwhile: what is derived lives on.

    Args:
        space: makes that in which they are derived.
        structures: that take the same numbers.
        setup: makes the setup of a structure, as `structure_of` gives it.
        tick: told how many are derived.
    """
    from symbolic_cost.explore.priced import outputs_of

    before = gc.get_threshold()
    gc.set_threshold(max(200_000, before[0]), *before[1:])
    try:
        outputs: dict[str, int] = {}
        of = space()
        for place, structure in enumerate(structures):
            tick(place)
            try:
                nodes = outputs_of(of, setup(structure))
            except InputError as error:
                nodes = {REFUSED + "; ".join(error.problems): of.graph.number(0)}
            outputs |= {f"{place}|{name}": node for name, node in nodes.items()}
        return recorded(of.graph, outputs)
    finally:
        gc.set_threshold(*before)


def structured_setup(base: Setup, structure: Structured, numbers: Numbers | None = None) -> Setup:
    """Return the setup of a structure, or of one candidate of it."""
    from symbolic_cost.jobs.build import setup as make_setup

    values = {**base.numbers, **({} if numbers is None else numbers.bindings())}
    # A model without cores has no kernel that could be asked for.
    cores = base.attention is None or base.running.cores
    kernel = {"attention": base.attention and base.attention.value} if cores else {}
    setup = make_setup(
        base.model,
        structure.strategy(numbers),
        values,
        system=base.machine,
        conventions=base.conventions,
        precision=base.training.precision,
        optimizer=base.training.optimizer,
        roofline=base.methods.roofline,
        stack=base.methods.stack,
        **kernel,  # type: ignore[arg-type]  # names of Options
        **structure.job_options,  # type: ignore[arg-type]
    )
    counted = base.methods.counted
    if setup.methods.counted is counted:
        return setup
    return replace(setup, methods=replace(setup.methods, counted=counted))
