"""Streams laid one after the other as one, and taken apart again.

What sees them as one, attention among positions that carry where they are, gives the same in any
order: ranks that split all of them alike join their own parts, and nothing moves.
"""

from collections.abc import Iterable

from symbolic_cost.ledger import Phase
from symbolic_cost.ops.elementwise import Elementwise
from symbolic_cost.ops.op import Kernel, RowWork
from symbolic_cost.ops.pattern import Operand, parse
from symbolic_cost.ops.placement import Placement
from symbolic_cost.records import dataclass, replace


@dataclass(frozen=True)
class Joined(Elementwise):
    """A copy between streams and all of them as one; see `joined`."""

    @property
    def whole_axes(self) -> tuple[str, ...]:
        """Return none: see `misplaced`."""
        return ()

    @property
    def index_spaces(self) -> tuple[tuple[str, ...], ...]:
        """Those of every tensor: a mesh axis splits each stream, and all of them as one."""
        return tuple(operand.axes for operand in (*self.inputs, *self.outputs))

    def summing_space(self, operand: Operand) -> tuple[str, ...]:
        """Return its own axes: nothing is summed."""
        return operand.axes

    def misplaced(self, placement: Placement) -> list[str]:
        """Say also where streams are split otherwise than all of them as one."""
        problems = super().misplaced(placement)
        streams = streams_of(self.index_spaces)
        if len({placement.meshes(axis) for axis in streams}) > 1:
            said = ", ".join(
                f"{axis!r} over {' and '.join(placement.meshes(axis)) or 'nothing'}"
                for axis in streams
            )
            problems.append(f"streams are split differently, {said}: ranks join their own parts")
        return problems

    def kernels(self) -> tuple[Kernel, ...]:
        """Return the passes of an elementwise op; each result is as much work as it has values."""

        def work(phase: Phase) -> tuple[RowWork, ...]:
            backward = phase is not Phase.FORWARD
            return tuple(RowWork(self.kind, o.axes, (), backward=backward) for o in self.outputs)

        return tuple(replace(one, work=work(one.phase)) for one in super().kernels())


def streams_of(spaces: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the axes that not every tensor has."""
    tensors = tuple(spaces)
    every = set(tensors[0]).intersection(*tensors)
    return tuple(dict.fromkeys(a for axes in tensors for a in axes if a not in every))


def joined(name: str, pattern: str) -> Joined:
    """Declare streams as one, or parts of one: `joined("join", "x[b m], y[b n] -> both[b j]")`."""
    parsed = parse(pattern)
    results = {axis for operand in parsed.outputs for axis in operand.axes}
    laid = streams_of(operand.axes for operand in (*parsed.inputs, *parsed.outputs))
    return Joined(name, parsed, "copy", laid=tuple(axis for axis in laid if axis not in results))
