"""Attentions that a mask or a second core makes from keys and values of their own.

Differential attention subtracts a second core on other values (Ye et al., Differential Transformer,
2024; DiffLlama); dynamic masks are made of values (Doge).

Axes: as in attention; r_d decays of keys, n_4 learned vectors.
"""

from symbolic_cost.layers.attention import Attention, Bias, output
from symbolic_cost.layers.attention_core import AttentionCore
from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.declare import Op, axes, einsum, pointwise, scope, stored, view
from symbolic_cost.records import dataclass, replace

AXES = axes("r_d latent, n_4 whole")


@dataclass(frozen=True)
class Differential(Attention):
    """Self-attention of two cores, on the first and the second half of the heads' values."""

    def ops(self) -> tuple[Op, ...]:
        at, heads = self.at, self.heads
        values, context = f"[b {at.key} {heads.key} d]", f"[b {at.query} {heads.query} d]"
        cores = tuple(
            op
            for name in ("first", "second")
            for op in (
                pointwise(f"{name}_values", f"values{values} -> {name}_half{values}", "copy"),
                *scope(
                    name,
                    self.core.ops(heads, at),
                    q="q",
                    keys="keys",
                    values=f"{name}_half",
                    context=f"{name}_context",
                ),
            )
        )
        return (
            view("gather", f"x[b {at.residual} e] -> full[b {at.query} e]"),
            *self._projections(),
            *self._joined("k", "keys"),
            *self._joined("v", "values"),
            *cores,
            stored("shares", w="n_4 d"),
            pointwise(
                "subtract",
                f"first_context{context}, second_context{context} -> plain{context}",
                "add",
            ),
            Norm.RMS_BARE.op("norm_heads", f"plain{context}", f"context{context}", row="d"),
            *output(at, heads.query, bias=self.bias, call=self.call),
        )


@dataclass(frozen=True)
class Decayed(Attention):
    """Self-attention under a mask that the values of all keys make, and learn through."""

    @property
    def _scoring(self) -> AttentionCore:
        return replace(self.core, mask=f"decay[b {self.at.key} r_d]")

    def _joined(self, name: str, result: str) -> tuple[Op, ...]:
        """Declare keys or values at all positions, and with values their decays."""
        joined = super()._joined(name, result)
        if name != "v":
            return joined
        at, k = self.at, self.heads.key
        bias = " + *bias[r_d]" if Bias.INNER in self.bias else ""
        values, decays = f"values[b {at.key} {k} d]", f"[b {at.key} r_d]"
        return (
            *joined,
            einsum("decay", f"{values}, *w[{k} d r_d]{bias} -> plain_decay{decays}"),
            pointwise("rate", f"plain_decay{decays}, *rate[r_d] -> decay{decays}", "mul"),
        )
