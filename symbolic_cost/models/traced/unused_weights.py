"""Weights that are there and that no op multiplies, looks up or applies."""

from symbolic_cost.ops.op import Kernel, Op
from symbolic_cost.ops.pattern import Operand


class UnusedWeight(Op):
    """A weight that is kept, and copied at most: a mask token, a scale folded into another."""

    @property
    def kind(self) -> str:
        """It copies."""
        return "copy"

    @property
    def bulk(self) -> bool:
        """Nothing is computed."""
        return False

    def kernels(self) -> tuple[Kernel, ...]:
        """Return none."""
        return ()

    def saves(self) -> tuple[Operand, ...]:
        """Return none."""
        return ()
