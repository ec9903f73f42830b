"""Builders of Zamba: from the fields of a configuration to traits and sizes."""

from dataclasses import replace
from functools import partial

from sympy import Integer

from symbolic_cost import symbols
from symbolic_cost.layers.attention import Rotated
from symbolic_cost.models.decoders.config import declared, decoder_of
from symbolic_cost.models.decoders.kinds import DENSE, MOST_LAYERS, NONE
from symbolic_cost.models.decoders.layouts import LINEAR, Layout
from symbolic_cost.models.decoders.zamba import SHARED
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.graph import Model


def build(fields: Fields, shape: Shape) -> Model:
    """Declare a Zamba 2."""
    e, h = fields.size("hidden_size"), fields.size("num_attention_heads", 32)
    problem = f"{h} heads do not divide the {2 * e} features of stream and embeddings"
    fields.require(holds=2 * e % h == 0, problem=problem, name="num_attention_heads")
    _check_widths(fields, e, h)
    values = {k: v for k, v in fields.source.values.items() if k not in _FOLLOWS}
    blocks = fields.size("num_mem_blocks", 1)
    values |= {"head_dim": max(2 * e // h, 1), "intermediate_size": _inner(fields, e)}
    fields.source = replace(fields.source, values=values)
    rank = Integer(fields.size("adapter_rank", 128))
    adapted = fields.flag("use_shared_attention_adapter", default=False)
    fields.require(
        holds=not adapted or fields.size("num_key_value_heads", h) == h,
        problem=f"only {h}, as many as num_attention_heads, goes with use_shared_attention_adapter",
        name="num_key_value_heads",
    )
    lengths = {"e_g": symbols.e, "e_c": 2 * symbols.e, "r_a": rank}
    decoder = decoder_of(fields)
    if fields.flag("use_mem_rope", default=False):
        decoder = decoder.attended(rotated=Rotated.WHOLE)

    changed = replace(
        decoder,
        reads=replace(decoder.reads, kinds=partial(_kinds, blocks)),
        lengths=lengths | ({"r_q": rank} if adapted else {}),
    )
    return declared(fields, shape, changed)


def first(fields: Fields, shape: Shape) -> Model:
    """Declare a Zamba: one block is shared, to which its uses add nothing.

    Raises:
        InputError: every problem of the fields.
    """
    values, e = dict(fields.source.values), fields.size("hidden_size")
    wide, usual = fields.optional_size("attention_hidden_size"), 2 * e
    problem = f"only {usual}, stream and embeddings side by side, is declared"
    fields.require(holds=wide in (None, usual), problem=problem, name="attention_hidden_size")
    values.pop("attention_hidden_size", None)
    width = values.pop("attention_head_dim", None)
    heads = fields.size("num_attention_heads", 16)
    values["head_dim"] = max(usual // heads, 1) if width is None else width
    if values.get("layers_block_type") is None:
        period, offset = fields.size("attn_layer_period", 6), fields.size("attn_layer_offset", 4)
        later = range(min(fields.size("num_hidden_layers", 76), MOST_LAYERS) - 3)
        rule = [SHARED if n % period == offset else LINEAR for n in later]
        values["layers_block_type"] = [LINEAR, LINEAR, SHARED, *rule]
    fields.ignore("attn_layer_period", "attn_layer_offset")
    fields.source = replace(fields.source, values=values)
    decoder = decoder_of(fields)
    lengths = {"e_g": symbols.e, "e_c": 2 * symbols.e}
    reads = replace(decoder.reads, kinds=partial(_kinds, 1))
    return declared(fields, shape, replace(decoder, reads=reads, lengths=lengths))


def _kinds(blocks: int, fields: Fields, layers: int) -> Layout:
    """Read which layers a shared block stands before, and which of so many blocks it is."""
    entries = fields.items("layers_block_type")
    fine = len(entries) == layers and all(one in (*_PLAIN, SHARED) for one in entries)
    problem = f"{layers} of {', '.join((*_PLAIN, SHARED))} are accepted"
    fields.require(holds=fine, problem=problem, name="layers_block_type")
    used = [n for n, entry in enumerate(entries) if entry == SHARED]
    turn = {n: f"{SHARED}{i % blocks}" for i, n in enumerate(used)}
    every = range(len(entries))
    after = [DENSE if n in turn else NONE for n in every]
    return [turn.get(n, LINEAR) for n in every], after


_PLAIN = ("mamba", "linear_attention")
_FOLLOWS = ("attention_head_dim", "attention_hidden_size", "mamba_headdim", "hybrid_layer_ids")
"""Fields that follow from others, and say no more than they do."""


def _check_widths(fields: Fields, width: int, heads: int) -> None:
    """Note widths that are not those that others make."""
    inner, scans = fields.size("expand", 2) * width, fields.size("mamba_num_heads", 8)
    made = zip(_FOLLOWS, (2 * width // heads, 2 * width, inner // scans), strict=False)
    for name, size in made:
        problem = f"only {size} is declared, as other fields make it"
        fields.require(holds=fields.optional_size(name) in (None, size), problem=problem, name=name)


def _inner(fields: Fields, width: int) -> int:
    return fields.optional_size("intermediate_size") or 4 * width
