"""State-space layers of Mamba.

Axes: b sequences, r residual positions, l positions, e embedding, j inner channels, s state,
k kernel of the convolution, p its padded positions, low rank of the time step, mixed low and both
states together, two the branch and its gate, one a single position. Where heads select for
themselves, n heads of i channels stand for j.
"""

from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.scan import causal_conv
from symbolic_cost.ops.declare import Op, axes, cache, einsum, pointwise, scan, split, view
from symbolic_cost.records import dataclass

AXES = axes(
    "b batch, r token residual, l token query, p whole, e hidden, j inner, s latent, k whole, "
    "low latent, mixed latent, two whole, one whole, n whole, i inner"
)


@dataclass(frozen=True)
class SelectiveScan:
    """Mamba's layer from x[b r e] to y[b r e], its recurrence step by step.

    Args:
        bias: of the convolutions (inner) and of the outer projections (output).
        norm: of the time step's latent, and of what goes into and out of the state; or None.
        heads: axis of heads that each select for themselves; empty if all channels do together.
    """

    bias: Bias = Bias.INNER
    norm: Norm | None = None
    heads: str = ""

    @property
    def _channels(self) -> str:
        return f"{self.heads} i" if self.heads else "j"

    def ops(self) -> tuple[Op, ...]:
        j = self._channels
        wide, narrow = (
            (f" + *bias[two {j}]", " + *bias[e]") if Bias.OUTPUT in self.bias else ("", "")
        )
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            einsum("in", f"full[b l e], *w[e two {j}]{wide} -> both[two b l {j}]"),
            split("split", f"both[two b l {j}] -> branch[b l {j}], gate[b l {j}]"),
            *causal_conv("u", "branch", j, bias=Bias.INNER in self.bias),
            *self._selection(),
            *self._recurrence(),
            pointwise("gate", f"gate[b l {j}] -> opened[b l {j}]", "silu"),
            pointwise("mul", f"skipped[b l {j}], opened[b l {j}] -> gated[b l {j}]", "mul"),
            einsum("out", f"gated[b l {j}], *w[{j} e]{narrow} -> summed[b l e]"),
            view("scatter", "summed[b l e] -> y[b r e]"),
        )

    def _each(self, axis: str) -> str:
        """Return axes of what every position has of a latent, or every head of it."""
        return f"b l {self.heads} {axis}" if self.heads else f"b l {axis}"

    def _selection(self) -> tuple[Op, ...]:
        parts = {"low": "low", "into": "s", "outof": "s"}
        j, mixed, low = self._channels, self._each("mixed"), self._each("low")
        raised = f"{self.heads} low i" if self.heads else "low j"
        return (
            einsum("select", f"u[b l {j}], *w[{j} mixed] -> mixed[{mixed}]"),
            *(op for name, axis in parts.items() for op in self._part(name, axis)),
            einsum("step", f"low[{low}], *w[{raised}] + *bias[{j}] -> raw[b l {j}]"),
            pointwise("softplus", f"raw[b l {j}] -> step[b l {j}]", "softplus"),
        )

    def _part(self, name: str, axis: str) -> tuple[Op, ...]:
        mixed, own = f"mixed[{self._each('mixed')}]", self._each(axis)
        if self.norm is None:
            return (view(name, f"{mixed} -> {name}[{own}]"),)
        plain = f"plain_{name}[{own}]"
        return (
            view(name, f"{mixed} -> {plain}"),
            self.norm.op(f"norm_{name}", plain, f"{name}[{own}]", row=axis),
        )

    def _recurrence(self) -> tuple[Op, ...]:
        j, state = self._channels, self._each("s")
        row, cell = f"[b l {j}]", f"[b l {j} s]"
        return (
            pointwise("rate", f"step{row}, *a[{j} s] -> rate{cell}", "mul"),
            pointwise("decay", f"rate{cell} -> decay{cell}", "exp"),
            pointwise("scaled", f"step{row}, u{row} -> scaled{row}", "mul"),
            pointwise("drive", f"scaled{row}, into[{state}] -> drive{cell}", "mul"),
            scan("scan", f"decay{cell}, drive{cell} -> states{cell}", along="l"),
            cache("state", f"states{cell} -> known{cell}", kept=f"b one {j} s"),
            einsum("read", f"known{cell}, outof[{state}] -> read{row}"),
            pointwise("skip", f"u{row}, *d[{j}] -> direct{row}", "mul"),
            pointwise("add", f"read{row}, direct{row} -> skipped{row}", "add"),
        )
