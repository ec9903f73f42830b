"""Builder of Megatron's GPT, whose every trait is a setting of its own."""

from __future__ import annotations

from dataclasses import replace

from symbolic_cost.layers.grouped import HeadNorm
from symbolic_cost.layers.norm import Norm
from symbolic_cost.models.decoder_config import declared
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.traits import Positions, Sparse, Traits
from symbolic_cost.ops.graph import Model

NORMS = {
    "layernorm": Norm.LAYER,
    "layernorm1p": Norm.LAYER,
    "rmsnorm": Norm.RMS,
    "LayerNorm": Norm.LAYER,
    "RMSNorm": Norm.RMS,
}

ACTIVATIONS = {
    "gelu": ("gelu", False),
    "relu": ("relu", False),
    "swiglu": ("silu", True),
    "fast-swiglu": ("silu", True),
    "geglu": ("gelu", True),
    "fast-geglu": ("gelu", True),
}
"""Function, and whether the perceptron is gated."""

POSITIONS = {
    "learned_absolute": Positions.LEARNED,
    "rope": Positions.ROTARY,
    "alibi": Positions.ALIBI,
    "none": Positions.ALIBI,
}


def build(fields: Fields, shape: Shape) -> Model:
    """Declare a GPT with the settings that the configuration has."""
    function, gated = ACTIVATIONS[fields.text("hidden_act", "gelu", tuple(ACTIVATIONS))]
    if fields.flag("gated", default=False):
        function, gated = "silu", True
    bias = fields.flag("bias", default=True) and not fields.flag("no_bias", default=False)
    untied = fields.flag("untied", default=False)
    experts = fields.optional_size("num_experts")
    normed = fields.flag("qk_norm", default=False)
    fields.ignore("num_experts_per_tok", "moe_intermediate_size")
    traits = Traits(
        norm=NORMS[fields.text("normalization", "LayerNorm", tuple(NORMS))],
        qkv_bias=bias or fields.flag("qkv_bias", default=False),
        output_bias=bias,
        mlp_bias=bias,
        head_norm=HeadNorm.HEAD if normed else HeadNorm.NONE,
        positions=POSITIONS[
            fields.text("position_embedding", "learned_absolute", tuple(POSITIONS))
        ],
        single=False,
        gated=gated,
        function=function,
        tied=fields.flag("tie_word_embeddings", default=not untied),
        dropout=fields.drops("resid_pdrop", default=True),
        attention_dropout=fields.drops("attn_pdrop", default=True),
        sparse=Sparse.ALWAYS if experts else Sparse.NEVER,
        wide=True,
    )
    if experts and fields.source.values.get("moe_intermediate_size") is None:
        traits = replace(traits, expert_width="intermediate_size")
    return declared(fields, shape, replace(traits, embedding_dropout=traits.dropout))
