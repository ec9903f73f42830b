"""Output head and loss.

Axes: b sequences, r and l positions, e embedding, v vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import cross_entropy
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.view import view


@dataclass(frozen=True)
class Head:
    """Logits and cross-entropy of x[b r e].

    Args:
        tied: whether the weight is the token table.
    """

    tied: bool = True

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer."""
        weight = "*@token[v e]" if self.tied else "*w[v e]"
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            einsum("logits", f"full[b l e], {weight} -> logits[b l v]"),
            cross_entropy("loss", "logits[b l v], !targets[b l]:index -> loss[b l]", row="v"),
        )
