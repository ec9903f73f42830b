"""State-space layers of Mamba.

Axes: b sequences, r residual positions, l positions, e embedding, j inner channels, s state,
k kernel of the convolution, p its padded positions, low rank of the time step, mixed low and both
states together, two the branch and its gate, one a single position.
"""

from symbolic_cost.axes import axes
from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.scan import causal_conv
from symbolic_cost.ops.cache import cache
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.scan import scan
from symbolic_cost.ops.view import split, view
from symbolic_cost.records import dataclass

AXES = axes(
    "b batch, r token residual, l token query, p whole, e hidden, j inner, s latent, k whole, "
    "low latent, mixed latent, two whole, one whole"
)


@dataclass(frozen=True)
class SelectiveScan:
    """Mamba's layer from x[b r e] to y[b r e], its recurrence step by step.

    Args:
        bias: of the convolutions (inner) and of the outer projections (output).
        norm: of the time step's latent, and of what goes into and out of the state; or None.
    """

    bias: Bias = Bias.INNER
    norm: Norm | None = None

    def ops(self) -> tuple[Op, ...]:
        wide, narrow = (" + *bias[two j]", " + *bias[e]") if Bias.OUTPUT in self.bias else ("", "")
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            einsum("in", f"full[b l e], *w[e two j]{wide} -> both[two b l j]"),
            split("split", "both[two b l j] -> branch[b l j], gate[b l j]"),
            *causal_conv("u", "branch", "j", bias=Bias.INNER in self.bias),
            *self._selection(),
            *_recurrence(),
            pointwise("gate", "gate[b l j] -> opened[b l j]", "silu"),
            pointwise("mul", "skipped[b l j], opened[b l j] -> gated[b l j]", "mul"),
            einsum("out", f"gated[b l j], *w[j e]{narrow} -> summed[b l e]"),
            view("scatter", "summed[b l e] -> y[b r e]"),
        )

    def _selection(self) -> tuple[Op, ...]:
        """Declare what depends on the input: time step, and what goes into and out of the state."""
        parts = {"low": "low", "into": "s", "outof": "s"}
        return (
            einsum("select", "u[b l j], *w[j mixed] -> mixed[b l mixed]"),
            *(op for name, axis in parts.items() for op in self._part(name, axis)),
            einsum("step", "low[b l low], *w[low j] + *bias[j] -> raw[b l j]"),
            pointwise("softplus", "raw[b l j] -> step[b l j]", "softplus"),
        )

    def _part(self, name: str, axis: str) -> tuple[Op, ...]:
        if self.norm is None:
            return (view(name, f"mixed[b l mixed] -> {name}[b l {axis}]"),)
        plain = f"plain_{name}[b l {axis}]"
        return (
            view(name, f"mixed[b l mixed] -> {plain}"),
            self.norm.op(f"norm_{name}", plain, f"{name}[b l {axis}]", row=axis),
        )


def _recurrence() -> tuple[Op, ...]:
    return (
        pointwise("rate", "step[b l j], *a[j s] -> rate[b l j s]", "mul"),
        pointwise("decay", "rate[b l j s] -> decay[b l j s]", "exp"),
        pointwise("scaled", "step[b l j], u[b l j] -> scaled[b l j]", "mul"),
        pointwise("drive", "scaled[b l j], into[b l s] -> drive[b l j s]", "mul"),
        scan("scan", "decay[b l j s], drive[b l j s] -> states[b l j s]", along="l"),
        cache("state", "states[b l j s] -> known[b l j s]", kept="b one j s"),
        einsum("read", "known[b l j s], outof[b l s] -> read[b l j]"),
        pointwise("skip", "u[b l j], *d[j] -> direct[b l j]", "mul"),
        pointwise("add", "read[b l j], direct[b l j] -> skipped[b l j]", "add"),
    )
