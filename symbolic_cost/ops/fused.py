"""Fused groups: several declared ops run as one kernel.

What stays inside never touches memory. What the kernel saves, and what it recomputes in
backward, is part of its declaration.
"""

from typing import Any

from symbolic_cost.errors import PatternError, refuse
from symbolic_cost.ledger import Phase, Units
from symbolic_cost.ops.einsum import Einsum
from symbolic_cost.ops.op import AxesMap, Kernel, Op, OperandMap, RowWork, Work
from symbolic_cost.ops.pattern import Operand, parse
from symbolic_cost.ops.placement import Placement
from symbolic_cost.records import dataclass, replace


@dataclass(frozen=True)
class Fused(Op):
    """A named group of ops that is one kernel; see `fused`."""

    ops: tuple[Op, ...]
    saved: tuple[Operand, ...]
    recomputed: tuple[str, ...]
    held: tuple[Operand, ...] = ()

    @property
    def axes(self) -> tuple[str, ...]:
        """The index space of all its ops."""
        return tuple(dict.fromkeys(axis for op in self.ops for axis in op.axes))

    @property
    def units(self) -> Units:
        """Matrix units as soon as one of its ops runs there: they do most of the work."""
        return max((op.units for op in self.ops), key=lambda units: units is Units.MATRIX)

    @property
    def stages(self) -> tuple[Op, ...]:
        """Its ops."""
        return self.ops

    def misplaced(self, placement: Placement) -> list[str]:
        """Say also which sums over ranks the kernel would have to make before it goes on."""
        border = {operand.tensor for operand in self.outputs}
        return super().misplaced(placement) + [
            f"mesh axis {mesh!r} splits the sum of {operand.tensor!r}, which the kernel uses inside"
            for op in self.ops
            for operand in op.outputs
            if operand.tensor not in border
            for axis in op.summing_space(operand)
            if axis not in operand.axes
            for mesh in placement.meshes(axis)
        ]

    def kernels(self) -> tuple[Kernel, ...]:
        """Return one kernel per phase, which moves only what crosses the group's border."""
        extra = tuple(o for o in self.saved if o not in (*self.inputs, *self.outputs))
        extra = extra if self.live else ()
        forward = Kernel(
            Phase.FORWARD,
            self.inputs + self.weights,
            self.outputs + extra,
            self._work(Phase.FORWARD),
        )
        gradients = tuple(operand.gradient() for operand in self.outputs)
        backward = {
            Phase.BACKWARD_INPUT: tuple(o.gradient() for o in self.inputs if o.needs_gradient),
            Phase.BACKWARD_WEIGHT: tuple(o.gradient() for o in self.weights if o.needs_gradient),
        }
        again = self._work(Phase.FORWARD, only=self.recomputed if self.live else ())
        return (
            forward,
            *((Kernel(Phase.RECOMPUTE, (), (), again),) if again else ()),
            *(
                Kernel(phase, gradients + self.saved + self.weights, extra, self._work(phase))
                for phase, extra in backward.items()
                if extra
            ),
        )

    def saves(self) -> tuple[Operand, ...]:
        """Return what the declaration says, and what is held with it."""
        return self.saved + self.held if self.live else ()

    def mapped_fields(self, operand: OperandMap, axes: AxesMap) -> dict[str, Any]:
        """Return its ops and what it saves on other operands."""
        return {
            **super().mapped_fields(operand, axes),
            "ops": tuple(op.mapped(operand, axes) for op in self.ops),
            "saved": tuple(map(operand, self.saved)),
            "held": tuple(map(operand, self.held)),
        }

    def _work(self, phase: Phase, only: tuple[str, ...] | None = None) -> tuple[Work, ...]:
        return tuple(
            self._of_pairs(work)
            for op in self.ops
            if only is None or op.path in only
            for kernel in op.kernels()
            if kernel.phase is phase
            for work in kernel.work
        )

    def _of_pairs(self, work: Work) -> Work:
        """Return work of the kernel, elementwise work on the pairs that its products leave."""
        product = next((op for op in self.ops if isinstance(op, Einsum) and op.pairs), None)
        if product is None or not isinstance(work, RowWork):
            return work
        if not {*product.pairs} <= {*work.axes}:
            return work
        return replace(work, pairs=product.pairs, masked=product.masked, window=product.window)


def fused(
    name: str,
    pattern: str,
    ops: tuple[Op, ...],
    saves: str,
    recompute: tuple[str, ...] = (),
    *,
    holds: str = "",
) -> Fused:
    """Declare a fused group.

    Args:
        name: of the group.
        pattern: what crosses its border.
        ops: what it computes, declared as elsewhere.
        saves: tensors kept for backward, as in a pattern.
        recompute: names of the ops that backward computes again.
        holds: tensors that stay in memory because what is saved is a part of them.

    Raises:
        PatternError: a name of `recompute` is not one of the ops, a border tensor belongs to none
            of them, or a weight of theirs does not cross the border.
    """
    parsed = parse(pattern)
    inside = {operand.tensor for op in ops for operand in (*op.inputs, *op.weights, *op.outputs)}
    problems = [
        f"fused group {name!r}: cannot recompute {missing!r}; its ops are "
        + ", ".join(op.path for op in ops)
        for missing in recompute
        if missing not in {op.path for op in ops}
    ]
    problems += [
        f"fused group {name!r}: tensor {operand.tensor!r} belongs to none of its ops"
        for operand in parsed.inputs + parsed.outputs
        if operand.tensor not in inside
    ]
    border = {operand.tensor for operand in parsed.inputs + parsed.biases}
    problems += [
        f"fused group {name!r}: weight {weight.tensor!r} of its op {op.path!r} does not cross its "
        f"border: add *{weight.tensor}[{' '.join(weight.axes)}]"
        for op in ops
        for weight in op.weights
        if weight.tensor not in border
    ]
    refuse(problems, PatternError)
    saved = parse(f"{saves} -> kept[]").inputs if saves else ()
    held = parse(f"{holds} -> held[]").inputs if holds else ()
    return Fused(name, parsed, ops, saved, recompute, held)
