"""Decoders with experts that mix the parts of others, as values."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from symbolic_cost.layers.attention import Bias, CacheKind, Gate, HeadNorm, Rotated
from symbolic_cost.layers.attention_core import Step
from symbolic_cost.layers.moe import MixtureOfExperts, Shares, Trait
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.residual import Branch, Outcome, Placing
from symbolic_cost.layers.routed import RoutedAttention
from symbolic_cost.layers.tokens import Entry, Exit, Logits, Tokens
from symbolic_cost.models.decoders.blocks import Arctic, Connected
from symbolic_cost.models.decoders.decoder import ATTENTION, Decoder, Order
from symbolic_cost.models.decoders.kinds import EXPERTS, FULL, SLIDES, UNTURNED, Sparse, Windows
from symbolic_cost.models.decoders.latent import LATENT
from symbolic_cost.models.decoders.layouts import all_of, between, flint, glimmer, turned
from symbolic_cost.models.decoders.reads import Reads, Share
from symbolic_cost.models.decoders.switches import (
    BIAS,
    BIASES,
    INPUT_BIAS,
    LAYER,
    NORMALISED,
    NORMED,
    PART,
    SHARES,
    TIED,
    attention_bias,
    head_bias,
    head_norm,
    input_bias,
    normalised,
    output_bias,
    unmasked,
)

_SHARED = MixtureOfExperts(shared="f_s")
_DEEP = Decoder(experts=_SHARED, sparse=Sparse.AFTER_FIRST)
_GATED_SUM = Branch(Norm.RMS_SHIFTED, Placing.SANDWICH, Outcome.CARRY)
_GROK = Decoder(
    tokens=Tokens(steps=Entry.SCALE),
    branch=Branch(Norm.RMS, Placing.SANDWICH),
    experts=MixtureOfExperts("gelu", shares=Shares.PLAIN),
    sparse=Sparse.ALWAYS,
    reads=Reads(expert_width="intermediate_size"),
).stepping(Step.CAP, on=True)
_GRANITE = Decoder(
    tokens=Tokens(steps=Entry.SCALE), sparse=Sparse.ALWAYS, reads=Reads(BIAS, "intermediate_size")
)

MIXTURES: Mapping[str, Decoder] = {
    **LATENT,
    "afmoe": replace(
        _DEEP,
        attention=replace(NORMED, gate=Gate.ELEMENTS),
        tokens=Tokens(steps=Entry.SCALE),
        branch=Branch(Norm.RMS, Placing.SANDWICH),
        experts=replace(_SHARED, traits=Trait.CORRECTED),
        windows=Windows(4, 1024),
        renamed={FULL: UNTURNED},
        reads=Reads(BIAS, shared=2, dense=1),
    ),
    "arctic": Arctic(
        experts=_SHARED,
        windows=Windows(0),
        sparse=Sparse.EVERY_NTH,
        reads=Reads(BIAS, "intermediate_size", shared_width="hidden_size"),
    ),
    "aria_text": Decoder(
        experts=_SHARED, sparse=Sparse.ALWAYS, reads=Reads(BIAS, "intermediate_size")
    ),
    "beam": replace(
        _DEEP,
        attention=replace(NORMED, gate=Gate.BIASED),
        head=Logits("w", steps=Exit.CAP | Exit.LOSS),
        branch=Branch(Norm.RMS, Placing.SANDWICH),
        experts=MixtureOfExperts(),
        windows=Windows(6, 512),
        reads=Reads(
            BIAS,
            dense=3,
            kinds=turned(
                lambda n, layers: SLIDES if (n + 1) % 6 and n != layers - 1 else FULL, still=True
            ),
        ),
    ),
    "cohere2_moe": Decoder(
        replace(ATTENTION, norm=Norm.LAYER_WRITTEN),
        head=TIED,
        branch=Branch(Norm.LAYER_WRITTEN),
        order=Order.SHARED_NORM,
        sparse=Sparse.ALWAYS,
        windows=Windows(4, 4096),
        reads=Reads(SHARES, "intermediate_size"),
        renamed={FULL: UNTURNED},
    ),
    **dict.fromkeys(
        ("deepseek", "deepseek_ocr2_text"),
        replace(
            _DEEP,
            experts=replace(_SHARED, shares=Shares.PLAIN),
            reads=Reads({**BIAS, "norm_topk_prob": normalised}),
        ),
    ),
    "bailing_moe": replace(
        _DEEP, reads=Reads({"use_qkv_bias": input_bias, "use_bias": output_bias, **NORMALISED})
    ),
    "bailing_moe_v2": replace(
        _DEEP,
        attention=NORMED,
        reads=Reads(
            {"use_qkv_bias": input_bias, "use_bias": output_bias, **NORMALISED},
            share=Share(PART, 1),
        ),
    ),
    "deepseek_v4": Connected(
        experts=_SHARED,
        sparse=Sparse.ALWAYS,
        windows=Windows(0, 128),
        reads=Reads(shared_width="moe_intermediate_size", kinds=all_of(SLIDES, EXPERTS)),
    ),
    "dbrx": Decoder(
        branch=Branch(Norm.LAYER_SCALE, outcome=Outcome.DROP),
        sparse=Sparse.ALWAYS,
        reads=Reads(expert_width="intermediate_size"),
    ),
    "dots1": replace(
        _DEEP,
        attention=NORMED,
        windows=Windows(width=4096, switched=True),
        reads=Reads(SHARES, dense=0),
    ),
    "ernie4_5_moe": replace(
        _DEEP,
        experts=replace(_SHARED, traits=Trait.CORRECTED),
        head=TIED,
        reads=Reads(kinds=between),
    ),
    "ernie4_5_vl_moe_text": replace(
        _DEEP, experts=replace(_SHARED, traits=Trait.CORRECTED), head=TIED, reads=Reads(dense=1)
    ),
    "flint": Decoder(
        NORMED,
        experts=_SHARED,
        windows=Windows(0, 513),
        sparse=Sparse.EVERY_NTH,
        reads=Reads(SHARES, shared_width="shared_expert_intermediate_size", kinds=flint),
    ).stepping(Step.SINK, on=True),
    "flex_olmo": Decoder(
        replace(ATTENTION, head_norm=HeadNorm.WIDTH, norm=Norm.RMS_WIDE),
        experts=MixtureOfExperts(shares=Shares.PLAIN),
        branch=Branch(Norm.RMS_WIDE, Placing.RESULT),
        sparse=Sparse.ALWAYS,
        reads=Reads(SHARES, "intermediate_size", angles=":single"),
    ),
    "grok-1": _GROK,
    "grok-2": replace(
        _GROK,
        experts=replace(_GROK.experts, shared="f_s"),
        reads=Reads(shared_width="intermediate_size"),
    ),
    "hunyuan_v1_moe": Decoder(
        NORMED,
        experts=_SHARED,
        sparse=Sparse.ALWAYS,
        reads=Reads(BIAS, "intermediate_size", shared_width="intermediate_size"),
    ),
    "minimax_m2": Decoder(
        replace(ATTENTION, head_norm=HeadNorm.WIDTH, rotated=Rotated.PART),
        sparse=Sparse.ALWAYS,
        reads=Reads(expert_width="intermediate_size", share=Share("rotary_dim", 0)),
    ),
    "minimax_m3_vl_text": Decoder(
        replace(NORMED, norm=Norm.RMS_SHIFTED, rotated=Rotated.PART),
        branch=Branch(Norm.RMS_SHIFTED),
        experts=_SHARED,
        sparse=Sparse.ALWAYS,
        reads=Reads(
            expert_width="intermediate_size",
            shared_width="shared_intermediate_size",
            dense_width="dense_intermediate_size",
            share=Share("rotary_dim", 64),
        ),
        variants={"minimax_m3_sparse": {"indexed": "d_x"}},
    ),
    "muse_spark_text": Decoder(
        replace(NORMED, norm=Norm.RMS_BARE, result_norm=Norm.RMS_BARE, gate=Gate.ELEMENTS),
        tokens=Tokens(norm=Norm.RMS_BARE),
        head=Logits("w", steps=Exit.CAP | Exit.LOSS),
        branch=_GATED_SUM,
        branches=dict.fromkeys(
            (SLIDES, FULL, UNTURNED), (replace(_GATED_SUM, after=Norm.RMS_BARE), _GATED_SUM)
        ),
        experts=MixtureOfExperts(latent="r_m", before=Norm.RMS_SHIFTED, each=Norm.RMS_SHIFTED),
        sparse=Sparse.ALWAYS,
        windows=Windows(4, 2048),
        reads=Reads(BIAS, latent_width="moe_hidden_size", kinds=glimmer),
    ),
    # Tokens see both sides: windows are a mask of the whole square, and nothing is cached.
    "openai_privacy_filter": unmasked(
        Decoder(
            replace(ATTENTION, bias=Bias.BOTH, cache=CacheKind.NOTHING),
            experts=MixtureOfExperts(bias=Bias.BOTH),
            sparse=Sparse.ALWAYS,
            reads=Reads(BIAS, "intermediate_size", head_width=64),
        ).stepping(Step.SINK, on=True),
        on=True,
    ),
    "exaone_moe": replace(
        _DEEP,
        attention=NORMED,
        windows=Windows(4, 4096),
        renamed={FULL: UNTURNED},
        reads=Reads(NORMALISED, shared=1, dense=1),
    ),
    "glm4_moe": replace(
        _DEEP,
        reads=Reads(
            {"attention_bias": input_bias, "norm_topk_prob": normalised, "use_qk_norm": head_norm},
            share=Share(PART, Fraction(1, 2)),
            shared=1,
            dense=1,
        ),
    ),
    "sarvam_moe": replace(
        _DEEP,
        reads=Reads(
            {"attention_bias": input_bias, "norm_topk_prob": normalised, "use_qk_norm": head_norm},
            share=Share(PART, 1),
            shared=1,
            dense=1,
        ),
    ),
    "granitemoe": _GRANITE,
    "granitemoe_swa": replace(
        _GRANITE,
        experts=replace(_SHARED),
        windows=Windows(4, 128, full_at=0),
        reads=Reads(BIAS, "intermediate_size", shared_width="shared_intermediate_size"),
    ).stepping(Step.SINK, on=True),
    "granitemoeshared": replace(
        _GRANITE,
        experts=_SHARED,
        reads=Reads(BIAS, "intermediate_size", shared_width="shared_intermediate_size"),
    ),
    "hy_v3": replace(_DEEP, attention=NORMED, reads=Reads(BIASES, shared=1, dense=1)),
    "jetmoe": Decoder(
        RoutedAttention(**vars(ATTENTION)),
        head=TIED,
        experts=MixtureOfExperts(traits=Trait.OFFSET),
        sparse=Sparse.ALWAYS,
        reads=Reads(expert_width="intermediate_size"),
    ),
    "kolibri1": Decoder(
        NORMED,
        branch=Branch(Norm.RMS, Placing.SANDWICH),
        experts=_SHARED,
        windows=Windows(5, 513),
        sparse=Sparse.ALWAYS,
        renamed={FULL: UNTURNED},
        reads=Reads(NORMALISED, shared_width="shared_expert_intermediate_size"),
    ),
    "laguna": replace(
        _DEEP,
        attention=replace(NORMED, gate=Gate.HEADS),
        experts=replace(_SHARED, traits=Trait.CORRECTED),
        windows=Windows(1, 512),
        reads=Reads(BIAS, shared_width="shared_expert_intermediate_size", dense=1),
    ),
    "mellum": Decoder(NORMED, windows=Windows(1, 1024), sparse=Sparse.ALWAYS, reads=Reads(SHARES)),
    "mimo_v2_flash": Decoder(
        replace(ATTENTION, value="d_v", rotated=Rotated.PART),
        windows=Windows(6, 129),
        sparse=Sparse.ALWAYS,
        reads=Reads(
            {**INPUT_BIAS, "norm_topk_prob": normalised},
            share=Share(PART, Fraction(167, 500)),
            kinds=all_of(SLIDES, EXPERTS),
        ),
    ),
    "phimoe": Decoder(
        branch=LAYER,
        windows=Windows(0),
        sparse=Sparse.ALWAYS,
        reads=Reads(
            {"attention_bias": attention_bias, "lm_head_bias": head_bias}, "intermediate_size"
        ),
    ),
    "qwen2_moe": Decoder(
        replace(ATTENTION, bias=Bias.INNER),
        experts=replace(_SHARED, traits=Trait.SHARED_GATE, shares=Shares.PLAIN),
        windows=Windows(width=4096, switched=True),
        sparse=Sparse.EVERY_NTH,
        reads=Reads(
            {"qkv_bias": input_bias, "norm_topk_prob": normalised},
            shared_width="shared_expert_intermediate_size",
        ),
    ),
    "step3p5": Decoder(
        replace(NORMED, norm=Norm.RMS_SHIFTED, gate=Gate.HEADS),
        branch=Branch(Norm.RMS_SHIFTED),
        experts=_SHARED,
        windows=Windows(full_at=0),
        sparse=Sparse.ALWAYS,
        reads=Reads(BIAS, shared_width="share_expert_dim"),
    ),
    "solar_open": replace(
        _DEEP,
        sparse=Sparse.ALWAYS,
        reads=Reads({**INPUT_BIAS, "norm_topk_prob": normalised}, shared=1),
    ),
}
"""Families by model_type."""
