"""Which mixer and which perceptron every layer of a hybrid decoder has."""

from collections.abc import Callable, Mapping

from symbolic_cost.models.decoders.kinds import (
    CHUNKED,
    DENSE,
    EXPERTS,
    FULL,
    NONE,
    SLIDES,
    UNTURNED,
)
from symbolic_cost.models.decoders.plan import unrotated
from symbolic_cost.models.fields import Fields, is_size

Layout = tuple[list[str], list[str]]
"""Mixers by layer, and perceptrons; by the family's rule if there are none."""

LINEAR = "linear_attention"

_USUAL: Mapping[str, str] = {
    **{name: name for name in (FULL, SLIDES, LINEAR, "hybrid", "conv")},
    "attention": FULL,
    "mamba": LINEAR,
    "mamba2": LINEAR,
    "recurrent": LINEAR,
}
"""Kinds of layers by the names that files have for them."""


def all_of(mixer: str, layer: str) -> Callable[[Fields, int], Layout]:
    """Return layers that are all alike."""
    return lambda _, layers: ([mixer] * layers, [layer] * layers)


def periodic(fields: Fields, layers: int) -> Layout:
    """Read layers whose attention and whose experts come back at an offset of a period.

    Of Jamba's layers 4, 12, 20 ... attend (period 8, offset 4), and those with an odd number have
    experts (period 2, offset 1).
    """
    attends = _period(fields, "attn_layer", (8, 4))
    sparse = _period(fields, "expert_layer", (2, 1))
    several = fields.size("num_experts", 16) > 1
    return (
        [FULL if attends(layer) else LINEAR for layer in range(layers)],
        [EXPERTS if several and sparse(layer) else DENSE for layer in range(layers)],
    )


def _period(fields: Fields, name: str, default: tuple[int, int]) -> Callable[[int], bool]:
    period = fields.size(f"{name}_period", default[0])
    offset = fields.optional_size(f"{name}_offset", default[1]) or 0
    if offset >= period:
        fields.note(f"{name}_offset", f"an offset of {offset} is beyond the period of {period}")
    return lambda layer: layer % period == offset


def indexed(key: str, other: str = LINEAR, usual: str = "") -> Callable[[Fields, int], Layout]:
    """Return what reads layers of which a list numbers those that attend.

    Args:
        key: field of the list.
        other: mixer of those that are not in it.
        usual: of all layers where there is no list.
    """

    def kinds(fields: Fields, layers: int) -> Layout:
        places = fields.items(key)
        if not all(place == 0 or (is_size(place) and place < layers) for place in places):
            fields.note(key, f"numbers of layers, from 0 to {layers - 1}, are accepted")
        entries = fields.items("layer_types") if other != LINEAR or not places else ()
        if entries:
            return layout_of_list(fields, layers), []
        if usual and not fields.has(key):
            return [usual] * layers, []
        return [FULL if n in places else other for n in range(layers)], []

    return kinds


def interval(key: str, period: int) -> Callable[[Fields, int], Layout]:
    """Return what reads layers of which the last of a period attends, unless they are listed."""

    def kinds(fields: Fields, layers: int) -> Layout:
        step = fields.size(key, period)
        if fields.items("layer_types"):
            return layout_of_list(fields, layers), []
        return [LINEAR if (n + 1) % step else FULL for n in range(layers)], []

    return kinds


def ruled(rule: Callable[[int, int], str], **others: str) -> Callable[[Fields, int], Layout]:
    """Return what reads layers that are placed by a rule, unless they are listed.

    Args:
        rule: the mixer of a layer, of so many.
        others: how the family calls mixers that others call otherwise.
    """

    def kinds(fields: Fields, layers: int) -> Layout:
        places = [rule(n, layers) for n in range(layers)]
        mixers = layout_of_list(fields, layers) if fields.items("layer_types") else places
        known = {rule(n, 12) for n in range(12)}  # by then every mixer has come
        strange = [mixer for mixer in mixers if mixer not in known]
        problem = f"{strange[:1]} is no kind of layer: {' or '.join(sorted(known))} is accepted"
        fields.require(holds=not strange, problem=problem, name="layer_types")
        return [others.get(mixer, mixer) for mixer in mixers], []

    return kinds


def turned(rule: Callable[[int, int], str], *, still: bool) -> Callable[[Fields, int], Layout]:
    """Return what reads layers that slide or are full, by a rule or as listed.

    Args:
        rule: the mixer of a layer, of so many.
        still: whether full layers are not rotated, where `rope_parameters` has no word on them.
    """

    def kinds(fields: Fields, layers: int) -> Layout:
        listed = layout_of_list(fields, layers) if fields.items("layer_types") else ()
        mixers = [*listed] or [rule(n, layers) for n in range(layers)]
        problem = f"{FULL} or {SLIDES} is accepted"
        fields.require(holds={*mixers} <= {FULL, SLIDES}, problem=problem, name="layer_types")
        if SLIDES not in mixers:
            fields.ignore("sliding_window")
        ropes = fields.source.values.get("rope_parameters")
        ropes = ropes if isinstance(ropes, Mapping) else {}
        if SLIDES in mixers and ropes.get(SLIDES, ropes) is None:
            fields.note("rope_parameters", "layers that slide without rotation are not declared")
        unturned = ropes[FULL] is None if FULL in ropes else still
        return [UNTURNED if one == FULL and unturned else one for one in mixers], []

    return kinds


def glimmer(fields: Fields, layers: int) -> Layout:
    """Read Muse Glimmer's layers: every fourth, counted from the last, is full and not rotated."""
    rule = turned(lambda n, layers: SLIDES if (layers - 1 - n) % 4 else FULL, still=True)
    mixers, followers = rule(fields, layers)
    bases = fields.items("layer_rope_theta", [mixer == SLIDES for mixer in mixers])
    fields.require(
        holds=[bool(base) for base in bases] == [mixer == SLIDES for mixer in mixers],
        problem="0 for layers that are full, and for no other, is declared",
        name="layer_rope_theta",
    )
    return mixers, followers


def flint(fields: Fields, layers: int) -> Layout:
    """Read Flint's layers: those that do not slide are not rotated; the first two are dense."""
    mixers, _ = ruled(_every_fourth, **{FULL: UNTURNED})(fields, layers)
    dense = fields.items("mlp_only_layers") if fields.has("mlp_only_layers") else (0, 1)
    fields.ignore("mlp_only_layers")
    step = fields.size("decoder_sparse_step", 1)
    sparse = (n not in dense and (n + 1) % step == 0 for n in range(layers))
    return mixers, [EXPERTS if one else DENSE for one in sparse]


def _every_fourth(n: int, layers: int) -> str:
    return FULL if n == 0 or n % 4 == 1 or n == layers - 1 else SLIDES


def lfm3(n: int, _: int) -> str:
    """Return the mixer of a layer of LFM 3."""
    near = SLIDES if n % 4 == 0 and n else "conv"
    return FULL if n % 4 == 2 else near  # noqa: PLR2004 - the third of every four


def chunked(fields: Fields, layers: int) -> Layout:
    """Read Llama 4's layers: chunked attention is rotated, full attention is not.

    Experts are in the layers of `moe_layers`, or in the last of every so many.
    """
    turned = unrotated(fields, layers, 4)
    mixers = [CHUNKED if mixer == FULL else UNTURNED for mixer in turned]
    entries = fields.items("layer_types")
    if entries:
        accepted = {CHUNKED: CHUNKED, FULL: UNTURNED}
        if not (len(entries) == layers and all(kind in accepted for kind in entries)):
            fields.note("layer_types", f"{layers} of {' or '.join(accepted)} are accepted")
        mixers = [accepted.get(kind, CHUNKED) for kind in entries]
    if CHUNKED not in mixers:
        fields.ignore("attention_chunk_size")
    if fields.has("moe_layers"):
        fields.ignore("interleave_moe_layer_step")
        sparse = fields.items("moe_layers")
    else:
        step = fields.size("interleave_moe_layer_step", 1)
        sparse = tuple(n for n in range(layers) if (n + 1) % step == 0)
    return mixers, [EXPERTS if n in sparse else DENSE for n in range(layers)]


def between(fields: Fields, layers: int) -> Layout:
    """Read ERNIE's layers: every n-th is sparse, from a first to a last one."""
    step = fields.size("moe_layer_interval", 1)
    first = fields.optional_size("moe_layer_start_index", 1) or 0
    last = fields.source.values.get("moe_layer_end_index")
    fields.ignore("moe_layer_end_index")
    if last not in (None, -1) and not is_size(last):
        fields.note("moe_layer_end_index", "the number of a layer, or -1 for the last, is accepted")
    end = last if isinstance(last, int) and last > 0 else layers - 1
    return [FULL] * layers, [
        EXPERTS if (n + 1) % step == 0 and first <= n <= end else DENSE for n in range(layers)
    ]


def alternating(fields: Fields, layers: int) -> Layout:
    """Read layers that are full and linear attention by turns, unless they are listed."""
    if fields.items("layer_types"):
        return layout_of_list(fields, layers), []
    return [LINEAR if n % 2 else FULL for n in range(layers)], []


def switched(fields: Fields, layers: int) -> Layout:
    """Read layers that a list of ones and zeros makes full or linear attention."""
    entries = fields.items("attn_type_list")
    if not (len(entries) == layers and all(entry in (0, 1) for entry in entries)):
        fields.note("attn_type_list", f"{layers} of 0, linear, or 1, full, are accepted")
    return [FULL if entry == 1 else LINEAR for entry in entries], []


def granite(fields: Fields, layers: int) -> Layout:
    """Read Granite 4's layers; without experts, the shared ones are the perceptron."""
    several = fields.optional_size("num_experts") is not None
    turned = fields.text("position_embedding_type", "rope", ("rope", "nope")) == "rope"
    entries = fields.items("layer_types")
    mixers = layout_of_list(fields, layers) if entries else [LINEAR] * layers
    plain = mixers if turned else [UNTURNED if mixer == FULL else mixer for mixer in mixers]
    return plain, [EXPERTS if several else DENSE] * layers


def kimi(fields: Fields, layers: int) -> Layout:
    """Read Kimi Linear's layers, which a part of the file may number from one."""
    part = fields.part("linear_attn_config")
    full = () if part is None else part.items("full_attn_layers")
    if fields.items("layer_types"):
        return layout_of_list(fields, layers), []
    if full:
        return [FULL if n + 1 in full else LINEAR for n in range(layers)], []
    return [FULL if n and n % 4 == 0 else LINEAR for n in range(layers)], []


def griffin(fields: Fields, layers: int) -> Layout:
    """Read Griffin's layers: a list that comes back over the depth."""
    kinds = {"recurrent": LINEAR, "attention": SLIDES}
    entries = fields.items("block_types", ("recurrent", "recurrent", "attention"))
    if not (entries and all(kind in kinds for kind in entries)):
        fields.note("block_types", f"{' or '.join(kinds)} is accepted")
    pattern = [kinds.get(kind, SLIDES) for kind in entries] or [SLIDES]
    return [pattern[n % len(pattern)] for n in range(layers)], []


def layout_of_list(fields: Fields, layers: int) -> list[str]:
    """Read the mixers of all layers from a list, which must be there."""
    entries, name = fields.items("layer_types"), "layer_types"
    strange = [kind for kind in entries if not isinstance(kind, str) or kind not in _USUAL]
    if strange:
        fields.note(name, f"{strange[:1]} is no kind of layer: {' or '.join(_USUAL)} is accepted")
    fields.require(
        holds=len(entries) == layers,
        problem=f"{len(entries)} entries contradict num_hidden_layers = {layers}",
        name=name,
        other="num_hidden_layers",
    )
    mixers = [_USUAL.get(kind, FULL) for kind in entries if isinstance(kind, str)]
    return (mixers + [FULL] * layers)[:layers]


_SIGNS: Mapping[str, str] = {
    "M": LINEAR,
    "E": "moe",
    "*": FULL,
    "-": "mlp",
    "mamba": LINEAR,
    "attention": FULL,
}


def one_each(fields: Fields, layers: int) -> Layout:
    """Read layers that are one mixer or one perceptron each, from a list or a pattern.

    For example "M-M*" are a state-space layer, a perceptron, another state-space layer, attention.
    """
    pattern = fields.text("hybrid_override_pattern", "")
    entries = fields.items("layers_block_type", tuple(pattern))
    kinds = [_SIGNS.get(kind, kind) if isinstance(kind, str) else "" for kind in entries]
    accepted = {LINEAR: NONE, FULL: NONE, "mlp": DENSE, "moe": EXPERTS}
    name = "hybrid_override_pattern" if pattern else "layers_block_type"
    if not (kinds and all(kind in accepted for kind in kinds) and len(kinds) == layers):
        fields.note(name, f"{layers} of {', '.join(accepted)} are accepted")
    alone = [
        (kind, NONE) if accepted.get(kind, DENSE) == NONE else (NONE, accepted.get(kind, DENSE))
        for kind in kinds
    ]
    return [mixer for mixer, _ in alone], [layer for _, layer in alone]


def adjusted(fields: Fields, width: int) -> int:
    """Return the width of LFM2's perceptron: two thirds, widened, rounded up to a multiple."""
    shrunk = fields.flag("block_auto_adjust_ff_dim", default=True)
    factor = fields.number("block_ffn_dim_multiplier", 1)
    multiple = fields.size("block_multiple_of", 256)
    if not shrunk:
        return width
    if fields.source.values.get("block_ffn_dim_multiplier", 1) is None:
        return 2 * width // 3
    return -(-int(factor * (2 * width // 3)) // multiple) * multiple


def rounded(fields: Fields, width: int) -> int:
    """Return the width of xLSTM's perceptron: a multiple of the embedding's, rounded up."""
    multiple = fields.size("ffn_round_up_to_multiple_of", 64)
    # As the class does: in floating point, whose last digit may decide.
    widened = width * float(fields.number("ffn_proj_factor"))
    return int((widened + multiple - 1) // multiple * multiple)
