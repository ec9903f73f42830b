"""Methods that give formats by groups of layers: compressed-tensors and ModelOpt."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from sympy import Integer, Rational

from symbolic_cost.models.converted import Formats, linear, named, undecided
from symbolic_cost.models.quantization_keys import Keys
from symbolic_cost.models.weight_formats import HALF, ONE, SINGLE, Format, Share, Shared, scaled
from symbolic_cost.ops.declare import Model, Op, Operand
from symbolic_cost.ops.stored import Scale, Stored

_SOURCE, _MIXED = "compressed-tensors", "mixed-precision"
_SHAPE = 2 * 8
"""Bytes of the shape beside a packed weight: two integers of 64 bits."""

_LAYOUTS: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "pack-quantized": ("int", (2, 4, 8)),
    "int-quantized": ("int", (4, 8)),
    "float-quantized": ("float", (8,)),
    "nvfp4-pack-quantized": ("float", (4,)),
    "mxfp4-pack-quantized": ("float", (4,)),
    "mxfp8-quantized": ("float", (8,)),
}
"""Kind and bits of the numbers that a layout of compressed-tensors holds."""

_MICROSCALED: Mapping[str, Format] = {
    "mxfp4-pack-quantized": scaled("mxfp4", HALF, 32, ONE, source=_SOURCE),
    "mxfp8-quantized": scaled("mxfp8", ONE, 32, ONE, source=_SOURCE),
}

_ALGORITHMS: Mapping[str, Format] = {
    "FP8": scaled("fp8", ONE, Share.WEIGHT, SINGLE, whole=4, source="modelopt"),
    "FP8_PER_CHANNEL_PER_TOKEN": scaled("fp8", ONE, Share.RESULT, SINGLE, source="modelopt"),
    "FP8_PB_WO": scaled("fp8", ONE, (128, 128), SINGLE, source="modelopt"),
    "NVFP4": scaled("nvfp4", HALF, 16, ONE, whole=4 + 4, source="modelopt"),
}
"""Formats of ModelOpt by algorithm; static ones store a scale of a product's inputs as well."""


def compressed(keys: Keys, model: Model) -> Formats:
    """Return the formats of compressed-tensors, as its compressors lay weights out."""
    keys.costless("quantization_status", "global_compression_ratio", "version")
    layout = keys.among("format", _MIXED, (*_LAYOUTS, _MIXED))
    sparsity = keys.inside("sparsity_config")
    if sparsity is not None and sparsity.config:
        sparsity.among("format", "dense", ("dense",))
    formats = _by_groups(keys, model, lambda group: _compressed(group, layout))
    return _cached(keys, formats, keys.width)


def modelopt(keys: Keys, model: Model) -> Formats:
    """Return the formats of ModelOpt's unified checkpoints, whose scales are 4 bytes wide."""
    keys.costless("producer")
    algorithm = keys.among("quant_algo", None, tuple(_ALGORITHMS))
    chosen = _ALGORITHMS[algorithm or "FP8"]  # of no matter where none is known

    def one(group: Keys) -> Format:
        for name in ("weights", "input_activations"):
            own = group.inside(name)
            if own is not None:
                own.costless("num_bits", "type")
                own.stays_off("dynamic")
                own.among("group_size", 16, (16,))
                own.close()
        return chosen

    if keys.config.get("config_groups") is not None:
        formats = _by_groups(keys, model, one)
    else:
        keys.among("group_size", 16, (16,))
        left = named(keys, model, keys.names("exclude_modules") or ())
        formats = {path: chosen for path, *_ in linear(model) if path not in left}
    cache = keys.among("kv_cache_quant_algo", "", ("", "FP8"))
    return _cached(keys, formats, 4, on=bool(cache))


def _by_groups(keys: Keys, model: Model, read: Callable[[Keys], Format]) -> Formats:
    """Return the formats of all layers that groups mean: classes first, then those with names."""
    ignored = keys.names("ignore") or ()
    left = named(keys, model, ignored)
    groups = keys.inside("config_groups")
    classes, special = dict[str, Format](), dict[str, Format]()
    for group in () if groups is None else groups.every():
        chosen, targets = read(group), group.names("targets") or ()
        if "Linear" in targets:
            classes |= dict.fromkeys((path for path, *_ in linear(model)), chosen)
        names = [name for name in targets if name != "Linear"]
        special |= dict.fromkeys(named(group, model, names), chosen)
        group.close()
    if classes:
        undecided(keys, model, ignored)
    formats = {path: one for path, one in (classes | special).items() if path not in left}
    if not formats:
        keys.leave("config_groups of no layer")
    return formats


def _compressed(group: Keys, layout: str) -> Format:
    """Return the format of a group of compressed-tensors."""
    own = group.among("format", layout, (layout, *_LAYOUTS))
    weights = group.inside("weights")
    if own not in _LAYOUTS or weights is None:
        group.leave("a group without a format of weights")
        return _ALGORITHMS["FP8"]
    kind, widths = _LAYOUTS[own]
    weights.among("type", kind, (kind,))
    bits = weights.among("num_bits", widths[-1], widths)
    weights.stays_off("dynamic")
    weights.costless("observer", "observer_kwargs", "scale_dtype", "zp_dtype")
    weights.among("actorder", "", ("", "weight", "static", "dynamic"))
    offset, shared = not weights.flag("symmetric", default=True), _shared(weights)
    inputs = _inputs(group)
    weights.close()
    if own in _MICROSCALED:
        return _MICROSCALED[own]
    if own.startswith("nvfp4"):
        given = group.config.get("input_activations") is not None
        return scaled("nvfp4", HALF, 16, ONE, whole=4 + 4 * given, source=_SOURCE)
    packed = own == "pack-quantized"
    name, size = "fp8" if kind == "float" else f"int{bits}", Rational(bits, 8) if packed else ONE
    return scaled(
        *(name, size, shared),
        Integer(group.width),
        zero=ONE if offset and not packed else Integer(0),
        packed=bits if offset and packed else 0,
        whole=inputs + (_SHAPE if packed else 0),
        source=_SOURCE,
    )


def _shared(weights: Keys) -> Shared:
    """Read what shares a scale."""
    size = weights.config.get("group_size")
    usual = "tensor" if size is None else "group"
    strategies = ("tensor", "channel", "group", "block", "tensor_group")
    strategy = weights.among("strategy", usual, strategies)
    sides = weights.sizes("block_structure")
    group = -1 if size is None else weights.group("group_size", -1)
    weights.costless("group_size")
    if strategy == "tensor":
        return Share.WEIGHT
    if strategy == "block" and sides is not None:
        return sides
    return Share.RESULT if strategy == "channel" or group < 0 else group


def _inputs(group: Keys) -> int:
    """Read what is stored of the scales of a product's inputs [byte]."""
    group.among("output_activations", None, (None,))
    own = group.inside("input_activations")
    if own is None:
        return 0
    own.costless("num_bits", "type", "group_size", "observer", "observer_kwargs", "actorder")
    own.costless("block_structure", "scale_dtype", "zp_dtype")
    offset = not own.flag("symmetric", default=True)
    dynamic = own.among("dynamic", default=False, accepted=(False, True, "local"))
    usual = ("tensor",) if dynamic is False else ("tensor", "token", "group", "tensor_group")
    own.among("strategy", "tensor", usual)
    own.close()
    return 0 if dynamic else group.width + offset


def _cached(keys: Keys, formats: Formats, size: int, *, on: bool = False) -> Formats:
    """Return formats with the scales of keys and values that are cached in few bits.

    They stand beside the products that make these.
    """
    scheme = keys.inside("kv_cache_scheme")
    if scheme is None and not on:
        return formats
    if scheme is not None and scheme.config.get("dynamic"):
        return formats
    makers = {"k": 1, "v": 1, "qkv": 2}
    last = {path: path.rpartition(".")[2] for path in formats}
    scales = {path: makers[name] * size for path, name in last.items() if name in makers}
    if not scales:
        keys.leave("scales of cached latents")
    return {**formats, **{path: _beside(formats[path], own) for path, own in scales.items()}}


def _beside(plain: Format, size: int) -> Format:
    """Return a format with so many bytes more for a weight."""

    def of(op: Op, weight: Operand) -> Stored:
        own = plain(op, weight)
        every = (tuple(range(len(weight.axes))), None)
        return replace(own, scales=(*own.scales, Scale(Integer(size), (every,))))

    return of
