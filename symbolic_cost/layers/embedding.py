"""Token and position embeddings.

Axes: b sequences, l and r positions, v vocabulary, p learned positions, e embedding.
"""

from __future__ import annotations

from dataclasses import dataclass

from symbolic_cost.ops.elementwise import dropout, pointwise
from symbolic_cost.ops.lookup import lookup
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.view import view


@dataclass(frozen=True)
class Embedding:
    """Embedding from ids to x[b r e].

    Args:
        dropout: whether the sum is dropped out.
    """

    dropout: bool = True

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer; the token table is shared with a tied output head."""
        summed = "summed" if self.dropout else "x"
        return (
            lookup("token", "!ids[b l]:index, *@token[v e] -> found[b l e]"),
            view("scatter", "found[b l e] -> tokens[b r e]"),
            lookup("position", "!places[r]:index, *table[p e] -> positions[r e]"),
            pointwise("add", f"tokens[b r e], positions[r e] -> {summed}[b r e]", "add"),
            *((dropout("dropout", "summed[b r e] -> x[b r e]"),) if self.dropout else ()),
        )
