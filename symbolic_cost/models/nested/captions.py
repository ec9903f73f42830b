"""Builder of models that write down what an image shows: a tower, and a decoder that attends to it.

A sequence of l tokens is written; one image is seen for each. A text in place of the image has l
tokens, and what is written half as many. Axes: those of the tower end in _vision or _source; r, l
and t are its positions as the decoder takes them, e its width, e_v that width before it is
projected; the others as in an encoder-decoder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from sympy import Expr, Integer

from symbolic_cost.axes import axes
from symbolic_cost.errors import InputError
from symbolic_cost.layers import codebooks
from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.attention_core import AttentionCore, Step
from symbolic_cost.layers.conv import Chain, Maps, Trail
from symbolic_cost.layers.embeddings import COMPUTED, Change
from symbolic_cost.layers.heads import Output, Predicted
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.residual import Outcome
from symbolic_cost.models.audio.conformer_config import parakeet
from symbolic_cost.models.bound import bound
from symbolic_cost.models.encoder_decoders.seq2seq import GENERATED, Seq2Seq
from symbolic_cost.models.encoder_decoders.sizes import Sizes, Source
from symbolic_cost.models.encoder_decoders.t5 import t5
from symbolic_cost.models.encoders import config as encoder_config
from symbolic_cost.models.encoders.config import Numbers
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.functions import CORES, FUNCTIONS
from symbolic_cost.models.nested.caption_families import CAPTIONS, MUSIC, Caption
from symbolic_cost.models.nested.parts import section
from symbolic_cost.models.nested.towers import tower
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.vision import config as vision_config
from symbolic_cost.models.vision.maps_families import NETWORKS
from symbolic_cost.models.vision.sides import side_lengths
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.part import Part
from symbolic_cost.ops.unread import unread
from symbolic_cost.ops.view import view

AXES = axes("e_v hidden")
Builder = Callable[[Fields, Shape], Model]
_BUILDERS: Mapping[str, Builder] = {
    "encoders.config:build": encoder_config.build,
    "encoder_decoders.t5:t5": t5,
    "audio.conformer_config:parakeet": parakeet,
    "vision.config:build": vision_config.build,
}
"""What declares a tower."""

_SPOKEN = ("canary", "cohere_asr")
"""What hears a recording."""

_TEXTS = ("encoder-decoder", "musicgen", *_SPOKEN)
"""What sees a text or hears a recording, and writes half as many tokens."""

_SECTIONS = {
    "blip": ("vision_config", "text_config"),
    "musicgen": ("text_encoder", "decoder"),
    **dict.fromkeys(_SPOKEN, ("encoder_config", "decoder_config")),
}
"""Objects of the tower and of the decoder, where they are not called so."""

_KINDS = {
    "blip": ("blip_vision_model", "blip_text_model"),
    "musicgen": ("t5", "musicgen_decoder"),
    "canary": ("parakeet_encoder", "canary_decoder"),
    "cohere_asr": ("parakeet_encoder", "cohere_asr_decoder"),
}
"""The one tower and decoder of a family."""

_ALONE = ("is_decoder", "is_encoder_decoder", "add_cross_attention")


def build(fields: Fields, shape: Shape) -> Model:
    """Declare the tower and the decoder."""
    inner, words = _sections(fields)
    reads, decodes = fields.family in _TEXTS, shape.c != 0
    own_model = _BUILDERS[inner.record.builder] if inner.family not in _MAPS else _maps
    read = replace(shape, l=shape.c, c=Integer(0)) if reads and decodes else shape
    seen, last = _unpooled(bound(own_model(inner, read)))
    at = next(one for one in seen.parts if one.path == last).results[0].axes
    wide, own, positions = int(seen.sizes[at[-1]]), words.size("hidden_size"), seen.sizes[at[1]]
    projected = _is_projected(fields, words, wide, own)
    _ignore_alone(words)
    family, numbers = _family(words, CAPTIONS[words.family], tied=_tied(fields, words))
    codes = _codes(words, positions) if words.family == MUSIC else None
    words.refuse()
    fields.refuse()
    written, past = (shape.l, shape.c) if not reads else (shape.l // 2, shape.c // 2)
    sizes = Sizes(
        b=shape.b,
        l=positions,
        l_t=shape.l if decodes else written,
        cached=past if decodes else None,
        decoder={} if projected else {"e": own},
        source=codes,
        **{**numbers, "e": own if projected else wide},  # type: ignore[arg-type]
    )
    text = family.declare(fields.family, sizes)
    parts = [part for part in text.parts if not part.path.startswith("encoder.")]
    lengths = {**text.sizes, "e_v": Integer(wide)}
    if decodes:
        # What the image is projected to is not cached: every step makes it anew.
        again = (Part("image", _joined("!seen[b r e_v]")),) if projected else ()
        return replace(text, parts=(*again, *parts), sizes=lengths, axes={**text.axes, **AXES})
    name = "source" if reads else "vision"
    images = tower(seen, name)
    result = "handed[b r e_v]" if projected else "y[b r e]"
    hand: tuple[Op, ...] = (view("hand", f"x[{' '.join(f'{a}_{name}' for a in at)}] -> {result}"),)
    ops = (*hand, *_joined(result)) if projected else hand
    joining = Part("image", ops, takes={"x": f"{name}.{last}"})
    return replace(
        text,
        parts=(*images.parts, joining, *_remembering(parts)),
        sizes={**images.sizes, **lengths},
        axes={**text.axes, **images.axes, **AXES},
    )


def _codes(words: Fields, positions: Expr) -> Source:
    """Return the sizes of what a decoder of codes has besides."""
    books, rows = words.size("num_codebooks", 4), words.size("vocab_size") + 1
    return Source(positions, {"n_c": books, "v_in": rows}, codebooks.AXES)


def _sections(fields: Fields) -> tuple[Fields, Fields]:
    """Return the fields of the tower and of the decoder, or refuse what is neither."""
    names = _SECTIONS.get(fields.family, ("encoder", "decoder"))
    kinds = _KINDS.get(fields.family, _KINDS["blip"])
    inner, words = (section(fields, *pair) for pair in zip(names, kinds, strict=True))
    texts = fields.family in _TEXTS
    builder = "encoders.config:build" if texts else "vision.config:build"
    known = (inner.family in _MAPS and not texts) or inner.record.builder == builder
    known = inner.family == kinds[0] if fields.family in _TEXTS[1:] else known
    own = [kind for _, kind in list(_KINDS.values())[1:]]
    decoders = [kinds[1]] if kinds[1] in own else [name for name in CAPTIONS if name not in own]
    if words.family not in decoders or not known:
        behind = "an encoder" if texts else f"a vision transformer or one of {', '.join(_MAPS)}"
        behind = f"a {kinds[0]}" if fields.family in _TEXTS[1:] else behind
        accepted = f"decoders {', '.join(decoders)} behind {behind} are declared"
        raise InputError(f"{fields.source.where(names[1])}: {accepted}")
    # A decoder, whatever the family says of models that stand alone.
    fixed = {key: value for key, value in words.record.fixed.items() if key not in _ALONE}
    words.record = replace(words.record, fixed=fixed)
    ends = ("EncoderModel",) if inner.family == "t5" else ("Model", "Encoder")
    bare = (head for head in inner.record.heads if head.endswith(ends))
    inner.head = next(bare, inner.record.heads[-1])
    inner.ignore("tie_word_embeddings")  # it has no words
    return inner, words


def _is_projected(fields: Fields, words: Fields, wide: int, own: int) -> bool:
    """Tell whether features of the tower are projected to the width of the decoder."""
    stated = words.optional_size("cross_attention_hidden_size")
    if stated not in (None, wide):
        words.note(
            "cross_attention_hidden_size", f"{stated} is not the {wide} features of the encoder"
        )
    if fields.family == "canary":
        problem = f"as many as the {wide} of encoder_config are declared"
        words.require(holds=wide == own, problem=problem, name="hidden_size")
    always = fields.family == "cohere_asr"
    return always or (wide != own and fields.family != "blip" and stated is None)


def _ignore_alone(words: Fields) -> None:
    """Ignore what tells how the decoder is run alone, or beside an encoder of its own."""
    if words.family == "mbart":
        sides = ("layers", "attention_heads", "ffn_dim", "layerdrop")
        words.ignore("num_hidden_layers", "num_attention_heads")
        words.ignore("scale_embedding", "decoder_layerdrop")
        words.ignore("is_encoder_decoder", *(f"encoder_{side}" for side in sides))
    said = words.source.values.get("add_cross_attention") is True
    sees = said or words.family not in _BLIND_ALONE
    problem = "only true is declared: the decoder attends to the other side"
    words.require(holds=sees, problem=problem, name="add_cross_attention")
    words.ignore("is_decoder", "add_cross_attention", "encoder_hidden_size")


_BLIND_ALONE = ("bert", "roberta", "xlm-roberta", "camembert", "bert-generation", "gpt2")
"""Decoders that attend to another side only where their section says so."""


def _remembering(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield the parts of the decoder, whose memory is the image."""
    for part in parts:
        memory = {"memory": "image"} if "memory" in part.inputs else {}
        yield replace(part, takes={**part.takes, **memory})


def part(fields: Fields, shape: Shape) -> Model:  # noqa: ARG001 - as every builder
    """Refuse a section that stands alone.

    Raises:
        InputError: always.
    """
    raise InputError(f"{fields.source.name}: {fields.family} is declared as a part of others")


def _maps(inner: Fields, shape: Shape) -> Model:
    """Declare a Swin transformer whose positions are handed on, row by row."""
    heights, widths = side_lengths(inner, "image_size", 224)
    inner.source = replace(inner.source, values={**inner.source.values, "image_size": heights})
    layers = NETWORKS["swin"](inner)
    layers = {name: layer for name, layer in layers.items() if name != "mean"}
    if inner.family == "donut-swin":
        del layers["last"]
    sizes = {"b": shape.b, "c0": Integer(inner.size("num_channels", 3))}
    inner.refuse()
    sizes |= {"y0": Integer(heights), "x0": Integer(widths)}
    trail = Trail(Maps("image", ("b", "c0", "y0", "x0"), constant=True), sizes)
    Chain(layers).declare("", trail)
    batch, channel, *old = trail.at.axes
    row = trail.new_axis("r", trail.length(old[0]) * trail.length(old[1]))
    result = Maps("rows", (batch, row, channel))
    trail.add(pointwise("rows", f"{trail.at} -> {result}", "copy", laid=" ".join(old)), result)
    return Model(inner.family, (Part("maps", tuple(trail.ops)),), sizes, axes=trail.glossary)


_MAPS = ("swin", "donut-swin")
"""Towers that are networks of maps."""


_OF_RECORDINGS = ("canary_decoder", "cohere_asr_decoder")
_RESTATED: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "trocr": (
        "{} contradicts the {} of the decoder",
        {"num_attention_heads": "h", "num_hidden_layers": "n_dec"},
    ),
    **{
        family: (
            "{}: the {} of hidden_size and num_attention_heads are declared",
            {"head_dim": "q", "num_key_value_heads": "k"},
        )
        for family in _OF_RECORDINGS
    },
}
"""Fields that say again what others say: how another number is refused, and by name the size."""


def _tied(fields: Fields, words: Fields) -> bool:
    """Return whether the head is the token table: the decoder says it, for some the whole."""
    whole, own = (one.flag("tie_word_embeddings", default=True) for one in (fields, words))
    return {"blip": whole or own, "canary": whole}.get(fields.family, own)


def _family(words: Fields, caption: Caption, *, tied: bool) -> tuple[Seq2Seq, Numbers]:
    """Read the decoder: its blocks and head, and their sizes."""
    attended, hidden = (words.drops(name, default=True) for name in caption.dropouts)
    kernel = CORES[words.text("attn_implementation", "eager", tuple(CORES))]
    function = FUNCTIONS[words.text("hidden_act", caption.function, tuple(FUNCTIONS))]
    own = caption.family
    layers, heads, inner = caption.sizes
    e, h = words.size("hidden_size"), words.size(heads)
    problem = f"{h} heads do not divide a hidden_size of {e}"
    words.require(holds=e % h == 0, problem=problem, name=heads)
    wide = () if caption.widening is None else (caption.widening * e,)
    learned = words.flag("use_learned_position_embeddings", default=True)
    tables = own.words.tables if learned else {"position": COMPUTED}
    numbers = {
        "f": words.size(inner, *wide),
        "h": h,
        "k": h,
        "q": e // h,
        "V": words.size("vocab_size"),
        "P": words.size("max_position_embeddings") + caption.offset,
        "n_dec": words.size(layers),
        **({"T": words.size("type_vocab_size", 2)} if "type" in tables else {}),
    }
    problem, restated = _RESTATED.get(words.family, ("", {}))
    for name, size in restated.items():
        stated, own_size = words.size(name, numbers[size]), numbers[size]
        told = problem.format(stated, own_size)
        words.require(holds=stated == own_size, problem=told, name=name)
    normed = words.flag("layernorm_embedding", default=own.words.norm is not None)
    steps = Step.DROP if attended else Step.NONE
    family = replace(
        own,
        words=replace(own.words, tables=tables, norm=Norm.LAYER if normed else None).having(
            Change.DROP, on=hidden
        ),
        attention=replace(own.attention, core=AttentionCore(kernel, steps)),
        branch=own.branch.having(Outcome.DROP, on=hidden),
        perceptron=replace(own.perceptron, function=function),
    )
    head = own.heads[GENERATED]
    alone = words.family in _OF_RECORDINGS  # with one bias
    if alone and not words.flag("attention_bias", default=True):
        family = replace(family, attention=replace(family.attention, bias=Bias.NONE))
    if not (tied or alone) and isinstance(head, Predicted) and Output.BIAS in head.output:
        words.note("tie_word_embeddings", "only true is declared: an untied head has a second bias")
    return family.tied(tied=tied), numbers


def _unpooled(model: Model) -> tuple[Model, str]:
    """Return a tower whose pooler runs though nothing reads it, and the part that is read."""
    path = next(one.path for one in reversed(model.parts) if one.path != "pooler")
    parts = (
        replace(one, ops=unread(one.ops)) if one.path == "pooler" else one for one in model.parts
    )
    return replace(model, parts=tuple(parts)), path


def _joined(taken: str) -> tuple[Op, ...]:
    """Declare the product of what is seen with the width of the decoder."""
    return (einsum("project", f"{taken}, *w[e_v e] + *bias[e] -> y[b r e]"),)
