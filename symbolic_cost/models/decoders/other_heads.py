"""Attention of layers whose heads are other ones than those of the family's own attention."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sympy import Expr

from symbolic_cost import symbols
from symbolic_cost.layers.attention import Attention
from symbolic_cost.layers.attention_core import Step
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.declare import Glossary, Op, Operand, axes
from symbolic_cost.ops.part import retitled
from symbolic_cost.records import dataclass, field, replace

if TYPE_CHECKING:
    from symbolic_cost.models.fields import Fields

GROUPS: Mapping[str, str] = {"k": "k_s", "g": "g_s"}
"""Axes of other numbers of key/value heads."""

WIDE: Mapping[str, str] = {**GROUPS, "d": "d_s"}
"""The same, and heads of another width, whose angles are others too."""

_ANGLES = {"@cos": "@cos_full", "@sin": "@sin_full"}


@dataclass(frozen=True)
class OtherHeads:
    """Attention with heads of its own; all its other axes are those of the family's.

    Args:
        sized: reads the number of key/value heads, and the width of heads.
        letters: axes by those of the family.
        queries: number of heads; that of the family if 0.
    """

    layer: Attention
    sized: Callable[[Fields], tuple[int, int]]
    letters: Mapping[str, str] = field(default_factory=lambda: WIDE)
    queries: int = 0

    @property
    def axes(self) -> Glossary:
        return axes("k_s head, g_s group, d_s width")

    def ops(self) -> tuple[Op, ...]:
        ops = retitled(self.layer.ops(), self.letters)
        return turned(ops) if "d" in self.letters else ops

    def on(self, shape: Shape) -> OtherHeads:  # noqa: ARG002 - it runs alike on every shape
        return self

    def sizes(self, shape: Shape) -> Mapping[str, Expr]:  # noqa: ARG002
        heads, queries = symbols.g_s, symbols.h_s if self.queries else symbols.h
        return {"k_s": heads, "g_s": queries / heads, "d_s": symbols.q_s}

    def read(self, fields: Fields) -> tuple[OtherHeads, dict[str, int]]:
        heads, width = self.sized(fields)
        queries = self.queries or fields.size("num_attention_heads")
        fields.require(
            holds=queries % heads == 0,
            problem=f"{heads} key/value heads do not divide {queries} heads",
            name="num_key_value_heads",
            other="num_attention_heads",
        )
        core = self.layer.core
        copied = replace(self.layer, core=replace(core, steps=core.steps & ~Step.COPY))
        layer = copied if heads == queries else self.layer
        own = {"h_s": queries} if self.queries else {}
        return replace(self, layer=layer), {"g_s": heads, "q_s": width, **own}


def turned(ops: tuple[Op, ...]) -> tuple[Op, ...]:
    """Return ops that rotate by angles of their own."""

    def own(operand: Operand) -> Operand:
        return operand.renamed(_ANGLES.get(operand.tensor, operand.tensor))

    return tuple(op.mapped(own) for op in ops)
