"""Which layers of a configuration slide and which are mixtures of experts."""

from symbolic_cost.models.decoders.decoder import Decoder, Habit
from symbolic_cost.models.decoders.kinds import (
    CHUNKED,
    DENSE,
    EXPERTS,
    FULL,
    MOST_LAYERS,
    NEVER,
    SLIDES,
    UNTURNED,
    Kind,
    Sparse,
    numbered_kinds,
)
from symbolic_cost.models.fields import Fields
from symbolic_cost.records import dataclass, replace


@dataclass(frozen=True)
class Plan:
    """Kinds of layers, and the numbers of the symbols in their counts."""

    kinds: tuple[Kind, ...]
    numbers: dict[str, int]


def layer_plan(fields: Fields, decoder: Decoder) -> Plan:
    """Read which layers slide and which are sparse, as listed or by the family's rules."""
    entries = (fields.source.values.get(key) for key in decoder.reads.counts)
    counted = [len(entry) for entry in entries if isinstance(entry, list | str) and entry]
    layers = fields.size("num_hidden_layers", *counted[:1])
    if layers > MOST_LAYERS:
        problem = f"{layers} layers are more than any model has"
        fields.require(holds=False, problem=problem, name="num_hidden_layers")
        layers = 1
    if decoder.reads.kinds is not None:
        mixers, followers = decoder.reads.kinds(fields, layers)
        followers = followers or perceptrons(fields, decoder, layers)
        # Lists of another length are refused with the other problems.
        mixers = (mixers + [FULL] * layers)[:layers]
        followers = (followers + [DENSE] * layers)[:layers]
        kinds, numbers = numbered_kinds(decoder.windows, mixers, followers)
        chunk = {"W": fields.size("attention_chunk_size", 8192)} if CHUNKED in mixers else {}
        if chunk == {"W": 1}:
            fields.note("attention_chunk_size", "1 is no chunk")
        if SLIDES in mixers:
            _window(fields, None)
            chunk["W"] = fields.size("sliding_window", *filter(None, (decoder.windows.width,)))
        return Plan(kinds, numbers | chunk)
    windows = decoder.windows
    window = None if windows == NEVER else _window(fields, windows.width)
    window = window // 2 + 1 if window and Habit.HALVE in decoder.habits else window
    if windows.period not in {0, 1} and fields.has("sliding_window_pattern"):
        windows = replace(windows, period=_period(fields))
    mixers = _mixers(fields, replace(decoder, windows=windows), layers, window)
    mixers = [decoder.renamed.get(mixer, mixer) for mixer in mixers]
    kinds, numbers = numbered_kinds(windows, mixers, perceptrons(fields, decoder, layers))
    return Plan(kinds, numbers | ({} if window is None else {"W": window}))


def _period(fields: Fields) -> int:
    """Read of how many layers the last is full: a number, or as in "LLLG", which is 4."""
    pattern = fields.source.values.get("sliding_window_pattern")
    if not isinstance(pattern, str):
        return fields.size("sliding_window_pattern", 6)
    fields.ignore("sliding_window_pattern")
    fields.require(
        holds=bool(pattern) and pattern == "L" * (len(pattern) - 1) + "G",
        problem="layers that slide and a last that is full are accepted, as LLLG",
        name="sliding_window_pattern",
    )
    return max(len(pattern), 1)


def _window(fields: Fields, width: int | None) -> int | None:
    stated = "sliding_window" in fields.source.values
    window = fields.optional_size("sliding_window", *(() if stated else (width,)))
    # A cache of no keys at all is one of every key, as PyTorch slices it.
    fields.require(holds=window != 1, problem="1 is no window", name="sliding_window")
    return window


def _mixers(fields: Fields, decoder: Decoder, layers: int, window: int | None) -> list[str]:
    windows, first = decoder.windows, 0
    if windows.switched:
        switched_on = fields.flag("use_sliding_window", default=False)
        upper = fields.optional_size("max_window_layers", layers) or 0
        first = upper if switched_on else layers
        windows = replace(windows, period=0)
    listed = listed_kinds(fields, decoder, layers)
    if listed:
        if window is None and SLIDES in listed:
            fields.note("layer_types", "sliding layers need a sliding_window")
        return listed
    slides = (window is not None and n >= first and windows.slides(n) for n in range(layers))
    return [SLIDES if slid else FULL for slid in slides]


def listed_kinds(fields: Fields, decoder: Decoder, layers: int) -> list[str]:
    """Return the mixers that `layer_types` lists, by usual names; none without a list."""
    entries = fields.items("layer_types")
    if not entries:
        return []
    usual = {FULL: FULL, SLIDES: SLIDES} if decoder.windows != NEVER else {FULL: FULL}
    accepted = {**usual, **{name: name for name in (*decoder.mixers, *decoder.variants)}}
    accepted |= {name: name for name in decoder.renamed}
    strange = [kind for kind in entries if not isinstance(kind, str) or kind not in accepted]
    if strange:
        fields.note(
            "layer_types", f"{strange[:1]} is no kind of layer: {' or '.join(accepted)} is accepted"
        )
    fields.require(
        holds=len(entries) == layers,
        problem=f"{len(entries)} entries contradict num_hidden_layers = {layers}",
        name="layer_types",
        other="num_hidden_layers",
    )
    listed = [accepted.get(kind, FULL) if isinstance(kind, str) else FULL for kind in entries]
    return listed[:layers] + [FULL] * (layers - len(listed))


def unrotated(fields: Fields, layers: int, period: int) -> list[str]:
    """Return full attention, but without rotation where `no_rope_layers` has a zero.

    Every so many layers, counted from one, unless listed: with 4, layers 3, 7, 11 ...
    """
    listed = fields.items("no_rope_layers")
    step = fields.size("no_rope_layer_interval", period)
    turned = listed or [(layer + 1) % step for layer in range(layers)]
    fields.require(
        holds=len(turned) == layers and all(isinstance(one, int) for one in turned),
        problem=f"{len(turned)} entries contradict num_hidden_layers = {layers}",
        name="no_rope_layers",
        other="num_hidden_layers",
    )
    return [FULL if one else UNTURNED for one in turned][:layers]


def perceptrons(fields: Fields, decoder: Decoder, layers: int) -> list[str]:
    """Return for every layer whether it is dense or a mixture of experts."""
    rule = decoder.sparse
    listed = fields.items("mlp_layer_types") if rule is not Sparse.NEVER else ()
    if listed:
        strange = [kind for kind in listed if kind not in (DENSE, EXPERTS)]
        if not (not strange and len(listed) == layers):
            fields.note("mlp_layer_types", f"{layers} times dense or sparse is accepted")
        fields.ignore("first_k_dense_replace")
        known = [EXPERTS if kind == EXPERTS else DENSE for kind in listed]
        return (known + [DENSE] * layers)[:layers]
    return [EXPERTS if sparse else DENSE for sparse in _sparse(fields, decoder, layers)]


def _sparse(fields: Fields, decoder: Decoder, layers: int) -> list[bool]:
    rule = decoder.sparse
    if rule is Sparse.AFTER_FIRST:
        fields.need("first_k_dense_replace")
        dense = fields.optional_size("first_k_dense_replace", decoder.reads.dense) or 0
        return [layer >= dense for layer in range(layers)]
    if rule is Sparse.EVERY_NTH:
        step = fields.size("decoder_sparse_step", 1)
        listed = fields.items("mlp_only_layers")
        return [layer not in listed and (layer + 1) % step == 0 for layer in range(layers)]
    return [rule is Sparse.ALWAYS] * layers
