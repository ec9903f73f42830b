"""Builder of LongCat-Flash, some of whose experts compute nothing.

Those that give a token back as it is ("zero experts") have no work and no weights: Transformers
holds some for them, which no checkpoint has. Which tokens they get, only a run says: choices are
taken to fall on all experts alike, so that of E_t chosen ones E_t E/(E + zero_expert_num) compute:
8 of 12 with 512 experts and 256 that do not.
"""

from dataclasses import replace

from sympy import Integer

from symbolic_cost import symbols
from symbolic_cost.models.decoders.config import declared, decoder_of
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.graph import Model


def build(fields: Fields, shape: Shape) -> Model:
    """Declare a LongCat-Flash, with the share of choices that fall on experts that compute."""
    blocks = fields.size("num_layers")
    for key in ("num_hidden_layers", "head_dim", "qk_head_dim", "num_key_value_heads"):
        fields.ignore(key)
    stated = fields.source.values.get("num_hidden_layers", 2 * blocks)
    fields.require(
        holds=stated in (blocks, 2 * blocks),
        problem=f"two for each of num_layers = {blocks} are accepted",
        name="num_hidden_layers",
    )
    fields.source = replace(
        fields.source, values={**fields.source.values, "num_hidden_layers": blocks}
    )
    heads, width = fields.size("num_attention_heads"), fields.size("qk_nope_head_dim", 128)
    for key, own in (
        ("num_key_value_heads", heads),
        ("qk_head_dim", width + fields.size("qk_rope_head_dim", 64)),
    ):
        fields.require(
            holds=fields.size(key, own) == own, problem=f"only {own} is declared", name=key
        )
    biased = fields.flag("attention_bias", default=False)
    fields.require(holds=not biased, problem="only false is declared", name="attention_bias")
    zero = fields.optional_size("zero_expert_num", 256) or 0
    if zero:
        fields.assume("zero_expert_num", "choices fall on all experts alike; these have no weights")
    every = symbols.E + Integer(zero)
    decoder = decoder_of(fields)
    lengths = {"o": every, "a": symbols.E_t * symbols.E / every}
    sizes = replace(decoder.sizes, capacity=symbols.E / every)
    return declared(fields, shape, replace(decoder, lengths=lengths, sizes=sizes))
