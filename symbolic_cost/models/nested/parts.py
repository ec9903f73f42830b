"""Sections of models of several parts, each read by its own family."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sympy import Integer

from symbolic_cost.errors import InputError
from symbolic_cost.models.build import Fields, Model, Shape, bound
from symbolic_cost.models.config import imported
from symbolic_cost.models.configfile import Document
from symbolic_cost.models.decoders.config import logits_of
from symbolic_cost.models.decoders.families import DECODERS
from symbolic_cost.models.families import FAMILIES
from symbolic_cost.models.nested.families import TEXTS, Nested, Ties
from symbolic_cost.models.nested.sections import GLM_TOWERS, glm, large
from symbolic_cost.reading import package_data

_TABLES: Mapping[str, Mapping[str, Any]] = package_data("models/nested.toml")
_DEFAULTS = {name: _TABLES.get(own.get("like", ""), own) for name, own in _TABLES.items()}

_TOWERS, _TIED = "vision.config:build", "tie_word_embeddings"

LATER = " of the language model"
BESIDE = f"hidden_size{LATER}"
"""Width that a tower's section gives beside its own, as `embed_dim`."""


def section(fields: Fields, key: str, kind: str) -> Fields:
    """Return the fields of a section, read by its own family.

    Args:
        fields: of the whole.
        key: of the section.
        kind: model_type unless the section names it.

    Raises:
        InputError: the section is no object, or of no family that is known.
    """
    values = fields.source.values.get(key)
    fields.ignore(key)
    if not isinstance(values, Mapping):
        raise InputError(f"{fields.source.where(key)}: an object with the fields is accepted")
    name = _section_type(fields, key, values) or kind
    name = kind if name == fields.family else name  # a section that is named like the whole
    if name not in FAMILIES:
        raise InputError(
            f"{fields.source.where(key)}: {name!r} is no family of towers that is declared"
        )
    record = FAMILIES[name]
    values = {**_DEFAULTS.get(name, {}), **values}
    towers = record.builder == _TOWERS
    if (
        "embed_dim" in values and towers
    ):  # beside it, hidden_size is the width of the language model
        values[BESIDE] = values.get("hidden_size")
        values["hidden_size"] = values.pop("embed_dim")
    if name in GLM_TOWERS:
        values = glm(values)
    if fields.family == "phi3_v":
        values = large(fields, values)
    own = replace(fields.source, values=values)
    return Fields(own, name, record, record.heads[0])


def alone(config: Document) -> Document:
    """Return the section of a language model, given as a file of its own, as its family reads it.

    Its class is a model without a head, as `Qwen2VLTextModel`.
    """
    kind, listed = config.values["model_type"], config.values.get("architectures") or ["TextModel"]
    name = TEXTS.get(kind) if isinstance(kind, str) else None
    if name is None or not str(listed[0]).endswith("TextModel"):
        return config
    head = _head(name, bare=True)
    usual = {**_DEFAULTS.get(name, {}), **_DEFAULTS.get(kind, {})}
    own = {"model_type": name, "architectures": [head]}
    return replace(config, values={**usual, **config.values, **own})


def _section_type(fields: Fields, key: str, values: Mapping[str, Any]) -> str:
    """Return the model_type of a section; empty where it says none."""
    name = values.get("model_type") or ""
    if not isinstance(name, str):
        raise InputError(f"{fields.source.where(key)}: model_type: a family's name is accepted")
    return name


def text_of(fields: Fields, family: Nested, shape: Shape) -> Model:
    """Return the language model: that of its section, or of the whole where there is none."""
    key = family.sections[1]
    values = fields.source.values.get(key)
    fields.ignore(key, "hidden_size")
    if values is None and "num_hidden_layers" in fields.source.values:
        values = _flat(fields, family)
    if not isinstance(values, Mapping):
        told = (
            "an object with the fields is accepted, or num_hidden_layers and the others beside it"
        )
        raise InputError(f"{fields.source.where(key)}: {told}")
    own_type = _section_type(fields, key, values) or family.text
    name = TEXTS.get(own_type, own_type)
    if name not in FAMILIES:
        raise InputError(f"{fields.source.where(key)}: {own_type!r} is no declared language model")
    bare = fields.head.endswith("Model") and fields.head not in fields.record.headed
    tied = {_TIED: _tied(fields, family, name, values)}
    width = values.get("head_dim")
    if not (width is None or (isinstance(width, int) and width > 0 and width % 2 == 0)):
        fields.note("head_dim", "a head_dim that is rotated in pairs is accepted")
    own = {**_DEFAULTS.get(name, {}), **_DEFAULTS.get(own_type, {}), **values, **tied}
    own |= {"model_type": name, "architectures": [_head(name, bare=bare)]}
    for name in ("num_image_tokens", "is_composition"):
        own.pop(name, None)
    if own.get("use_bidirectional_attention") not in ("all", True):
        own.pop("use_bidirectional_attention", None)
    read = imported(replace(fields.source, values=own), replace(shape, i=Integer(0)))
    for origin, value in read.origins.items():
        fields.origins.setdefault(f"{key}.{origin}", value)
    return bound(read.model)


def _head(name: str, *, bare: bool) -> str:
    """Return the class of a family's language model: the first that has a head, or has none."""
    heads = FAMILIES[name].heads
    return next((h for h in heads if bool(re.search("(?<!Head)Model$", h)) == bare), heads[0])


def _flat(fields: Fields, family: Nested) -> dict[str, Any]:
    own = {
        key: value
        for key, value in fields.source.values.items()
        if not key.endswith("_token_id") and not isinstance(value, Mapping) and key != "model_type"
    }
    own = {key: value for key, value in own.items() if not re.fullmatch(family.beside, key)}
    fields.ignore(*own)
    fields.ignore("rope_scaling", "rope_parameters")
    return own | {"model_type": family.text}


def _tied(fields: Fields, family: Nested, text: str, values: Mapping[str, Any]) -> bool:
    """Return whether the head is the token table, as the class of the whole has it.

    A section that contradicts what the class of the whole assumes is not understood.
    """
    whole, said = fields.flag(_TIED, default=family.tied), values.get(_TIED)
    own = _tied_alone(text) if said is None else said is True
    silent = fields.source.values.get(_TIED) is None
    assumed = family.ties is Ties.WHOLE and silent and said is not None
    if own != whole and (assumed or family.ties is Ties.ALIKE):
        fields.note(_TIED, f"{own} in the section, {whole} for the whole: give both alike")
    return {
        Ties.WHOLE: whole,
        Ties.ALIKE: whole,
        Ties.GIVEN: own if silent else whole,
        Ties.EITHER: whole or own,
        Ties.OWN: own,
        Ties.NEVER: False,
    }[family.ties]


def _tied_alone(text: str) -> bool:
    """Return whether the head of a language model is the token table unless it says."""
    return text not in DECODERS or logits_of(DECODERS[text]).weight == "@token"
