"""RWKV's layers: mixing with the token before, and a weighted mean over earlier tokens.

Axes: b sequences, r residual positions, l positions, e embedding, j channels of the mean, n_e width
of the receptance, f perceptron width, one a single place.
"""

from symbolic_cost.ops.declare import Op, axes, cache, einsum, pointwise, scan, view
from symbolic_cost.records import dataclass

AXES = axes(
    "b batch, r token residual, l token query, e hidden, j inner, n_e hidden, f inner, one whole"
)


def _shifted(names: tuple[str, ...]) -> tuple[Op, ...]:
    """Declare blends of every token with the one before, one for every product."""
    return (
        view("gather", "x[b r e] -> full[b l e]"),
        cache("before", "full[b l e] -> before[b l e]", kept="b one e"),
        *(
            pointwise(
                f"mix_{name}",
                f"full[b l e], before[b l e], *mix_{name}[e] -> mixed_{name}[b l e]",
                "mul",
            )
            for name in names
        ),
    )


@dataclass(frozen=True)
class TimeMix:
    """The mean over earlier tokens, from x[b r e] to y[b r e]."""

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer: sums of values and of weights, and the largest exponent."""
        wide = "[b l j]"
        return (
            *_shifted(("k", "v", "r")),
            *(
                einsum(name, f"mixed_{name}[b l e], *w[e j] -> {name}{wide}")
                for name in ("k", "v", "r")
            ),
            pointwise("weight", f"k{wide}, *first[j] -> weight{wide}", "exp"),
            pointwise("decay", f"weight{wide}, *decay[j] -> decay{wide}", "exp"),
            pointwise("drive", f"weight{wide}, v{wide} -> drive{wide}", "mul"),
            scan("sums", f"decay{wide}, drive{wide} -> sums{wide}", along="l"),
            scan("counts", f"decay{wide}, weight{wide} -> counts{wide}", along="l"),
            cache("state", f"sums{wide} -> known{wide}", kept="b one j"),
            cache("divisor", f"counts{wide} -> divisor{wide}", kept="b one j"),
            cache("largest", f"decay{wide} -> largest{wide}", kept="b one j"),
            pointwise("mean", f"known{wide}, divisor{wide}, largest{wide} -> mean{wide}", "mul"),
            pointwise("receive", f"r{wide} -> open{wide}", "sigmoid"),
            pointwise("mul", f"mean{wide}, open{wide} -> gated{wide}", "mul"),
            einsum("out", f"gated{wide}, *w[j e] -> summed[b l e]"),
            view("scatter", "summed[b l e] -> y[b r e]"),
        )


@dataclass(frozen=True)
class ChannelMix:
    """The perceptron, from x[b r e] to y[b r e]."""

    function: str = "relu2"

    def ops(self) -> tuple[Op, ...]:
        return (
            *_shifted(("k", "r")),
            einsum("key", "mixed_k[b l e], *w[e f] -> u[b l f]"),
            pointwise("act", "u[b l f] -> a[b l f]", self.function),
            einsum("value", "a[b l f], *w[f n_e] -> summed[b l n_e]"),
            einsum("receptance", "mixed_r[b l e], *w[e n_e] -> r[b l n_e]"),
            pointwise("receive", "r[b l n_e] -> open[b l n_e]", "sigmoid"),
            pointwise("mul", "summed[b l n_e], open[b l n_e] -> gated[b l n_e]", "mul"),
            view("scatter", "gated[b l n_e] -> y[b r e]"),
        )
