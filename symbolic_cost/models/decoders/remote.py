"""Builders of decoders whose files say more than sizes, or whose code is with their checkpoints."""

from dataclasses import replace
from functools import partial

from sympy import Integer

from symbolic_cost import symbols
from symbolic_cost.layers.attention import Attention, Bias, HeadNorm, Rotated
from symbolic_cost.layers.attention_core import AttentionCore, Step
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.latent import LatentAttention
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.moe import MixtureOfExperts, Trait
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.residual import Branch, Outcome
from symbolic_cost.layers.tokens import Entry, Logits, Tokens
from symbolic_cost.models.build import Fields, Model, Shape
from symbolic_cost.models.decoders.config import declared, decoder_of, tied, with_dropouts
from symbolic_cost.models.decoders.decoder import ATTENTION, Decoder
from symbolic_cost.models.decoders.kinds import DENSE, MOST_LAYERS, NONE, Sparse
from symbolic_cost.models.decoders.layouts import LINEAR, Layout
from symbolic_cost.models.decoders.reads import Reads
from symbolic_cost.models.decoders.zamba import SHARED


def ai2(fields: Fields, shape: Shape) -> Model:
    """Declare an OLMo before Transformers had it, or a LLaDA, in which tokens see all others.

    `mlp_hidden_size` of swiglu is that of gate and product together, unless they are two weights.

    Source: allenai/OLMo, olmo/model.py, OLMoSequentialBlock and OLMoLlamaBlock.
    """
    values = dict(fields.source.values)
    if values.get("embedding_size") is not None:  # rows of the table, those of the padding as well
        values["vocab_size"] = values.pop("embedding_size")
    fields.source = replace(fields.source, values=values)
    two = fields.text("block_type", "sequential", tuple(_FUNCTIONS)) == "llama"
    only = _FUNCTIONS["llama" if two else "sequential"]
    fields.text("activation_type", "swiglu", (only,))
    wide = fields.size("mlp_hidden_size", fields.size("mlp_ratio", 4) * fields.size("hidden_size"))
    values["intermediate_size"] = wide if two else wide // 2
    fields.source = replace(fields.source, values=values)
    affine = fields.flag("layer_norm_with_affine", default=True)
    kind = fields.text("layer_norm_type", "default", ("default", "low_precision", "rms"))
    norms = (Norm.RMS_BARE, Norm.RMS) if kind == "rms" else (Norm.LAYER_BARE, Norm.LAYER_SCALE)
    decoder = decoder_of(fields).stepping(Step.MASK, on=fields.family == "hf_olmo")
    decoder = replace(decoder, branch=Branch(norms[affine]))
    single = fields.flag("multi_query_attention", default=False)
    heads = 1 if single and not fields.has("num_key_value_heads") else None
    return declared(fields, shape, decoder, heads)


def chatglm(fields: Fields, shape: Shape) -> Model:
    """Declare a ChatGLM; the first, with `inner_hidden_size`, has plain blocks with all biases.

    Source: THUDM/chatglm-6b, modeling_chatglm.py, GLMBlock.
    """
    first = fields.has("inner_hidden_size")
    if first:
        values = dict(fields.source.values)
        values["intermediate_size"] = values.pop("inner_hidden_size")
        values.setdefault("tie_word_embeddings", True)
        fields.source = replace(fields.source, values=values)
        fields.family = "chatglm1"
    return declared(fields, shape, decoder_of(fields))


def phi3small(fields: Fields, shape: Shape) -> Model:
    """Declare a Phi-3-small, whose perceptron has the one function that its code knows.

    Source: microsoft/Phi-3-small-8k-instruct, modeling_phi3_small.py, Phi3SmallMLP.
    """
    fields.text("hidden_act", "gegelu", ("gegelu",))
    values = {key: value for key, value in fields.source.values.items() if key != "hidden_act"}
    fields.source = replace(fields.source, values=values)
    return declared(fields, shape, decoder_of(fields))


_FUNCTIONS = {"sequential": "swiglu", "llama": "silu"}
"""Activation functions by blocks."""


def longcat(fields: Fields, shape: Shape) -> Model:
    """Declare a LongCat-Flash, some of whose experts compute nothing.

    Those that give a token back as it is ("zero experts") have no work and no weights: Transformers
    holds some for them, which no checkpoint has. Which tokens they get, only a run says: choices
    are taken to fall on all experts alike, so that of E_t chosen ones E_t E/(E + zero_expert_num)
    compute: 8 of 12 with 512 experts and 256 that do not.
    """
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


def zamba2(fields: Fields, shape: Shape) -> Model:
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


def zamba(fields: Fields, shape: Shape) -> Model:
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
    inner, scans = fields.size("expand", 2) * width, fields.size("mamba_num_heads", 8)
    made = zip(_FOLLOWS, (2 * width // heads, 2 * width, inner // scans), strict=False)
    for name, size in made:
        problem = f"only {size} is declared, as other fields make it"
        fields.require(holds=fields.optional_size(name) in (None, size), problem=problem, name=name)
    shared = [n for n, one in enumerate(fields.items("layers_block_type")) if one == SHARED]
    fields.require(
        holds=fields.source.values.get("hybrid_layer_ids") in (None, shared),
        problem=f"only {shared} is declared, as layers_block_type has it",
        name="hybrid_layer_ids",
    )


def _inner(fields: Fields, width: int) -> int:
    return fields.optional_size("intermediate_size") or 4 * width


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


def _megatron_attention(
    fields: Fields, bias: Bias, norm: Norm, rotated: Rotated
) -> Attention | LatentAttention:
    normed = fields.flag("qk_norm", default=False)
    wider = fields.flag("qkv_bias", default=False)
    core = AttentionCore(steps=Step.MASK | Step.DROP | Step.COPY)
    if not fields.flag("latent", default=False):
        return replace(
            ATTENTION,
            bias=bias | Bias.INNER if wider else bias,
            head_norm=HeadNorm.HEAD if normed else HeadNorm.NONE,
            norm=norm,
            rotated=rotated,
            core=core,
        )
    plain = bias is Bias.NONE and not wider
    fields.require(
        holds=normed and plain and norm is Norm.RMS and rotated is Rotated.WHOLE,
        problem="latents that are normalised by RMSNorm, rotation and no biases are declared",
        name="latent",
    )
    fields.ignore("num_key_value_heads")
    return LatentAttention("r_q" if fields.optional_size("q_lora_rank") else "", core=core)


def megatron(fields: Fields, shape: Shape) -> Model:
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
    fields.ignore("num_experts_per_tok", "moe_intermediate_size")
    norm = NORMS[fields.text("normalization", "LayerNorm", tuple(NORMS))]
    places = fields.text("position_embedding", "learned_absolute", tuple(ROTATED))
    entry = Entry.POSITION if places == "learned_absolute" else Entry.NONE
    common = fields.optional_size("moe_shared_expert_intermediate_size")
    own_width = fields.source.values.get("moe_intermediate_size") is not None
    decoder = Decoder(
        _megatron_attention(fields, bias, norm, ROTATED[places]),
        GatedMLP(function, bias) if gated else MLP(function, bias),
        experts=MixtureOfExperts(
            function, shared="f_s" if common else "", traits=Trait.NONE if gated else Trait.PLAIN
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
