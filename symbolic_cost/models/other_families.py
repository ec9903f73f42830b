"""Families that are not decoders, each with symbols for sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from symbolic_cost.layers.recurrent import Cell
from symbolic_cost.models.bert import BERT, Heads
from symbolic_cost.models.mamba import mamba_on
from symbolic_cost.models.mamba2 import mamba2_on
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


OTHER_FAMILIES: Mapping[str, tuple[str, Callable[[Shape], Model]]] = {
    "bert": ("devlin-2018", partial(_bert, heads=Heads.POOLER)),
    "bert-mlm": ("devlin-2018", partial(_bert, heads=Heads.MASKED)),
    "bert-pretraining": ("devlin-2018", partial(_bert, heads=Heads.PRETRAINING)),
    "t5": ("raffel-2019", _t5),
    "t5-1.1": ("raffel-2019", partial(_t5, newer=True)),
    "vit": ("dosovitskiy-2020", lambda shape: ViT(b=shape.b).model()),
    "mamba": ("gu-2023", mamba_on),
    "mamba2": ("dao-2024", mamba2_on),
    **{
        cell.name.lower(): ("zaremba-2014", partial(_recurrent, cell=cell))
        for cell in (Cell.RNN, Cell.GRU, Cell.LSTM)
    },
}
"""Reference of a family, and the function that declares it with symbols for sizes."""
