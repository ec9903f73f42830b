"""What declares the model that is served."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from symbolic_cost.errors import InputError, looked_up
from symbolic_cost.layers.latent import Expansion, LatentAttention
from symbolic_cost.models.catalog import CATALOG, Preset
from symbolic_cost.models.config import from_config
from symbolic_cost.models.decoder_config import ABSORBED
from symbolic_cost.models.decoder_families import DECODERS, symbolic
from symbolic_cost.models.inference import Declare
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.sources import document
from symbolic_cost.ops.graph import Model


def declaring(model: str) -> tuple[Declare, Declare | None]:
    """Return what declares a named model or a config.json, and how it decodes if otherwise.

    Latent attention decodes on its latents, whose keys and values are never expanded.

    Raises:
        UnknownNameError: no such model.
        InputError: every problem of the configuration.
    """
    if not model.endswith(".json"):
        preset = looked_up("model", model, CATALOG)
        _refuse_open_sizes(preset.model())
        return preset.model, _on_latents(preset)
    own = document(model)
    from_config(own)  # refuses what it must, once
    absorbed = replace(own, values={**own.values, "attn_implementation": ABSORBED})
    try:
        from_config(absorbed)
    except InputError:  # it has no latents
        return partial(from_config, own), None
    return partial(from_config, own), partial(from_config, absorbed)


def _refuse_open_sizes(model: Model) -> None:
    """Refuse a family whose sizes are symbols.

    Raises:
        InputError: the sizes without numbers.
    """
    used = set().union(*(model.sizes[axis].free_symbols for axis in model.axis_names))
    names = {symbol.name for symbol in used} - model.bindings.keys() - {"b", "l", "c"}
    if names:
        raise InputError(
            f"model {model.name}: {', '.join(sorted(names))} have no number: name a model that has "
            "sizes, or a config.json"
        )


def _on_latents(preset: Preset) -> Declare | None:
    """Return what declares a preset whose latents are never expanded; None without latents."""
    decoder = DECODERS.get(preset.family)
    if decoder is None or not isinstance(decoder.attention, LatentAttention):
        return None
    absorbed = decoder.attended(expansion=Expansion.NEVER)

    def declare(shape: Shape) -> Model:
        model = symbolic(preset.family, shape, decoder=absorbed)
        return replace(model, name=preset.name, bindings=dict(preset.bindings))

    return declare
