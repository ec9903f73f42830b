"""Sizes of decoders, from the fields of a configuration."""

from __future__ import annotations

from sympy import Expr

from symbolic_cost.models.decoder_plan import Plan
from symbolic_cost.models.fields import ALIASES, Fields
from symbolic_cost.models.sizes import Sizes
from symbolic_cost.models.traits import Positions, Sparse, Traits

_EXPERT_KEYS = ("num_experts", "num_experts_per_tok", "n_shared_experts")


def decoder_sizes(fields: Fields, traits: Traits, plan: Plan, heads: int | None) -> Sizes:
    """Read the sizes of a decoder and check them against each other.

    Args:
        fields: of the configuration.
        traits: that say which sizes there are.
        plan: of the layers.
        heads: key/value heads, if the configuration does not give them.
    """
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
    if traits.sparse is not Sparse.NEVER:  # read above unless every layer is dense
        fields.ignore(*(key for name in _EXPERT_KEYS for key in (name, *ALIASES.get(name, ()))))
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
    return {"k": k, "q": width, **_rotated(fields, traits, width)}


def _rotated(fields: Fields, traits: Traits, width: int) -> dict[str, Expr | int]:
    """Read how much of a head is rotated: a width, or a share of the head rounded down."""
    part = traits.part
    if traits.positions is not Positions.ROTARY:
        return {}
    if part is None:
        share = fields.share("partial_rotary_factor", 1.0)
        problem = f"only 1 is declared for {fields.family}: all of a head is rotated"
        fields.require(holds=share == 1, problem=problem, name="partial_rotary_factor")
        return {}
    if part.key == "rotary_dim":
        rotated = fields.size(part.key, int(part.default)) if _given(fields, part.key) else width
    else:
        rotated = int(width * fields.share(part.key, float(part.default)))
    fields.require(
        holds=0 < rotated <= width,
        problem=f"{rotated} rotated elements are not some of a head's {width}",
        name=part.key,
    )
    return {"d_r": fields.derived("rotary_dim", rotated)}


def _given(fields: Fields, key: str) -> bool:
    """Return whether a key is absent, so that its default holds, or has a value."""
    return fields.source.values.get(key, key) is not None


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
