"""Recurrent language models: embedding, recurrent layers, output head.

The embedding is as wide as the hidden states; what goes into a layer or the head is dropped out.
What a layer keeps of a sequence for its next token are s states: its result, and an LSTM's memory.
"""

from sympy import Integer

from symbolic_cost import symbols
from symbolic_cost.layers import recurrent
from symbolic_cost.layers.recurrent import Cell
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.declare import (
    axes,
    cache,
    cross_entropy,
    dropout,
    einsum,
    glossary,
    lookup,
    view,
)
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.part import Part, Place, scope


def declared(cell: Cell, shape: Shape) -> Model:
    """Declare a model of recurrent layers."""
    token = lookup("token", "!ids[b l]:index, *@token[v i] -> x[b l i]")
    drop = dropout("dropout", "x[b l i] -> dropped[b l i]")
    layer = scope("layer", (cell.op(),), x="dropped", y="made")
    state = cache("state", "made[b l o] -> known[b l o]", kept="b s o")
    block = (drop, *layer, state, view("pass", "known[b l o] -> y[b l i]"))
    head = (
        drop,
        einsum("logits", "dropped[b l i], *w[v i] + *bias[v] -> logits[b l v]"),
        cross_entropy("loss", "logits[b l v], !targets[b l]:index -> loss[b l]", row="v"),
    )
    return Model(
        cell.name.lower(),
        (
            Part("embedding", (token,)),
            Part("block", block, symbols.n_layers, place=Place.BLOCK),
            Part("head", head),
        ),
        {
            "b": shape.b,
            "l": shape.l,
            **dict.fromkeys(("i", "o", "m"), symbols.e),
            "n": Integer(cell.gates),
            "s": Integer(cell.states),
            "v": symbols.V,
        },
        source="zaremba-2014",
        axes=glossary(recurrent.AXES, axes("v vocabulary, s whole")),
    )
