"""Builder of Zamba 2: from the fields of a configuration to traits and sizes."""

from dataclasses import replace

from sympy import Integer

from symbolic_cost import symbols
from symbolic_cost.layers.attention import Rotated
from symbolic_cost.models.decoders.config import declared, decoder_of
from symbolic_cost.models.decoders.kinds import DENSE, NONE
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

    def kinds(fields: Fields, layers: int) -> Layout:
        entries = fields.items("layers_block_type")
        fine = len(entries) == layers and all(one in (*_PLAIN, SHARED) for one in entries)
        problem = f"{layers} of {', '.join((*_PLAIN, SHARED))} are accepted"
        fields.require(holds=fine, problem=problem, name="layers_block_type")
        used = [n for n, entry in enumerate(entries) if entry == SHARED]
        turn = {n: f"{SHARED}{i % blocks}" for i, n in enumerate(used)}
        every = range(len(entries))
        after = [DENSE if n in turn else NONE for n in every]
        return [turn.get(n, LINEAR) for n in every], after

    changed = replace(
        decoder,
        reads=replace(decoder.reads, kinds=kinds),
        lengths=lengths | ({"r_q": rank} if adapted else {}),
    )
    return declared(fields, shape, changed)


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
