"""Self-attention.

Axes: b sequences, r residual positions, l query positions, t key/value positions, e embedding,
c the three of query, key and value, h heads, d head width. Positions have three names because
sequence parallelism splits r, context parallelism l, and neither splits t.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from symbolic_cost.axes import axes
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import dropout, softmax
from symbolic_cost.ops.fused import fused
from symbolic_cost.ops.graph import scope
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.view import split, view

AXES = axes(
    "b batch, r token residual, l token query, t key-token, e hidden, c whole, h head, d whole"
)


class Projection(StrEnum):
    """How query, key and value are projected."""

    FUSED = "one product"
    SEPARATE = "three products"


class Core(StrEnum):
    """How the attention core runs."""

    EAGER = "op by op"
    FLASH = "one fused kernel that recomputes the scores"


@dataclass(frozen=True)
class Attention:
    """Multi-head self-attention from x[b r e] to y[b r e].

    Args:
        projection: of query, key and value.
        core: of scores, softmax and weighted sum.
        qkv_bias: whether the query, key and value projections have a bias.
        output_bias: whether the output projection has one.
        dropout: whether the attention probabilities are dropped out.
        causal: whether a query sees the keys up to its own position only.
        single: whether the softmax runs in single precision.
    """

    projection: Projection = Projection.FUSED
    core: Core = Core.EAGER
    qkv_bias: bool = True
    output_bias: bool = True
    dropout: bool = True
    causal: bool = True
    single: bool = False

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer."""
        bias = " + *bias[e]" if self.output_bias else ""
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            *self._projections(),
            view("keys", "k[b l h d] -> keys[b t h d]"),
            view("values", "v[b l h d] -> values[b t h d]"),
            *self._core(),
            einsum("proj", f"context[b l h d], *w[h d e]{bias} -> summed[b l e]"),
            view("scatter", "summed[b l e] -> y[b r e]"),
        )

    def _projections(self) -> tuple[Op, ...]:
        if self.projection is Projection.FUSED:
            bias = " + *bias[c h d]" if self.qkv_bias else ""
            return (
                einsum("qkv", f"full[b l e], *w[c e h d]{bias} -> qkv[c b l h d]"),
                split("split", "qkv[c b l h d] -> q[b l h d], k[b l h d], v[b l h d]"),
            )
        bias = " + *bias[h d]" if self.qkv_bias else ""
        return tuple(
            einsum(name, f"full[b l e], *w[e h d]{bias} -> {name}[b l h d]") for name in "qkv"
        )

    def _core(self) -> tuple[Op, ...]:
        ops = core_ops("l", "t", masked=self.causal, drop=self.dropout, single=self.single)
        names = {name: name for name in ("q", "keys", "values", "context")}
        if self.core is Core.EAGER:
            return scope("core", ops, **names)
        border = "q[b l h d], keys[b t h d], values[b t h d]"
        return (
            fused(
                "core",
                f"{border} -> context[b l h d]",
                ops,
                saves=f"{border}, context[b l h d], logsumexp[b l h]:statistic",
                recompute=tuple(op.path for op in ops if op.path != "attend"),
            ),
        )


def core_ops(
    query: str,
    key: str,
    *,
    masked: bool,
    drop: bool,
    single: bool = False,
    bias: tuple[Op, ...] = (),
) -> tuple[Op, ...]:
    """Declare scores, softmax and weighted sum, from q, keys and values to context.

    Args:
        query: axis of the query positions.
        key: axis of the key positions.
        masked: whether a query sees the keys up to its own position only.
        drop: whether the probabilities are dropped out.
        single: whether the softmax runs in single precision.
        bias: ops from scores to biased scores, if any.
    """
    square, pairs = f"[b h {query} {key}]", f"{query} {key}"
    scores, kept = "biased" if bias else "scores", "dropped" if drop else "p"
    product = f"q[b {query} h d], keys[b {key} h d] -> scores{square}"
    mean = f"{kept}{square}, values[b {key} h d] -> context[b {query} h d]"
    return (
        einsum("scores", product, pairs=pairs, masked=masked),
        *bias,
        softmax("softmax", f"{scores}{square} -> p{square}", row=key, single=single),
        *((dropout("dropout", f"p{square} -> dropped{square}"),) if drop else ()),
        einsum("attend", mean, pairs=pairs, masked=masked),
    )
