"""Attention to the blocks of positions that a few narrow heads choose.

A query meets the complete blocks before it, by the means of their keys, and attends to all
positions of those that it chooses and to those of the block that is not complete (Qwen4-Exp,
Qwen4ExpTextQSAIndexer, which makes the means for every query anew).

Axes: as in `attention`; h_x narrow heads of width d_x, n_b complete blocks before a query, their
mean, n_a axes of an image's places.
"""

from dataclasses import replace

from symbolic_cost.layers.attention import Attention
from symbolic_cost.layers.attention_core import AttentionCore
from symbolic_cost.ops.declare import Op, axes, cache, einsum, pointwise
from symbolic_cost.records import dataclass

AXES = axes(
    "b batch, l token query, t key-token, m key-token kept, h_x latent, d_x latent, n_b whole, "
    "n_a whole"
)


def history() -> Op:
    """Declare the places of all positions, by axis of an image, which rotate means of keys."""
    kept = "places_so_far[b t n_a]:index"
    return cache("history", f"!history[b l n_a]:index -> {kept}", kept="b m n_a")


@dataclass(frozen=True)
class BlockChoosing(Attention):
    """Self-attention from x[b r e] to y[b r e]; nothing is learned through its choice."""

    @property
    def choosing(self) -> AttentionCore:
        return replace(self.core, chosen="chosen")

    def index(self) -> tuple[Op, ...]:
        ops: list[Op] = []
        for name, own in (("q", "h_x d_x"), ("k", "d_x")):
            product = f"!full[b l e], *w[e {own}] -> index_{name}_plain[b l {own}]"
            ops.append(einsum(f"index_{name}", product, frozen=True))
        scores = "index_scores[b l h_x n_b]"
        return (
            *ops,
            self.norm.op(
                "index_norm_q", "!index_q_plain[b l h_x d_x]", "index_q[b l h_x d_x]", row="d_x"
            ),
            cache("index_keys", "index_k_plain[b l d_x] -> index_keys[b t d_x]", kept="b m d_x"),
            pointwise(
                "index_pool", "!index_keys[b t d_x] -> index_means[b l n_b d_x]", "copy", laid="t"
            ),
            self.norm.op(
                "index_norm_k", "!index_means[b l n_b d_x]", "index_blocks[b l n_b d_x]", row="d_x"
            ),
            einsum(
                "index_scores",
                f"!index_q[b l h_x d_x], !index_blocks[b l n_b d_x] -> {scores}",
                frozen=True,
            ),
            pointwise("index_act", f"!{scores} -> index_sums[b l n_b]", "relu", sums="h_x"),
            pointwise(
                "index_choice", "!index_sums[b l n_b] -> chosen[b l t]:index", "choice", row="n_b"
            ),
        )
