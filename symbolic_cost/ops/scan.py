"""Recurrences: elementwise scans of state-space models, and recurrent cells.

Both run along positions one after the other, so no mesh axis may split these.
"""

from symbolic_cost.errors import PatternError
from symbolic_cost.ledger import Phase
from symbolic_cost.ops.fused import Fused, fused
from symbolic_cost.ops.op import Kernel, Op, RowWork
from symbolic_cost.ops.pattern import Operand, parse
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Scan(Op):
    """state = decay * (state one step before) + input; see `scan`."""

    along: str

    movable = False  # it runs along its axis

    axis_fields = ("along",)

    @property
    def whole_axes(self) -> tuple[str, ...]:
        """The axis of the recurrence."""
        return (self.along,)

    def kernels(self) -> tuple[Kernel, ...]:
        """Return the scan and the scan of the gradients, which runs backwards."""
        axes = self.outputs[0].axes
        gradients = tuple(o.gradient() for o in self.inputs if o.needs_gradient)
        forward, back = (RowWork(self.kind, axes, (self.along,), back) for back in (False, True))
        reads = (self.outputs[0].gradient(), *self.saves())
        backward = Kernel(Phase.BACKWARD_INPUT, reads, gradients, (back,))
        return (
            Kernel(Phase.FORWARD, self.inputs, self.outputs, (forward,)),
            *((backward,) if gradients else ()),
        )

    def saves(self) -> tuple[Operand, ...]:
        """Return the decays and the states."""
        return (self.inputs[0], *self.outputs) if self.live else ()


@dataclass(frozen=True)
class Recurrent(Fused):
    """A recurrent cell run over all positions as one kernel; see `recurrence`."""

    along: str = ""

    axis_fields = ("along",)

    @property
    def whole_axes(self) -> tuple[str, ...]:
        """The axis of the recurrence."""
        return (self.along,)


def scan(name: str, pattern: str, along: str) -> Scan:
    """Declare a scan: `scan("scan", "decay[b l j], x[b l j] -> state[b l j]", along="l")`.

    Raises:
        PatternError: not decays and inputs to states of the same axes, or no axis `along`.
    """
    parsed = parse(pattern)
    operands = parsed.inputs + parsed.outputs
    shapes = {frozenset(operand.axes) for operand in operands}
    if (len(parsed.inputs), len(parsed.outputs), len(shapes)) != (2, 1, 1):
        raise PatternError(
            f"pattern {pattern!r}: a scan takes decays and inputs to states of the same axes"
        )
    if along not in operands[0].axes:
        raise PatternError(f"pattern {pattern!r}: it has no axis {along!r} to run along")
    return Scan(name, parsed, along)


def recurrence(name: str, pattern: str, ops: tuple[Op, ...], saves: str, along: str) -> Recurrent:
    """Declare a recurrent cell as a fused group of ops, each written for all positions at once.

    Args:
        name: of the group.
        pattern: what crosses its border, weights included.
        ops: one step, over all positions; the state one step before is a tensor of its own.
        saves: tensors kept for backward.
        along: the axis of the recurrence.

    Raises:
        PatternError: a border tensor belongs to none of the ops.
    """
    group = fused(name, pattern, ops, saves)
    return Recurrent(
        group.path, group.pattern, group.ops, group.saved, group.recomputed, along=along
    )
