"""Triangular systems: forward substitution, whose gradients are another one and a product.

For x = T^-1 y with a unit lower triangular T, the gradients are dy = T^-T dx and dT = -dy x^T.
The substitution visits half of the square by a multiplication and an addition each.
"""

from dataclasses import replace

from symbolic_cost.errors import PatternError
from symbolic_cost.ledger import Phase
from symbolic_cost.ops.elementwise import Elementwise
from symbolic_cost.ops.op import Contraction, Kernel
from symbolic_cost.ops.pattern import Operand, parse
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Solve(Elementwise):
    """Solutions of triangular systems; see `solve`."""

    @property
    def whole_axes(self) -> tuple[str, ...]:
        """Rows and columns of the system: a row takes the solutions of those before."""
        shared = set(self.inputs[0].axes) & set(self.inputs[1].axes) & set(self.outputs[0].axes)
        return tuple(axis for axis in self.inputs[0].axes if axis not in shared)

    def kernels(self) -> tuple[Kernel, ...]:
        """Return the substitution and, backward, another one and the product for the system."""
        system, result = self.inputs[0], self.outputs[0]
        columns = tuple(axis for axis in result.axes if axis not in system.axes)
        product = Contraction(system.axes, columns, 2)
        return tuple(
            replace(kernel, work=(*kernel.work, product))
            if kernel.phase is Phase.BACKWARD_INPUT
            else kernel
            for kernel in super().kernels()
        )

    def saves(self) -> tuple[Operand, ...]:
        """Return the system and its solutions."""
        return (self.inputs[0], *self.outputs) if self.live else ()


def solve(name: str, pattern: str) -> Solve:
    """Declare systems: `solve("solve", "system[b i j], right[b j v] -> left[b i v]")`.

    Raises:
        PatternError: not a system and right sides to solutions.
    """
    parsed = parse(pattern)
    if (len(parsed.inputs), len(parsed.outputs)) != (2, 1) or parsed.biases:
        raise PatternError(f"pattern {pattern!r}: a system and right sides have one solution")
    (summed,) = tuple(a for a in parsed.inputs[1].axes if a not in parsed.outputs[0].axes) or ("",)
    if summed not in parsed.inputs[0].axes:
        raise PatternError(f"pattern {pattern!r}: a column of the system is no row of right sides")
    return Solve(name, parsed, "mul", sums=(summed,))
