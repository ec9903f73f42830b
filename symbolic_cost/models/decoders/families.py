"""The decoder families, as values: a family that mixes known parts is one entry.

A new family is an entry of `DECODERS` here and its name in `families.FAMILIES`. This one normalises
before and after every layer, its heads too, and has experts of which one sees every token:

>>> new = Decoder(
...     branch=Branch(Norm.RMS, Placing.SANDWICH),
...     experts=MixtureOfExperts(shared="f_s"),
...     sparse=Sparse.ALWAYS,
...     head=Logits(),
... ).attended(head_norm=HeadNorm.HEAD)
>>> model = symbolic("new", decoder=new)
>>> [part.path for part in model.parts]
['embedding', 'rotation', 'block', 'head']
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from symbolic_cost.errors import InputError, looked_up
from symbolic_cost.layers.attention import Bias, CacheKind, HeadNorm, Sources
from symbolic_cost.layers.attention_core import SLIDING, Step
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.latent import LatentAttention
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.moe import MixtureOfExperts, Shares
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.residual import Branch, Outcome, Placing
from symbolic_cost.layers.tokens import Entry, Exit, Logits, Tokens
from symbolic_cost.models.decoders.decoder import ATTENTION, CORE, Decoder, Habit, Order
from symbolic_cost.models.decoders.dense import DENSE_DECODERS
from symbolic_cost.models.decoders.gemma import TAKING, Embedding, Gemma, Gemma3
from symbolic_cost.models.decoders.gpt import GPT2
from symbolic_cost.models.decoders.hybrids import HYBRIDS
from symbolic_cost.models.decoders.kinds import DENSE, FULL, SLIDES, Sparse, Windows, symbolic_kinds
from symbolic_cost.models.decoders.layouts import all_of
from symbolic_cost.models.decoders.mixtures import MIXTURES
from symbolic_cost.models.decoders.reads import Reads, Share
from symbolic_cost.models.decoders.series import SERIES
from symbolic_cost.models.decoders.switches import (
    BIAS,
    BIASED,
    BIASES,
    LAYER,
    NORMALISED,
    NORMED,
    ONE_EACH,
    PART,
    PARTLY,
    SHARES,
    STILL,
    TIED,
    centred,
    every_bias,
    unmasked,
)
from symbolic_cost.models.shape import TRAINING, Shape
from symbolic_cost.ops.einsum import Call
from symbolic_cost.ops.graph import Model

_SANDWICH = Branch(Norm.RMS_SHIFTED, Placing.SANDWICH)
_SCALED = Tokens(steps=Entry.SCALE)
_PLACED = Tokens(steps=Entry.POSITION | Entry.COUNTED)
_WIDE_NORMED = replace(ATTENTION, head_norm=HeadNorm.WIDTH)
_OLMO_2 = replace(_WIDE_NORMED, norm=Norm.RMS_WIDE)

_UPPER = Windows(width=4096, switched=True)
_GEMMA = Decoder(
    replace(ATTENTION, norm=Norm.RMS_SHIFTED),
    perceptron=GatedMLP("gelu_tanh"),
    tokens=_SCALED,
    head=TIED,
    branch=Branch(Norm.RMS_SHIFTED),
    reads=Reads({**BIAS, "use_bidirectional_attention": unmasked}, head_width=256),
)
_GEMMA_3 = replace(
    Gemma3(**vars(_GEMMA)),
    branch=_SANDWICH,
    windows=Windows(6, 4096),
    reads=Reads({**BIAS, "use_bidirectional_attention": centred}, head_width=256),
).attended(head_norm=HeadNorm.HEAD)
_LATE = replace(
    Gemma(),
    attention=replace(
        ATTENTION, norm=Norm.RMS_WIDE, head_norm=HeadNorm.HEAD, value_norm=Norm.RMS_BARE
    ),
    perceptron=GatedMLP("gelu_tanh"),
    tokens=_SCALED,
    head=TIED,
    branch=Branch(Norm.RMS_WIDE, Placing.SANDWICH),
    experts=MixtureOfExperts(shared="f_s"),
    windows=Windows(6, 512),
    reads=Reads(
        BIAS, shared_width="intermediate_size", head_width=256, kinds=all_of(SLIDES, DENSE)
    ),
    variants={
        TAKING[SLIDES]: {"at": SLIDING, "sources": Sources.OTHERS},
        TAKING[FULL]: {"sources": Sources.OTHERS},
    },
)
_LATENT = Decoder(
    LatentAttention("", core=replace(CORE, steps=Step.MASK | Step.CAST)),
    experts=MixtureOfExperts(shared="f_s"),
    sparse=Sparse.AFTER_FIRST,
    sizes=ONE_EACH,
)

_BLIND = unmasked(Decoder().attended(cache=CacheKind.NOTHING), on=True)
_FALCON = Decoder(
    perceptron=MLP("gelu", Bias.NONE),
    head=TIED,
    branch=LAYER,
    order=Order.SHARED_NORM,
    reads=Reads({"bias": every_bias}, widening=4),
).stepping(Step.CAST, on=False)

DECODERS: Mapping[str, Decoder] = {
    **dict.fromkeys(
        ("gpt2", "gpt-sw3"),
        replace(GPT2, perceptron=MLP("gelu_new", call=Call.ADDMM)).attended(call=Call.ADDMM),
    ),
    # Its logits are of colours, which lack the token that begins.
    "imagegpt": replace(
        GPT2,
        perceptron=MLP("quick_gelu", call=Call.ADDMM),
        head=Logits("w"),
        branch=replace(GPT2.branch, norm=Norm.RMS),
    ).attended(call=Call.ADDMM),
    "opt": Decoder(
        replace(STILL, core=CORE),
        MLP("relu"),
        tokens=_PLACED,
        head=TIED,
        branch=replace(LAYER, outcome=Outcome.DROP),
        reads=Reads({"enable_bias": every_bias}, offset=2),
        sizes=ONE_EACH,
    ),
    "bloom": Decoder(
        STILL,
        MLP("gelu_tanh"),
        tokens=Tokens(norm=Norm.LAYER),
        head=TIED,
        branch=LAYER,
        reads=Reads(widening=4),
        sizes=ONE_EACH,
    ),
    "gpt_neox": Decoder(
        replace(PARTLY, bias=Bias.BOTH),
        MLP("gelu"),
        branch=LAYER,
        order=Order.OWN_NORMS,
        reads=Reads(BIAS, share=Share(PART, Fraction(1, 4))),
        sizes=ONE_EACH,
    ).stepping(Step.WHOLE, on=True),
    "gptj": DENSE_DECODERS["codegen"],
    **dict.fromkeys(("falcon", "RefinedWeb", "RefinedWebModel"), _FALCON),
    "llama": Decoder(reads=Reads(BIASES)),
    "mistral": Decoder(windows=Windows(0, 4096)),
    "bidir_mistral": replace(_BLIND, windows=Windows(0, 4096)),
    "llama_bidirec": replace(_BLIND, habits=_BLIND.habits | Habit.AVERAGE, reads=Reads(BIASES)),
    "mixtral": Decoder(
        windows=Windows(0), sparse=Sparse.ALWAYS, reads=Reads(expert_width="intermediate_size")
    ),
    "qwen2": Decoder(replace(ATTENTION, bias=Bias.INNER), windows=_UPPER),
    "qwen3": Decoder(NORMED, windows=_UPPER, reads=Reads(BIAS, head_width=128)),
    "qwen3_moe": Decoder(
        NORMED,
        experts=MixtureOfExperts(shares=Shares.PLAIN),
        windows=_UPPER,
        sparse=Sparse.EVERY_NTH,
        reads=Reads(SHARES),
    ),
    "gemma": _GEMMA,
    "gemma2": replace(
        _GEMMA, branch=_SANDWICH, head=Logits(steps=Exit.CAP | Exit.LOSS), windows=Windows(2, 4096)
    ).stepping(Step.CAP, on=True),
    "gemma3_text": _GEMMA_3,
    "gemma3": _GEMMA_3,
    "gemma3n_text": replace(_LATE, head=Logits(steps=Exit.CAP | Exit.LOSS)),
    **dict.fromkeys(("gemma4_text", "gemma4_unified_text"), _LATE),
    "embedding_gemma2_text": unmasked(
        Embedding(**vars(_LATE)).attended(cache=CacheKind.NOTHING), on=True
    ),
    "phi3": Decoder(windows=Windows(0), reads=Reads(share=Share(PART, 1))).stepping(
        Step.WHOLE | Step.ARRANGE, on=True
    ),
    "deepseek_v2": replace(
        _LATENT, experts=replace(_LATENT.experts, shares=Shares.PLAIN), reads=Reads(NORMALISED)
    ),
    "deepseek_v3": replace(_LATENT, reads=Reads(NORMALISED)).attended(query="r_q"),
    "kimi_k2": replace(_LATENT, reads=Reads(NORMALISED)).attended(query="r_q"),
    "sarvam_mla": replace(_LATENT, reads=Reads(NORMALISED)).attended(query="r_q"),
    "gpt_oss": Decoder(
        BIASED,
        experts=MixtureOfExperts(bias=Bias.BOTH),
        windows=Windows(2, 128),
        sparse=Sparse.ALWAYS,
        reads=Reads(BIAS, "intermediate_size", head_width=64),
    ).stepping(Step.SINK, on=True),
    "olmo": Decoder(branch=Branch(Norm.LAYER_BARE), reads=Reads(BIAS, angles=":single")),
    "olmo2": Decoder(
        _OLMO_2, branch=Branch(Norm.RMS_WIDE, Placing.RESULT), reads=Reads(BIAS, angles=":single")
    ),
    "olmoe": Decoder(
        _WIDE_NORMED,
        experts=MixtureOfExperts(shares=Shares.PLAIN),
        sparse=Sparse.ALWAYS,
        reads=Reads(SHARES, "intermediate_size"),
    ),
    "cohere": Decoder(
        replace(ATTENTION, norm=Norm.LAYER_WRITTEN),
        head=TIED,
        branch=Branch(Norm.LAYER_WRITTEN),
        order=Order.SHARED_NORM,
        reads=Reads(BIAS),
    ),
    "phi": Decoder(
        replace(PARTLY, bias=Bias.BOTH),
        MLP("gelu_new"),
        head=Logits("w", steps=Exit.BIAS | Exit.LOSS),
        branch=LAYER,
        order=Order.SHARED_NORM,
        reads=Reads(share=Share(PART, Fraction(1, 2))),
    ),
    "starcoder2": Decoder(
        BIASED,
        MLP("gelu_tanh"),
        head=TIED,
        branch=LAYER,
        windows=Windows(0),
        reads=Reads({"use_bias": every_bias}),
    ),
    **dict.fromkeys(
        ("granite", "granite_docling_text"), Decoder(tokens=_SCALED, reads=Reads(BIASES))
    ),
    **DENSE_DECODERS,
    **MIXTURES,
    **HYBRIDS,
    **SERIES,
}
"""Families by model_type."""


def symbolic(
    name: str, shape: Shape = TRAINING, decoder: Decoder | None = None, predicted: int = 0
) -> Model:
    """Declare a decoder family, every size a symbol.

    Args:
        name: of the family, as model_type.
        shape: what it runs on.
        decoder: a family that is not registered.
        predicted: further tokens predicted, each by one more block and the same head.

    Raises:
        UnknownNameError: no such family; the closest are offered.
        InputError: a family of whose layers or sizes only a configuration tells.
    """
    family = decoder or looked_up("decoder family", name, DECODERS)
    if family.mixers or family.reads.kinds is not None:
        raise InputError(f"{name}: only a configuration says which layer is of which kind")
    kinds = symbolic_kinds(family.windows, family.sparse, family.sizes.n_layers)
    model = family.declare(name, kinds, shape, predicted)
    open_axes = ", ".join(axis for axis in family.own_axes if axis not in model.sizes)
    if open_axes:
        raise InputError(f"{name}: only a configuration says the sizes of {open_axes}")
    return model


declared = symbolic
