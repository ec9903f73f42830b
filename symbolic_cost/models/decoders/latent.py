"""Decoders with experts whose attention caches a latent, as values."""

from collections.abc import Mapping
from dataclasses import replace

from sympy import Integer

from symbolic_cost import symbols
from symbolic_cost.layers.attention import Gate, Rotated
from symbolic_cost.layers.attention_core import Step
from symbolic_cost.layers.latent import Indexing, LatentAttention, Scaling
from symbolic_cost.layers.moe import MixtureOfExperts, Shares
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.tokens import Exit, Logits
from symbolic_cost.models.decoders.blocks import Opened, Shortcut
from symbolic_cost.models.decoders.choosing import (
    TAKING,
    TAKING_UNTURNED,
    Choosing,
    ChoosingCopies,
    Learned,
    choosing,
    turning,
)
from symbolic_cost.models.decoders.decoder import CORE, Decoder
from symbolic_cost.models.decoders.kinds import FULL, UNTURNED, Sparse
from symbolic_cost.models.decoders.reads import Reads
from symbolic_cost.models.decoders.switches import NORMALISED, ONE_EACH

_SHARED = MixtureOfExperts(shared="f_s")
_LATENT = Decoder(
    LatentAttention(core=replace(CORE, steps=Step.MASK | Step.CAST)),
    experts=_SHARED,
    sparse=Sparse.AFTER_FIRST,
    sizes=ONE_EACH,
    reads=Reads(NORMALISED),
)
_CHOOSING = _LATENT.attended(indexed=Indexing.OWN)
_INDEXED = replace(
    _CHOOSING, renamed={"indexed_attention": FULL}, reads=Reads(NORMALISED, shared=1, dense=3)
)
_SOME = replace(_CHOOSING, variants={TAKING: {"indexed": Indexing.TAKEN}})

LATENT: Mapping[str, Decoder] = {
    "axk1": replace(_LATENT, experts=replace(_SHARED, after=Norm.RMS)),
    "axk2": Opened(
        **vars(
            replace(
                _INDEXED.attended(gate=Gate.QUERY),
                reads=Reads(NORMALISED, shared=1, dense=1),
                lengths={"r_both": 2 * symbols.r_q, "r_g": Integer(16)},
            )
        )
    ),
    "deepseek_v32": _INDEXED,
    "glm4_moe_lite": _LATENT,
    "glm_moe_dsa": Choosing(**vars(replace(_SOME, reads=replace(_INDEXED.reads, kinds=choosing)))),
    "hy_v4": ChoosingCopies(
        **vars(
            replace(
                _SOME.attended(gate=Gate.ELEMENTS),
                reads=Reads(NORMALISED, shared=1, dense=1, kinds=choosing),
            )
        )
    ).stepping(Step.SINK, on=True),
    "longcat_flash": Shortcut(
        _LATENT.attention,
        experts=replace(_SHARED, shares=Shares.PLAIN),
        sparse=Sparse.ALWAYS,
        sizes=ONE_EACH,
        reads=Reads(shared_width="intermediate_size"),
    ),
    "mistral4": _LATENT,
    "mistral_large4_text": Learned(
        LatentAttention(
            "", core=_LATENT.attention.core, indexed=Indexing.INPUT, scaling=Scaling.POSITION
        ),
        experts=_SHARED,
        sparse=_LATENT.sparse,
        sizes=ONE_EACH,
        head=Logits("w", steps=Exit.CAP | Exit.LOSS),
        lengths={"d_f": symbols.d_r / 2},
        reads=Reads(NORMALISED, shared=1, dense=1, kinds=turning),
        variants={
            TAKING: {"indexed": Indexing.TAKEN},
            UNTURNED: {"rotated": Rotated.NOTHING},
            TAKING_UNTURNED: {"indexed": Indexing.TAKEN, "rotated": Rotated.NOTHING},
        },
    ),
}
"""Families by model_type."""
