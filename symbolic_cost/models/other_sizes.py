"""Families that are not decoders, and their published sizes, as data.

Sizes are written as "symbol=number", separated by blanks; one sequence or image of the usual size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from symbolic_cost.layers.recurrent import Cell
from symbolic_cost.models.bert import BERT, Heads
from symbolic_cost.models.mamba import mamba_on
from symbolic_cost.models.mamba2 import mamba2_on
from symbolic_cost.models.published_size import PublishedSize
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


_BERT = "V=30522 P=512 T=2 l=512"
_T5 = "V=32128 n_rel=32 l=512 l_t=512"
_VIT = "n_ch=3 n_classes=1000"
_MAMBA = "N=16 K=4 V=50280 l=2048"
_MAMBA2 = "q=64 g=1 N=128 K=4 C=256 V=50288 l=2048"
_WORDS = "V=10000 n_layers=2 l=35"

_ROWS = (
    *(
        (f"bert-{size}{head}", f"bert{head}", f"{sizes} {_BERT}", "devlin-2018")
        for size, sizes in (
            ("base", "n_layers=12 e=768 f=3072 h=12"),
            ("large", "n_layers=24 e=1024 f=4096 h=16"),
        )
        for head in ("", "-mlm", "-pretraining")
    ),
    *(
        (f"t5-{size}", "t5", f"{sizes} {_T5}", "raffel-2019")
        for size, sizes in (
            ("small", "n_layers=6 n_dec=6 e=512 f=2048 h=8 q=64"),
            ("base", "n_layers=12 n_dec=12 e=768 f=3072 h=12 q=64"),
            ("large", "n_layers=24 n_dec=24 e=1024 f=4096 h=16 q=64"),
            ("3b", "n_layers=24 n_dec=24 e=1024 f=16384 h=32 q=128"),
            ("11b", "n_layers=24 n_dec=24 e=1024 f=65536 h=128 q=128"),
        )
    ),
    *(
        (f"flan-t5-{size}", "t5-1.1", f"{sizes} {_T5}", "chung-2022")
        for size, sizes in (
            ("small", "n_layers=8 n_dec=8 e=512 f=1024 h=6 q=64"),
            ("base", "n_layers=12 n_dec=12 e=768 f=2048 h=12 q=64"),
            ("large", "n_layers=24 n_dec=24 e=1024 f=2816 h=16 q=64"),
            ("xl", "n_layers=24 n_dec=24 e=2048 f=5120 h=32 q=64"),
            ("xxl", "n_layers=24 n_dec=24 e=4096 f=10240 h=64 q=64"),
        )
    ),
    *(
        (f"vit-{size}", "vit", f"{sizes} {_VIT}", "dosovitskiy-2020")
        for size, sizes in (
            ("b-16", "n_layers=12 e=768 f=3072 h=12 N_p=14 s_p=16"),
            ("l-16", "n_layers=24 e=1024 f=4096 h=16 N_p=14 s_p=16"),
            ("h-14", "n_layers=32 e=1280 f=5120 h=16 N_p=16 s_p=14"),
        )
    ),
    *(
        (f"mamba-{size}", "mamba", f"{sizes} {_MAMBA}", "gu-2023")
        for size, sizes in (
            ("130m", "n_layers=24 e=768 J=1536 r_dt=48"),
            ("370m", "n_layers=48 e=1024 J=2048 r_dt=64"),
            ("790m", "n_layers=48 e=1536 J=3072 r_dt=96"),
            ("1.4b", "n_layers=48 e=2048 J=4096 r_dt=128"),
            ("2.8b", "n_layers=64 e=2560 J=5120 r_dt=160"),
        )
    ),
    *(
        (f"mamba2-{size}", "mamba2", f"{sizes} {_MAMBA2}", "dao-2024")
        for size, sizes in (
            ("130m", "n_layers=24 e=768 h=24"),
            ("370m", "n_layers=48 e=1024 h=32"),
            ("780m", "n_layers=48 e=1536 h=48"),
            ("1.3b", "n_layers=48 e=2048 h=64"),
            ("2.7b", "n_layers=64 e=2560 h=80"),
        )
    ),
    ("lstm-medium", "lstm", f"e=650 {_WORDS}", "zaremba-2014"),
    ("lstm-large", "lstm", f"e=1500 {_WORDS}", "zaremba-2014"),
)

OTHER_SIZES = tuple(PublishedSize(*row) for row in _ROWS)
"""Every published size."""
