"""Gated perceptron: an activated product times another.

Axes: b sequences, r residual positions, l positions, e embedding, and the width, f unless given.
"""

from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.declare import Op, axes, einsum, pointwise, view
from symbolic_cost.records import dataclass

AXES = axes("b batch, r token residual, l token query, e hidden, f inner, f_m inner, f_s inner")


@dataclass(frozen=True)
class GatedMLP:
    """Perceptron from x[b r e] to y[b r e].

    Args:
        inner_norm: of the product, before the last projection.
        thinned: statistics of the gate below which its features are cut to zero.
    """

    function: str = "silu"
    bias: Bias = Bias.NONE
    width: str = "f"
    inner_norm: Norm | None = None
    thinned: Norm | None = None

    def ops(self) -> tuple[Op, ...]:
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            *gated_products(
                "full[b l e]",
                "summed[b l e]",
                "",
                self.width,
                self.function,
                bias=self.bias,
                inner_norm=self.inner_norm,
                thinned=self.thinned,
            ),
            view("scatter", "summed[b l e] -> y[b r e]"),
        )


def gated_products(
    tensor: str,
    result: str,
    experts: str,
    width: str,
    function: str,
    *,
    bias: Bias,
    inner_norm: Norm | None = None,
    thinned: Norm | None = None,
) -> tuple[Op, ...]:
    """Declare the three products and what lies between them.

    Args:
        tensor: what goes in; its last axis is that of the embedding, or of a latent.
        result: what comes out.
        experts: axis of the experts, empty without them.
        width: axis of the width.
        function: the activation function.
        bias: which products have one.
        inner_norm: of the product, before the last projection.
        thinned: statistics of the gate below which its features are cut to zero.
    """
    rows, _, e = tensor[tensor.index("[") + 1 : -1].rpartition(" ")
    wide = f"[{rows} {width}]"
    added = f" + *bias[{experts} {width}]" if Bias.INNER in bias else ""
    narrow = f" + *bias[{experts} {e}]" if Bias.OUTPUT in bias else ""
    last = "normed" if inner_norm else "product"
    opened = "thin" if thinned else "gated"
    return (
        *(
            einsum(name, f"{tensor}, *w[{experts} {e} {width}]{added} -> {output}{wide}")
            for name, output in (("gate", "gated"), ("up", "u"))
        ),
        *(_thinned(thinned, wide, width) if thinned else ()),
        pointwise("act", f"{opened}{wide} -> a{wide}", function),
        pointwise("mul", f"a{wide}, u{wide} -> product{wide}", "mul"),
        *(
            (inner_norm.op("inner_norm", f"product{wide}", f"normed{wide}", row=width),)
            if inner_norm
            else ()
        ),
        einsum("down", f"{last}{wide}, *w[{experts} {width} {e}]{narrow} -> {result}"),
    )


def _thinned(norm: Norm, wide: str, width: str) -> tuple[Op, ...]:
    """Declare a gate whose features below a quantile of a normal distribution are zero."""
    return (
        norm.op("statistics", f"gated{wide}", f"centred{wide}", row=width),
        pointwise("thin", f"centred{wide} -> thin{wide}", "relu"),
    )
