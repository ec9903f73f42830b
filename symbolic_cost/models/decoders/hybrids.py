"""Decoders whose layers are not all attention, as values."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from symbolic_cost import symbols
from symbolic_cost.layers.attention import Bias, Gate, HeadNorm, Rotated
from symbolic_cost.layers.attention_core import Step
from symbolic_cost.layers.block_index import BlockChoosing
from symbolic_cost.layers.duality import Duality
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.latent import LatentAttention
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.moe import MixtureOfExperts, Shares, Trait
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.residual import Branch, Placing
from symbolic_cost.layers.rwkv import ChannelMix
from symbolic_cost.layers.ssm import SelectiveScan
from symbolic_cost.layers.tokens import Entry, Exit, Logits, Tokens
from symbolic_cost.models.decoders import zamba
from symbolic_cost.models.decoders.blocks import Ngrams
from symbolic_cost.models.decoders.decoder import ATTENTION, CORE, Decoder, Habit
from symbolic_cost.models.decoders.kinds import DENSE, FULL, NONE, Sparse, Windows
from symbolic_cost.models.decoders.layouts import (
    LINEAR,
    adjusted,
    all_of,
    alternating,
    chunked,
    granite,
    griffin,
    indexed,
    interval,
    kimi,
    lfm3,
    one_each,
    periodic,
    rounded,
    ruled,
    switched,
)
from symbolic_cost.models.decoders.mixers import Beside
from symbolic_cost.models.decoders.mixers_linear import (
    ChannelDelta,
    Delta,
    Dual,
    Griffin,
    LightningMixer,
    Memory,
    Short,
    StateSpace,
    Time,
    WideDelta,
)
from symbolic_cost.models.decoders.reads import Reads, Share
from symbolic_cost.models.decoders.sizes import Sizes
from symbolic_cost.models.decoders.switches import (
    BIAS,
    BIASES,
    INPUT_BIAS,
    LAYER,
    NORMALISED,
    NORMED,
    ONE_EACH,
    PART,
    PARTLY,
    SHARES,
    TIED,
    after_norm,
    head_norm,
    heads_gate,
    memory_bias,
)
from symbolic_cost.models.decoders.zamba import Zamba

_STILL = replace(ATTENTION, rotated=Rotated.NOTHING)

_EVERY_FOURTH = interval("full_attention_interval", 4)
_QWEN_READS = Reads(
    SHARES,
    share=Share(PART, Fraction(1, 4)),
    shared_width="shared_expert_intermediate_size",
    kinds=_EVERY_FOURTH,
)
_QWEN = Decoder(
    replace(PARTLY, norm=Norm.RMS_SHIFTED, head_norm=HeadNorm.HEAD, gate=Gate.QUERY),
    experts=MixtureOfExperts(shared="f_s", traits=Trait.SHARED_GATE),
    branch=Branch(Norm.RMS_SHIFTED),
    reads=Reads(BIAS, share=Share(PART, Fraction(1, 4)), kinds=_EVERY_FOURTH),
    mixers={LINEAR: Delta()},
)

_LFM = Decoder(
    NORMED,
    head=TIED,
    reads=Reads(kinds=indexed("full_attn_idxs", other="conv", usual=FULL)),
    mixers={"conv": Short()},
)

_MINIMAX = Decoder(
    sparse=Sparse.ALWAYS,
    reads=Reads({}, "intermediate_size", kinds=alternating),
    mixers={LINEAR: LightningMixer()},
)

HYBRIDS: Mapping[str, Decoder] = {
    "bamba": Decoder(
        reads=Reads(BIASES, share=Share(PART, Fraction(1, 2)), kinds=indexed("attn_layer_indices")),
        mixers={LINEAR: Dual()},
    ),
    "falcon_h1": Decoder(
        tokens=Tokens(steps=Entry.SCALE),
        reads=Reads(BIASES, kinds=all_of("hybrid", DENSE)),
        mixers={"hybrid": Beside("mamba", Dual(Duality(normed=False)))},
    ),
    "zamba": Zamba(
        zamba.ATTENTION,
        GatedMLP("gelu"),
        head=TIED,
        mixers={LINEAR: StateSpace(SelectiveScan(heads="n"))},
    ),
    "zamba2": Zamba(zamba.ATTENTION, GatedMLP("gelu"), head=TIED, mixers={LINEAR: Dual()}),
    "falcon_mamba": Decoder(
        head=TIED,
        reads=Reads(kinds=all_of(LINEAR, NONE)),
        mixers={LINEAR: StateSpace(SelectiveScan(norm=Norm.RMS_BARE), "intermediate_size")},
    ),
    "nemotron_h": Decoder(
        _STILL,
        MLP("relu2", Bias.NONE),
        experts=MixtureOfExperts("relu2", shared="f_s", traits=Trait.PLAIN),
        sparse=Sparse.ALWAYS,
        reads=Reads(
            BIASES,
            shared_width="moe_shared_expert_intermediate_size",
            latent_width="moe_latent_size",
            kinds=one_each,
            counts=("layers_block_type", "hybrid_override_pattern"),
        ),
        mixers={LINEAR: Dual(free=True)},
    ),
    "qwen3_5_text": replace(_QWEN, experts=MixtureOfExperts()),
    "qwen3_5_moe_text": replace(_QWEN, sparse=Sparse.ALWAYS, reads=_QWEN_READS),
    "qwen3_next": replace(_QWEN, sparse=Sparse.EVERY_NTH, reads=_QWEN_READS),
    "qwen4_exp_text": Ngrams(
        replace(BlockChoosing(**vars(_QWEN.attention)), indexed="d_x"),
        experts=_QWEN.experts,
        habits=Habit.NONE,
        sparse=Sparse.ALWAYS,
        reads=replace(_QWEN_READS, share=Share(PART, 1)),
        mixers=_QWEN.mixers,
    ),
    "lfm2": replace(_LFM, reads=replace(_LFM.reads, inner=adjusted)),
    "lfm2_moe": replace(_LFM, sparse=Sparse.AFTER_FIRST),
    "lfm3": Decoder(
        NORMED,
        head=TIED,
        windows=Windows(0, 256),
        reads=Reads(
            {**BIAS, "use_sandwich_norm": after_norm, "use_attention_gate": heads_gate},
            head_width=128,
            kinds=ruled(lfm3),
        ),
        mixers={"conv": Short()},
    ),
    "llama4_text": Decoder(
        replace(NORMED, norm=Norm.RMS_BARE),
        experts=MixtureOfExperts(shared="f_s", shares=Shares.PLAIN),
        sparse=Sparse.EVERY_NTH,
        reads=Reads(
            {**BIAS, "use_qk_norm": head_norm},
            "intermediate_size",
            shared_width="intermediate_size",
            dense_width="intermediate_size_mlp",
            kinds=chunked,
        ),
        # Every expert computes all tokens, and the choice is a weight.
        sizes=Sizes(capacity=symbols.E / symbols.E_t),
    ),
    "granitemoehybrid": Decoder(
        tokens=Tokens(steps=Entry.SCALE),
        experts=MixtureOfExperts(shared="f_s"),
        sparse=Sparse.ALWAYS,
        reads=Reads(
            BIAS,
            "intermediate_size",
            shared_width="shared_intermediate_size",
            dense_width="shared_intermediate_size",
            kinds=granite,
        ),
        mixers={LINEAR: Dual()},
    ),
    "kimi_linear": Decoder(
        LatentAttention("", core=replace(CORE, steps=Step.MASK | Step.CAST)),
        experts=MixtureOfExperts(shared="f_s"),
        sparse=Sparse.AFTER_FIRST,
        sizes=ONE_EACH,
        reads=Reads(NORMALISED, shared=1, dense=1, kinds=kimi),
        mixers={LINEAR: ChannelDelta()},
    ),
    "bailing_hybrid": Decoder(
        LatentAttention("", core=replace(CORE, steps=Step.MASK | Step.CAST), gate=Gate.HEADS),
        experts=MixtureOfExperts(shared="f_s"),
        sparse=Sparse.AFTER_FIRST,
        sizes=ONE_EACH,
        reads=Reads(NORMALISED, shared=1, dense=2, kinds=interval("layer_group_size", 6)),
        mixers={LINEAR: WideDelta()},
    ),
    "olmo_hybrid": Decoder(
        replace(ATTENTION, head_norm=HeadNorm.WIDTH, norm=Norm.RMS_WIDE),
        branch=Branch(Norm.RMS_WIDE, Placing.RESULT),
        reads=Reads(BIAS, kinds=_EVERY_FOURTH, angles=":single"),
        mixers={LINEAR: Delta()},
        branches={LINEAR: (Branch(Norm.RMS_WIDE), Branch(Norm.RMS_WIDE))},
    ),
    "minimax": _MINIMAX,
    "minimax_text_01": replace(_MINIMAX, reads=replace(_MINIMAX.reads, kinds=switched)),
    "recurrent_gemma": Decoder(
        replace(PARTLY, norm=Norm.RMS_SHIFTED, bias=Bias.OUTPUT),
        GatedMLP("gelu_tanh", Bias.BOTH),
        tokens=Tokens(steps=Entry.SCALE),
        head=Logits(steps=Exit.CAP | Exit.LOSS),
        branch=Branch(Norm.RMS_SHIFTED),
        reads=Reads(
            INPUT_BIAS,
            share=Share(PART, Fraction(1, 2)),
            kinds=griffin,
            inner=lambda _, width: width // 2,
        ),
        mixers={LINEAR: Griffin()},
    ),
    "rwkv": Decoder(
        perceptron=ChannelMix(),
        tokens=Tokens(norm=Norm.LAYER),
        branch=LAYER,
        reads=Reads(widening=4, kinds=all_of(LINEAR, DENSE)),
        mixers={LINEAR: Time()},
    ),
    "xlstm": Decoder(
        head=Logits("w", steps=Exit.CAP | Exit.LOSS),
        reads=Reads(
            {"use_bias": memory_bias},
            dense_width="hidden_size",
            inner=rounded,
            kinds=all_of(LINEAR, DENSE),
        ),
        mixers={LINEAR: Memory()},
    ),
    "jamba": Decoder(
        _STILL,
        experts=MixtureOfExperts(shares=Shares.PLAIN),
        sparse=Sparse.EVERY_NTH,
        reads=Reads({}, "intermediate_size", kinds=periodic),
        mixers={LINEAR: StateSpace(SelectiveScan(norm=Norm.RMS))},
    ),
}
"""Families by model_type."""
