"""Sizes of encoders, and the roles of their axes."""

from __future__ import annotations

from collections.abc import Mapping

from sympy import Expr

from symbolic_cost import symbols
from symbolic_cost.layers import (
    attention,
    attention_core,
    block_sparse,
    disentangled,
    embeddings,
    gated,
    heads,
    local_attention,
    mlp,
    page_layout,
    relative,
    rotary,
)
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.declare import Axis, Glossary, Role, glossary
from symbolic_cost.records import dataclass, field
from symbolic_cost.symbols import exact

AXES = glossary(
    attention.AXES,
    attention_core.AXES,
    mlp.AXES,
    gated.AXES,
    rotary.AXES,
    relative.AXES,
    disentangled.AXES,
    local_attention.AXES,
    block_sparse.AXES,
    page_layout.AXES,
    embeddings.AXES,
    heads.AXES,
)


@dataclass(frozen=True)
class Sizes:
    """Sizes of an encoder; all others are symbols.

    Args:
        k: key/value heads.
        q: head width.
        tables: sizes of further axes.
        known: roles of those that are not whole.
    """

    n_layers: Expr | int = symbols.n_layers
    k: Expr | int = symbols.h
    q: Expr | int = symbols.e / symbols.h
    n_classes: Expr | int = symbols.n_classes
    tables: Mapping[str, Expr | int] = field(default_factory=dict)
    known: Glossary = field(default_factory=dict)

    def glossary(self) -> Glossary:
        """Return the roles of all axes; the rows of a further table stay whole."""
        whole = {axis: Axis(axis, Role.WHOLE) for axis in self.tables}
        return {**AXES, **whole, **self.known}

    def axes(self, shape: Shape) -> dict[str, Expr]:
        """Return the size of every axis."""
        named: dict[str, Expr | int] = {
            "e": symbols.e,
            "w": symbols.e,
            "w_a": symbols.e,
            "f": symbols.f,
        }
        named |= {"h": symbols.h, "d": self.q, "v": symbols.V, "p": symbols.P, "types": symbols.T}
        named |= {"w_t": symbols.e_p, "n_rel": symbols.n_rel, "s_rel": symbols.n_rel, "k": self.k}
        named |= {"g": symbols.h / self.k, "z": self.n_classes, "c": 3, "one": 1}
        return {
            "b": shape.b,
            **dict.fromkeys(("r", "l", "t"), shape.l),
            **{axis: exact(size) for axis, size in (named | dict(self.tables)).items()},
        }
