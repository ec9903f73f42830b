"""Builders of models of speech: encoders of recordings, and what writes them down.

A recording of l tokens has 160 l samples, or l frames of a spectrogram; Whisper's always has the
frames that its configuration gives.
"""

from __future__ import annotations

from dataclasses import replace

from sympy import Integer

from symbolic_cost.layers import sound
from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.heads import Averaged, Classes, Output, Predicted, Take
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.relative import Distances, OpenedDistances
from symbolic_cost.layers.residual import Branch, Outcome, Placing
from symbolic_cost.layers.sound import Placed, Sound, Step, Trait, Wave, wave_sizes
from symbolic_cost.layers.words import COMPUTED
from symbolic_cost.models import encoder, seq2seq
from symbolic_cost.models.encoder import ATTENTION, SEQUENCE, Encoder, Traits
from symbolic_cost.models.encoder_config import head_of, head_sizes, running
from symbolic_cost.models.fields import Fields, is_size
from symbolic_cost.models.functions import FUNCTIONS
from symbolic_cost.models.labels import classes_of
from symbolic_cost.models.seq2seq import Reads, Seq2Seq, Source
from symbolic_cost.models.seq2seq_config import bart_numbers, declared
from symbolic_cost.models.seq2seq_config import running as seq2seq_running
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.graph import Model

_SAMPLES = 160
"""Samples of a recording by token of the sequence length."""

CTC = "ForCTC"

WAV2VEC = Encoder(
    Sound(()),
    ATTENTION,
    branch=Branch(placing=Placing.POST, outcome=Outcome.DROP),
    pooler=None,
    kept={"masked": "e"},
    heads={
        CTC: Predicted(output=Output.BIAS),
        SEQUENCE: Averaged(),
        "ForAudioFrameClassification": Classes(Take.EACH),
    },
    traits=Traits(dropouts=("attention_dropout", "hidden_dropout")),
    source="baevski-2020",
)

WAVLM = replace(
    WAV2VEC,
    attention=OpenedDistances(projection=ATTENTION.projection, core=ATTENTION.core),
    distances=Distances.ONCE,
)

WHISPER = Seq2Seq(
    words=replace(seq2seq.WORDS, norm=None),
    attention=replace(ATTENTION, bias=Bias.BOTH & ~Bias.KEY),
    source="radford-2022",
)
SPEECH_TO_TEXT = Seq2Seq(
    words=replace(seq2seq.WORDS, norm=None, tables={"position": COMPUTED}),
    reads=Reads(function="relu"),
)


def wav2vec(fields: Fields, shape: Shape) -> Model:
    """Declare an encoder of samples, as wav2vec 2.0.

    Raises:
        InputError: every problem of the fields.
    """
    opened = fields.family == "wavlm"
    family = running(fields, WAVLM if opened else WAV2VEC)
    if opened:
        fields.text("attn_implementation", "eager", ("eager",))
    waves = _extractor(fields)
    stable = fields.flag("do_stable_layer_norm", default=False)
    own = fields.family == "data2vec-audio"
    kernel = (
        fields.size("conv_pos_kernel_size", 19)
        if own
        else fields.size("num_conv_pos_embeddings", 128)
    )
    layers = fields.size("num_conv_pos_embeddings", 5) if own else 1
    groups = fields.size("num_conv_pos_embedding_groups", 16)
    e = fields.size("hidden_size")
    fields.require(
        holds=e % groups == 0,
        problem=f"{groups} groups do not divide the width {e}",
        name="num_conv_pos_embedding_groups",
    )
    front = Sound(
        waves,
        Step.ASK | Step.PROJECT | _dropped(family.branch),
        conv=Placed(layers, weighted=not own),
        last=None if stable else Norm.LAYER,
    )
    family = replace(
        family,
        words=front,
        branch=replace(family.branch, placing=Placing.PRE if stable else Placing.POST),
        last=Norm.LAYER if stable else None,
        kept=family.kept if _masks(fields) else {},
    )
    numbers = {
        "e": e,
        "f": fields.size("intermediate_size"),
        "V": fields.size("vocab_size", 32),
        "n_layers": fields.size("num_hidden_layers"),
        **head_sizes(fields, e, grouped=False),
    }
    if opened:
        numbers["n_rel"] = fields.size("num_buckets", 320)
        fields.ignore("max_bucket_distance")
    head = head_of(fields, family)
    if head != CTC and head in family.heads:
        numbers |= {"n_classes": classes_of(fields)}
        summed = fields.flag("use_weighted_layer_sum", default=False)
        problem = "only false is declared: the last layer is judged"
        fields.require(holds=not summed, problem=problem, name="use_weighted_layer_sum")
    if head == SEQUENCE:
        numbers["e_p"] = fields.size("classifier_proj_size", 256)
    fields.refuse()
    # Nothing is generated token by token: a step is asked for, and runs the whole recording.
    tokens = shape.l if shape.c == 0 else shape.c
    sizes, known, frames = wave_sizes(waves, 1, tokens * _SAMPLES)
    sizes |= {"g_c": groups, "i_c": e // groups, "o_c": e // groups, "s_p": kernel}
    sizes |= {"two": 2, "four": 4} if opened else {}
    sizes |= {"y_p": frames, "z_p": frames + (1 - kernel % 2)}
    every = encoder.Sizes(tables=sizes, known={**sound.AXES, **known})
    model = family.declare(fields.family, replace(shape, l=frames), every, head)
    return replace(model, bindings=numbers)


def _dropped(branch: Branch) -> Step:
    """Return what drops frames out where the branches of the blocks are."""
    return Step.DROP if branch.drops else Step.NONE


def _masks(fields: Fields) -> bool:
    """Return whether an embedding stands for what is masked."""
    rates = ("mask_time_prob", "mask_feature_prob")
    return any(fields.drops(name, default=name == rates[0]) for name in rates)


def _extractor(fields: Fields) -> tuple[Wave, ...]:
    """Read the convolutions that make frames of samples."""
    names = ("conv_dim", "conv_kernel", "conv_stride")
    lists = [fields.items(name) for name in names]
    number = fields.size("num_feat_extract_layers", len(lists[0]) or 1)
    for name, items in zip(names, lists, strict=True):
        fine = len(items) == len(lists[0]) > 0 and all(map(is_size, items))
        fields.require(holds=fine, problem="as many sizes as conv_dim has are accepted", name=name)
    fields.require(
        holds=number == len(lists[0]),
        problem=f"{number} contradicts the {len(lists[0])} of conv_dim",
        name="num_feat_extract_layers",
    )
    biased = fields.flag("conv_bias", default=False)
    whole = fields.text("feat_extract_norm", "group", ("group", "layer")) == "layer"
    whole = whole or fields.family == "data2vec-audio"
    function = FUNCTIONS[fields.text("feat_extract_activation", "gelu", tuple(FUNCTIONS))]
    if fields.problems:
        return (Wave(1, 1),)
    return tuple(
        Wave(
            channels,
            kernel,
            stride,
            norm="layer_norm" if whole else "" if i else "group_norm",
            function=function,
            traits=Trait.BIAS if biased else Trait.NONE,
        )
        for i, (channels, kernel, stride) in enumerate(zip(*lists, strict=True))
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
    front = Sound(waves, _dropped(family.branch), places="r")
    sizes, known, _ = wave_sizes(waves, mels, Integer(2 * frames))
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
    front = Sound(waves, _dropped(family.branch), places=COMPUTED)
    length = shape.c if shape.c != 0 else shape.l
    sizes, known, frames = wave_sizes(waves, features, length)
    family = replace(family, entry=front, tables=("", "@token"))
    return declared(
        fields, shape, family, numbers, own, source=Source(frames, sizes, {**sound.AXES, **known})
    )
