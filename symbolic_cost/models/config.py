"""From a config.json to a model: the registry of families and the importer."""

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from symbolic_cost.errors import InputError, UnknownNameError, unknown
from symbolic_cost.models.checked import UNCHECKED, unlike
from symbolic_cost.models.configfile import Document
from symbolic_cost.models.families import FAMILIES, Family
from symbolic_cost.models.fields import Fields, Origin, shortened
from symbolic_cost.models.positions import spare_positions
from symbolic_cost.models.shape import TRAINING, Shape
from symbolic_cost.models.sources import document
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.trained import training_all_but
from symbolic_cost.records import dataclass, field, replace

Source = str | Path | Mapping[str, Any] | Document
"""A path, a configuration, or one that knows where its values stand."""

Builder = Callable[[Fields, Shape], Model]
"""What a family provides: reads its fields, calls `fields.refuse()`, declares the model."""


@dataclass(frozen=True)
class Imported:
    """A model read from a configuration.

    Args:
        architecture: its head, as `architectures` names it.
        model: declared for the shape asked for.
        origins: where every value came from.
        ignored: keys that count for nothing, with what is assumed.
        dtype: of weights that are not stored in few bits.
        spare: rows of the table of positions that no position uses.
    """

    model_type: str
    architecture: str
    model: Model
    origins: Mapping[str, Origin] = field(default_factory=dict)
    ignored: Mapping[str, str] = field(default_factory=dict)
    dtype: str = "bfloat16"
    spare: int = 0


def from_config(source: Source, shape: Shape = TRAINING) -> Model:
    """Declare the model of a config.json, its sizes bound; its notes say what is assumed.

    Args:
        source: a path or the configuration itself.
        shape: what it runs on; symbols b and l, without a cache, unless given.

    Raises:
        InputError: every problem of the configuration, with file, line and key.
    """
    read = imported(source, shape)
    assumed = tuple(f"assumed of {key}: {what}" for key, what in read.ignored.items())
    return replace(read.model, notes=(*read.model.notes, *assumed))


def imported(source: Source, shape: Shape = TRAINING) -> Imported:
    """Declare the model of a config.json, with the provenance of every value.

    Raises:
        InputError: every problem of the configuration, with file, line and key.
    """
    config = _whole(document(source))
    name, family = _family(config)
    if family.whole:
        problem = f"{name} is declared as a section of {family.whole} alone"
        raise InputError(f"{config.where('model_type')}: {problem}")
    named = _architecture(config, family)
    inner = _section(config, family)
    fields = Fields(inner, name, family, named or family.heads[0])
    if family.section:
        # refuse what stands beside the section, unless the head says that only the section counts
        outer = Fields(config, name, family, fields.head)
        outer.ignore(outer.record.section)
        beside = outer.not_understood()
        if named is None and beside:
            raise InputError(beside.values())
        for key in beside:
            fields.assume(key, f"no part of {named}")
    module, _, function = family.builder.partition(":")
    build: Builder = getattr(import_module(f"{__package__}.{module}"), function)
    model = replace(build(fields, shape), name=name, family=name, before=shape.c)
    if family.untrained:
        never = re.compile("|".join(family.untrained))
        model = training_all_but(model, lambda *path: never.fullmatch(".".join(path)) is not None)
    if unlike(name, inner.values):
        model = replace(model, notes=(*model.notes, UNCHECKED))
    dtype = config.values.get("dtype") or config.values.get("torch_dtype")
    wide = dtype if dtype in ("float32", "float16") else "bfloat16"
    model = _stored(config, fields, model, WIDTHS[wide])
    read = (fields.origins, fields.ignored, wide)
    return Imported(name, fields.head, model, *read, spare_positions(fields, model))


def _stored(whole: Document, fields: Fields, model: Model, width: int) -> Model:
    """Return the model with the formats of its weights, where the file says any."""
    own = next((d for d in (whole, fields.source) if d.values.get(_STORED) is not None), None)
    if own is None:
        return model
    from symbolic_cost.models.quantized import quantized  # noqa: PLC0415 - few files say it

    config = own.values[_STORED]
    if not isinstance(config, Mapping):
        raise InputError(f"{own.where(_STORED)}: {shortened(config)}: an object is accepted")
    stored = quantized(model, config, own.where(_STORED), width)
    fields.ignored.pop(_STORED, None)
    if stored.unread:
        fields.assume(_STORED, f"bytes of weights are not counted: {stored.unread}")
    return stored


WIDTHS = {"float32": 4, "float16": 2, "bfloat16": 2}
"""Bytes of weights that are not in few bits."""

_STORED = "quantization_config"
_TIED = "tie_word_embeddings"
_OF_WHOLE = ("model_type", "architectures")
CLASS = "_class_name"
"""Names the family in configurations of diffusers, which have no model_type."""


def _section(config: Document, family: Family) -> Document:
    """Return the part of a configuration that holds the fields."""
    if family.merged:
        return _merged(config, family)
    if not family.section:
        return config
    inner = config.values.get(family.section)
    if not isinstance(inner, Mapping):
        raise InputError(f"{config.where(family.section)}: an object with the fields is accepted")
    return replace(config, values=inner)


def _merged(config: Document, family: Family) -> Document:
    """Return a configuration with the fields of some of its objects beside the others.

    An object says what it holds, whatever stands beside it.
    """
    values = {key: value for key, value in config.values.items() if key not in family.merged}
    for name in family.merged:
        inner = config.values.get(name) or {}
        if not isinstance(inner, Mapping):
            raise InputError(f"{config.where(name)}: an object with the fields is accepted")
        if name == "thinker_config":  # the head is that of its own model
            values.pop(_TIED, None)
        values |= {k: one for k, one in inner.items() if one is not None and k not in _OF_WHOLE}
    return replace(config, values=values)


def _whole(config: Document) -> Document:
    """Return a configuration; a section of another that stands alone is one of its own family."""
    if config.values.get("model_type") in (None, *FAMILIES):
        return config
    sections = import_module(f"{__package__}.nested.parts")  # few files are such
    own: Document = sections.alone(config)
    return own


def _family(config: Document) -> tuple[str, Family]:
    key = "model_type" if config.values.get("model_type") is not None else CLASS
    listed = config.values.get("architectures")
    first = listed[0] if isinstance(listed, list | tuple) and listed else None
    other = str(first if isinstance(first, str) else config.values.get("norm_type"))
    name = config.values.get(key, _OTHERS.get(("", other)))
    if name is None:
        raise InputError(
            f"{config.name}: key 'model_type' is missing: it names the family, one of "
            + ", ".join(sorted(FAMILIES))
        )
    if not isinstance(name, str):
        raise InputError(f"{config.where(key)}: {shortened(name)} is not a family's name")
    name = _OTHERS.get((name, other), name)
    if name not in FAMILIES:
        raise UnknownNameError(f"{config.where(key)}: {unknown(key, name, FAMILIES)}")
    return name, FAMILIES[name]


_OTHERS: Mapping[tuple[str, str], str] = {
    ("git", "Grok1ForCausalLM"): "grok-2",
    ("", "Grok1ModelForCausalLM"): "grok-1",
    ("gpt2", "GPT2LMHeadCustomModel"): "gpt_bigcode",
    ("t5", "ChronosBoltModelForForecasting"): "chronos_bolt",
    ("bert", "JinaBertModel"): "jina_bert",
    ("bert", "JinaBertForMaskedLM"): "jina_bert",
    ("bert", "JinaBertForSequenceClassification"): "jina_bert",
    ("Transformer2DModel", "ada_norm_zero"): "DiTTransformer2DModel",
    ("Transformer2DModel", "ada_norm_single"): "PixArtTransformer2DModel",
}
"""Families whose files bear the name of another, by that and their class or norm."""


def _architecture(config: Document, family: Family) -> str | None:
    """Return the head that the configuration names, or None."""
    listed = config.values.get("architectures")
    if config.values.get("model_type") is None and CLASS in config.values:
        listed = [config.values.get(CLASS)]
    if listed is None or listed == []:
        return None
    if not isinstance(listed, list | tuple) or not isinstance(listed[0], str):
        raise InputError(
            f"{config.where('architectures')}: {shortened(listed)} is not accepted: "
            f'it must be a list of one name, like ["{family.heads[0]}"]'
        )
    if listed[0] not in family.heads:
        raise UnknownNameError(
            f"{config.where('architectures')}: {unknown('architecture', listed[0], family.heads)}"
        )
    return listed[0]
