"""Two-layer perceptron.

Axes: b sequences, r residual positions, l positions, e embedding, f width.
"""

from __future__ import annotations

from dataclasses import dataclass

from symbolic_cost.axes import axes
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.view import view

AXES = axes("b batch, r token residual, l token query, e hidden, f inner")


@dataclass(frozen=True)
class MLP:
    """Perceptron from x[b r e] to y[b r e].

    Args:
        function: the activation function.
        bias: whether both products have one.
    """

    function: str = "gelu"
    bias: bool = True

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer."""
        wide, narrow = (" + *bias[f]", " + *bias[e]") if self.bias else ("", "")
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            einsum("fc1", f"full[b l e], *w[e f]{wide} -> u[b l f]"),
            pointwise("act", "u[b l f] -> a[b l f]", self.function),
            einsum("fc2", f"a[b l f], *w[f e]{narrow} -> summed[b l e]"),
            view("scatter", "summed[b l e] -> y[b r e]"),
        )
