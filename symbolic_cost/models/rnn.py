"""Recurrent language models: embedding, recurrent layers, output head."""

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.axes import axes, glossary
from symbolic_cost.layers import recurrent
from symbolic_cost.layers.recurrent import Cell
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import cross_entropy, dropout
from symbolic_cost.ops.graph import Model, Part, Place, scope
from symbolic_cost.ops.lookup import lookup
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.view import view
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact


@dataclass(frozen=True)
class RNN:
    """Sizes and variants of a recurrent language model; every size is a symbol unless given.

    The embedding is as wide as the hidden states.

    Args:
        b: microbatch [sequences].
        l: sequence length [tokens].
        e: width.
        V: vocabulary.
        tied: whether the output head is the token table.
        dropout: whether what goes into a layer or the head is dropped out.
    """

    b: Expr | int = symbols.b
    l: Expr | int = symbols.l
    e: Expr | int = symbols.e
    V: Expr | int = symbols.V
    n_layers: Expr | int = symbols.n_layers
    cell: Cell = Cell.LSTM
    tied: bool = False
    dropout: bool = True
    name: str = "lstm"

    def model(self) -> Model:
        """Declare the model."""
        token = lookup("token", "!ids[b l]:index, *@token[v i] -> x[b l i]")
        return Model(
            self.name,
            (
                Part("embedding", (token,)),
                Part("block", self._layer(), exact(self.n_layers), place=Place.BLOCK),
                Part("head", self._head()),
            ),
            self.sizes(),
            source="zaremba-2014",
            axes=glossary(recurrent.AXES, axes("v vocabulary")),
        )

    def sizes(self) -> dict[str, Expr]:
        """Return the size of every axis."""
        return {
            "b": exact(self.b),
            "l": exact(self.l),
            **dict.fromkeys(("i", "o", "m"), exact(self.e)),
            "n": Integer(self.cell.gates),
            "v": exact(self.V),
        }

    def _layer(self) -> tuple[Op, ...]:
        taken = "dropped" if self.dropout else "x"
        cell = scope("layer", (self.cell.op(),), x=taken, y="made")
        return (*self._drop(), *cell, view("pass", "made[b l o] -> y[b l i]"))

    def _head(self) -> tuple[Op, ...]:
        taken = "dropped" if self.dropout else "x"
        weight = "*@token[v i]" if self.tied else "*w[v i]"
        return (
            *self._drop(),
            einsum("logits", f"{taken}[b l i], {weight} + *bias[v] -> logits[b l v]"),
            cross_entropy("loss", "logits[b l v], !targets[b l]:index -> loss[b l]", row="v"),
        )

    def _drop(self) -> tuple[Op, ...]:
        return (dropout("dropout", "x[b l i] -> dropped[b l i]"),) if self.dropout else ()
