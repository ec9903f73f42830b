"""All structures of one shape priced together: one program, whose parts they share.

The structures of a shape take the same numbers, so that what they have in common is computed once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symbolic_cost.errors import InputError, SymbolicCostError
from symbolic_cost.explore.priced import (
    LEGAL,
    about_setup,
    bound_numbers,
    new_graph,
    outputs_of,
    structure_of,
)
from symbolic_cost.explore.space import Structured
from symbolic_cost.explore.structured import structured_setup
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.program.arrays import evaluated
from symbolic_cost.program.program import Program, of_graph
from symbolic_cost.program.stored import kept

Floats = NDArray[np.float64]
Columns = Mapping[str, Floats]

_REFUSED = "refused: "


@dataclass(frozen=True)
class Together:
    """The program of several structures.

    Args:
        structures: in the order of its outputs.
        program: outputs "place|name"; a structure that the model refuses has its reason alone.
    """

    structures: Sequence[Structured]
    program: Program

    @property
    def refused(self) -> dict[Structured, str]:
        """Why the model refuses a structure, for those that it does."""
        pairs = (name.split("|", 1) for name in self.program.outputs)
        return {
            self.structures[int(place)]: name.removeprefix(_REFUSED)
            for place, name in pairs
            if name.startswith(_REFUSED)
        }

    def evaluated(
        self, columns: Columns, count: int
    ) -> Iterator[tuple[Structured, dict[str, Floats]]]:
        """Yield every output of the candidates by structure; those that are refused are left out.

        Args:
            columns: numbers by symbol.
            count: how many.

        Raises:
            InputError: a symbol without numbers.
        """
        missing = [name for name in self.program.inputs if name not in columns]
        if missing:
            raise InputError([f"no number for {name}: bind it, as in {name}=8" for name in missing])
        outputs: dict[int, dict[str, Floats]] = {}
        for label, array in evaluated(self.program.tape, columns, count).items():
            place, name = label.split("|", 1)
            if not name.startswith(_REFUSED):
                outputs.setdefault(int(place), {})[name] = np.broadcast_to(array, (count,))
        for found, results in outputs.items():
            yield self.structures[found], results


def priced_together(
    base: Setup, structures: Sequence[Structured], free: Collection[str] = ()
) -> Together:
    """Return the program of several structures of one shape.

    Args:
        base: the job without a strategy.
        structures: of one shape.
        free: names of symbols that stay symbols though the job has numbers for them.
    """
    about = about_setup(base, bound_numbers(base, free))

    def make() -> Program:
        return _derived(base, structures, free)

    if about is None:
        return Together(structures, make())
    return Together(structures, kept(f"{about}{tuple(structures)!r}", make))


def _derived(base: Setup, structures: Sequence[Structured], free: Collection[str]) -> Program:
    graph = new_graph()
    outputs: dict[str, int] = {}
    for place, structure in enumerate(structures):
        try:
            own = structure_of(structured_setup(base, structure))
            found = outputs_of(graph, own, bound_numbers(own, free))
        except SymbolicCostError as error:
            found = {_REFUSED + str(error).splitlines()[0]: graph.number(0)}
        outputs |= {f"{place}|{name}": node for name, node in found.items()}
    return of_graph(graph, outputs)


__all__ = ["LEGAL", "Columns", "Floats", "Together", "priced_together"]
