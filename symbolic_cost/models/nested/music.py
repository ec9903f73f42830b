"""Builders of models that write codes of recordings, or what they say; codecs are kept alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from sympy import Expr, Integer

from symbolic_cost.axes import axes
from symbolic_cost.layers import codebooks
from symbolic_cost.layers.codebooks import Codes
from symbolic_cost.layers.embeddings import Change
from symbolic_cost.models.bound import bound
from symbolic_cost.models.config import imported
from symbolic_cost.models.families import FAMILIES
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.nested import captions
from symbolic_cost.models.nested.parts import section
from symbolic_cost.models.nested.towers import Tower, kept
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.part import Part
from symbolic_cost.ops.unread import stored
from symbolic_cost.symbols import exact

_ONE = Shape(Integer(1), Integer(1))


def musicgen(fields: Fields, shape: Shape) -> Model:
    """Declare a MusicGen: a T5 reads a text, and a decoder writes half as many frames of codes."""
    codec = codec_of(fields, "audio_encoder", "encodec")
    return beside(captions.build(fields, shape), codec)


def cohere_asr(fields: Fields, shape: Shape) -> Model:
    """Declare Cohere's transcriber, whose decoder has the fields beside encoder_config."""
    every, encoder = fields.source.values, "encoder_config"
    words = {key: value for key, value in every.items() if key not in (encoder, "model_type")}
    own = every.get(encoder, {})
    heard = {**_ENCODER, **own} if isinstance(own, Mapping) else own
    values = {"decoder_config": words, encoder: heard}
    fields.source = replace(fields.source, values=values)
    return captions.build(fields, shape)


def csm(fields: Fields, shape: Shape) -> Model:
    """Declare a CSM on frames of codes: a Llama that tells the first code of the next one.

    The narrow decoder of the other codes runs for every frame that is written, which is not
    declared: its weights are there.
    """
    e, words = fields.size("hidden_size"), fields.size("vocab_size")
    books = fields.size("num_codebooks", 32)
    depth, further = _depth(fields, books, words, e)
    own = ("text_vocab_size", "num_codebooks", "tie_codebooks_embeddings", "depth_decoder_config")
    inner = fields.size("intermediate_size", 8192)
    sizes = {"n_c": books, "v_in": words}
    model = _spoken(fields, shape, "llama", sizes, own=own, inner=inner)
    text = stored("text", w="v_text e")
    weights = Part("depth.kept", (text, *depth.parts[-1].ops))
    further |= {"v_text": exact(fields.size("text_vocab_size", 128256)), **depth.sizes}
    known = {**depth.axes, **axes("v_text vocabulary, n_book whole, v_d vocabulary")}
    parts = (weights, *depth.parts[:-1])
    return beside(model, replace(depth, parts=parts, sizes=further, axes=known))


def kyutai(fields: Fields, shape: Shape) -> Model:
    """Declare Kyutai's speech-to-text: frames of codes and a token each, in one table."""
    books, codes = fields.size("num_codebooks", 32), fields.size("codebook_vocab_size", 2049)
    rows = fields.size("vocab_size") + books * codes + 1
    tied = fields.flag("tie_word_embeddings", default=False)
    fields.require(holds=not tied, problem="only false is declared", name="tie_word_embeddings")
    wide = fields.size("ffn_dim", 11264)
    fields.require(holds=wide % 2 == 0, problem="an even width is accepted", name="ffn_dim")
    own = ("num_codebooks", "codebook_vocab_size", "ffn_dim")
    sizes = {"n_c": books + 1, "v_in": rows}
    return _spoken(fields, shape, "mistral", sizes, own=own, inner=wide // 2)


def _spoken(
    fields: Fields,
    shape: Shape,
    kind: str,
    sizes: Mapping[str, int],
    *,
    own: tuple[str, ...],
    inner: int,
) -> Model:
    """Declare a decoder of frames of codes, by the family of its blocks."""
    codec = codec_of(fields, "codec_config", "mimi")
    names = ("hidden_size", "vocab_size", "num_hidden_layers", "num_attention_heads")
    read = {name: fields.size(name) for name in names}
    heads = fields.size("num_key_value_heads", read["num_attention_heads"])
    fields.ignore(*own, *fields.source.values)
    costless = re.compile("|".join((*fields.record.costless, *own, "codec_config")))
    values = {k: v for k, v in fields.source.values.items() if not costless.fullmatch(k)}
    values |= {**read, "num_key_value_heads": heads, "tie_word_embeddings": False}
    fields.refuse()
    head = next(one for one in FAMILIES[kind].heads if one.endswith("ForCausalLM"))
    values |= {"model_type": kind, "architectures": [head], "intermediate_size": inner}
    model = bound(imported(replace(fields.source, values=values), shape).model)
    first, *rest = model.parts
    one = kind == "mistral"
    words = Codes(tables={}, norm=None, changes=Change.NONE, table="v_in" if one else "n_c v_in")
    parts = (replace(first, ops=words.ops()), *rest)
    known = {axis: exact(size) for axis, size in sizes.items()}
    spoken = replace(
        model,
        parts=parts,
        sizes={**model.sizes, **known},
        axes={**model.axes, **codebooks.AXES},
        source="defossez-2024",
    )
    return beside(spoken, codec)


def _depth(fields: Fields, books: int, words: int, e: int) -> tuple[Tower, dict[str, Expr]]:
    """Return the weights of the decoder of the other codes of a frame."""
    own = fields.part("depth_decoder_config") or fields.holding({})
    own.text("model_type", _DEPTH_TYPE, (_DEPTH_TYPE,))
    values = {k: v for k, v in own.source.values.items() if not k.endswith("token_id")}
    number, wide = values.pop("num_codebooks", 32), values.pop("backbone_hidden_size", 2048)
    tied = fields.flag("tie_codebooks_embeddings", default=True)
    alike = (number, wide, values.get("vocab_size", 2051)) == (books, e, words)
    problem = (
        f"num_codebooks = {books}, vocab_size = {words} and hidden_size = {e} of the whole, as "
        "backbone_hidden_size, with tie_codebooks_embeddings, are declared"
    )
    fields.require(holds=alike and tied, problem=problem, name="depth_decoder_config")
    fields.assume("depth_decoder_config", "the first code of a frame alone: the others are given")
    head = {"model_type": "llama", "architectures": ["LlamaModel"]}
    usual = {**_DEPTH, **values, **head}
    model = bound(imported(replace(own.source, values=usual), _ONE).model)
    depth = kept(replace(model, parts=model.parts[1:]), "depth")
    joins = stored("joins", project="e e_depth", heads="n_book e_depth v_d")
    sizes = {"n_book": exact(books - 1), "v_d": exact(words)}
    return replace(depth, parts=(*depth.parts, Part("depth.joins", (joins,)))), sizes


_ENCODER = {
    "hidden_size": 1280,
    "num_hidden_layers": 48,
    "intermediate_size": 5120,
    "num_mel_bins": 128,
    "scale_input": False,
    **dict.fromkeys(("dropout", "activation_dropout", "attention_dropout"), 0),
}
"""What the section of Cohere's transcriber leaves out."""

_DEPTH_TYPE = "csm_depth_decoder_model"
_DEPTH = {
    "vocab_size": 2051,
    "hidden_size": 1024,
    "intermediate_size": 8192,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "tie_word_embeddings": False,
}
"""What a section of a CSM leaves out."""


def codec_of(fields: Fields, key: str, kind: str) -> Tower:
    """Return the weights of the codec of a section.

    Raises:
        InputError: every problem of the section.
    """
    own = section(fields, key, kind)
    fields.assume(key, "codes are given: it has weights and no work")
    head = {"model_type": own.family, "architectures": [own.head]}
    read = imported(replace(own.source, values={**own.source.values, **head}), _ONE)
    return kept(bound(read.model), "codec")


def beside(model: Model, codec: Tower) -> Model:
    """Return a model with the weights of a codec."""
    parts, sizes = (*codec.parts, *model.parts), {**model.sizes, **codec.sizes}
    return replace(model, parts=parts, sizes=sizes, axes={**model.axes, **codec.axes})
