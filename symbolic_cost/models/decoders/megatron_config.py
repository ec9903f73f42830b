"""Builder of Megatron's GPT, whose every trait is a setting of its own."""

from dataclasses import replace

from symbolic_cost.layers.attention import Bias, HeadNorm, Rotated
from symbolic_cost.layers.attention_core import AttentionCore, Step
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.moe import MixtureOfExperts, Trait
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.residual import Branch, Outcome
from symbolic_cost.layers.tokens import Entry, Logits, Tokens
from symbolic_cost.models.decoders.config import declared, tied, with_dropouts
from symbolic_cost.models.decoders.decoder import ATTENTION, Decoder, Reads
from symbolic_cost.models.decoders.kinds import Sparse
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.shape import Shape
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

ROTATED = {
    "learned_absolute": Rotated.NOTHING,
    "rope": Rotated.WHOLE,
    "alibi": Rotated.NOTHING,
    "none": Rotated.NOTHING,
}


def build(fields: Fields, shape: Shape) -> Model:
    """Declare a GPT with the settings that the configuration has."""
    function, gated = ACTIVATIONS[fields.text("hidden_act", "gelu", tuple(ACTIVATIONS))]
    if fields.flag("squared", default=False):
        function, gated = "relu2", False
    if fields.flag("quick", default=False):
        function, gated = "quick_gelu", True
    if fields.flag("gated", default=False):
        function, gated = "silu", True
    biased = fields.flag("bias", default=True) and not fields.flag("no_bias", default=False)
    bias = Bias.BOTH if biased else Bias.NONE
    untied = fields.flag("untied", default=False)
    experts = fields.optional_size("num_experts")
    normed = fields.flag("qk_norm", default=False)
    fields.ignore("num_experts_per_tok", "moe_intermediate_size")
    norm = NORMS[fields.text("normalization", "LayerNorm", tuple(NORMS))]
    places = fields.text("position_embedding", "learned_absolute", tuple(ROTATED))
    entry = Entry.POSITION if places == "learned_absolute" else Entry.NONE
    common = fields.optional_size("moe_shared_expert_intermediate_size")
    own_width = fields.source.values.get("moe_intermediate_size") is not None
    decoder = Decoder(
        replace(
            ATTENTION,
            bias=bias | Bias.INNER if fields.flag("qkv_bias", default=False) else bias,
            head_norm=HeadNorm.HEAD if normed else HeadNorm.NONE,
            norm=norm,
            rotated=ROTATED[places],
            core=AttentionCore(steps=Step.MASK | Step.DROP | Step.COPY),
        ),
        GatedMLP(function, bias) if gated else MLP(function, bias),
        experts=MixtureOfExperts(
            function,
            shared="f_s" if common else "",
            traits=Trait.NONE if gated else Trait.PLAIN,
        ),
        tokens=Tokens(steps=entry),
        head=Logits(tied(fields, default=not untied)),
        branch=Branch(norm, outcome=Outcome.DROP),
        sparse=Sparse.ALWAYS if experts else Sparse.NEVER,
        reads=Reads(
            expert_width="moe_intermediate_size" if own_width else "intermediate_size",
            shared_width="moe_shared_expert_intermediate_size",
            widening=4,
        ),
    )
    decoder = with_dropouts(fields, decoder)
    if decoder.branch.drops:
        decoder = replace(decoder, tokens=Tokens(steps=entry | Entry.DROP))
    return declared(fields, shape, decoder)
