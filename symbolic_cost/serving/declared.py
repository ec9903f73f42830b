"""What declares the model that is served."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from symbolic_cost.errors import InputError, UnknownNameError, quote, unknown
from symbolic_cost.layers.latent import Expansion, LatentAttention
from symbolic_cost.models.catalog import CATALOG, Preset
from symbolic_cost.models.config import from_config
from symbolic_cost.models.configfile import Document, is_elsewhere, is_folder
from symbolic_cost.models.decoders.config import ABSORBED
from symbolic_cost.models.decoders.decoder import Decoder
from symbolic_cost.models.decoders.families import DECODERS, symbolic
from symbolic_cost.models.inference import Declare
from symbolic_cost.models.published_size import configured
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.sources import document
from symbolic_cost.models.traced import is_graph
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.part import Place

NEXT = "mtp"
"""In place of a drafting model: one more block of the model, which drafts the token after next."""


def declaring(model: str) -> tuple[Declare, Declare | None]:
    """Return what declares a named model or a config.json, and how it decodes if otherwise.

    Latent attention decodes on its latents, whose keys and values are never expanded.

    Raises:
        UnknownNameError: no such model.
        InputError: every problem of the configuration; a graph, which has its own positions.
    """
    own = _configuration(model)
    if own is not None:
        return _configured(own)
    preset = _preset(model)
    _refuse_open_sizes(preset.model())
    return preset.model, _on_latents(preset)


def _configuration(model: str) -> Document | None:
    """Return the configuration that a model is read from; none of one declared by name."""
    if is_graph(model):
        raise InputError(
            f"model {quote(model)}: a graph runs on the tokens that it was exported with, and an "
            "engine on others: a name or a config.json of the model is accepted"
        )
    path = model.endswith(".json") or is_elsewhere(model) or is_folder(model)
    return document(model) if path or model in configured() else None


def _preset(model: str) -> Preset:
    if model not in CATALOG:
        raise UnknownNameError(unknown("model", model, [*CATALOG, *configured()]))
    return CATALOG[model]


def _configured(own: Document) -> tuple[Declare, Declare | None]:
    """Return what declares a configuration, and how it decodes if otherwise."""
    from_config(own)  # refuses what it must, once
    kernel, text = {"attn_implementation": ABSORBED}, own.values.get("text_config")
    whole = {"text_config": {**text, **kernel}} if isinstance(text, Mapping) else kernel
    absorbed = replace(own, values={**own.values, **whole})
    try:
        from_config(absorbed)
    except InputError:  # it has no latents
        return partial(from_config, own), None
    return partial(from_config, own), partial(from_config, absorbed)


def predicting(model: str) -> tuple[Declare, Declare | None]:
    """Return what declares the block and head that draft a model's next token, as `declaring` does.

    They join the token's embedding and the last state of the model by two products, then one more
    block like its last and its head: DeepSeek-V3's head for multi-token prediction, and about an
    EAGLE head of any decoder.

    Raises:
        InputError: the model is no decoder that can be declared so.

    Source: deepseek-2024, section 2.2.
    """
    refusal = InputError(
        f"draft_model = {NEXT!r}: {quote(model)} has no block for further tokens: decoders by name "
        "and configurations of deepseek_v3 have one; name a model that drafts"
    )
    own = _configuration(model)
    if own is not None:
        heads = [f"{name}NextN" for name in own.values.get("architectures") or ()]
        try:
            both = _configured(replace(own, values={**own.values, "architectures": heads}))
        except InputError:
            raise refusal from None
    else:
        preset = _preset(model)
        if preset.family not in DECODERS:
            raise refusal
        both = _predicting(preset, None), _on_latents(preset, 1)
    declare, latent = both
    return partial(_head, declare), None if latent is None else partial(_head, latent)


def _head(declare: Declare, shape: Shape) -> Model:
    """Return the part of a model that predicts further tokens, its block one that stages hold."""
    whole = declare(shape)
    parts = [p for p in whole.parts if p.path == "rotation" or p.path.startswith(_PREDICTING)]
    own = whole.submodel(parts)
    placed = (replace(p, place=Place.BLOCK) if p.path.endswith("block") else p for p in own.parts)
    return replace(own, parts=tuple(placed))


_PREDICTING = "prediction."


def _refuse_open_sizes(model: Model) -> None:
    """Refuse a family whose sizes are symbols."""
    used = set().union(*(model.sizes[axis].free_symbols for axis in model.axis_names))
    names = {symbol.name for symbol in used} - model.bindings.keys() - {"b", "l", "c"}
    if names:
        raise InputError(
            f"model {model.name}: {', '.join(sorted(names))} have no number: name a model that has "
            "sizes, or a config.json"
        )


def _on_latents(preset: Preset, predicted: int = 0) -> Declare | None:
    """Return what declares a preset whose latents are never expanded; None without latents."""
    decoder = DECODERS.get(preset.family)
    if decoder is None or not isinstance(decoder.attention, LatentAttention):
        return None
    return _predicting(preset, decoder.attended(expansion=Expansion.NEVER), predicted)


def _predicting(preset: Preset, decoder: Decoder | None, predicted: int = 1) -> Declare:
    def declare(shape: Shape) -> Model:
        model = symbolic(preset.family, shape, decoder=decoder, predicted=predicted)
        return replace(
            model, name=preset.name, bindings=dict(preset.bindings), routed=preset.routed
        )

    return declare
