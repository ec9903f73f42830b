"""Which layers of a decoder slide and which are mixtures of experts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from symbolic_cost.models.fields import Fields
from symbolic_cost.models.traits import Sparse, Traits, Window

_WINDOWED_LAYERS = {"sliding_attention": True, "full_attention": False}


@dataclass(frozen=True)
class Plan:
    """Which layers slide or are sparse: counts by (sliding, sparse), and the window."""

    kinds: Counter[tuple[bool, bool]]
    window: int | None


def layer_plan(fields: Fields, traits: Traits) -> Plan:
    """Read which layers slide and which are sparse, as listed or by the family's rules."""
    layers = fields.size("num_hidden_layers")
    if layers > _MOST_LAYERS:
        problem = f"{layers} layers are more than any model has"
        fields.require(holds=False, problem=problem, name="num_hidden_layers")
        layers = 1
    window = _window(fields, traits)
    sliding = _sliding(fields, traits, layers, window)
    sparse = _sparse(fields, traits, layers)
    return Plan(Counter(zip(sliding, sparse, strict=True)), window)


_MOST_LAYERS = 10**5


def _window(fields: Fields, traits: Traits) -> int | None:
    if traits.window is Window.NEVER:
        return None
    if "sliding_window" in fields.source.values:
        return fields.optional_size("sliding_window")
    return fields.optional_size("sliding_window", traits.windowed)


def _sliding(fields: Fields, traits: Traits, layers: int, window: int | None) -> list[bool]:
    """Return for every layer whether it slides: as listed, or by the family's rule."""
    rule = traits.window
    upper = layers
    if rule is Window.UPPER:
        switched_on = fields.flag("use_sliding_window", default=False)
        first = fields.optional_size("max_window_layers", layers) or 0
        upper = first if switched_on else layers
    nth = 0
    if rule is Window.ALL_BUT_NTH:
        nth = fields.size("sliding_window_pattern", fields.size("_sliding_window_pattern", 6))
    given = fields.items("layer_types")
    if given:
        return _listed(fields, given, layers, window)
    chosen = {
        Window.NEVER: range(0),
        Window.ALWAYS: range(layers),
        Window.EVEN: range(0, layers, 2),
        Window.ALL_BUT_NTH: [layer for layer in range(layers) if nth and (layer + 1) % nth],
        Window.UPPER: range(upper, layers),
    }[rule]
    return [window is not None and layer in chosen for layer in range(layers)]


def _listed(
    fields: Fields, given: tuple[object, ...], layers: int, window: int | None
) -> list[bool]:
    strange = [kind for kind in given if kind not in _WINDOWED_LAYERS]
    fields.require(
        holds=not strange,
        problem=f"{strange[:1]} is no kind of layer: {' or '.join(_WINDOWED_LAYERS)} is accepted",
        name="layer_types",
    )
    fields.require(
        holds=len(given) == layers,
        problem=f"{len(given)} entries contradict num_hidden_layers = {layers}",
        name="layer_types",
        other="num_hidden_layers",
    )
    slides = "sliding_attention" in given
    fields.require(
        holds=window is not None or not slides,
        problem="sliding layers need a sliding_window",
        name="layer_types",
    )
    listed = [kind == "sliding_attention" for kind in given[:layers]]
    return listed + [False] * (layers - len(listed))


def _sparse(fields: Fields, traits: Traits, layers: int) -> list[bool]:
    """Return for every layer whether it is a mixture of experts."""
    rule = traits.sparse
    if rule is Sparse.AFTER_FIRST:
        dense = fields.optional_size("first_k_dense_replace", 0) or 0
        return [layer >= dense for layer in range(layers)]
    if rule is Sparse.EVERY_NTH:
        step = fields.size("decoder_sparse_step", 1)
        listed = fields.items("mlp_only_layers")
        return [layer not in listed and (layer + 1) % step == 0 for layer in range(layers)]
    return [rule is Sparse.ALWAYS] * layers
