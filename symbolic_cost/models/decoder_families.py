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
from types import MappingProxyType

from symbolic_cost import symbols
from symbolic_cost.errors import looked_up
from symbolic_cost.layers.attention import Attention, Bias, HeadNorm, Kept, Projection, Rotated
from symbolic_cost.layers.core import PLAIN, Step
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.latent import LatentAttention
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.moe import MixtureOfExperts, Shares
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.residual import Branch, Placing
from symbolic_cost.layers.tokens import Entry, Exit, Logits, Tokens
from symbolic_cost.models.decoder import ATTENTION, CORE, Decoder, Order, Reads, Share, Switch
from symbolic_cost.models.kinds import Sparse, Windows, symbolic_kinds
from symbolic_cost.models.shape import TRAINING, Shape
from symbolic_cost.models.sizes import Sizes
from symbolic_cost.ops.einsum import Call
from symbolic_cost.ops.graph import Model


def _all(bias: bool) -> Bias:  # noqa: FBT001 - what a configuration says
    return Bias.BOTH if bias else Bias.NONE


def _attention_bias(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001 - as it says
    return decoder.attended(bias=_all(on))


def _input_bias(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001
    return decoder.attended(bias=Bias.INNER if on else Bias.NONE)


def _mlp_bias(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001
    return replace(decoder, perceptron=replace(decoder.perceptron, bias=_all(on)))


def _every_bias(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001
    return _mlp_bias(_attention_bias(decoder, on), on)


def _normalised(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001
    shares = Shares.NORMALISED if on else Shares.PLAIN
    return replace(decoder, experts=replace(decoder.experts, shares=shares))


_BIAS: Mapping[str, Switch] = MappingProxyType({"attention_bias": _attention_bias})
_BIASES: Mapping[str, Switch] = MappingProxyType({**_BIAS, "mlp_bias": _mlp_bias})
_SHARES: Mapping[str, Switch] = MappingProxyType({**_BIAS, "norm_topk_prob": _normalised})
_SHARE = "partial_rotary_factor"

_TIED = Logits()
_LAYER = Branch(Norm.LAYER)
_SANDWICH = Branch(Norm.RMS_SHIFTED, Placing.SANDWICH)
_SCALED = Tokens(steps=Entry.SCALE)
_PLACED = Tokens(steps=Entry.POSITION | Entry.COUNTED)
_ONE_EACH = Sizes(k=symbols.h)
"""Every query head has keys and values of its own."""

_STILL = replace(ATTENTION, rotated=Rotated.NOTHING, bias=Bias.BOTH)
_BIASED = replace(ATTENTION, bias=Bias.BOTH)
_ARRANGED = replace(CORE, steps=CORE.steps | Step.ARRANGE)
_PART = replace(ATTENTION, rotated=Rotated.PART, core=_ARRANGED)
_NORMED = replace(ATTENTION, head_norm=HeadNorm.HEAD)
_WIDE_NORMED = replace(ATTENTION, head_norm=HeadNorm.WIDTH)
_OLMO_2 = replace(_WIDE_NORMED, norm=Norm.RMS_WIDE)

_UPPER = Windows(width=4096, switched=True)
_GEMMA = Decoder(
    replace(ATTENTION, norm=Norm.RMS_SHIFTED),
    perceptron=GatedMLP("gelu_tanh"),
    tokens=_SCALED,
    head=_TIED,
    branch=Branch(Norm.RMS_SHIFTED),
    reads=Reads(_BIAS, head_width=256),
)
_GEMMA_3 = replace(_GEMMA, branch=_SANDWICH, windows=Windows(6, 4096)).attended(
    head_norm=HeadNorm.HEAD
)
_LATENT = Decoder(
    LatentAttention("", core=replace(CORE, steps=Step.MASK | Step.CAST)),
    experts=MixtureOfExperts(shared="f_s"),
    sparse=Sparse.AFTER_FIRST,
    sizes=_ONE_EACH,
)

GPT2 = Decoder(
    Attention(PLAIN, Projection.FUSED, kept=Kept.HEADS),
    MLP(),
    tokens=Tokens(steps=Entry.POSITION | Entry.DROP),
    head=_TIED,
    branch=replace(_LAYER, dropped=True),
    reads=Reads(widening=4),
    sizes=_ONE_EACH,
)
"""GPT-2 with separate calls of products and biases, as Megatron runs it."""

DECODERS: Mapping[str, Decoder] = MappingProxyType(
    {
        "gpt2": replace(GPT2, perceptron=MLP("gelu_new", call=Call.ADDMM)).attended(
            call=Call.ADDMM
        ),
        "opt": Decoder(
            replace(_STILL, core=_ARRANGED),
            MLP("relu"),
            tokens=_PLACED,
            head=_TIED,
            branch=replace(_LAYER, dropped=True),
            reads=Reads({"enable_bias": _every_bias}, offset=2),
            sizes=_ONE_EACH,
        ),
        "bloom": Decoder(
            _STILL,
            MLP("gelu_tanh"),
            tokens=Tokens(norm=Norm.LAYER),
            head=_TIED,
            branch=_LAYER,
            reads=Reads(widening=4),
            sizes=_ONE_EACH,
        ),
        "gpt_neox": Decoder(
            replace(_PART, bias=Bias.BOTH),
            MLP("gelu"),
            branch=_LAYER,
            order=Order.OWN_NORMS,
            reads=Reads(_BIAS, share=Share(_SHARE, Fraction(1, 4))),
            sizes=_ONE_EACH,
        ).stepping(Step.WHOLE, on=True),
        "gptj": Decoder(
            _PART,
            MLP("gelu_new"),
            head=Logits("w", steps=Exit.BIAS | Exit.LOSS),
            branch=_LAYER,
            order=Order.SHARED_NORM,
            reads=Reads(widening=4, share=Share("rotary_dim", 64)),
            sizes=_ONE_EACH,
        ),
        "falcon": Decoder(
            perceptron=MLP("gelu", Bias.NONE),
            head=_TIED,
            branch=_LAYER,
            order=Order.SHARED_NORM,
            reads=Reads({"bias": _every_bias}, widening=4),
        ).stepping(Step.CAST, on=False),
        "llama": Decoder(reads=Reads(_BIASES)),
        "mistral": Decoder(windows=Windows(0, 4096)),
        "mixtral": Decoder(
            windows=Windows(0), sparse=Sparse.ALWAYS, reads=Reads(expert_width="intermediate_size")
        ),
        "qwen2": Decoder(replace(ATTENTION, bias=Bias.INNER), windows=_UPPER),
        "qwen3": Decoder(_NORMED, windows=_UPPER, reads=Reads(_BIAS, head_width=128)),
        "qwen3_moe": Decoder(
            _NORMED,
            experts=MixtureOfExperts(shares=Shares.PLAIN),
            windows=_UPPER,
            sparse=Sparse.EVERY_NTH,
            reads=Reads(_SHARES),
        ),
        "gemma": _GEMMA,
        "gemma2": replace(
            _GEMMA,
            branch=_SANDWICH,
            head=Logits(steps=Exit.CAP | Exit.LOSS),
            windows=Windows(2, 4096),
        ).stepping(Step.CAP, on=True),
        "gemma3_text": _GEMMA_3,
        "gemma3": _GEMMA_3,
        "phi3": Decoder(windows=Windows(0), reads=Reads(share=Share(_SHARE, 1))).stepping(
            Step.WHOLE | Step.ARRANGE, on=True
        ),
        "deepseek_v2": replace(
            _LATENT,
            experts=replace(_LATENT.experts, shares=Shares.PLAIN),
            reads=Reads({"norm_topk_prob": _normalised}),
        ),
        "deepseek_v3": replace(_LATENT, reads=Reads({"norm_topk_prob": _normalised})).attended(
            query="r_q"
        ),
        "gpt_oss": Decoder(
            _BIASED,
            experts=MixtureOfExperts(bias=Bias.BOTH),
            windows=Windows(2, 128),
            sparse=Sparse.ALWAYS,
            reads=Reads(_BIAS, "intermediate_size", head_width=64),
        ).stepping(Step.SINK, on=True),
        "olmo": Decoder(branch=Branch(Norm.LAYER_BARE), reads=Reads(_BIAS, angles=":single")),
        "olmo2": Decoder(
            _OLMO_2,
            branch=Branch(Norm.RMS_WIDE, Placing.RESULT),
            reads=Reads(_BIAS, angles=":single"),
        ),
        "olmoe": Decoder(
            _WIDE_NORMED,
            experts=MixtureOfExperts(shares=Shares.PLAIN),
            sparse=Sparse.ALWAYS,
            reads=Reads(_SHARES, "intermediate_size"),
        ),
        "cohere": Decoder(
            replace(ATTENTION, norm=Norm.LAYER_WRITTEN),
            head=_TIED,
            branch=Branch(Norm.LAYER_WRITTEN),
            order=Order.SHARED_NORM,
            reads=Reads(_BIAS),
        ),
        "phi": Decoder(
            replace(_PART, bias=Bias.BOTH),
            MLP("gelu_new"),
            head=Logits("w", steps=Exit.BIAS | Exit.LOSS),
            branch=_LAYER,
            order=Order.SHARED_NORM,
            reads=Reads(share=Share(_SHARE, Fraction(1, 2))),
        ),
        "stablelm": Decoder(
            _PART,
            branch=_LAYER,
            reads=Reads({"use_qkv_bias": _input_bias}, share=Share(_SHARE, Fraction(1, 4))),
        ),
        "starcoder2": Decoder(
            _BIASED,
            MLP("gelu_tanh"),
            head=_TIED,
            branch=_LAYER,
            windows=Windows(0),
            reads=Reads({"use_bias": _every_bias}),
        ),
        "granite": Decoder(tokens=_SCALED, reads=Reads(_BIASES)),
    }
)
"""Families by model_type."""


def declared(name: str, shape: Shape) -> Model:
    """Declare a decoder family on a shape, every size a symbol."""
    return symbolic(name, shape)


def symbolic(
    name: str, shape: Shape = TRAINING, sizes: Sizes | None = None, decoder: Decoder | None = None
) -> Model:
    """Declare a decoder family, every size a symbol unless given.

    Args:
        name: of the family, as model_type.
        shape: what it runs on.
        sizes: of the model.
        decoder: a family that is not registered.

    Raises:
        UnknownNameError: no such family; the closest are offered.
    """
    family = decoder or looked_up("decoder family", name, DECODERS)
    family = replace(family, sizes=sizes or family.sizes)
    layers = family.sizes.n_layers
    return family.declare(name, symbolic_kinds(family.windows, family.sparse, layers), shape)
