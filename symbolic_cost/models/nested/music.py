"""Builder of models that write codes of recordings, whose codec is kept and does not run."""

from __future__ import annotations

from dataclasses import replace

from sympy import Integer

from symbolic_cost.models.bound import bound
from symbolic_cost.models.config import imported
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.nested import captions
from symbolic_cost.models.nested.parts import section
from symbolic_cost.models.nested.towers import Tower, kept
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.graph import Model

_ONE = Shape(Integer(1), Integer(1))


def musicgen(fields: Fields, shape: Shape) -> Model:
    """Declare a MusicGen: a T5 reads a text, and a decoder writes half as many frames of codes."""
    codec = codec_of(fields, "audio_encoder", "encodec")
    return beside(captions.build(fields, shape), codec)


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
