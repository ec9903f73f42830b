"""Gated perceptron: an activated product times another.

Axes: b sequences, r residual positions, l positions, e embedding, and the width, f unless given.
"""

from dataclasses import dataclass

from symbolic_cost.axes import axes
from symbolic_cost.layers.attention import Bias
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.view import view

AXES = axes("b batch, r token residual, l token query, e hidden, f inner, f_m inner, f_s inner")


@dataclass(frozen=True)
class GatedMLP:
    """Perceptron from x[b r e] to y[b r e]."""

    function: str = "silu"
    bias: Bias = Bias.NONE
    width: str = "f"

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer."""
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            *gated_products(
                "full[b l e]", "summed[b l e]", "", self.width, self.function, bias=self.bias
            ),
            view("scatter", "summed[b l e] -> y[b r e]"),
        )


def gated_products(
    tensor: str, result: str, experts: str, width: str, function: str, *, bias: Bias
) -> tuple[Op, ...]:
    """Declare the three products and what lies between them.

    Args:
        tensor: what goes in, its last axis e.
        result: what comes out.
        experts: axis of the experts, empty without them.
        width: axis of the width.
        function: the activation function.
        bias: which products have one.
    """
    rows = tensor[tensor.index("[") + 1 : -2]
    wide = f"[{rows}{width}]"
    added = f" + *bias[{experts} {width}]" if Bias.INNER in bias else ""
    narrow = f" + *bias[{experts} e]" if Bias.OUTPUT in bias else ""
    return (
        *(
            einsum(name, f"{tensor}, *w[{experts} e {width}]{added} -> {made}{wide}")
            for name, made in (("gate", "gated"), ("up", "u"))
        ),
        pointwise("act", f"gated{wide} -> a{wide}", function),
        pointwise("mul", f"a{wide}, u{wide} -> product{wide}", "mul"),
        einsum("down", f"product{wide}, *w[{experts} {width} e]{narrow} -> {result}"),
    )
