"""Two-layer perceptron.

Axes: b sequences, r residual positions, l positions, e embedding, f width.
"""

from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.declare import Op, axes, pointwise, view
from symbolic_cost.ops.einsum import Call, einsum
from symbolic_cost.records import dataclass

AXES = axes("b batch, r token residual, l token query, e hidden, f inner, two whole")


@dataclass(frozen=True)
class MLP:
    """Perceptron from x[b r e] to y[b r e].

    Args:
        function: the activation function.
        bias: which products have one.
        call: how products and biases are called.
        width: axis of the width.
        inner_norm: of what the second product takes, if any.
    """

    function: str = "gelu"
    bias: Bias = Bias.BOTH
    call: Call = Call.SEPARATE
    width: str = "f"
    inner_norm: Norm | None = None

    def ops(self) -> tuple[Op, ...]:
        f = self.width
        wide = f" + *bias[{f}]" if Bias.INNER in self.bias else ""
        narrow = " + *bias[e]" if Bias.OUTPUT in self.bias else ""
        scalars, laid = (", *scalars[two]", "two") if self.function == "xielu" else ("", "")
        wider = "normed" if self.inner_norm else "a"
        act = f"u[b l {f}]{scalars} -> a[b l {f}]"
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            einsum("fc1", f"full[b l e], *w[e {f}]{wide} -> u[b l {f}]", call=self.call),
            pointwise("act", act, self.function, laid=laid),
            *self._normed(f"[b l {f}]"),
            einsum("fc2", f"{wider}[b l {f}], *w[{f} e]{narrow} -> summed[b l e]", call=self.call),
            view("scatter", "summed[b l e] -> y[b r e]"),
        )

    def _normed(self, axes: str) -> tuple[Op, ...]:
        own = self.inner_norm
        return (own.op("inner_norm", f"a{axes}", f"normed{axes}", row=self.width),) if own else ()
