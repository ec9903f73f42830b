"""Builders of models that write recordings down, whose frames of a spectrogram are encoded.

A recording of l tokens has l frames; Whisper's always has those that its configuration gives.
"""

from __future__ import annotations

from dataclasses import replace

from sympy import Integer

from symbolic_cost.axes import Axis, Role
from symbolic_cost.layers import padded_heads as core_padded
from symbolic_cost.layers import speech_frontend
from symbolic_cost.layers.attention import Bias, Rotated
from symbolic_cost.layers.embeddings import COMPUTED, Change, Words
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.padded_heads import PaddedCore
from symbolic_cost.layers.residual import Branch
from symbolic_cost.layers.speech_frontend import Sound, Trait, Wave, wave_sizes
from symbolic_cost.models.audio.recordings import SAMPLES, dropped, tokens_of, weighed
from symbolic_cost.models.encoder_decoders import seq2seq
from symbolic_cost.models.encoder_decoders.config import bart_numbers, declared
from symbolic_cost.models.encoder_decoders.config import running as seq2seq_running
from symbolic_cost.models.encoder_decoders.seq2seq import RECORDED, Reads, Seq2Seq
from symbolic_cost.models.encoder_decoders.sizes import Source
from symbolic_cost.models.encoder_decoders.t5 import t5
from symbolic_cost.models.encoders.encoder import ATTENTION
from symbolic_cost.models.fields import Fields, is_size
from symbolic_cost.models.functions import FUNCTIONS
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.part import Part
from symbolic_cost.ops.unread import stored

WHISPER = Seq2Seq(
    words=replace(seq2seq.WORDS, norm=None),
    attention=replace(ATTENTION, bias=Bias.BOTH & ~Bias.KEY),
    source="radford-2022",
)
SPEECH_TO_TEXT = Seq2Seq(
    words=replace(seq2seq.WORDS, norm=None, tables={"position": COMPUTED}),
    reads=Reads(function="relu"),
)
MOONSHINE = Seq2Seq(
    words=Words(tables={}, norm=None, changes=Change.NONE),
    attention=replace(ATTENTION, bias=Bias.NONE, rotated=Rotated.PART),
    target=GatedMLP(bias=Bias.BOTH),
    branch=Branch(Norm.LAYER_SCALE),
    last=Norm.LAYER_SCALE,
    tables=("", "@token"),
    reads=Reads(dropouts=("attention_dropout", "attention_dropout")),
    source="jeffries-2024",
)


def whisper(fields: Fields, shape: Shape) -> Model:
    """Declare a Whisper: frames of a fixed number, halved by the second of two convolutions."""
    family = seq2seq_running(fields, WHISPER)
    family, numbers, own = bart_numbers(fields, family)
    e, frames = numbers["e"], fields.size("max_source_positions", 1500)
    numbers["P"] = fields.size("max_target_positions", 448)
    waves = (Wave(e, 3, 1, 1), Wave(e, 3, 2, 1))
    mels = fields.size("num_mel_bins", 80)
    front = Sound(waves, dropped(family.branch), places="r")
    sizes, known, _ = wave_sizes(waves, mels, Integer(2 * frames))
    summed = False
    if fields.head.endswith(RECORDED):
        sizes["w_t"] = fields.size("classifier_proj_size", 256)
        summed = fields.flag("use_weighted_layer_sum", default=False)
    family = replace(family, entry=front, tables=("", "@token"))
    model = declared(
        fields,
        shape,
        family,
        numbers,
        own,
        source=Source(Integer(frames), sizes, {**speech_frontend.AXES, **known}),
    )
    return weighed(model) if summed else model


def speech_to_text(fields: Fields, shape: Shape) -> Model:
    """Declare a Speech2Text: gated convolutions that halve the frames, positions computed."""
    family = seq2seq_running(fields, SPEECH_TO_TEXT)
    family, numbers, own = bart_numbers(fields, family)
    kernels = fields.items("conv_kernel_sizes", (5, 5))
    channels, number = fields.size("conv_channels", 1024), fields.size("num_conv_layers", 2)
    fine = len(kernels) == number and all(map(is_size, kernels))
    fields.require(holds=fine, problem=f"{number} kernels are accepted", name="conv_kernel_sizes")
    widths = [channels] * (number - 1) + [2 * numbers["e"]]
    waves = tuple(
        Wave(width, kernel, 2, kernel // 2, function="", traits=Trait.BIAS | Trait.GATE)
        for width, kernel in zip(widths, kernels if fine else (5,) * number, strict=True)
    )
    features = fields.size("input_feat_per_channel", 80) * fields.size("input_channels", 1)
    fields.ignore("max_source_positions", "max_target_positions")
    front = Sound(waves, dropped(family.branch), places=COMPUTED)
    length = shape.c if shape.c != 0 else shape.l
    sizes, known, frames = wave_sizes(waves, features, length)
    family = replace(family, entry=front, tables=("", "@token"))
    return declared(
        fields,
        shape,
        family,
        numbers,
        own,
        source=Source(frames, sizes, {**speech_frontend.AXES, **known}),
    )


def moonshine(fields: Fields, shape: Shape) -> Model:
    """Declare a Moonshine, which hears samples, and whose two sides differ in their perceptron."""
    acts = (fields.text(f"{side}_hidden_act", usual, tuple(FUNCTIONS)) for side, usual in _ACTS)
    first, second = (FUNCTIONS[name] for name in acts)
    core = seq2seq_running(fields, MOONSHINE).attention.core
    bias = Bias.INNER if fields.flag("attention_bias", default=False) else Bias.NONE
    family = replace(
        MOONSHINE,
        perceptron=MLP(first),
        target=replace(GatedMLP(bias=Bias.BOTH), function=second),
        attention=replace(MOONSHINE.attention, bias=bias, core=core),
    )
    numbers = {"e": fields.size("hidden_size"), "f": fields.size("intermediate_size")}
    numbers |= {"V": fields.size("vocab_size"), "h": _alike(fields)}
    numbers |= {
        symbol: fields.size(f"{side}_num_hidden_layers", 6)
        for symbol, side in (("n_layers", "encoder"), ("n_dec", "decoder"))
    }
    width = numbers["e"] // numbers["h"]
    multiple = fields.size("pad_head_dim_to_multiple_of", 1)
    turned = int(width * fields.share("partial_rotary_factor", 9 / 10)) // 2 * 2
    if not (0 < turned < width):
        fields.note("rope_parameters", "a part of a head is rotated")
    padded = -(-width // multiple) * multiple
    if padded != width:
        core = PaddedCore(**vars(core))
        family = replace(family, attention=replace(family.attention, core=core))
    e = numbers["e"]
    waves = (
        Wave(e, 127, 64, norm="group_norm", function="tanh", traits=Trait.NONE),
        Wave(2 * e, 7, 3),
        Wave(e, 3, 2),
    )
    sizes, known, frames = wave_sizes(waves, 1, tokens_of(shape) * SAMPLES)
    sizes |= {"d_x": padded, "d_r": max(turned, 1), "d_n": max(width - turned, 1)}
    source = Source(frames, sizes, {**speech_frontend.AXES, **core_padded.AXES, **known})
    family = replace(family, entry=Sound(waves))
    numbers["q"] = width
    return declared(fields, shape, family, numbers, {}, source=source)


_ACTS = (("encoder", "gelu"), ("decoder", "silu"))


def _alike(fields: Fields) -> int:
    """Read the heads, of which both sides have the same number, each with keys of its own."""
    heads = fields.size("encoder_num_attention_heads", 8)
    for name in ("encoder_num_key_value", "decoder_num_attention", "decoder_num_key_value"):
        usual = heads if name != "decoder_num_attention" else 8
        if fields.size(f"{name}_heads", usual) != heads:
            fields.note(
                f"{name}_heads", f"only the {heads} of encoder_num_attention_heads is declared"
            )
    if fields.size("hidden_size") % heads != 0:
        fields.note("hidden_size", f"{heads} heads do not divide it")
    return heads


def pop2piano(fields: Fields, shape: Shape) -> Model:
    """Declare a Pop2Piano: a T5 with an own head, and a table of composers that is not run."""
    values = fields.source.values
    gated = str(values.get("feed_forward_proj", "gated")).partition("-")[0] == "gated"
    function = fields.text("dense_act_fn", "relu", ("relu", "gelu", "silu"))
    own = {"feed_forward_proj": f"gated-{function}" if gated else function, "dense_act_fn": None}
    rows = fields.size("composer_vocab_size", 21)
    source = {**values, **own, "tie_word_embeddings": False}
    fields.source = replace(fields.source, values=source)
    model = t5(fields, shape)
    part = Part("composers", (stored("rows", w="n_rows e"),))
    sizes = {**model.sizes, "n_rows": Integer(rows)}
    axes = {**model.axes, "n_rows": Axis("n_rows", Role.WHOLE)}
    return replace(model, parts=(*model.parts, part), sizes=sizes, axes=axes)
