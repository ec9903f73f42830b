"""What state-space layers share: causal convolutions that remember a window.

Axes: b sequences, l positions, p positions of the padded convolution, k its kernel; the channels
are given.
"""

from symbolic_cost.ops.declare import Op, cache, conv, pointwise, view


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
