"""Pooling of positions by attention: a learned query attends to all of them.

Axes: b sequences, r positions of the residual stream, t key positions, one the query, e embedding,
h heads, d head width, f width of the perceptron.
"""

from symbolic_cost.layers.attention import Bias, output
from symbolic_cost.layers.attention_core import PLAIN, AttentionCore, Positions, Step
from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.declare import Op, axes, einsum, lookup, pointwise, view
from symbolic_cost.records import dataclass

AXES = axes(
    "b batch, r token residual, l token query, t key-token, one whole, probes whole, e hidden, "
    "h head, d width, f inner"
)

_AT = Positions("one", "one", "t", "t")


@dataclass(frozen=True)
class AttentionPool:
    """A learned query that attends to x[b r e], and a perceptron, to pooled[b one e]."""

    function: str = "gelu_tanh"

    def ops(self) -> tuple[Op, ...]:
        return _pooled(self.function)


@dataclass(frozen=True)
class MeanPool:
    """The normalised mean of x[b r e], pooled[b one e]."""

    def ops(self) -> tuple[Op, ...]:
        return (
            pointwise("mean", "x[b r e] -> mean[b one e]", "sum", sums="r"),
            Norm.LAYER.op("norm", "mean[b one e]", "pooled[b one e]", row="e"),
        )


def _pooled(function: str) -> tuple[Op, ...]:
    keys = (
        einsum(letter, f"all[b l e], *w[e h d] + *bias[h d] -> {letter}[b l h d]")
        for letter in "kv"
    )
    attended = (
        lookup("probe", "!zeros[b one]:buffer, *probes[probes e] -> probe[b one e]"),
        einsum("q", "probe[b one e], *w[e h d] + *bias[h d] -> q[b one h d]"),
        view("gather", "x[b r e] -> all[b l e]"),
        *keys,
        *(view(name, f"{name[0]}[b l h d] -> {name}[b t h d]") for name in ("keys", "values")),
        *AttentionCore(steps=Step.NONE).ops(PLAIN, _AT),
        *_inside(output(_AT, "h", bias=Bias.BOTH), "y", "attended"),
    )
    mlp = (
        Norm.LAYER.op("norm", "attended[b one e]", "normed[b one e]", row="e"),
        einsum("fc1", "normed[b one e], *w[e f] + *bias[f] -> u[b one f]"),
        pointwise("act", "u[b one f] -> a[b one f]", function),
        einsum("fc2", "a[b one f], *w[f e] + *bias[e] -> done[b one e]"),
        pointwise("residual", "attended[b one e], done[b one e] -> pooled[b one e]", "add"),
    )
    return (*attended, *mlp)


def _inside(ops: tuple[Op, ...], old: str, new: str) -> tuple[Op, ...]:
    return tuple(op.mapped(lambda o: o.renamed(new) if o.tensor == old else o) for op in ops)
