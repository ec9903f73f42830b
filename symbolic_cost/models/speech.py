"""Builders of models that write recordings down, whose frames of a spectrogram are encoded.

A recording of l tokens has l frames; Whisper's always has those that its configuration gives.
"""

from __future__ import annotations

from dataclasses import replace

from sympy import Integer

from symbolic_cost.layers import sound
from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.sound import Sound, Trait, Wave, wave_sizes
from symbolic_cost.layers.words import COMPUTED
from symbolic_cost.models import seq2seq
from symbolic_cost.models.encoder import ATTENTION
from symbolic_cost.models.fields import Fields, is_size
from symbolic_cost.models.recordings import dropped
from symbolic_cost.models.seq2seq import RECORDED, Reads, Seq2Seq, Source
from symbolic_cost.models.seq2seq_config import bart_numbers, declared
from symbolic_cost.models.seq2seq_config import running as seq2seq_running
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.graph import Model

WHISPER = Seq2Seq(
    words=replace(seq2seq.WORDS, norm=None),
    attention=replace(ATTENTION, bias=Bias.BOTH & ~Bias.KEY),
    source="radford-2022",
)
SPEECH_TO_TEXT = Seq2Seq(
    words=replace(seq2seq.WORDS, norm=None, tables={"position": COMPUTED}),
    reads=Reads(function="relu"),
)


def whisper(fields: Fields, shape: Shape) -> Model:
    """Declare a Whisper: frames of a fixed number, halved by the second of two convolutions.

    Raises:
        InputError: every problem of the fields.
    """
    family = seq2seq_running(fields, WHISPER)
    family, numbers, own = bart_numbers(fields, family)
    e, frames = numbers["e"], fields.size("max_source_positions", 1500)
    numbers["P"] = fields.size("max_target_positions", 448)
    waves = (Wave(e, 3, 1, 1), Wave(e, 3, 2, 1))
    mels = fields.size("num_mel_bins", 80)
    front = Sound(waves, dropped(family.branch), places="r")
    sizes, known, _ = wave_sizes(waves, mels, Integer(2 * frames))
    if fields.head.endswith(RECORDED):
        sizes["w_t"] = fields.size("classifier_proj_size", 256)
        fields.require(
            holds=not fields.flag("use_weighted_layer_sum", default=False),
            problem="only false is declared: the last layer is judged",
            name="use_weighted_layer_sum",
        )
    family = replace(family, entry=front, tables=("", "@token"))
    return declared(
        fields,
        shape,
        family,
        numbers,
        own,
        source=Source(Integer(frames), sizes, {**sound.AXES, **known}),
    )


def speech_to_text(fields: Fields, shape: Shape) -> Model:
    """Declare a Speech2Text: gated convolutions that halve the frames, positions computed.

    Raises:
        InputError: every problem of the fields.
    """
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
        fields, shape, family, numbers, own, source=Source(frames, sizes, {**sound.AXES, **known})
    )
