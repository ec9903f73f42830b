"""Structures priced together: one program for all that take the same numbers.

What they have in common is derived and computed once. A program is kept on disk, so that the next
question need not derive it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from threading import get_ident, local
from typing import Generic, TypeVar

import numpy as np

from symbolic_cost.errors import refuse
from symbolic_cost.explore.axes import Axes, Columns, Floats
from symbolic_cost.explore.candidates import Shape, Structured
from symbolic_cost.explore.objectives import LEGAL
from symbolic_cost.explore.structured import REFUSED, Derived, Progress
from symbolic_cost.explore.subject import FREE, Subject
from symbolic_cost.lazy import Recent
from symbolic_cost.program.arrays import Spread, evaluated
from symbolic_cost.program.layered import Layered, Places, cached, layered
from symbolic_cost.program.tape import Tape
from symbolic_cost.records import dataclass

StructureT = TypeVar("StructureT", bound=Hashable)


@dataclass(frozen=True)
class Together(Generic[StructureT]):
    """The program of several structures.

    Args:
        structures: in the order of its outputs.
        layers: of the program; outputs by place of the structure, and of one that the model refuses
            its reason alone.
    """

    structures: Sequence[StructureT]
    layers: Layered

    @property
    def tape(self) -> Tape:
        """The program as a tape; outputs "place|name"."""
        return self.layers.tape

    @cached_property
    def _refused(self) -> dict[int, str]:
        """Why the model refuses a structure, by place."""
        names, (groups, of, _) = self.layers.names, self.layers.outputs
        reasons = {n: one.removeprefix(REFUSED) for n, one in enumerate(names) if _is_reason(one)}
        return {g: reasons[n] for g, n in zip(*_lists(groups, of), strict=True) if n in reasons}

    @property
    def refused(self) -> dict[StructureT, str]:
        """Why the model refuses a structure, for those that it does."""
        return {self.structures[place]: reason for place, reason in self._refused.items()}

    @property
    def priced(self) -> list[StructureT]:
        """The structures that the model does not refuse."""
        refused = self._refused
        return [one for place, one in enumerate(self.structures) if place not in refused]

    def alone(self, structure: StructureT, names: Callable[[str], bool] = bool) -> Tape:
        """Return the program of one structure."""
        begin = f"{self.structures.index(structure)}|"
        every = self.tape.outputs.items()
        own = {n.removeprefix(begin): one for n, one in every if n.startswith(begin)}
        outputs = {name: register for name, register in own.items() if names(name)}
        return replace(self.tape, outputs=outputs).only(outputs)

    def at(self, asked: Sequence[tuple[StructureT, Mapping[str, float]]]) -> list[dict[str, float]]:
        """Return every output of some candidates, but for conditions."""
        columns = {n: np.array([point[n] for _, point in asked]) for n in self.layers.inputs}
        results = dict(self.evaluated(columns, len(asked)))
        return [
            {n: float(v[row]) for n, v in results[structure].items() if not n.startswith(LEGAL)}
            for row, (structure, _) in enumerate(asked)
        ]

    def evaluated(
        self, columns: Columns, count: int, names: frozenset[str] = frozenset()
    ) -> Iterator[tuple[StructureT, dict[str, Floats]]]:
        """Yield outputs of the candidates by structure; those that are refused are left out.

        What structures have in common is one array.

        Args:
            columns: numbers by symbol.
            count: how many.
            names: of the outputs, LEGAL for every condition; all unless given.
        """
        asked = self._chosen(names, columns)
        if count <= MOST_LAYERED:
            return self._by_structure(asked, [*asked.layers.run(columns, count)])
        tape = self._tapes.of(names, lambda: _tape_of_outputs(asked.layers))
        arrays = evaluated(tape, columns, count).values()
        return self._by_structure(asked, [filled(array, count) for array in arrays])

    def over(
        self, axes: Axes, width: int, names: frozenset[str]
    ) -> Iterator[tuple[StructureT, dict[str, Floats]]]:
        """Yield the same of candidates that are a product, as arrays that broadcast to its axes.

        Args:
            axes: numbers by symbol.
            width: degrees for which there are buffers; no less than those of the axes.
            names: as of `evaluated`.
        """
        asked = self._chosen(names, {name for own in axes.along for name in own})
        own = axes.read(asked.layers.inputs)
        if own.ways * width <= MOST_LAYERED:
            arrays = asked.layers.run(own.columns(), own.size).reshape(-1, *own.sizes)
            return self._by_structure(asked, [*arrays])
        tape = self._tapes.of(names, lambda: _tape_of_outputs(asked.layers))
        sizes = (*own.sizes[:-1], width)
        make = partial(Spread, tape, [[*one] for one in own.along], sizes, _buffers())
        bound = self._bound.of((names, sizes, get_ident()), make)
        results = bound(own.along).values()
        return self._by_structure(asked, [np.broadcast_to(one, own.sizes) for one in results])

    def _chosen(self, names: frozenset[str], known: Collection[str]) -> _ChosenOutputs:
        """Return some outputs; refuse symbols without numbers."""
        self.check(known)
        return self._asked.of(names, lambda: self._only(names))

    def check(self, known: Collection[str]) -> None:
        """Refuse symbols without numbers."""
        missing = [name for name in self.layers.inputs if name not in known]
        refuse(f"no number for {name}: bind it, as in {name}=8" for name in missing)

    def _by_structure(
        self, asked: _ChosenOutputs, arrays: Sequence[Floats]
    ) -> Iterator[tuple[StructureT, dict[str, Floats]]]:
        """Yield arrays by structure; one that several have is one object."""
        for place, outputs in asked.groups.items():
            yield self.structures[place], {name: arrays[one] for name, one in outputs.items()}

    def _only(self, names: frozenset[str]) -> _ChosenOutputs:
        """Return some outputs; LEGAL stands for the conditions."""
        layers = self.layers
        begins = tuple(names & {LEGAL}) or ("" if not names else REFUSED,)
        asked = [n in names or n.startswith(begins) for n in layers.names]
        asked = [yes and not _is_reason(n) for yes, n in zip(asked, layers.names, strict=True)]
        return _ChosenOutputs(
            layers if all(asked) else layers.only(np.array(asked, dtype=bool)[layers.outputs[1]])
        )

    @cached_property
    def _asked(self) -> Recent[_ChosenOutputs]:
        return Recent(3)

    @cached_property
    def _tapes(self) -> Recent[Tape]:
        return Recent(2)

    @cached_property
    def _bound(self) -> Recent[Spread]:
        return Recent(2)


MOST_LAYERED = 1024
"""Candidates up to which layers are faster than steps one by one."""


class _ChosenOutputs:
    """Some outputs of a program, each register once."""

    def __init__(self, chosen: Layered) -> None:
        registers, places = np.unique(chosen.outputs[2], return_inverse=True)
        self.groups: dict[int, dict[str, int]] = {}
        for group, name, one in zip(
            *_lists(chosen.outputs[0], chosen.outputs[1], places), strict=True
        ):
            self.groups.setdefault(group, {})[chosen.names[name]] = one
        count = np.arange(len(registers))
        self.layers = replace(
            chosen,
            outputs=np.stack([0 * count, 0 * count, registers]),
        )


def _lists(*arrays: Places) -> Iterator[list[int]]:
    return (array.tolist() for array in arrays)


def _is_reason(name: str) -> bool:
    return name.startswith(REFUSED)


_OWN = local()


def _buffers() -> list[Floats]:
    """Return the buffers of a thread's programs: one is read before another one runs."""
    if not hasattr(_OWN, "buffers"):
        _OWN.buffers = []
    buffers: list[Floats] = _OWN.buffers
    return buffers


_TOGETHER: Recent[Together[Hashable]] = Recent(256)
"""Of one process: a search that is asked again evaluates at once."""


def together(
    about: str | None, structures: Sequence[StructureT], make: Callable[[], Tape]
) -> Together[StructureT]:
    """Return the program of several structures: from this process, the cache, or derived.

    Args:
        about: everything that the program rests on, the structures as well; none where a user's
            function does, and nothing is kept.
        structures: that take the same numbers.
        make: derives it, as `structured.tape_of`.
    """
    if about is None:
        return Together(structures, layered(make()))
    return _TOGETHER.of(about, lambda: Together(structures, cached(about, make)))  # type: ignore[return-value]  # the key has the structures


def all_priced(
    base: Subject,
    shapes: Mapping[Shape, Sequence[Structured]],
    free: Collection[str] = FREE,
    progress: Progress = lambda *_: None,
) -> Iterator[tuple[Shape, Together[Structured]]]:
    """Yield the program of every shape's structures; arguments are those of `Derived`."""
    derived = Derived(base, free, progress)
    for one in derived.programs(shapes):
        yield one.shape, together(one.about, one.structures, one.make)
    derived.done()


def _tape_of_outputs(layers: Layered) -> Tape:
    """Return the tape of some outputs, by their order."""
    tape, registers = layers.tape, layers.outputs[2].tolist()
    moved = layers.moved.tolist()
    return replace(tape, outputs={str(n): moved[one] for n, one in enumerate(registers)})


def filled(values: Floats | float, count: int) -> Floats:
    """Return an array also where no number matters."""
    return values if isinstance(values, np.ndarray) and values.ndim else np.full(count, values)
