"""Dense decoders that mix the parts of others, as values."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from symbolic_cost.layers.attention import Attention, Bias, CacheKind, Gate, HeadNorm, Projection
from symbolic_cost.layers.attention_core import PLAIN, Step
from symbolic_cost.layers.differential import Decayed, Differential
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.latent import LatentAttention
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.residual import Branch, Outcome, Placing
from symbolic_cost.layers.tokens import Entry, Exit, Logits, Tokens
from symbolic_cost.models.decoders.decoder import ATTENTION, CORE, Decoder, Habit, Order
from symbolic_cost.models.decoders.kinds import FULL, UNTURNED, Windows
from symbolic_cost.models.decoders.layouts import glimmer, turned
from symbolic_cost.models.decoders.reads import Reads, Share
from symbolic_cost.models.decoders.switches import (
    ARRANGED,
    BIAS,
    BIASED,
    BIASES,
    INPUT_BIAS,
    LAYER,
    NORMED,
    ONE_EACH,
    PART,
    PARTLY,
    STILL,
    TIED,
    after_norm,
    attention_bias,
    every_bias,
    head_norm,
    input_bias,
    mlp_bias,
    output_bias,
    result_norm,
    separate_norms,
)

_DROPPED = replace(LAYER, outcome=Outcome.DROP)
_PLAIN = Decoder(
    replace(STILL, core=ARRANGED), MLP("gelu"), head=TIED, branch=LAYER, sizes=ONE_EACH
)
_HALF = Share(PART, Fraction(1, 2))
_OLMO = replace(ATTENTION, head_norm=HeadNorm.WIDTH, norm=Norm.RMS_WIDE)
_SCALED = Branch(Norm.LAYER_SCALE)
_SHIFTED = Branch(Norm.RMS_SHIFTED)

DENSE_DECODERS: Mapping[str, Decoder] = {
    "apertus": Decoder(NORMED, MLP("xielu", Bias.NONE), reads=Reads(BIAS)),
    **dict.fromkeys(
        ("arcee", "cosmos3_edge_text"),
        Decoder(perceptron=MLP("relu2", Bias.NONE), reads=Reads(BIASES)),
    ),
    **dict.fromkeys(("baichuan", "xverse"), Decoder(sizes=ONE_EACH)),
    **dict.fromkeys(("Yi", "aquila", "skywork"), Decoder()),
    "Dream": Decoder(replace(ATTENTION, bias=Bias.INNER)).stepping(Step.MASK, on=False),
    "internlm": Decoder(reads=Reads({"bias": attention_bias}), sizes=ONE_EACH),
    "mimo": Decoder(replace(ATTENTION, bias=Bias.INNER), reads=Reads(INPUT_BIAS)),
    "minicpm": Decoder(tokens=Tokens(steps=Entry.SCALE), head=TIED),
    "orion": Decoder(branch=LAYER, reads=Reads(BIAS)),
    "biogpt": replace(
        _PLAIN,
        tokens=Tokens(steps=Entry.POSITION | Entry.COUNTED | Entry.SCALE | Entry.DROP),
        branch=_DROPPED,
        reads=Reads(offset=2),
    ),
    "bitnet": Decoder(
        replace(ATTENTION, inner_norm=Norm.RMS),
        GatedMLP("relu2", inner_norm=Norm.RMS),
        reads=Reads(BIAS),
    ),
    "internlm3": Decoder(reads=Reads(BIASES)),
    "gpt_neo": Decoder(
        replace(STILL, bias=Bias.OUTPUT),
        MLP("gelu_new"),
        tokens=Tokens(steps=Entry.POSITION | Entry.DROP),
        head=TIED,
        branch=_DROPPED,
        reads=Reads(widening=4),
        sizes=ONE_EACH,
    ),
    "mpt": Decoder(
        Attention(PLAIN, Projection.FUSED, Bias.NONE, cache=CacheKind.HEADS, core=CORE),
        MLP("gelu", Bias.NONE),
        head=TIED,
        branch=Branch(Norm.LAYER_SCALE),
        reads=Reads(widening=4),
        sizes=ONE_EACH,
    ).stepping(Step.COPY, on=False),
    "youtu": Decoder(
        LatentAttention(core=replace(CORE, steps=Step.MASK | Step.CAST)), head=TIED, sizes=ONE_EACH
    ),
    **dict.fromkeys(("hf_olmo", "llada"), Decoder(reads=Reads(angles=":single"))),
    "openelm": Decoder(reads=Reads({"use_qk_norm": head_norm})),
    "deci": Decoder(reads=Reads(BIAS)),
    "nemotron-nas": Decoder(reads=Reads(BIASES)),
    "jais": Decoder(
        Attention(PLAIN, Projection.FUSED, cache=CacheKind.HEADS, core=CORE),
        GatedMLP(bias=Bias.BOTH),
        tokens=Tokens(steps=Entry.SCALE | Entry.DROP),
        head=TIED,
        branch=_DROPPED,
        reads=Reads(widening=4),
        sizes=ONE_EACH,
    ),
    "telechat": Decoder(
        replace(ATTENTION, bias=Bias.OUTPUT),
        GatedMLP(bias=Bias.OUTPUT),
        head=TIED,
        branch=Branch(Norm.RMS, outcome=Outcome.DROP),
    ),
    "chatglm1": Decoder(BIASED, MLP("gelu_tanh"), branch=LAYER, sizes=ONE_EACH),
    "chatglm": Decoder(replace(ATTENTION, bias=Bias.INNER), reads=Reads(INPUT_BIAS, share=_HALF)),
    "codegen": Decoder(
        PARTLY,
        MLP("gelu_new"),
        head=Logits("w", steps=Exit.BIAS | Exit.LOSS),
        branch=LAYER,
        order=Order.SHARED_NORM,
        reads=Reads(widening=4, share=Share("rotary_dim", 64)),
        sizes=ONE_EACH,
    ),
    "cohere2": Decoder(
        replace(ATTENTION, norm=Norm.LAYER_WRITTEN),
        head=TIED,
        branch=Branch(Norm.LAYER_WRITTEN),
        order=Order.SHARED_NORM,
        windows=Windows(4, 4096),
        reads=Reads(BIAS),
        renamed={FULL: UNTURNED},
    ),
    "cohere_compass_text": Decoder(
        replace(ATTENTION, norm=Norm.LAYER_WRITTEN),
        head=TIED,
        branch=Branch(Norm.LAYER_WRITTEN),
        order=Order.SHARED_NORM,
        reads=Reads(BIAS, kinds=turned(lambda *_: FULL, still=False)),
    ),
    "ctrl": replace(
        _PLAIN,
        perceptron=MLP("relu"),
        tokens=Tokens(steps=Entry.SCALE | Entry.COMPUTED | Entry.DROP),
        head=Logits(steps=Exit.BIAS | Exit.LOSS),
        branch=_DROPPED,
    ),
    "cwm": Decoder(windows=Windows(4, 8192, full_at=0), reads=Reads()),
    "diffllama": Decoder(Differential(**vars(ATTENTION)), reads=Reads(BIAS)),
    "doge": Decoder(
        Decayed(**vars(NORMED)), branch=Branch(Norm.RMS, outcome=Outcome.CARRY), reads=Reads(BIASES)
    ),
    "ernie4_5": Decoder(head=TIED, reads=Reads({"use_bias": every_bias})),
    "exaone": Decoder(),
    "exaone4": Decoder(
        NORMED,
        branch=Branch(Norm.RMS, Placing.RESULT),
        windows=Windows(4, 4096),
        renamed={FULL: UNTURNED},
    ),
    "glm": Decoder(reads=Reads(INPUT_BIAS, share=_HALF)),
    **dict.fromkeys(
        ("glm4", "glm4v_text"),
        Decoder(branch=Branch(Norm.RMS, Placing.SANDWICH), reads=Reads(INPUT_BIAS, share=_HALF)),
    ),
    "glm_ocr_text": Decoder(branch=Branch(Norm.RMS, Placing.SANDWICH), reads=Reads(share=_HALF)),
    "gpt_bigcode": Decoder(
        STILL,
        MLP("gelu_tanh"),
        tokens=Tokens(steps=Entry.POSITION | Entry.DROP),
        head=TIED,
        branch=_DROPPED,
        reads=Reads(widening=4),
    ).stepping(Step.DROP, on=True),
    # The last block alone has a bias, of the output projection.
    "gpt_neox_japanese": Decoder(
        PARTLY,
        MLP("gelu", Bias.NONE),
        head=TIED,
        branch=LAYER,
        reads=Reads(share=Share(PART, 1)),
        sizes=ONE_EACH,
        variants={"biased_attention": {"bias": Bias.OUTPUT}},
    ),
    "granite_swa": Decoder(
        tokens=Tokens(steps=Entry.SCALE),
        head=TIED,
        windows=Windows(4, 128, full_at=0),
        reads=Reads(BIASES),
    ).stepping(Step.SINK, on=True),
    "chameleon_text": Decoder(
        replace(NORMED, norm=Norm.LAYER, head_norm=HeadNorm.HEADS), reads=Reads(BIASES)
    ),
    "emu3_text_model": Decoder().stepping(Step.DROP, on=True),
    "molmo_text": Decoder(
        reads=Reads(
            {"attention_bias": input_bias, "norm_after": result_norm},
            inner=lambda _, width: width // 2,
        )
    ),
    "molmo2_text": Decoder(
        NORMED, reads=Reads({"attention_bias": input_bias, "norm_after": result_norm})
    ),
    "helium": Decoder(reads=Reads({**BIASES, **INPUT_BIAS})),
    **dict.fromkeys(("hunyuan_v1_dense", "hunyuan_vl_text"), Decoder(NORMED, reads=Reads(BIAS))),
    "hrm_text": Decoder(
        replace(ATTENTION, gate=Gate.QUERY),
        tokens=Tokens(steps=Entry.SCALE),
        branch=Branch(Norm.RMS_BARE),
        habits=Habit.NONE,
        reads=Reads(BIASES, head_width=128),
    ),
    "internlm2": Decoder(reads=Reads({"bias": attention_bias})),
    "hyperclovax": Decoder(
        tokens=Tokens(steps=Entry.SCALE),
        branch=Branch(Norm.RMS, Placing.SANDWICH),
        reads=Reads({**BIASES, "use_post_norm": after_norm}),
    ),
    "iquestcoder": Decoder(reads=Reads(BIASES)),
    "jais2": Decoder(BIASED, MLP("relu2"), branch=LAYER, reads=Reads(BIASES)),
    "kosmos_2_text_model": replace(
        _PLAIN,
        attention=replace(STILL, core=CORE, inner_norm=Norm.LAYER),
        perceptron=MLP("gelu", inner_norm=Norm.LAYER),
        tokens=Tokens(steps=Entry.SCALE | Entry.COMPUTED | Entry.DROP),
        branch=_DROPPED,
    ),
    "minicpm3": Decoder(
        LatentAttention(core=replace(CORE, steps=Step.MASK | Step.CAST)),
        tokens=Tokens(steps=Entry.SCALE),
        head=TIED,
        sizes=ONE_EACH,
        reads=Reads(value_width=lambda width, heads: width // heads),
    ),
    "ministral": Decoder(windows=Windows(0, 4096)),
    "ministral3": Decoder(windows=Windows(0)),
    "modernbert-decoder": Decoder(
        perceptron=GatedMLP("gelu"),
        tokens=Tokens(norm=Norm.LAYER_SCALE),
        head=Logits(steps=Exit.BIAS | Exit.LOSS),
        branch=_SCALED,
        reads=Reads(BIASES),
        sizes=ONE_EACH,
        branches={"first": (replace(_SCALED, placing=Placing.NONE), _SCALED)},
    ),
    "nanochat": Decoder(
        replace(NORMED, norm=Norm.RMS_BARE),
        MLP("relu2", Bias.NONE),
        tokens=Tokens(norm=Norm.RMS_BARE),
        head=Logits("w", steps=Exit.CAP | Exit.LOSS),
        branch=Branch(Norm.RMS_BARE),
        reads=Reads(BIAS),
    ),
    "muse_glimmer_text": Decoder(
        replace(NORMED, norm=Norm.RMS_BARE, gate=Gate.ELEMENTS),
        tokens=Tokens(norm=Norm.RMS_BARE),
        head=Logits("w", steps=Exit.CAP | Exit.LOSS),
        branch=Branch(Norm.RMS_SHIFTED, Placing.SANDWICH),
        windows=Windows(4, 2048),
        reads=Reads(BIAS, kinds=glimmer),
    ),
    "nemotron": Decoder(
        PARTLY, MLP("relu2", Bias.NONE), branch=LAYER, reads=Reads(BIASES, share=_HALF)
    ),
    "olmo3": Decoder(
        _OLMO,
        branch=Branch(Norm.RMS_WIDE, Placing.RESULT),
        windows=Windows(4, 4096),
        reads=Reads(BIAS, angles=":single"),
    ),
    "openai-gpt": replace(
        _PLAIN,
        perceptron=MLP("gelu_new"),
        tokens=Tokens(steps=Entry.POSITION | Entry.DROP),
        branch=Branch(Norm.LAYER, Placing.POST, outcome=Outcome.DROP),
        habits=Habit.NONE,
        reads=Reads(widening=4),
    ),
    "git_text": replace(
        _PLAIN,
        perceptron=MLP("gelu"),
        tokens=Tokens(steps=Entry.POSITION | Entry.DROP, norm=Norm.LAYER),
        head=Logits("w", steps=Exit.BIAS | Exit.LOSS),
        branch=Branch(Norm.LAYER, Placing.POST, outcome=Outcome.DROP),
        habits=Habit.NONE,
    ).stepping(Step.CAST, on=False),
    "persimmon": Decoder(
        replace(PARTLY, bias=Bias.BOTH, norm=Norm.LAYER, head_norm=HeadNorm.HEAD),
        MLP("relu2"),
        branch=LAYER,
        reads=Reads({"qk_layernorm": head_norm}, share=_HALF),
        sizes=ONE_EACH,
    ),
    "qwen": Decoder(
        replace(ATTENTION, bias=Bias.INNER),
        reads=Reads(inner=lambda _, width: width // 2),
        sizes=ONE_EACH,
    ),
    "phi3small": Decoder(
        BIASED,
        GatedMLP("quick_gelu", Bias.BOTH),
        tokens=Tokens(steps=Entry.SCALE | Entry.DROP),
        head=TIED,
        branch=LAYER,
    ),
    "seed_oss": Decoder(
        replace(ATTENTION, bias=Bias.INNER),
        reads=Reads(
            {"attention_bias": input_bias, "attention_out_bias": output_bias, "mlp_bias": mlp_bias}
        ),
    ),
    "smollm3": Decoder(head=TIED, reads=Reads(BIASES)),
    **dict.fromkeys(
        ("stablelm", "stablelm_epoch"),
        Decoder(
            replace(PARTLY, norm=Norm.LAYER_SCALE),
            branch=LAYER,
            reads=Reads(
                {"use_qkv_bias": input_bias, "qk_layernorm": separate_norms},
                share=Share(PART, Fraction(1, 4)),
            ),
        ),
    ),
    "vaultgemma": Decoder(
        replace(ATTENTION, norm=Norm.RMS_SHIFTED),
        GatedMLP("gelu_tanh"),
        tokens=Tokens(steps=Entry.SCALE),
        head=Logits(steps=Exit.CAP | Exit.LOSS),
        branch=_SHIFTED,
        windows=Windows(2, 4096),
        reads=Reads(BIAS),
    ).stepping(Step.CAP, on=True),
    "xglm": replace(
        _PLAIN, tokens=Tokens(steps=Entry.SCALE | Entry.COMPUTED | Entry.DROP), branch=_DROPPED
    ),
}
"""Families by model_type."""
