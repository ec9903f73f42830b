"""Builders of Conformers: of samples, and of frames of a spectrogram."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sympy import Expr

from symbolic_cost.layers.attention import Bias, Rotated
from symbolic_cost.layers.conformer import Gated, KeyedDistances, Places, attention
from symbolic_cost.layers.heads import Output, Predicted
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.residual import Branch, Outcome
from symbolic_cost.layers.spectrogram_frontend import Thinned
from symbolic_cost.layers.speech_frontend import Sound, Step, Wave
from symbolic_cost.layers.transducer import Transduced
from symbolic_cost.models.audio.conformer import Conformer
from symbolic_cost.models.audio.recordings import (
    CTC,
    SAMPLES,
    WAV2VEC,
    extractor,
    having,
    placed,
    recorded,
    sizes_of,
    tokens_of,
    waved,
)
from symbolic_cost.models.encoder_decoders.sizes import Source
from symbolic_cost.models.encoders.changes import Tables
from symbolic_cost.models.encoders.config import Numbers, running
from symbolic_cost.models.encoders.encoder import ATTENTION, Head, Traits
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.functions import FUNCTIONS
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.graph import Model

CONFORMER = Conformer(
    attention=ATTENTION,
    branch=Branch(outcome=Outcome.DROP),
    pooler=None,
    unused=WAV2VEC.unused,
    heads=WAV2VEC.heads,
    traits=WAV2VEC.traits,
    source="gulati-2020",
)
PARAKEET = replace(CONFORMER, unused={}, traits=Traits(dropouts=("attention_dropout", "dropout")))

LASR = replace(
    PARAKEET,
    attention=replace(ATTENTION, rotated=Rotated.WHOLE),
    last=Norm.LAYER_SCALE,
    heads={CTC: Predicted(output=Output.BIAS)},
)


def conformer(fields: Fields, shape: Shape) -> Model:
    """Declare a Conformer of samples, as wav2vec 2.0 has its own.

    Its convolution of positions is stored and not used.
    """
    waves, numbers = extractor(fields), sizes_of(fields)
    _, sizes = placed(fields, numbers["e"])
    front = Sound(waves, Step.ASK | Step.PROJECT)
    source = waved(waves, 1, tokens_of(shape) * SAMPLES)
    kept = {"place": "g_c i_c o_c s_p", "place_bias": "e", "length": "s_p"}
    family = _convolved(fields, replace(CONFORMER, words=front, last=Norm.LAYER), "s_rel")
    family = replace(family, unused={**family.unused, **kept})
    source = having(source, sizes | _kernels(fields, family, numbers["e"], source.frames))
    return recorded(fields, shape, family, numbers, source)


def spectral(fields: Fields, shape: Shape) -> Model:
    """Declare a Conformer of frames of a spectrogram, as W2v-BERT 2.0 of Transformers."""
    numbers = sizes_of(fields)
    features = fields.size("feature_projection_input_dim", 160)
    family = replace(CONFORMER, words=Sound((), Step.PROJECT), last=None)
    family = _convolved(fields, family, "s_rel", Norm.LAYER)
    source = waved((), features, tokens_of(shape))
    source = having(source, _kernels(fields, family, numbers["e"], source.frames))
    return recorded(fields, shape, family, numbers, source)


def parakeet(fields: Fields, shape: Shape) -> Model:
    """Declare a Parakeet, a Conformer behind convolutions that thin a spectrogram out."""
    head = Predicted(output=Output.BIAS)
    family, numbers, source = _heard(fields, shape, {CTC: head})
    return recorded(fields, shape, family, numbers, source)


def lasr(fields: Fields, shape: Shape) -> Model:
    """Declare a LASR, a Conformer that rotates, behind convolutions over time."""
    numbers, biased = sizes_of(fields), fields.flag("attention_bias", default=False)
    _ungrouped(fields)
    e, kernel = numbers["e"], fields.size("subsampling_conv_kernel_size", 5)
    step, wide = (
        fields.size(f"subsampling_conv_{name}", usual)
        for name, usual in (("stride", 2), ("channels", 256))
    )
    relu = Wave(e, kernel, step, function="relu")
    ends = replace(relu, kernel=1, stride=1), Wave(e, 1, function="")
    waves = (ends[0], relu, replace(relu, channels=wide), ends[1])
    bias = Bias.BOTH if fields.flag("convolution_bias", default=False) else Bias.NONE
    own = running(fields, LASR)
    family = replace(
        LASR,
        words=Sound(waves),
        conv=Gated(own.perceptron.function, None, bias),
        branch=replace(own.branch, norm=Norm.LAYER_SCALE),
        attention=replace(own.attention, bias=Bias.BOTH if biased else Bias.NONE),
        perceptron=replace(own.perceptron, bias=Bias.BOTH if biased else Bias.NONE),
    )
    source = waved(waves, fields.size("num_mel_bins", 128), tokens_of(shape))
    width = fields.size("conv_kernel_size", 32)
    sizes: Tables = {"two": 2, "j": e, "s_c": width, "n_side": 1, "s_rel": 1}
    return recorded(fields, shape, family, numbers, having(source, sizes))


def _ungrouped(fields: Fields) -> None:
    """Note keys that several heads share."""
    heads = fields.size("num_attention_heads")
    if fields.size("num_key_value_heads", heads) != heads:
        fields.note("num_key_value_heads", f"only the {heads} of num_attention_heads is declared")


def transducer(fields: Fields, shape: Shape) -> Model:
    """Declare a Parakeet that says of every frame, and of half as many tokens, what follows."""
    inner = fields.part("encoder_config") or fields.holding({})
    inner = inner.holding({"hidden_act": "silu", **inner.source.values})
    kind = "nemotron_asr_streaming_encoder" if _is_streamed(fields) else "parakeet_encoder"
    inner.text("model_type", kind, (kind,))
    head = Transduced(
        fields.size("num_decoder_layers", 2),
        FUNCTIONS[fields.text("hidden_act", "relu", tuple(FUNCTIONS))],
    )
    words, width = fields.size("vocab_size", 8193), fields.size("decoder_hidden_size", 640)
    told = words
    if fields.family == "parakeet_tdt":
        told += len(fields.items("durations", (0, 1, 2, 3, 4)))
    family, numbers, source = _heard(inner, shape, {"ForRNNT": head, "ForTDT": head})
    sizes: Tables = {"y_t": source.frames // 2, "u_t": width, "n_t": 4, "v_t": told}
    sizes |= {f"{name}_{i}": width for name in "om" for i in range(head.layers + 1)}
    fields.refuse()
    source = having(replace(source, glossary={**source.glossary, **head.axes()}), sizes)
    model = recorded(inner, shape, family, numbers | {"V": words}, source)
    half = f"a text of {source.frames // 2} tokens, half of {source.frames} frames"
    return replace(model, notes=(*model.notes, half))


def _heard(
    fields: Fields, shape: Shape, told: Mapping[str, Head]
) -> tuple[Conformer, Numbers, Source]:
    """Read the encoder of a Parakeet."""
    biased = fields.flag("attention_bias", default=True)
    _ungrouped(fields)
    family = replace(PARAKEET, heads=told)
    norm = Norm.LAYER if _is_streamed(fields) else None
    family = replace(_convolved(fields, family, "b s_rel", norm), branch=Branch())
    if not biased:
        family = replace(
            family,
            attention=replace(family.attention, bias=Bias.NONE),
            perceptron=replace(family.perceptron, bias=Bias.NONE),
        )
    if not fields.flag("convolution_bias", default=True):
        family = replace(family, conv=replace(family.conv, bias=Bias.NONE))
    numbers = sizes_of(fields)
    front, source = _thinned(fields, tokens_of(shape))
    family = replace(family, words=front)
    kernels = _kernels(fields, family, numbers["e"], source.frames)
    return family, numbers, having(source, kernels)


def _convolved(
    fields: Fields,
    family: Conformer,
    rows: str,
    norm: Norm | None = None,
) -> Conformer:
    """Return a Conformer with the attention and the convolutions of a configuration."""
    name = "position_embeddings_type"
    usual = Places.KEYS if norm else Places.RELATIVE
    places = Places.NONE
    if rows == "b s_rel":
        places = Places.RELATIVE
    elif fields.source.values.get(name, usual) is not None:
        kinds = (Places.RELATIVE, Places.ROTARY, *((Places.KEYS,) if norm else ()))
        places = Places(fields.text(name, usual, kinds))
    fields.ignore(name)
    own = running(fields, family)
    conv = Gated(own.perceptron.function, norm, Bias.NONE if family.unused else Bias.BOTH)
    return replace(
        family,
        attention=attention(places, own.attention, rows),
        perceptron=own.perceptron,
        branch=own.branch,
        conv=conv,
    )


def _is_streamed(fields: Fields) -> bool:
    """Tell whether convolutions see no later frame, and norm every frame apart."""
    return fields.family.startswith("nemotron_asr_streaming")


def _kernels(fields: Fields, family: Conformer, e: int, frames: Expr) -> Tables:
    """Read the sizes of what a Conformer has besides."""
    name = "conv_depthwise_kernel_size"
    kernel = fields.size(name, 31) if family.unused else fields.size("conv_kernel_size", 9)
    name = name if family.unused else "conv_kernel_size"
    fine = kernel % 2 == 1 or _is_streamed(fields)
    fields.require(holds=fine, problem="an odd kernel is accepted", name=name)
    sides = ("left_max_position_embeddings", 64), ("right_max_position_embeddings", 8)
    learned = isinstance(family.attention, KeyedDistances)
    side = 1 + sum(fields.size(*one) for one in sides) if learned else 1
    fields.ignore(*(name for name, _ in sides))
    return {"two": 2, "j": e, "s_c": kernel, "n_side": side, "s_rel": 2 * frames - 1}


def _thinned(fields: Fields, length: Expr) -> tuple[Thinned, Source]:
    """Read the convolutions that thin a spectrogram out."""
    factor, stride = (
        fields.size(name, usual)
        for name, usual in (("subsampling_factor", 8), ("subsampling_conv_stride", 2))
    )
    layers, kernel = factor.bit_length() - 1, fields.size("subsampling_conv_kernel_size", 3)
    if layers <= 0:
        fields.note("subsampling_factor", "a factor of two or more is accepted")
    steps = ["scale"] if fields.flag("scale_input", default=True) else []
    steps += ["dropout"] if fields.drops("dropout", default=True) else []
    front = Thinned(max(layers, 1), tuple(steps))
    mels = fields.size("num_mel_bins", 80)
    channels = fields.size("subsampling_conv_channels", 256)
    causal = _is_streamed(fields)
    padding = kernel + stride - 2 if causal else (kernel - 1) // 2 * 2
    sizes, known, frames = front.sizes(kernel, stride, channels, mels, length, padding=padding)
    if not causal and sizes[f"x{front.layers}"] != mels // stride**front.layers:
        fields.note("num_mel_bins", f"{mels} features are not thinned evenly")
    return front, Source(frames, sizes, known)
