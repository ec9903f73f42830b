"""Sizes of decoders, from the fields of a configuration."""

from symbolic_cost.layers.attention import Attention
from symbolic_cost.layers.latent import Expansion, Indexing, LatentAttention
from symbolic_cost.layers.tokens import Entry
from symbolic_cost.models.decoders.decoder import Decoder
from symbolic_cost.models.decoders.kinds import EXPERTS, NONE, Sparse
from symbolic_cost.models.decoders.plan import Plan
from symbolic_cost.models.fields import Fields

_EXPERT_KEYS = ("num_experts", "num_experts_per_tok", "mlp_layer_types")

_ATTENTION_KEYS = (
    *("num_attention_heads", "num_key_value_heads", "head_dim", "kv_lora_rank"),
    *("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "q_lora_rank"),
)
"""What tells nothing where no layer attends."""

Numbers = dict[str, int]
"""Sizes by symbol."""


def decoder_sizes(fields: Fields, decoder: Decoder, plan: Plan, heads: int | None) -> Numbers:
    """Read the sizes of a decoder and check them against each other.

    Args:
        fields: of the configuration.
        decoder: that says which sizes there are.
        plan: of the layers.
        heads: key/value heads, if the configuration does not give them.
    """
    e = fields.size("hidden_size")
    reads, layers = decoder.reads, {kind.layer for kind in plan.kinds}
    numbers = {**plan.numbers, "e": e, "V": fields.size("vocab_size")}
    if layers - {EXPERTS, NONE} or not layers:
        wide = () if reads.widening is None else (reads.widening * e,)
        f = fields.size(reads.dense_width, *wide)
        numbers["f"] = reads.inner(fields, f) if reads.inner else f
    if Entry.POSITION in decoder.tokens.steps:
        numbers["P"] = fields.size("max_position_embeddings") + reads.offset
    if decoder.tokens.width == "w":
        numbers["e_p"] = fields.size("word_embed_proj_dim", e)
    if EXPERTS in layers:
        numbers |= _expert_sizes(fields, decoder)
    for kind in plan.kinds:
        if kind.mixer in decoder.mixers:
            numbers |= decoder.mixers[kind.mixer].read(fields)[1]
    fields.ignore("intermediate_size", reads.dense_width, reads.expert_width)
    if decoder.sparse is not Sparse.NEVER:  # read above unless every layer is dense
        known = decoder.experts.shared or EXPERTS not in layers
        keys = (*_EXPERT_KEYS, *(("n_shared_experts",) if known else ()))
        fields.ignore(*(key for name in keys for key in fields.names(name)))
    if not any(decoder.attends(kind) for kind in plan.kinds):
        fields.ignore(*(key for name in _ATTENTION_KEYS for key in fields.names(name)))
        return numbers
    numbers["h"] = fields.size("num_attention_heads")
    if isinstance(decoder.attention, LatentAttention):
        return numbers | _latent_sizes(fields, decoder, decoder.attention)
    numbers |= _head_sizes(fields, decoder, heads)
    chosen = any("indexed" in decoder.variants.get(kind.mixer, ()) for kind in plan.kinds)
    return numbers | (_indexer_sizes(fields, numbers["k"]) if chosen else {})


def _indexer_sizes(fields: Fields, heads: int) -> Numbers:
    """Read the width of narrow heads that choose keys, one for every key/value head."""
    own = fields.size("index_n_heads", heads)
    problem = f"only num_key_value_heads = {heads} is declared"
    fields.require(holds=own == heads, problem=problem, name="index_n_heads")
    return {"d_x": fields.size("index_head_dim")}


def _head_sizes(fields: Fields, decoder: Decoder, heads: int | None) -> Numbers:
    e, h = fields.size("hidden_size"), fields.size("num_attention_heads")
    k = heads or fields.size("num_key_value_heads", h)
    fields.require(
        holds=h % k == 0,
        problem=f"{k} key/value heads do not divide {h} attention heads",
        name="num_key_value_heads",
        other="num_attention_heads",
    )
    width = fields.optional_width("head_dim", decoder.reads.head_width)
    if heads is None and decoder.sizes.k == decoder.sizes.h:  # classes that read neither key
        k = h
        if width not in (None, e // h):
            fields.note("head_dim", f"only {e // h} is declared: {fields.family} knows no other")
    if width is None:
        fields.require(
            holds=e % h == 0,
            problem=f"{h} heads do not divide a width of {e}, and no head_dim is given",
            name="num_attention_heads",
            other="hidden_size",
        )
        width = fields.derived("head_dim", e // h)
    # Heads of one feature are products in GPT-2; of no other family is it known.
    products = width > 1 or fields.family == "gpt2"
    fields.require(holds=products, problem="1 is no width of a head", name="head_dim")
    own = decoder.attention
    apart = isinstance(own, Attention) and own.value == "d_v"
    values = {"d_v": fields.size("v_head_dim", width)} if apart else {}
    return {"k": k, "q": width, **values, **_rotated(fields, decoder, width)}


def _rotated(fields: Fields, decoder: Decoder, width: int) -> Numbers:
    """Read how much of a head is rotated: a width, or a share of the head rounded down."""
    share = decoder.reads.share
    if not decoder.rotated.value:
        return {}
    if share is None:
        whole = fields.share("partial_rotary_factor", 1) == 1
        problem = f"only 1 is declared for {fields.family}: all of a head is rotated"
        fields.require(holds=whole, problem=problem, name="partial_rotary_factor")
        problem = f"the two halves of a head are rotated, and a head's width of {width} is odd"
        fields.require(holds=width == 1 or width % 2 == 0, problem=problem, name="head_dim")
        return {}
    if share.key == "rotary_dim" and (share.default or fields.has(share.key)):
        stated = fields.source.values.get(share.key, share.key) is not None
        rotated = fields.size(share.key, int(share.default)) if stated else width
        if fields.has("partial_rotary_factor") and not share.default:
            part = fields.share("partial_rotary_factor", 1)
            problem = f"{part} of a head's {width} is not the rotary_dim of {rotated}"
            if int(width * part) != rotated:
                fields.note("partial_rotary_factor", problem)
    else:
        key = share.key if share.key != "rotary_dim" else "partial_rotary_factor"
        rotated = int(width * fields.share(key, float(share.default or 1)))
    if not (0 < rotated <= width and rotated % 2 == 0):
        fields.note(share.key, f"{rotated} rotated elements are no pairs of a head's {width}")
    return {"d_r": fields.derived("rotary_dim", rotated)}


def _latent_sizes(fields: Fields, decoder: Decoder, attention: LatentAttention) -> Numbers:
    value_width = decoder.reads.value_width
    width, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    values = () if value_width is None else (max(value_width(width, heads), 1),)
    numbers = {
        "r_kv": fields.size("kv_lora_rank"),
        "d_n": fields.size("qk_nope_head_dim"),
        "d_r": fields.size("qk_rope_head_dim"),
        "d_v": fields.size("v_head_dim", *values),
    }
    if attention.indexed is not Indexing.NONE:
        numbers["h_x"] = fields.size("index_n_heads")
        numbers["d_x"] = indexer_width(fields, numbers["d_r"])
        if attention.expansion is Expansion.NEVER:
            numbers["W"] = fields.size("index_topk", 2048)
    if attention.query:
        numbers["r_q"] = fields.size("q_lora_rank")
    return numbers


def indexer_width(fields: Fields, rotated: int, *default: int) -> int:
    """Read the width of heads that choose keys, of which as much is rotated as of the others."""
    width, name = fields.size("index_head_dim", *default), "index_head_dim"
    problem = f"{rotated} elements are rotated, of {width}"
    fields.require(holds=width >= rotated, problem=problem, name=name, other="qk_rope_head_dim")
    return width


def _expert_sizes(fields: Fields, decoder: Decoder) -> Numbers:
    experts, chosen = fields.size("num_experts"), fields.size("num_experts_per_tok")
    fields.require(
        holds=chosen <= experts,
        problem=f"{chosen} experts per token are more than the {experts} that there are",
        name="num_experts_per_tok",
        other="num_experts",
    )
    width = fields.size(decoder.reads.expert_width)
    numbers = {"E": experts, "E_t": chosen, "f_m": width}
    if decoder.experts.shared:
        numbers["f_s"] = _shared_width(fields, decoder, width)
    if decoder.experts.latent:
        numbers["r_m"] = fields.size(decoder.reads.latent_width)
    return numbers


def _shared_width(fields: Fields, decoder: Decoder, width: int) -> int:
    key = decoder.reads.shared_width
    if key:
        return fields.size(key)
    shared = decoder.reads.shared
    return width * fields.size("n_shared_experts", *(() if shared is None else (shared,)))


def routed_groups(fields: Fields) -> tuple[int, int]:
    """Return the groups of experts and how many of them the experts of a token lie in."""
    groups, chosen = (fields.optional_size(name) for name in ("n_group", "topk_group"))
    if groups is None or chosen is None:
        return 1, 1
    fields.require(
        holds=chosen <= groups,
        problem=f"{chosen} groups of a token are more than the {groups} that there are",
        name="topk_group",
        other="n_group",
    )
    experts = fields.optional_size("num_experts") or 0
    fields.require(
        holds=experts % groups == 0,
        problem=f"{groups} groups do not divide {experts} experts",
        name="n_group",
        other="num_experts",
    )
    return groups, chosen
