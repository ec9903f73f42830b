"""Codes of recordings, several for a frame: rows of tables that are added, and a head for each.

Axes: b sequences, r and l frames, n_c codebooks, v codes of one, v_in rows of its table, e
embedding.

Source: copet-2023, section 2.
"""

from symbolic_cost.layers.chain import Step
from symbolic_cost.layers.embeddings import Words
from symbolic_cost.ops.declare import Op, axes, cross_entropy, einsum, lookup, pointwise, view
from symbolic_cost.records import dataclass

AXES = axes("n_c whole, v_in vocabulary")


@dataclass(frozen=True)
class Codes(Words):
    """Embedding of the codes of a frame: a row of every codebook, added.

    Args:
        table: axes of the rows: a table for every book, or one of all.
    """

    table: str = "n_c v_in"

    def _tokens(self, axes: str) -> list[Step]:
        _, query = self.at
        rows, table = f"[b {query} n_c e]", f"*table[{self.table} e]"
        ids = f"[b {query} n_c]:index"
        return [
            lambda x, y: lookup("codes", f"!{x}{ids}, {table} -> {y}{rows}"),
            lambda x, y: pointwise("sum", f"{x}{rows} -> {y}[b {query} e]", "sum", sums="n_c"),
            lambda x, y: view("scatter", f"{x}[b {query} e] -> {y}{axes}"),
        ]


@dataclass(frozen=True)
class PredictedCodes:
    """Codes of every book from x[b r e] to logits[b l n_c v], and the loss."""

    def ops(self) -> tuple[Op, ...]:
        rows = "b l n_c"
        return (
            view("gather", "x[b r e] -> normed[b l e]"),
            einsum("logits", f"normed[b l e], *w[n_c v e] -> logits[{rows} v]"),
            cross_entropy(
                "loss",
                f"logits[{rows} v], !targets[{rows}]:index -> loss[{rows}]",
                row="v",
                single=False,
            ),
        )
