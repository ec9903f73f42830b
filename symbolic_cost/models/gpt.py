"""GPT: pre-norm transformer decoder with learned positions and a tied output head."""

from __future__ import annotations

from dataclasses import dataclass, field

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.errors import Problems
from symbolic_cost.layers.attention import Attention
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.norm import layer_norm
from symbolic_cost.layers.tokens import Logits, Tokens
from symbolic_cost.ops.elementwise import dropout, pointwise
from symbolic_cost.ops.graph import Model, Part, scope
from symbolic_cost.ops.op import Op
from symbolic_cost.symbols import exact, size

_DERIVED = ("q", "P")
"""Sizes that follow from others unless they are given."""


@dataclass(frozen=True)
class GPT:
    """Sizes and variants of a GPT; every size is a symbol unless given.

    Args:
        b: microbatch [sequences].
        l: sequence length [tokens].
        e: embedding width.
        f: MLP width; 4 e unless given.
        h: attention heads.
        q: head width; e/h unless given.
        V: vocabulary.
        P: learned positions; l unless given.
        n_layers: transformer blocks.
        attention: its variant.
        mlp: its variant.
        dropout: whether embeddings and residual branches are dropped out.
        name: of the model.
    """

    b: Expr | int = symbols.b
    l: Expr | int = symbols.l
    e: Expr | int = symbols.e
    f: Expr | int = symbols.f
    h: Expr | int = symbols.h
    q: Expr | int | None = None
    V: Expr | int = symbols.V
    P: Expr | int | None = None
    n_layers: Expr | int = symbols.n_layers
    attention: Attention = field(default_factory=Attention)
    mlp: MLP = field(default_factory=MLP)
    dropout: bool = True
    name: str = "gpt"

    def __post_init__(self) -> None:
        """Refuse what is no size.

        Raises:
            InputError: every size that is zero, negative, a fraction, text or not real.
        """
        problems = Problems()
        for name in ("b", "l", "e", "f", "h", "q", "V", "P", "n_layers"):
            value = getattr(self, name)
            if value is not None or name not in _DERIVED:
                problems.attempt(size, value, name)
        problems.refuse()

    def model(self) -> Model:
        """Declare the model."""
        return Model(
            self.name,
            (
                Part("embedding", Tokens(learned=True, dropout=self.dropout).ops()),
                Part("block", self.block(), exact(self.n_layers)),
                Part("head", self._head()),
            ),
            self.sizes(),
            padded=("v",),
        )

    def block(self) -> tuple[Op, ...]:
        """Declare one transformer block from x[b r e] to y[b r e]."""
        return (
            *self._branch("attention", self.attention.ops(), x="x", y="middle"),
            *self._branch("mlp", self.mlp.ops(), x="middle", y="y"),
        )

    def sizes(self) -> dict[str, Expr]:
        """Return the size of every axis."""
        width, heads = exact(self.e), exact(self.h)
        length = exact(self.l)
        return {
            "b": exact(self.b),
            **dict.fromkeys(("r", "l", "t"), length),
            "e": width,
            "f": exact(self.f),
            "c": Integer(3),
            "h": heads,
            "d": width / heads if self.q is None else exact(self.q),
            "v": exact(self.V),
            "p": length if self.P is None else exact(self.P),
        }

    def _branch(self, path: str, layer: tuple[Op, ...], x: str, y: str) -> tuple[Op, ...]:
        """Declare y = x + dropout(layer(norm(x)))."""
        normed = f"{path}.normed"
        out = f"{path}.branch" if self.dropout else f"{path}.dropped"
        drop = (dropout("dropout", "branch[b r e] -> dropped[b r e]"),) if self.dropout else ()
        add = pointwise("residual", "x[b r e], dropped[b r e] -> y[b r e]", "add")
        return (
            *scope(path, (layer_norm("norm"),), x=x, y=normed),
            *scope(path, layer, x=normed, y=out),
            *scope(path, (*drop, add), x=x, y=y),
        )

    def _head(self) -> tuple[Op, ...]:
        return (
            *scope("norm", (layer_norm("norm"),), x="x", y="normed"),
            *scope("output", Logits().ops(), x="normed"),
        )
