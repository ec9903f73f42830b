"""Builders of decoders whose files list their layers in ways of their own.

Of some, layers that slide have numbers of heads of their own.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from sympy import Integer

from symbolic_cost.layers.attention import Gate, HeadNorm, Rotated
from symbolic_cost.layers.attention_core import SLIDING, Step
from symbolic_cost.models.build import Fields, Shape, is_size
from symbolic_cost.models.decoders.config import build, declared, decoder_of
from symbolic_cost.models.decoders.decoder import Decoder
from symbolic_cost.models.decoders.kinds import DENSE, EXPERTS, FULL, MOST_LAYERS, SLIDES
from symbolic_cost.models.decoders.other_heads import GROUPS, WIDE, OtherHeads
from symbolic_cost.models.decoders.plan import listed_kinds, perceptrons
from symbolic_cost.models.decoders.reads import Share
from symbolic_cost.models.decoders.switches import PART
from symbolic_cost.ops.declare import Axis, Model, Part, Place, Role, stored


def minimax_m3(fields: Fields, shape: Shape) -> Model:
    """Declare a MiniMax M3, whose own files say in lists of zeros and ones what layers are."""
    own = fields.part("sparse_attention_config")
    values = {**(own.source.values if own else {}), **fields.source.values}
    for name, listed, kinds in _ONES:
        entries = values.pop(listed, None)
        if isinstance(entries, list) and values.get(name) is None:
            values[name] = [kinds[bool(one)] for one in entries]
    for name in ("sparse_attention_config", "hidden_act"):  # the class takes one function alone
        values.pop(name, None)
    fields.source = replace(fields.source, values=values)
    fields.ignore("index_n_heads", "index_head_dim", "layer_types")
    return build(fields, shape)


_ONES = (
    ("layer_types", "sparse_attention_freq", (FULL, "minimax_m3_sparse")),
    ("mlp_layer_types", "moe_layer_freq", (DENSE, EXPERTS)),
)
"""Lists of kinds, how older files call them, and what zero and one are there."""


def mimo_v2_flash(fields: Fields, shape: Shape) -> Model:
    """Declare a MiMo-V2-Flash: sliding layers have twice the key/value heads, and sinks."""
    decoder = decoder_of(fields)
    before = fields.optional_size("sliding_window_size")
    fields.ignore("sliding_window_size")
    if before is not None:
        values = {**fields.source.values, "sliding_window": before + 1}
        values.pop("sliding_window_size")
        fields.source = replace(fields.source, values=values)
    _alike(fields)
    own = decoder.stepping(Step.SINK, on=True).attended(at=SLIDING).attention

    def sized(fields: Fields) -> tuple[int, int]:
        return 2 * fields.size("num_key_value_heads", 4), fields.size("head_dim", 192)

    def kinds(fields: Fields, layers: int) -> tuple[list[str], list[str]]:
        rule = [SLIDES if n and (n + 1) % 6 else FULL for n in range(layers)]
        listed = listed_kinds(fields, decoder, layers) or rule
        pattern = fields.items("hybrid_layer_pattern")
        if pattern and [SLIDES if one else FULL for one in pattern] != listed:
            fields.note(
                "hybrid_layer_pattern", "it contradicts the layers that Transformers declares"
            )
        dense = [DENSE, *[EXPERTS] * (layers - 1)]
        return listed, perceptrons(fields, decoder, layers) if fields.has(
            "mlp_layer_types"
        ) else dense

    changed = replace(
        decoder,
        mixers={SLIDES: OtherHeads(own, sized, GROUPS)},  # type: ignore[arg-type]
        reads=replace(decoder.reads, kinds=kinds),
    )
    return declared(fields, shape, changed)


def _alike(fields: Fields) -> None:
    """Check sizes that sliding layers are given apart against those that Transformers takes."""
    usual = {
        "swa_num_attention_heads": fields.size("num_attention_heads"),
        "swa_num_key_value_heads": 2 * fields.size("num_key_value_heads", 4),
        "swa_head_dim": fields.size("head_dim", 192),
        "swa_v_head_dim": fields.size("v_head_dim", 128),
    }
    for name, size in usual.items():
        own = fields.optional_size(name)
        problem = f"only {size} is declared"
        fields.require(holds=own in (None, size), problem=problem, name=name)


def laguna(fields: Fields, shape: Shape) -> Model:
    """Declare a Laguna: full and sliding layers may have numbers of heads of their own."""
    gate = fields.source.values.get("gating", True)
    layers = fields.size("num_hidden_layers")
    kinds = fields.items("layer_types", (FULL,) * min(layers, MOST_LAYERS))
    listed = fields.items("num_attention_heads_per_layer")
    sizes = [h if is_size(h) else 0 for h in listed]
    heads = {
        kind: {h for h, own in zip(sizes, kinds, strict=False) if own == kind} for kind in _BOTH
    }
    fields.require(
        holds=len(listed) in {0, len(kinds)}
        and all(len(own) < 2 and 0 not in own for own in heads.values()),  # noqa: PLR2004
        problem="one number for all full layers and one for all sliding ones are declared",
        name="num_attention_heads_per_layer",
    )
    usual = fields.size("num_attention_heads")
    full, near = (next(iter(heads[kind]), usual) for kind in _BOTH)
    fields.source = replace(
        fields.source, values={**fields.source.values, "num_attention_heads": full}
    )
    part, decoder = _turns_part(fields), decoder_of(fields)
    if gate not in (True, "per-head"):
        decoder = decoder.attended(gate=Gate.ELEMENTS)
    decoder = _sliding(decoder, near if part or near != full else 0, WIDE if part else GROUPS)
    if part:
        decoder = decoder.attended(rotated=Rotated.PART)
        decoder = replace(decoder, reads=replace(decoder.reads, share=Share(PART, 1)))
    return declared(fields, shape, decoder)


def _turns_part(fields: Fields) -> bool:
    """Tell whether full layers rotate a part of a head, where both kinds say so; it becomes theirs.

    What stands beside "rope_parameters" is not read then.
    """
    ropes = fields.source.values.get("rope_parameters")
    own = [ropes.get(kind) for kind in _BOTH] if isinstance(ropes, Mapping) else []
    parts = [one.get(PART) for one in own if isinstance(one, Mapping)]
    if len(parts) < len(_BOTH) or None in parts:
        return False
    problem = "all of a head of sliding layers is rotated"
    fields.require(holds=parts[1] == 1, problem=problem, name="rope_parameters")
    fields.source = replace(fields.source, values={**fields.source.values, PART: parts[0]})
    return parts[0] != 1


_BOTH = (FULL, SLIDES)


def molmo2(fields: Fields, shape: Shape) -> Model:
    """Declare the language model of a Molmo: its token table has further rows."""
    kind = fields.text("qk_norm_type", "qwen3", tuple(_MOLMO_NORMS))
    more = fields.optional_size("additional_vocab_size", 128) or 0
    model = declared(fields, shape, decoder_of(fields).attended(head_norm=_MOLMO_NORMS[kind]))
    rows = Part("further", (stored("rows", w="n_rows e"),))
    parts = (*model.parts[:1], rows, *model.parts[1:]) if more else model.parts
    axes = {**model.axes, "n_rows": Axis("n_rows", Role.WHOLE)}
    return replace(
        model, parts=parts, axes=axes, sizes={**model.sizes, "n_rows": Integer(more or 1)}
    )


_MOLMO_NORMS = {"none": HeadNorm.NONE, "qwen3": HeadNorm.HEAD, "olmo": HeadNorm.WIDTH}


def jetmoe(fields: Fields, shape: Shape) -> Model:
    """Declare a JetMoE, whose heads are those of keys and values for every expert of a token."""
    heads = fields.size("num_key_value_heads") * fields.size("num_experts_per_tok")
    values = {**fields.source.values, "num_attention_heads": heads}
    fields.source = replace(fields.source, values=values)
    return build(fields, shape)


def ernie(fields: Fields, shape: Shape) -> Model:
    """Declare the language model of an ERNIE 4.5 VL: sparse layers have experts for images too."""
    widths = fields.items("moe_intermediate_size", (1536, 512))
    fine = len(widths) == len(_BOTH) and all(map(is_size, widths))
    problem = "two widths are accepted: of experts of texts, and of those of images"
    fields.require(holds=fine, problem=problem, name="moe_intermediate_size")
    own, other = widths if fine else (1, 1)
    values = {**fields.source.values, "moe_intermediate_size": own}
    fields.source = replace(fields.source, values=values)
    model = build(fields, shape)
    blocks = [part for part in model.parts if part.is_block]
    sparse = sum((p.repeat for p in blocks if any("router" in op.path for op in p.ops)), Integer(0))
    if sparse == 0:
        return model
    kept = stored("kept", router="e x", correction="x", gated="x two e f_w", down="x f_w e")
    part = Part("image_experts", (kept,), sparse, place=Place.END)
    axes = {**model.axes, "f_w": Axis("f_w", Role.WHOLE)}
    return replace(
        model, parts=(*model.parts, part), axes=axes, sizes={**model.sizes, "f_w": Integer(other)}
    )


def _sliding(decoder: Decoder, heads: int, letters: Mapping[str, str] = GROUPS) -> Decoder:
    """Return a decoder whose sliding layers have so many heads; the usual ones if none."""
    if not heads:
        return decoder

    def sized(fields: Fields) -> tuple[int, int]:
        return fields.size("num_key_value_heads"), fields.size("head_dim")

    own = OtherHeads(decoder.attended(at=SLIDING).attention, sized, letters, queries=heads)  # type: ignore[arg-type]
    return replace(decoder, mixers={SLIDES: own})


_LAYER = re.compile(r"\s*\d{1,6}\s*")


def step(fields: Fields, shape: Shape) -> Model:
    """Declare a Step 3.5 or the language model of a Step 3.7.

    Older files have entries for further layers at the ends of lists, and number sparse layers.
    """
    layers, values = fields.size("num_hidden_layers"), dict(fields.source.values)
    layers = min(layers, MOST_LAYERS)
    further = fields.optional_size("num_nextn_predict_layers") or 0
    for name in ("layer_types", "mlp_layer_types"):
        entries = values.get(name)
        if isinstance(entries, list) and len(entries) == layers + further:
            values[name] = entries[:layers]
    numbered = values.pop("moe_layers_enum", None)
    if values.get("mlp_layer_types") is None:
        sparse = numbered.split(",") if isinstance(numbered, str) else numbered
        sparse = range(3, layers) if sparse is None else sparse
        fine = isinstance(sparse, range | list) and all(_LAYER.fullmatch(str(n)) for n in sparse)
        problem = 'numbers of layers as "3,4,5" are accepted'
        fields.require(holds=fine, problem=problem, name="moe_layers_enum")
        places = {int(n) for n in sparse} if fine else ()
        values["mlp_layer_types"] = [EXPERTS if n in places else DENSE for n in range(layers)]
    other = values.pop("attention_other_setting", None)
    other = other if isinstance(other, dict) else {}
    values.setdefault("num_sliding_attention_heads", other.get("num_attention_heads"))
    fields.source = replace(fields.source, values=values)
    near = fields.optional_size("num_sliding_attention_heads") or 0
    usual = fields.size("num_attention_heads")
    return declared(fields, shape, _sliding(decoder_of(fields), near if near != usual else 0))
