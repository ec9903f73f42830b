"""Pooling of positions: a learned query attends to all of them, or they to learned vectors.

Axes: b sequences, r positions of the residual stream, t key positions, one the query, e embedding,
h heads, d head width, f width of the perceptron; n_m learned vectors, and r_m, l_m, t_m
their places.
"""

from symbolic_cost.layers.attention import Bias, CacheKind, output
from symbolic_cost.layers.attention_core import PLAIN, AttentionCore, Positions, Step
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.relative import CrossAttention
from symbolic_cost.layers.residual import Branch
from symbolic_cost.ops.declare import Op, axes, einsum, lookup, pointwise, view
from symbolic_cost.records import dataclass

AXES = axes(
    "b batch, r token residual, l token query, t key-token, one whole, probes whole, e hidden, "
    "h head, d width, f inner, n_m whole, r_m whole, l_m whole, t_m whole"
)

_AT = Positions("one", "one", "t", "t")
_SELF, _VECTORS = Positions(), Positions("r_m", "l_m", "t_m", "t_m")
_NOTHING = CacheKind.NOTHING


@dataclass(frozen=True)
class AttentionPool:
    """A learned query that attends to x[b r e], and a perceptron, to pooled[b one e]."""

    function: str = "gelu_tanh"

    def ops(self) -> tuple[Op, ...]:
        return _pooled(self.function)


@dataclass(frozen=True)
class VectorQuery:
    """A learned query, not multiplied, that attends to x[b r e], and a product, to pooled[b one e].

    Args:
        bias: of keys and values.
    """

    bias: Bias = Bias.NONE

    def ops(self) -> tuple[Op, ...]:
        return (
            lookup("query", "!zeros[b one]:buffer, *probes[probes h d] -> q[b one h d]"),
            *_attended(self.bias, "pooled"),
        )


@dataclass(frozen=True)
class MeanPool:
    """The normalised mean of x[b r e], pooled[b one e]."""

    def ops(self) -> tuple[Op, ...]:
        return (
            pointwise("mean", "x[b r e] -> mean[b one e]", "sum", sums="r"),
            Norm.LAYER.op("norm", "mean[b one e]", "pooled[b one e]", row="e"),
        )


@dataclass(frozen=True)
class VectorPool:
    """The mean of positions, pooled[b one e], once they have attended to learned vectors.

    As NV-Embed pools (Lee and others, 2024, section 3.2).
    """

    def ops(self) -> tuple[Op, ...]:
        branch = Branch()
        vectors = "vectors[b r_m e]"
        cross = CrossAttention(_SELF, _VECTORS, AttentionCore(steps=Step.NONE), cache=_NOTHING)
        perceptron = GatedMLP("gelu", Bias.BOTH)
        return (
            lookup("vectors", f"!places[b r_m]:buffer, *table[n_m e] -> {vectors}"),
            Norm.LAYER.op("norm", vectors, "memory[b r_m e]", row="e"),
            *branch.around("cross", cross.ops(), "x", "middle", memory="memory"),
            *branch.around("mlp", perceptron.ops(), "middle", "seen"),
            pointwise("mean", "seen[b r e] -> pooled[b one e]", "sum", sums="r"),
        )


def _attended(own: Bias = Bias.INNER, result: str = "attended") -> tuple[Op, ...]:
    """Declare what a query q[b one h d] finds in x[b r e]; its output has a bias."""
    bias = " + *bias[h d]" if own else ""
    keys = (einsum(x, f"all[b l e], *w[e h d]{bias} -> {x}[b l h d]") for x in "kv")
    return (
        view("gather", "x[b r e] -> all[b l e]"),
        *keys,
        *(view(name, f"{name[0]}[b l h d] -> {name}[b t h d]") for name in ("keys", "values")),
        *AttentionCore(steps=Step.NONE).ops(PLAIN, _AT),
        *_inside(output(_AT, "h", bias=Bias.BOTH), "y", result),
    )


def _pooled(function: str) -> tuple[Op, ...]:
    attended = (
        lookup("probe", "!zeros[b one]:buffer, *probes[probes e] -> probe[b one e]"),
        einsum("q", "probe[b one e], *w[e h d] + *bias[h d] -> q[b one h d]"),
        *_attended(),
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
