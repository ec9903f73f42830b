"""Attention beside a convolution whose kernels each position makes of its neighbours.

Axes: as in attention, with half of the features for either; s_n the kernel along positions, h_c
heads as their kernels are made, one the kernel of a product, two the halves side by side.

Source: jiang-2020, section 3.
"""

from symbolic_cost.layers.attention import Attention
from symbolic_cost.ops.declare import Op, conv, einsum, pointwise, softmax, view
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Spans(Attention):
    """Self-attention and a dynamic convolution from x[b r e] to y[b r e]."""

    def ops(self) -> tuple[Op, ...]:
        rows, taps = "[b l h d]", "[b l h s_n]"
        bias, joined = " + *bias[h d]", "joined[b l two h d]"
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            *(einsum(n, f"full[b l e], *w[e h d]{bias} -> {n}{rows}") for n in "qkv"),
            view("keys", f"k{rows} -> keys[b t h d]"),
            view("values", f"v{rows} -> values[b t h d]"),
            *self.core.ops(),
            conv("near", "full[b l e], *w[e s_n] -> near[b l e]"),
            einsum("span", f"near[b l e], *w[e h d]{bias} -> span{rows}"),
            pointwise("meet", f"q{rows}, span{rows} -> met{rows}", "mul"),
            einsum("kernel", f"met{rows}, *w[h d h_c s_n] + *bias[h_c s_n] -> made[b l h_c s_n]"),
            softmax("kernel.softmax", "made[b l h_c s_n] -> soft[b l h_c s_n]", row="s_n"),
            view("kernel.heads", f"soft[b l h_c s_n] -> kernel{taps}"),
            einsum("beside", f"full[b l e], *w[e h d]{bias} -> plain{rows}"),
            pointwise("unfold", f"plain{rows} -> unfolded[b l h d s_n]", "copy"),
            einsum("convolve", f"unfolded[b l h d s_n], kernel{taps} -> convolved{rows}"),
            pointwise("join", f"context{rows}, convolved{rows} -> {joined}", "copy"),
            einsum("proj", f"{joined}, *w[two h d e] + *bias[e] -> summed[b l e]"),
            view("scatter", "summed[b l e] -> y[b r e]"),
        )
