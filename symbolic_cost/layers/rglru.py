"""Griffin's recurrent layer: a causal convolution and a gated linear recurrence, beside a branch.

Axes: b sequences, r residual positions, l positions, e embedding, h blocks of channels, d channels
of a block as they go into a gate, v as they come out of it, k kernel of the convolution, p its
padded positions, one a single place.
"""

from symbolic_cost.layers.scan import causal_conv
from symbolic_cost.ops.declare import Op, axes, cache, einsum, pointwise, scan, view
from symbolic_cost.records import dataclass

AXES = axes(
    "b batch, r token residual, l token query, e hidden, h head, d width, v width, k whole, "
    "p whole, one whole"
)


@dataclass(frozen=True)
class GatedRecurrence:
    """The layer from x[b r e] to y[b r e].

    Args:
        function: of the branch beside.
    """

    function: str = "gelu_tanh"

    def ops(self) -> tuple[Op, ...]:
        wide, gate = "[b l h d]", "[b l h v]"
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            einsum("in_y", f"full[b l e], *w[e h v] + *bias[h v] -> plain_y{gate}"),
            pointwise("act", f"plain_y{gate} -> side{gate}", self.function),
            einsum("in_x", f"full[b l e], *w[e h d] + *bias[h d] -> plain_x{wide}"),
            *causal_conv("u", "plain_x", "h d", bias=True, function=""),
            *(
                op
                for name in ("input", "recurrent")
                for op in (
                    einsum(f"{name}_gate", f"u{wide}, *w[h d v] + *bias[h v] -> {name}_raw{gate}"),
                    pointwise(f"{name}_open", f"{name}_raw{gate} -> {name}{gate}", "sigmoid"),
                )
            ),
            pointwise("rate", f"recurrent{gate}, *rate[h v] -> rate{gate}", "mul"),
            pointwise("decay", f"rate{gate} -> decay{gate}", "exp"),
            view("same", f"u{wide} -> channels{gate}"),
            pointwise("drive", f"channels{gate}, input{gate} -> drive{gate}", "mul"),
            scan("scan", f"decay{gate}, drive{gate} -> states{gate}", along="l"),
            cache("state", f"states{gate} -> known{gate}", kept="b one h v"),
            pointwise("mul", f"known{gate}, side{gate} -> gated{gate}", "mul"),
            einsum("out", f"gated{gate}, *w[h v e] + *bias[e] -> summed[b l e]"),
            view("scatter", "summed[b l e] -> y[b r e]"),
        )
