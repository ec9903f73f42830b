"""Short gated convolutions: what is convolved is gated before, and its result is gated after.

Axes: b sequences, r residual positions, l positions, e embedding, three the two gates and what they
open, j channels, k kernel, p padded positions.
"""

from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.scan import causal_conv
from symbolic_cost.ops.declare import Op, axes, einsum, pointwise, split, view
from symbolic_cost.records import dataclass

AXES = axes(
    "b batch, r token residual, l token query, e hidden, three whole, j inner, k whole, p whole"
)


@dataclass(frozen=True)
class ShortConv:
    """The layer from x[b r e] to y[b r e].

    Args:
        bias: of the convolution (inner) and of both projections (output).
    """

    bias: Bias = Bias.NONE

    def ops(self) -> tuple[Op, ...]:
        outer = Bias.OUTPUT in self.bias
        wide, narrow = (" + *bias[three j]", " + *bias[e]") if outer else ("", "")
        parts = "before[b l j], after[b l j], u[b l j]"
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            einsum("in", f"full[b l e], *w[e three j]{wide} -> all[three b l j]"),
            split("split", f"all[three b l j] -> {parts}"),
            pointwise("open", "before[b l j], u[b l j] -> opened[b l j]", "mul"),
            *causal_conv("conv", "opened", "j", bias=Bias.INNER in self.bias, function=""),
            pointwise("close", "after[b l j], conv[b l j] -> closed[b l j]", "mul"),
            einsum("out", f"closed[b l j], *w[j e]{narrow} -> summed[b l e]"),
            view("scatter", "summed[b l e] -> y[b r e]"),
        )
