"""Builders of the decoder families: from the fields of a configuration to traits and sizes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from sympy import Expr, Integer

from symbolic_cost.layers.attention import Core
from symbolic_cost.layers.grouped import HeadNorm
from symbolic_cost.layers.norm import Norm
from symbolic_cost.models.decoder import Placing
from symbolic_cost.models.decoder_families import TRAITS
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.sizes import Sizes
from symbolic_cost.models.traits import (
    Positions,
    Run,
    Sparse,
    Traits,
    Window,
    decoder,
    switched,
)
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

_WINDOWED_LAYERS = {"sliding_attention": True, "full_attention": False}


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
    attention = fields.text("attn_implementation", "eager", (*CORES, PRECISE))
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
    )


def _name_of(function: str) -> str:
    return next(name for name, kind in ACTIVATIONS.items() if kind == function)


def declared(fields: Fields, shape: Shape, traits: Traits, heads: int | None = None) -> Model:
    """Read the sizes, check them against each other, and declare the model of given traits."""
    plan = _plan(fields, traits)
    sizes = _sizes(fields, traits, plan, heads)
    fields.refuse()
    runs = tuple(
        Run(sliding, sparse, Integer(count)) for (sliding, sparse), count in plan.kinds.items()
    )
    bare = fields.head.endswith("Model") and not fields.head.endswith("LMHeadModel")
    predicted = fields.size("num_nextn_predict_layers", 1) if fields.head.endswith("NextN") else 0
    return decoder(
        fields.family, traits, sizes, runs, shape, head=not bare, predicted=predicted
    ).model()


@dataclass(frozen=True)
class _Plan:
    """Which layers slide or are sparse: counts by (sliding, sparse), and the window."""

    kinds: Counter[tuple[bool, bool]]
    window: int | None


def _plan(fields: Fields, traits: Traits) -> _Plan:
    layers = fields.size("num_hidden_layers")
    if layers > _MOST_LAYERS:
        problem = f"{layers} layers are more than any model has"
        fields.require(holds=False, problem=problem, name="num_hidden_layers")
        layers = 1
    window = _window(fields, traits)
    sliding = _sliding(fields, traits, layers, window)
    sparse = _sparse(fields, traits, layers)
    return _Plan(Counter(zip(sliding, sparse, strict=True)), window)


_MOST_LAYERS = 10**5


def _window(fields: Fields, traits: Traits) -> int | None:
    if traits.window is Window.NEVER:
        return None
    if "sliding_window" in fields.source.values:
        return fields.optional_size("sliding_window")
    return fields.optional_size("sliding_window", traits.windowed)


def _sliding(fields: Fields, traits: Traits, layers: int, window: int | None) -> list[bool]:
    """Return for every layer whether it slides: as listed, or by the family's rule."""
    rule = traits.window
    upper = layers
    if rule is Window.UPPER:
        switched_on = fields.flag("use_sliding_window", default=False)
        first = fields.optional_size("max_window_layers", layers) or 0
        upper = first if switched_on else layers
    nth = 0
    if rule is Window.ALL_BUT_NTH:
        nth = fields.size("sliding_window_pattern", fields.size("_sliding_window_pattern", 6))
    given = fields.items("layer_types")
    if given:
        return _listed(fields, given, layers, window)
    chosen = {
        Window.NEVER: range(0),
        Window.ALWAYS: range(layers),
        Window.EVEN: range(0, layers, 2),
        Window.ALL_BUT_NTH: [layer for layer in range(layers) if nth and (layer + 1) % nth],
        Window.UPPER: range(upper, layers),
    }[rule]
    return [window is not None and layer in chosen for layer in range(layers)]


def _listed(
    fields: Fields, given: tuple[object, ...], layers: int, window: int | None
) -> list[bool]:
    strange = [kind for kind in given if kind not in _WINDOWED_LAYERS]
    fields.require(
        holds=not strange,
        problem=f"{strange[:1]} is no kind of layer: {' or '.join(_WINDOWED_LAYERS)} is accepted",
        name="layer_types",
    )
    fields.require(
        holds=len(given) == layers,
        problem=f"{len(given)} entries contradict num_hidden_layers = {layers}",
        name="layer_types",
        other="num_hidden_layers",
    )
    slides = "sliding_attention" in given
    fields.require(
        holds=window is not None or not slides,
        problem="sliding layers need a sliding_window",
        name="layer_types",
    )
    listed = [kind == "sliding_attention" for kind in given[:layers]]
    return listed + [False] * (layers - len(listed))


def _sparse(fields: Fields, traits: Traits, layers: int) -> list[bool]:
    """Return for every layer whether it is a mixture of experts."""
    rule = traits.sparse
    if rule is Sparse.AFTER_FIRST:
        dense = fields.optional_size("first_k_dense_replace", 0) or 0
        return [layer >= dense for layer in range(layers)]
    if rule is Sparse.EVERY_NTH:
        step = fields.size("decoder_sparse_step", 1)
        listed = fields.items("mlp_only_layers")
        return [layer not in listed and (layer + 1) % step == 0 for layer in range(layers)]
    return [rule is Sparse.ALWAYS] * layers


def _sizes(fields: Fields, traits: Traits, plan: _Plan, heads: int | None) -> Sizes:
    e, h = fields.size("hidden_size"), fields.size("num_attention_heads")
    given: dict[str, Expr | int] = {
        "n_layers": sum(plan.kinds.values()),
        "e": e,
        "h": h,
        "V": fields.size("vocab_size"),
    }
    sparse = {kind[1] for kind in plan.kinds}
    if plan.window is not None:
        given["W"] = plan.window
    if False in sparse or not sparse:
        given["f"] = (
            fields.size("intermediate_size", 4 * e)
            if traits.wide
            else fields.size("intermediate_size")
        )
    if traits.positions is Positions.LEARNED:
        given["P"] = fields.size("max_position_embeddings") + traits.offset
    if traits.projected:
        given["e_p"] = fields.size("word_embed_proj_dim", e)
    if True in sparse:
        given |= _expert_sizes(fields, traits)
    fields.ignore("intermediate_size", traits.expert_width)
    given |= _latent_sizes(fields, traits) if traits.latent else _head_sizes(fields, traits, heads)
    return Sizes(**given)


def _head_sizes(fields: Fields, traits: Traits, heads: int | None) -> dict[str, Expr | int]:
    e, h = fields.size("hidden_size"), fields.size("num_attention_heads")
    k = heads or fields.size("num_key_value_heads", h)
    fields.require(
        holds=h % k == 0,
        problem=f"{k} key/value heads do not divide {h} attention heads",
        name="num_key_value_heads",
        other="num_attention_heads",
    )
    width = fields.optional_size("head_dim", traits.head_width)
    if width is None:
        fields.require(
            holds=e % h == 0,
            problem=f"{h} heads do not divide a width of {e}, and no head_dim is given",
            name="num_attention_heads",
            other="hidden_size",
        )
        width = fields.derived("head_dim", e // h)
    return {"k": k, "q": width}


def _latent_sizes(fields: Fields, traits: Traits) -> dict[str, Expr | int]:
    found: dict[str, Expr | int] = {
        "r_kv": fields.size("kv_lora_rank"),
        "d_n": fields.size("qk_nope_head_dim"),
        "d_r": fields.size("qk_rope_head_dim"),
        "d_v": fields.size("v_head_dim"),
    }
    if traits.query_latent:
        found["r_q"] = fields.size("q_lora_rank")
    return found


def _expert_sizes(fields: Fields, traits: Traits) -> dict[str, Expr | int]:
    experts, chosen = fields.size("num_experts"), fields.size("num_experts_per_tok")
    fields.require(
        holds=chosen <= experts,
        problem=f"{chosen} experts per token are more than the {experts} that there are",
        name="num_experts_per_tok",
        other="num_experts",
    )
    width = fields.size(traits.expert_width)
    found: dict[str, Expr | int] = {"E": experts, "E_t": chosen, "f_m": width}
    if traits.shared:
        found["f_s"] = width * fields.size("n_shared_experts")
    return found


__all__ = [
    "ACTIVATIONS",
    "CORES",
    "build",
    "cohere",
    "declared",
    "deepseek",
    "falcon",
    "gpt_neox",
    "opt",
]
