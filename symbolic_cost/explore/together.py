"""Structures priced together: one program for all that take the same numbers.

What they have in common is derived and computed once. A program is kept on disk, so that the next
question need not derive it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from threading import get_ident, local
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from symbolic_cost.errors import InputError
from symbolic_cost.explore.priced import LEGAL, Costs, outputs_of
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.lazy import Recent
from symbolic_cost.program.arrays import CHUNK, Flat, evaluated
from symbolic_cost.program.stored import kept
from symbolic_cost.program.tape import Tape, recorded

Floats = NDArray[np.float64]
Columns = Mapping[str, Floats]
StructureT = TypeVar("StructureT", bound=Hashable)

_REFUSED = "refused: "


@dataclass(frozen=True)
class Together(Generic[StructureT]):
    """The program of several structures.

    Args:
        structures: in the order of its outputs.
        tape: of the program; outputs "place|name", and of a structure that the model refuses its
            reason alone.
    """

    structures: Sequence[StructureT]
    tape: Tape

    @cached_property
    def _registers(self) -> dict[int, dict[str, int]]:
        """Register of every output by name, by place of the structure."""
        registers: dict[int, dict[str, int]] = {}
        for label, register in self.tape.outputs.items():
            place, name = label.split("|", 1)
            registers.setdefault(int(place), {})[name] = register
        return registers

    @property
    def refused(self) -> dict[StructureT, str]:
        """Why the model refuses a structure, for those that it does."""
        return {
            self.structures[place]: name.removeprefix(_REFUSED)
            for place, names in self._registers.items()
            for name in names
            if name.startswith(_REFUSED)
        }

    @property
    def priced(self) -> list[StructureT]:
        """The structures that the model does not refuse."""
        refused = self.refused
        return [one for one in self.structures if one not in refused]

    def alone(self, structure: StructureT, names: Callable[[str], bool] = bool) -> Tape:
        """Return the program of one structure.

        Args:
            structure: that is not refused.
            names: tells which outputs are asked for.
        """
        registers = self._registers[self.structures.index(structure)]
        outputs = {name: register for name, register in registers.items() if names(name)}
        return replace(self.tape, outputs=outputs).only(outputs)

    def evaluated(
        self, columns: Columns, count: int, names: frozenset[str] = frozenset()
    ) -> Iterator[tuple[StructureT, dict[str, Floats]]]:
        """Yield outputs of the candidates by structure; those that are refused are left out.

        What structures have in common is one array.

        Args:
            columns: numbers by symbol.
            count: how many.
            names: of the outputs, beside conditions; all unless given.

        Raises:
            InputError: a symbol without numbers.
        """
        missing = [name for name in self.tape.inputs if name not in columns]
        if missing:
            raise InputError([f"no number for {name}: bind it, as in {name}=8" for name in missing])
        asked = self._asked.of(names, lambda: self._only(names))
        arrays = self._run(names, asked, columns, count)
        for place, outputs in asked.items():
            yield self.structures[place], {name: arrays[one] for name, one in outputs.items()}

    def _only(self, names: frozenset[str]) -> dict[int, dict[str, int]]:
        """Return the registers of some outputs by place of the structure, and of its conditions."""
        return {
            place: {
                name: register
                for name, register in outputs.items()
                if not names or name in names or name.startswith(LEGAL)
            }
            for place, outputs in self._registers.items()
            if not next(iter(outputs)).startswith(_REFUSED)
        }

    def _run(
        self,
        names: frozenset[str],
        asked: Mapping[int, Mapping[str, int]],
        columns: Columns,
        count: int,
    ) -> dict[int, Floats]:
        """Evaluate, by register; the buffers of the last calls serve the next one of their size."""
        own = self._tapes.of(names, partial(_each, self.tape, asked))
        if count > CHUNK:
            arrays = evaluated(own, columns, count)
        else:
            make = partial(Flat, own, frozenset(own.inputs), count, _buffers())
            flat = self._flats.of((names, count, get_ident()), make)
            arrays = flat({name: columns[name] for name in own.inputs})
        return {int(name): filled(array, count) for name, array in arrays.items()}

    @cached_property
    def _asked(self) -> Recent[dict[int, dict[str, int]]]:
        return Recent(2)

    @cached_property
    def _tapes(self) -> Recent[Tape]:
        return Recent(2)

    @cached_property
    def _flats(self) -> Recent[Flat]:
        return Recent(2)


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
    about: str | None,
    structures: Sequence[StructureT],
    setup: Callable[[StructureT], Setup],
    space: Costs,
    tick: Callable[[int], None] = lambda _: None,
) -> Together[StructureT]:
    """Return the program of several structures: from this process, the cache, or derived.

    Args:
        about: everything that the program rests on; none where a user's function does, and nothing
            is kept.
        structures: that take the same numbers.
        setup: makes the setup of a structure, as `structure_of` gives it.
        space: in which they are derived.
        tick: told how many are derived.
    """
    make = partial(_derived, space, structures, setup, tick)
    if about is None:
        return Together(structures, _seldom(make))
    key = (about, tuple(structures))
    read = partial(kept, about, make)
    return _TOGETHER.of(key, lambda: Together(structures, _seldom(read)))  # type: ignore[return-value]  # the key has the structures


def _seldom(make: Callable[[], Tape]) -> Tape:
    """Make a tape without looking for garbage: what is derived or read lives on."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, *before[1:])
    try:
        return make()
    finally:
        gc.set_threshold(*before)


def _derived(
    space: Costs,
    structures: Sequence[StructureT],
    setup: Callable[[StructureT], Setup],
    tick: Callable[[int], None],
) -> Tape:
    outputs: dict[str, int] = {}
    for place, structure in enumerate(structures):
        tick(place)
        try:
            nodes = outputs_of(space, setup(structure))
        except InputError as error:
            nodes = {_REFUSED + "; ".join(error.problems): space.graph.number(0)}
        outputs |= {f"{place}|{name}": node for name, node in nodes.items()}
    return recorded(space.graph, outputs)


def _each(tape: Tape, asked: Mapping[int, Mapping[str, int]]) -> Tape:
    """Return a tape with every result once, by its register."""
    registers = {one for outputs in asked.values() for one in outputs.values()}
    whole = replace(tape, outputs={str(one): one for one in sorted(registers)})
    return whole.only(whole.outputs)


def filled(values: Floats | float, count: int) -> Floats:
    """Return an array also where no number matters."""
    return values if isinstance(values, np.ndarray) and values.ndim else np.full(count, values)
