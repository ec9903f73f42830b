"""Families that are not decoders, each with symbols for sizes."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from symbolic_cost.layers.recurrent import Cell
from symbolic_cost.models import mamba
from symbolic_cost.models.bert import BERT, Heads
from symbolic_cost.models.mixers_state import Dual, StateSpace
from symbolic_cost.models.rnn import RNN
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.t5 import T5
from symbolic_cost.models.vit import ViT
from symbolic_cost.ops.graph import Model
from symbolic_cost.symbols import l_t


def _recurrent(shape: Shape, cell: Cell) -> Model:
    return RNN(b=shape.b, l=shape.l, cell=cell, name=cell.name.lower()).model()


def _bert(shape: Shape, heads: Heads) -> Model:
    return BERT(b=shape.b, l=shape.l, heads=heads).model()


def _t5(shape: Shape, *, newer: bool = False) -> Model:
    decodes = shape.c != 0
    plain = T5(
        b=shape.b,
        l=shape.c if decodes else shape.l,
        l_t=shape.l if decodes else l_t,
        cached=l_t if decodes else None,
    )
    return (replace(plain, function="gelu", gated=True, tied=False) if newer else plain).model()


OTHER_FAMILIES: Mapping[str, Callable[[Shape], Model]] = {
    "bert": partial(_bert, heads=Heads.POOLER),
    "bert-mlm": partial(_bert, heads=Heads.MASKED),
    "bert-pretraining": partial(_bert, heads=Heads.PRETRAINING),
    "t5": _t5,
    "t5-1.1": partial(_t5, newer=True),
    "vit": lambda shape: ViT(b=shape.b).model(),
    "mamba": partial(mamba.declared, StateSpace(), tied=True),
    "mamba2": partial(mamba.declared, Dual(), tied=True),
    **{
        cell.name.lower(): partial(_recurrent, cell=cell)
        for cell in (Cell.RNN, Cell.GRU, Cell.LSTM)
    },
}
"""Declares a family with symbols for sizes."""


def declared(name: str, shape: Shape) -> Model:
    """Declare a family on a shape, every size a symbol."""
    return OTHER_FAMILIES[name](shape)
