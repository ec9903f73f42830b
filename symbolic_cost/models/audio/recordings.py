"""Builders of encoders of recordings: of samples, as wav2vec 2.0, and of frames of a spectrogram.

A recording of l tokens has 160 l samples, or l frames.
"""

from __future__ import annotations

from dataclasses import replace

from sympy import Expr

from symbolic_cost import symbols
from symbolic_cost.axes import axes
from symbolic_cost.layers import conformer as convolved
from symbolic_cost.layers import speech_frontend
from symbolic_cost.layers.heads import Averaged, Classes, Hidden, Output, Predicted, Take
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.relative import Distances, OpenedDistances
from symbolic_cost.layers.residual import Branch, Outcome, Placing
from symbolic_cost.layers.speech_frontend import Placed, Sound, Step, Trait, Wave, wave_sizes
from symbolic_cost.layers.speech_heads import Quantized, Voices
from symbolic_cost.models.encoder_decoders.sizes import Source
from symbolic_cost.models.encoders.changes import Tables
from symbolic_cost.models.encoders.config import Numbers, head_of, head_sizes, running
from symbolic_cost.models.encoders.encoder import ATTENTION, PAIRED, SEQUENCE, Encoder, Traits
from symbolic_cost.models.encoders.sizes import Sizes
from symbolic_cost.models.fields import Fields, is_size
from symbolic_cost.models.functions import FUNCTIONS
from symbolic_cost.models.labels import classes_of
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.op import Op
from symbolic_cost.records import dataclass

SAMPLES = 160
"""Samples of a recording by token of the sequence length."""

CTC = "ForCTC"
FRAMES = "ForAudioFrameClassification"
VOICES = "ForXVector"
SPEECH = "ForSpeechClassification"
LABELLED = (SEQUENCE, FRAMES, VOICES, SPEECH)

WAV2VEC = Encoder(
    Sound(()),
    ATTENTION,
    branch=Branch(placing=Placing.POST, outcome=Outcome.DROP),
    pooler=None,
    unused={"masked": "e"},
    heads={
        CTC: Predicted(output=Output.BIAS),
        SEQUENCE: Averaged(),
        FRAMES: Classes(Take.EACH),
        PAIRED: Quantized(),
        VOICES: Voices(),
        SPEECH: Classes(Take.MEAN, hidden=Hidden()),
    },
    traits=Traits(dropouts=("attention_dropout", "hidden_dropout")),
    source="baevski-2020",
)

WAVLM = replace(
    WAV2VEC,
    attention=OpenedDistances(projection=ATTENTION.projection, core=ATTENTION.core),
    distances=Distances.ONCE,
)


@dataclass(frozen=True)
class Adapted(Encoder):
    """An encoder whose blocks end with a narrow perceptron, normed before."""

    def block(self, *, bare: bool = False, windowed: bool = False) -> tuple[Op, ...]:
        """Declare one block from x[b r e] to y[b r e]."""
        ops = super().block(bare=bare, windowed=windowed)
        whole = (op.mapped(lambda o: o.renamed("w") if o.tensor == "y" else o) for op in ops)
        narrow = MLP("relu", width="f_a").ops()
        return (*whole, *Branch().around("adapter", narrow, "w", "y"))


def wav2vec(fields: Fields, shape: Shape) -> Model:
    """Declare an encoder of samples, as wav2vec 2.0."""
    opened = fields.family == "wavlm"
    family = running(fields, WAVLM if opened else WAV2VEC)
    if opened:
        fields.text("attn_implementation", "eager", ("eager",))
    waves, numbers = extractor(fields), sizes_of(fields)
    stable = fields.flag("do_stable_layer_norm", default=False)
    convolved, sizes = placed(fields, numbers["e"])
    normed = fields.family != "hubert" or fields.flag("feat_proj_layer_norm", default=True)
    front = Sound(
        waves,
        Step.ASK | Step.PROJECT | dropped(family.branch) | (Step.NONE if normed else Step.PLAIN),
        conv=convolved,
        last=None if stable else Norm.LAYER,
    )
    family = replace(
        family,
        words=front,
        branch=replace(family.branch, placing=Placing.PRE if stable else Placing.POST),
        last=Norm.LAYER if stable else None,
    )
    if not opened and fields.family != "data2vec-audio":
        # Those of MMS are in blocks that are normed before alone.
        adapter = fields.size("adapter_attn_dim") if fields.has("adapter_attn_dim") else 0
        if stable and adapter:
            family, sizes["f_a"] = Adapted(**vars(family)), adapter
    if opened:
        numbers["n_rel"] = fields.size("num_buckets", 320)
        fields.ignore("max_bucket_distance")
        sizes |= {"two": 2, "four": 4}
    source = waved(waves, 1, tokens_of(shape) * SAMPLES)
    sizes |= {"y_p": source.frames, "z_p": source.frames + (1 - sizes["s_p"] % 2)}
    return recorded(fields, shape, family, numbers, having(source, sizes))


def recorded(
    fields: Fields,
    shape: Shape,
    family: Encoder,
    numbers: Numbers,
    source: Source,
) -> Model:
    """Declare an encoder of recordings with its head.

    Nothing is generated token by token: a step is asked for, and runs the whole recording.
    """
    if "masked" in family.unused and not _masks(fields):
        kept = {name: axes for name, axes in family.unused.items() if name != "masked"}
        family = replace(family, unused=kept)
    head, summed = head_of(fields, family), False
    if head in LABELLED and head in family.heads:
        numbers |= {"n_classes": classes_of(fields)}
        if head == SPEECH:
            fields.text("pooling_mode", "mean", ("mean",))
        else:
            summed = fields.flag("use_weighted_layer_sum", default=False)
        if fields.family == "sew":  # whose layers see fewer frames than its head
            problem = "only false is declared: the last layer is judged"
            fields.require(holds=not summed, problem=problem, name="use_weighted_layer_sum")
    if isinstance(family.heads.get(head), Quantized) and isinstance(family.words, Sound):
        family = replace(family, words=replace(family.words, steps=family.words.steps | Step.HAND))
        source = having(source, _codes(fields, numbers))
    elif head == VOICES:
        voices, sizes = _voices(fields, source.frames)
        family = replace(family, heads={**family.heads, VOICES: voices})
        source = having(source, sizes)
    elif head == SEQUENCE:
        numbers["e_p"] = fields.size("classifier_proj_size", 256)
    fields.refuse()
    every = Sizes(tables=source.sizes, known={**_KNOWN, **source.glossary})
    model = family.declare(fields.family, replace(shape, l=source.frames), every, head)
    return replace(weighed(model) if summed else model, bindings=numbers)


def weighed(model: Model) -> Model:
    """Return a model whose head sees what all layers and the first embedding give, weighed.

    Of 12 layers, 13 streams are kept side by side until their sum is taken.
    """
    *trunk, head = model.parts
    ops = (
        pointwise("keep", "x[b r e] -> streams[n_w b r e]", "copy"),
        pointwise("weigh", "streams[n_w b r e], *w[n_w] -> sum[b r e]", "mul", sums="n_w"),
        *(op.mapped(lambda o: o.renamed("sum") if o.tensor == "x" else o) for op in head.ops),
    )
    return replace(
        model,
        parts=(*trunk, replace(head, ops=ops)),
        sizes={**model.sizes, "n_w": symbols.n_layers + 1},
        axes={**model.axes, **axes("n_w whole")},
    )


def _codes(fields: Fields, numbers: Numbers) -> Tables:
    """Read the codes of features, and how wide what is compared is."""
    groups, wide = fields.size("num_codevector_groups", 2), fields.size("codevector_dim", 256)
    if wide % groups != 0:
        fields.note("codevector_dim", f"{groups} groups do not divide it")
    numbers["e_p"] = fields.size("proj_codevector_dim", 256)
    codes = fields.size("num_codevectors_per_group", 320)
    features = fields.items("conv_dim")[-1:]
    return {
        "g_q": groups,
        "n_q": codes,
        "w_q": max(wide // groups, 1),
        "a_q": features[0] if features and is_size(features[0]) else 1,
    }


def _voices(fields: Fields, frames: Expr) -> tuple[Voices, Tables]:
    """Read the convolutions that tell voices apart.

    Of 100 frames, a kernel of 5 leaves 96, one of 3 at every second frame 92.
    """
    usual = ((512, 512, 512, 512, 1500), (5, 3, 3, 1, 1), (1, 2, 3, 1, 1))
    names = ("tdnn_dim", "tdnn_kernel", "tdnn_dilation")
    lists = [fields.items(name, one) for name, one in zip(names, usual, strict=True)]
    for name, items in zip(names, lists, strict=True):
        fine = len(items) == len(lists[0]) > 0 and all(map(is_size, items))
        fields.require(holds=fine, problem="as many sizes as tdnn_dim has are accepted", name=name)
    width = fields.size("xvector_output_dim", 512)
    sizes: Tables = {"x_v": width, "y_v": width}
    if not fields.problems:
        sizes["v_0"] = lists[0][0]
        for i, (channels, kernel, apart) in enumerate(zip(*lists, strict=True), 1):
            frames -= apart * (kernel - 1)
            sizes |= {f"v_{i}": channels, f"k_{i}": kernel, f"p_{i}": frames}
    if frames.is_Integer and frames <= 0:
        fields.note("tdnn_kernel", "no frame is left")
    return Voices(len(lists[0])), sizes


def having(source: Source, sizes: Tables) -> Source:
    """Return a source with further sizes, by axis."""
    return replace(source, sizes={**source.sizes, **sizes})


_KNOWN = {**speech_frontend.AXES, **convolved.AXES, **axes("f_a inner")}


def tokens_of(shape: Shape) -> Expr:
    """Return the tokens of a recording."""
    return shape.l if shape.c == 0 else shape.c


def sizes_of(fields: Fields) -> Numbers:
    """Read the sizes that every encoder of recordings has."""
    e = fields.size("hidden_size")
    return {
        "e": e,
        "f": fields.size("intermediate_size"),
        "V": fields.size("vocab_size", 32),
        "n_layers": fields.size("num_hidden_layers"),
        **head_sizes(fields, e, grouped=False),
    }


def waved(waves: tuple[Wave, ...], channels: int, length: Expr) -> Source:
    """Return what convolutions over time make of a recording."""
    sizes, known, frames = wave_sizes(waves, channels, length)
    return Source(frames, sizes, known)


def placed(fields: Fields, e: int) -> tuple[Placed, Tables]:
    """Read the convolutions of positions."""
    own = fields.family == "data2vec-audio"
    name = "num_conv_pos_embeddings"
    kernel = fields.size("conv_pos_kernel_size", 19) if own else fields.size(name, 128)
    groups = fields.size("num_conv_pos_embedding_groups", 16)
    if e % groups != 0:
        fields.note("num_conv_pos_embedding_groups", f"{groups} groups do not divide the width {e}")
    width = max(e // groups, 1)
    sizes: Tables = {"g_c": groups, "i_c": width, "o_c": width, "s_p": kernel}
    return Placed(fields.size(name, 5) if own else 1, weighted=not own), sizes


def dropped(branch: Branch) -> Step:
    """Return what drops frames out where the branches of the blocks are."""
    return Step.DROP if branch.drops else Step.NONE


def _masks(fields: Fields) -> bool:
    """Return whether an embedding stands for what is masked."""
    rates = ("mask_time_prob", "mask_feature_prob")
    masked = [fields.drops(name, default=name == rates[0]) for name in rates]
    return any(masked) or fields.family == "unispeech-sat"  # which has one whatever they are


def extractor(fields: Fields) -> tuple[Wave, ...]:
    """Read the convolutions that make frames of samples."""
    names = ("conv_dim", "conv_kernel", "conv_stride")
    lists = [fields.items(name) for name in names]
    number = fields.size("num_feat_extract_layers", len(lists[0]) or 1)
    for name, items in zip(names, lists, strict=True):
        fine = len(items) == len(lists[0]) > 0 and all(map(is_size, items))
        fields.require(holds=fine, problem="as many sizes as conv_dim has are accepted", name=name)
    if number != len(lists[0]):
        fields.note(
            "num_feat_extract_layers", f"{number} contradicts the {len(lists[0])} of conv_dim"
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
