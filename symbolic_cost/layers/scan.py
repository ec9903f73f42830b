"""Causal convolutions that remember a window, and the short ones that stand between gates.

What state-space layers share. Axes: b sequences, r residual positions, l positions, p positions of
the padded convolution, k its kernel, whose channels are given; e embedding, three the two gates and
what they open, j channels.
"""

from symbolic_cost.layers.attention import Bias
from symbolic_cost.ops.declare import Op, axes, cache, conv, einsum, pointwise, split, view
from symbolic_cost.records import dataclass


def causal_conv(
    name: str, tensor: str, channels: str, *, bias: bool, among: str = "", function: str = "silu"
) -> tuple[Op, ...]:
    """Declare a depthwise convolution along l and its activation, from `tensor` to `name`.

    The input is padded on both sides, and what is beyond the last position is cut off.

    Args:
        name: of the ops and of the result.
        tensor: what goes in.
        channels: its axes besides b and l.
        bias: whether one is added.
        among: axes of all channels, where these are some of them.
        function: the activation; none if empty.
    """
    cut = f"{name}_cut" if function else name
    added = f" + *bias[{channels}]" if bias else ""
    old, window = f"[b l {channels}]", f"{name}_window[b l {channels}]"
    return (
        cache(f"{name}_window", f"{tensor}{old} -> {window}", kept=f"b k {channels}"),
        conv(
            f"{name}_conv",
            f"{window}, *w[{channels} k]{added} -> {name}_wide[b p {channels}]",
            among,
        ),
        view(f"{name}_cut", f"{name}_wide[b p {channels}] -> {cut}{old}"),
        *((pointwise(f"{name}_act", f"{cut}{old} -> {name}{old}", function),) if function else ()),
    )


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
