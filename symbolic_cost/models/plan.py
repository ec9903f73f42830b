"""Which layers of a configuration slide and which are mixtures of experts."""

from dataclasses import dataclass, replace

from symbolic_cost.models.decoder import Decoder
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.kinds import NEVER, Kind, Sparse, numbered_kinds

_WINDOWED_LAYERS = {"sliding_attention": True, "full_attention": False}
_MOST_LAYERS = 10**5


@dataclass(frozen=True)
class Plan:
    """Kinds of layers, and the numbers of the symbols in their counts."""

    kinds: tuple[Kind, ...]
    numbers: dict[str, int]


def layer_plan(fields: Fields, decoder: Decoder) -> Plan:
    """Read which layers slide and which are sparse, as listed or by the family's rules."""
    layers = fields.size("num_hidden_layers")
    if layers > _MOST_LAYERS:
        problem = f"{layers} layers are more than any model has"
        fields.require(holds=False, problem=problem, name="num_hidden_layers")
        layers = 1
    windows = decoder.windows
    window = None if windows == NEVER else _window(fields, windows.width)
    if windows.period not in {0, 1} and "sliding_window_pattern" in _keys(fields):
        period = fields.size("sliding_window_pattern", fields.size("_sliding_window_pattern", 6))
        windows = replace(windows, period=period)
    sliding = _sliding(fields, replace(decoder, windows=windows), layers, window)
    kinds, numbers = numbered_kinds(windows, sliding, _sparse(fields, decoder, layers))
    return Plan(kinds, numbers | ({} if window is None else {"W": window}))


def _keys(fields: Fields) -> set[str]:
    """Return the keys that are there, without the underscore of those of older versions."""
    return {key.removeprefix("_") for key in fields.source.values}


def _window(fields: Fields, width: int | None) -> int | None:
    given = "sliding_window" in fields.source.values
    return fields.optional_size("sliding_window", *(() if given else (width,)))


def _sliding(fields: Fields, decoder: Decoder, layers: int, window: int | None) -> list[bool]:
    """Return for every layer whether it slides: as listed, or by the family's rule."""
    windows, first = decoder.windows, 0
    if windows.switched:
        switched_on = fields.flag("use_sliding_window", default=False)
        upper = fields.optional_size("max_window_layers", layers) or 0
        first = upper if switched_on else layers
        windows = replace(windows, period=0)
    listed = fields.items("layer_types")
    if listed:
        return _listed(fields, listed, layers, window)
    return [
        window is not None and layer >= first and windows.slides(layer) for layer in range(layers)
    ]


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


def _sparse(fields: Fields, decoder: Decoder, layers: int) -> list[bool]:
    """Return for every layer whether it is a mixture of experts."""
    rule = decoder.sparse
    if rule is Sparse.AFTER_FIRST:
        dense = fields.optional_size("first_k_dense_replace", 0) or 0
        return [layer >= dense for layer in range(layers)]
    if rule is Sparse.EVERY_NTH:
        step = fields.size("decoder_sparse_step", 1)
        listed = fields.items("mlp_only_layers")
        return [layer not in listed and (layer + 1) % step == 0 for layer in range(layers)]
    return [rule is Sparse.ALWAYS] * layers
