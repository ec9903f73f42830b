"""Builders of the decoder families: from the fields of a configuration to traits and sizes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from sympy import Integer

from symbolic_cost.layers.attention import Core
from symbolic_cost.layers.grouped import HeadNorm
from symbolic_cost.layers.latent import Expansion
from symbolic_cost.layers.norm import Norm
from symbolic_cost.models.assembly import Run, decoder
from symbolic_cost.models.decoder import Placing
from symbolic_cost.models.decoder_families import TRAITS
from symbolic_cost.models.decoder_fields import decoder_sizes
from symbolic_cost.models.decoder_plan import layer_plan
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.traits import Positions, Traits, switched
from symbolic_cost.ops.graph import Model

ACTIVATIONS = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_new",
    "gelu_fast": "gelu_new",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}
"""Functions by the names that configurations use."""

CORES = {"eager": Core.EAGER, "sdpa": Core.FLASH, "flash_attention_2": Core.FLASH}
"""How attention runs, by the names that configurations use; op by op unless given."""

PRECISE = "sdpa_math"
"""How PyTorch runs it on a CPU where probabilities are dropped out: in single precision."""

ABSORBED = "absorbed"
"""How servers run latent attention: on the latents, whose keys and values are never expanded."""


def build(fields: Fields, shape: Shape) -> Model:
    """Declare a decoder of a family without peculiarities."""
    return declared(fields, shape, _traits(fields))


def opt(fields: Fields, shape: Shape) -> Model:
    """Declare an OPT: its smallest but one has norms after the sums and a narrow token table."""
    traits = _traits(fields)
    first = fields.flag("do_layer_norm_before", default=True)
    bare = fields.flag("_remove_final_layer_norm", default=False)
    if not fields.flag("layer_norm_elementwise_affine", default=True):
        traits = replace(traits, norm=Norm.LAYER_BARE)
    width = fields.size("word_embed_proj_dim", fields.size("hidden_size"))
    traits = replace(
        traits,
        placing=Placing.PRE if first else Placing.POST,
        final_norm=first and not bare,
        projected=width != fields.size("hidden_size"),
    )
    return declared(fields, shape, traits)


def gpt_neox(fields: Fields, shape: Shape) -> Model:
    """Declare a GPT-NeoX: its branches run side by side unless switched off."""
    parallel = fields.flag("use_parallel_residual", default=True)
    return declared(fields, shape, replace(_traits(fields), parallel_norms=2 if parallel else 0))


def stablelm(fields: Fields, shape: Shape) -> Model:
    """Declare a StableLM: branches side by side share their norm."""
    parallel = fields.flag("use_parallel_residual", default=False)
    return declared(fields, shape, replace(_traits(fields), parallel_norms=1 if parallel else 0))


def falcon(fields: Fields, shape: Shape) -> Model:
    """Declare a Falcon: the new decoder has grouped heads and may have two parallel norms."""
    new = fields.flag("new_decoder_architecture", default=False)
    parallel = fields.flag("parallel_attn", default=True)
    single = fields.flag("multi_query", default=True) and not new
    norms = fields.optional_size("num_ln_in_parallel_attn")
    side = (norms or (2 if new else 1)) if parallel or new else 0
    alibi = fields.flag("alibi", default=False)
    heads = fields.size("num_attention_heads")
    given = fields.optional_size("num_key_value_heads", heads) if new or not single else heads
    fields.ignore("num_kv_heads", "n_head_kv")
    traits = replace(
        _traits(fields),
        parallel_norms=side,
        positions=Positions.ALIBI if alibi else Positions.ROTARY,
        cached_heads=new,
    )
    shared = (given or heads) if new else heads
    return declared(fields, shape, traits, heads=1 if single else shared)


def cohere(fields: Fields, shape: Shape) -> Model:
    """Declare a Command R: the larger one normalises every head of queries and keys."""
    normed = fields.flag("use_qk_norm", default=False)
    kind = HeadNorm.HEADS if normed else HeadNorm.NONE
    return declared(fields, shape, replace(_traits(fields), head_norm=kind))


def deepseek(fields: Fields, shape: Shape) -> Model:
    """Declare a DeepSeek V2 or V3: latent attention, and experts after some dense layers."""
    every = fields.size("moe_layer_freq", 1)
    fields.require(
        holds=every == 1, problem="only 1 is declared: all later layers", name="moe_layer_freq"
    )
    biased = fields.flag("attention_bias", default=False)
    fields.require(holds=not biased, problem="only false is declared", name="attention_bias")
    fields.ignore("num_nextn_predict_layers", "head_dim", "qk_head_dim", "num_key_value_heads")
    rank = fields.optional_size("q_lora_rank")
    return declared(fields, shape, replace(_traits(fields), query_latent=rank is not None))


def _traits(fields: Fields) -> Traits:
    """Return the family's traits, with what the configuration switches."""
    traits = TRAITS[fields.family]
    switches = {
        key: fields.flag(key, default=all(getattr(traits, name) for name in names))
        for key, names in traits.switches.items()
        if fields.source.values.get(key) is not None
    }
    traits = switched(traits, switches)
    accepted = (*CORES, PRECISE, *((ABSORBED,) if traits.latent else ()))
    attention = fields.text("attn_implementation", "eager", accepted)
    name = fields.text("hidden_act", _name_of(traits.function), tuple(ACTIVATIONS))
    return replace(
        traits,
        tied=fields.flag("tie_word_embeddings", default=traits.tied),
        function=ACTIVATIONS[name],
        dropout=fields.drops("resid_pdrop", default=traits.dropout),
        attention_dropout=fields.drops("attn_pdrop", default=traits.attention_dropout),
        embedding_dropout=fields.drops("embd_pdrop", default=traits.embedding_dropout),
        core=CORES.get(attention, Core.EAGER),
        precise=attention == PRECISE,
        expansion=Expansion.NEVER if attention == ABSORBED else traits.expansion,
    )


def _name_of(function: str) -> str:
    return next(name for name, kind in ACTIVATIONS.items() if kind == function)


def declared(fields: Fields, shape: Shape, traits: Traits, heads: int | None = None) -> Model:
    """Read the sizes, check them against each other, and declare the model of given traits."""
    plan = layer_plan(fields, traits)
    sizes = decoder_sizes(fields, traits, plan, heads)
    if traits.part is not None:
        default = 1 if sizes.d_r == sizes.q else Fraction(1, 2)
        traits = replace(traits, part=replace(traits.part, default=default))
    fields.refuse()
    runs = tuple(
        Run(sliding, sparse, Integer(count)) for (sliding, sparse), count in plan.kinds.items()
    )
    bare = fields.head.endswith("Model") and not fields.head.endswith("LMHeadModel")
    predicted = fields.size("num_nextn_predict_layers", 1) if fields.head.endswith("NextN") else 0
    return decoder(
        fields.family, traits, sizes, runs, shape, head=not bare, predicted=predicted
    ).model()
