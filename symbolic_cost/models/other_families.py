"""Families that are not decoders, each with symbols for sizes."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.recurrent import Cell
from symbolic_cost.models import rnn
from symbolic_cost.models.decoders import mamba
from symbolic_cost.models.decoders.mixers_linear import Dual, StateSpace
from symbolic_cost.models.encoder_decoders import sizes as seq2seq_sizes
from symbolic_cost.models.encoder_decoders.families import SEQ2SEQ
from symbolic_cost.models.encoders import sizes as encoder_sizes
from symbolic_cost.models.encoders.encoder import CLASSES, MASKED, PAIRED, TRUNK
from symbolic_cost.models.encoders.families import ENCODERS
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.vision import transformer as vision
from symbolic_cost.ops.graph import Model
from symbolic_cost.symbols import l_t


def _bert(shape: Shape, head: str) -> Model:
    return ENCODERS["bert"].declare("bert", shape, encoder_sizes.Sizes(n_classes=2), head)


def _t5(shape: Shape, *, newer: bool = False) -> Model:
    family, sizes = SEQ2SEQ["t5"], seq2seq_sizes.Sizes(b=shape.b, l=shape.l)
    if newer:
        family = replace(family, perceptron=GatedMLP("gelu")).tied(tied=False)
    if shape.c != 0:
        sizes = replace(sizes, l=shape.c, l_t=shape.l, cached=l_t)
    return family.declare("t5", sizes)


OTHER_FAMILIES: Mapping[str, Callable[[Shape], Model]] = {
    "bert": partial(_bert, head=TRUNK),
    "bert-mlm": partial(_bert, head=MASKED),
    "bert-pretraining": partial(_bert, head=PAIRED),
    "t5": _t5,
    "t5-1.1": partial(_t5, newer=True),
    "vit": lambda shape: vision.VIT.declare("vit", shape, vision.Sizes(b=shape.b), CLASSES),
    "mamba": partial(mamba.declared, StateSpace(), tied=True),
    "mamba2": partial(mamba.declared, Dual(), tied=True),
    **{cell.name.lower(): partial(rnn.declared, cell) for cell in (Cell.RNN, Cell.GRU, Cell.LSTM)},
}
"""Declares a family with symbols for sizes."""


def declared(name: str, shape: Shape) -> Model:
    """Declare a family on a shape, every size a symbol."""
    return OTHER_FAMILIES[name](shape)
