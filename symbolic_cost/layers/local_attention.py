"""Attention of every position to its neighbours, in chunks that overlap.

Axes as in attention, and: c_n chunks of two reaches, one after each reach; i_n and j_n queries and
keys of a chunk; s_n pieces of one reach, x_n queries of a piece, y_n keys that it sees (its own
reach, one before and one behind); n_b keys that a query sees: a reach to either side and itself.

For example a window of 4 reaches 2 to either side: of 8 positions there are three chunks of 4,
(0 to 3), (2 to 5), (4 to 7), and four pieces of 2 queries that see 6 keys each.
"""

from symbolic_cost.layers.attention import Attention, output
from symbolic_cost.layers.attention_core import Step
from symbolic_cost.ops.declare import Op, axes, dropout, einsum, pointwise, softmax, stored, view
from symbolic_cost.records import dataclass

AXES = axes(
    "c_n whole, i_n whole, j_n whole, s_n whole, x_n whole, y_n whole, n_b whole, "
    "r_u token residual, l_u token query"
)


@dataclass(frozen=True)
class Neighbours(Attention):
    """Self-attention from x[b r e] to y[b r e].

    No position is global: what global ones are projected by has weights, and does no work.

    As Longformer attends (Beltagy and others, 2020).
    """

    def ops(self) -> tuple[Op, ...]:
        gather = view("gather", f"x[b {self.at.residual} e] -> full[b {self.at.query} e]")
        unread = (stored(f"global_{name}", w="e h d", bias="h d") for name in "qkv")
        reading = (*self._projections(), *_chunks(), *self._scored())
        return (gather, *unread, *reading, *output(self.at, "h", bias=self.bias))

    def _scored(self) -> tuple[Op, ...]:
        band, piece = "[b l h n_b]", "[b s_n x_n h d]"
        dropped = Step.DROP in self.core.steps
        last = "dropped" if dropped else "p"
        square = "squares[b c_n h i_n j_n]"
        near = f"q_near[b c_n i_n h d], k_near[b c_n j_n h d] -> {square}"
        read = f"bands[b s_n h x_n y_n], v_near[b s_n y_n h d] -> pieces{piece}"
        return (
            einsum("scores", near),
            pointwise(
                "band", f"squares[b c_n h i_n j_n] -> scores{band}", "copy", laid="c_n i_n j_n"
            ),
            softmax("softmax", f"scores{band} -> p{band}", row="n_b"),
            *((dropout("drop_scores", f"p{band} -> dropped{band}"),) if dropped else ()),
            pointwise("unband", f"{last}{band} -> bands[b s_n h x_n y_n]", "copy", laid="l n_b"),
            einsum("attend", read),
            pointwise("join", f"pieces{piece} -> context[b l h d]", "copy", laid="s_n x_n"),
        )


def _chunks() -> tuple[Op, ...]:
    """Declare the chunks of queries and keys, and what pieces see of values."""
    places = {"q": "c_n i_n", "k": "c_n j_n", "v": "s_n y_n"}
    return tuple(
        pointwise(f"near_{n}", f"{n}[b l h d] -> {n}_near[b {place} h d]", "copy", laid="l")
        for n, place in places.items()
    )
