"""Attention with a learned bias per distance, as in T5: no other biases, scores not scaled.

Axes: b sequences, e embedding, h heads, d head width, n_rel buckets of distances; the names of
residual, query and key positions are given, since an encoder and a decoder differ in length.
"""

from dataclasses import dataclass, field, replace

from symbolic_cost.axes import axes
from symbolic_cost.layers.attention import Bias, Kept, joined, output
from symbolic_cost.layers.core import PLAIN, AttentionCore, Positions
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.lookup import lookup
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.view import view

AXES = axes("h head, d width, n_rel whole, e hidden, b batch")


def distances(at: Positions) -> Op:
    """Declare the bias of every pair of positions, shared by all sequences and blocks."""
    pair = f"{at.query} {at.key}"
    return lookup("bias", f"!buckets[b {pair}]:buffer, *table[n_rel h] -> position[{pair} h]")


@dataclass(frozen=True)
class CrossAttention:
    """Attention from x[b r e] to y[b r e] of one sequence to another, memory[b residual e].

    Keys and values are made where the memory's positions are, and gathered afterwards.
    """

    at: Positions
    source: Positions
    core: AttentionCore = field(default_factory=AttentionCore)

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer; without residual positions its keys and values are in the cache."""
        at = replace(self.at, key=self.source.key)
        return (
            view("gather", f"x[b {at.residual} e] -> full[b {at.query} e]"),
            einsum("q", f"full[b {at.query} e], *w[e h d] -> q[b {at.query} h d]"),
            *self._memory(),
            *self.core.ops(PLAIN, at),
            *output(at, "h", bias=Bias.NONE),
        )

    def _memory(self) -> tuple[Op, ...]:
        """Declare the keys and values of the memory."""
        source = self.source
        kept = tuple(joined(name, name[0], "h", source, Kept.HEADS) for name in ("keys", "values"))
        if not source.residual:
            return kept
        read = f"read[b {source.query} e]"
        return (
            view("memory", f"memory[b {source.residual} e] -> {read}"),
            *(einsum(name, f"{read}, *w[e h d] -> {name}[b {source.query} h d]") for name in "kv"),
            *kept,
        )
