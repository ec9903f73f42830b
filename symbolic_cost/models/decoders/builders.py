"""Builders of the decoder families whose fields say more than traits and sizes."""

from collections.abc import Mapping
from dataclasses import replace

from sympy import Integer

from symbolic_cost.layers.attention import CacheKind, HeadNorm, Rotated
from symbolic_cost.layers.heads import Hidden
from symbolic_cost.layers.latent import Indexing, LatentAttention
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.residual import Placing
from symbolic_cost.layers.tokens import Entry, Exit
from symbolic_cost.models.build import Fields, Model, Shape
from symbolic_cost.models.decoders.config import build, declared, decoder_of, logits_of
from symbolic_cost.models.decoders.decoder import Habit, Order
from symbolic_cost.models.decoders.families import DECODERS
from symbolic_cost.models.decoders.kinds import DENSE, FULL, SLIDES, Windows
from symbolic_cost.models.decoders.plan import listed_kinds, unrotated
from symbolic_cost.ops.declare import Part, axes
from symbolic_cost.ops.part import Place, retitled
from symbolic_cost.ops.unread import stored, unused_states, unused_weights


def hy_v4(fields: Fields, shape: Shape) -> Model:
    """Declare a HY V4: latent attention that chooses keys, on copies that are not mixed."""
    copies = fields.size("hc_mult", 4)
    lengths = {"n_o": copies, "n_t": copies, "n_x": 2 * copies, "n_c": 2}
    return _latent(fields, shape, lengths)


def axk2(fields: Fields, shape: Shape) -> Model:
    """Declare an A.X K2: queries and a gate are made of both latents of a query."""
    return _latent(fields, shape, {"r_g": fields.size("gated_norm_rank", 16)})


def timesfm(fields: Fields, shape: Shape) -> Model:
    """Declare a TimesFM on l patches; 2.5 forecasts a series and its mirror image."""
    decoder, newer = decoder_of(fields), fields.family == "timesfm2_5"
    kinds = len(fields.items("quantiles", (None,) * 9)) + 1
    told = fields.size("horizon_length", 128) * kinds
    hidden = fields.size("hidden_size" if newer else "intermediate_size")
    lengths = {"n_s": 2 * fields.size("patch_length", 32), "s_h": hidden, "n_v": told}
    fields.source = replace(fields.source, values={**fields.source.values, "vocab_size": told})
    if newer:
        lengths["n_q"] = fields.size("output_quantile_len", 1024) * kinds
        problem = "two or more are accepted: fewer train no head of their own"
        fields.require(holds=kinds > 2, problem=problem, name="quantiles")  # noqa: PLR2004
        own: dict[str, object] = {"function": decoder.perceptron.function}
        head = replace(logits_of(decoder), **own)  # type: ignore[arg-type]
        decoder = replace(decoder, head=head)
        if fields.flag("force_flip_invariance", default=True) and "Prediction" in fields.head:
            shape = replace(shape, b=2 * shape.b)
    else:
        lengths["n_f"] = fields.size("freq_size", 3)
        placed = fields.flag("use_positional_embedding", default=False)
        own = {"steps": Entry.COMPUTED} if placed else {}
        most = fields.size("context_length", 512) // fields.size("patch_length", 32)
        if shape.l.is_Integer and shape.l > most and "Prediction" in fields.head:
            beyond = f"it holds {most} patches: {shape.l} are counted, of which a run sees the last"
            fields.assume("context_length", beyond)
    decoder = replace(
        decoder,
        tokens=replace(decoder.tokens, **own),  # type: ignore[arg-type]
        lengths={axis: Integer(size) for axis, size in lengths.items()},
    )
    return declared(fields, shape, decoder, None if newer else fields.size("num_attention_heads"))


def helium(fields: Fields, shape: Shape) -> Model:
    """Declare a Helium: the product behind attention takes as many features as a token has."""
    e, h = fields.size("hidden_size"), fields.size("num_attention_heads")
    width = fields.size("head_dim", 128)
    problem = f"{h} heads of {width} are not as wide as a hidden_size of {e}"
    fields.require(holds=h * width == e, problem=problem, name="head_dim", other="hidden_size")
    return declared(fields, shape, decoder_of(fields))


def opt(fields: Fields, shape: Shape) -> Model:
    """Declare an OPT: its smallest but one has norms after the sums and a narrow token table."""
    decoder = decoder_of(fields)
    first = fields.flag("do_layer_norm_before", default=True)
    bare = fields.flag("_remove_final_layer_norm", default=False)
    affine = fields.flag("layer_norm_elementwise_affine", default=True)
    width = fields.size("word_embed_proj_dim", fields.size("hidden_size"))
    table = "e" if width == fields.size("hidden_size") else "w"
    branch = replace(
        decoder.branch,
        norm=Norm.LAYER if affine else Norm.LAYER_BARE,
        placing=Placing.PRE if first else Placing.POST,
    )
    head = logits_of(decoder, width=table)
    tokens = replace(decoder.tokens, width=table)
    habits = decoder.habits if first and not bare else decoder.habits & ~Habit.LAST_NORM
    changed = replace(decoder, branch=branch, habits=habits, head=head, tokens=tokens)
    return declared(fields, shape, changed)


def gpt_neox(fields: Fields, shape: Shape) -> Model:
    """Declare a GPT-NeoX: its branches run side by side unless switched off."""
    parallel = fields.flag("use_parallel_residual", default=True)
    order = Order.OWN_NORMS if parallel else Order.IN_TURN
    decoder, tokens = decoder_of(fields), DECODERS[fields.family].tokens
    if decoder.branch.drops:  # the same key drops tokens
        tokens = replace(tokens, steps=tokens.steps | Entry.DROP)
    return declared(fields, shape, replace(decoder, order=order, tokens=tokens))


def stablelm(fields: Fields, shape: Shape) -> Model:
    """Declare a StableLM: branches side by side share their norm."""
    parallel = fields.flag("use_parallel_residual", default=False)
    order = Order.SHARED_NORM if parallel else Order.IN_TURN
    return declared(fields, shape, replace(decoder_of(fields), order=order))


_SEPARATE = 2
"""Norms of a Falcon's block whose branches have their own; any other number means one."""


def falcon(fields: Fields, shape: Shape) -> Model:
    """Declare a Falcon: the new decoder has grouped heads and may have two parallel norms."""
    new = fields.flag("new_decoder_architecture", default=False)
    parallel = fields.flag("parallel_attn", default=True)
    single = fields.flag("multi_query", default=True) and not new
    norms = fields.optional_size("num_ln_in_parallel_attn") or (2 if new else 1)
    order = Order.OWN_NORMS if norms == _SEPARATE else Order.SHARED_NORM
    alibi = fields.flag("alibi", default=False)
    heads = fields.size("num_attention_heads")
    groups = fields.optional_size("num_key_value_heads", heads) if new or not single else heads
    fields.ignore("num_kv_heads", "n_head_kv")
    decoder = replace(decoder_of(fields), order=order if parallel or new else Order.IN_TURN)
    decoder = decoder.attended(
        rotated=Rotated.NOTHING if alibi else Rotated.WHOLE,
        cache=CacheKind.COPIES if new else CacheKind.HEADS,
    )
    shared = (groups or heads) if new else heads
    return declared(fields, shape, decoder, heads=1 if single else shared)


def xlstm(fields: Fields, shape: Shape) -> Model:
    """Declare an xLSTM: its blocks have a number of their own, and the layers that of its cache."""
    blocks = fields.size("num_blocks", fields.size("num_hidden_layers", 32))
    absent = fields.source.values.get("num_hidden_layers", "") is None
    layers = fields.size("num_hidden_layers", blocks if absent else 32)
    problem = f"{blocks} blocks have states of {layers} layers (num_hidden_layers)"
    fields.require(holds=blocks <= layers, problem=problem, name="num_blocks")
    values = {**fields.source.values, "num_hidden_layers": blocks}
    fields.source = replace(fields.source, values=values)
    fields.text("weight_mode", "single", ("single", "fused"))
    model = build(fields, shape)
    if blocks == layers:
        return model
    ops = next(part.ops for part in model.parts if part.is_block)
    further = Part("further", unused_states(ops), Integer(layers - blocks), {}, place=Place.END)
    return replace(model, parts=(*model.parts, further))


def cohere(fields: Fields, shape: Shape) -> Model:
    """Declare a Command R: the larger one normalises every head of queries and keys."""
    normed = fields.flag("use_qk_norm", default=False)
    kind = HeadNorm.HEADS if normed else HeadNorm.NONE
    return declared(fields, shape, decoder_of(fields).attended(head_norm=kind))


def deepseek(fields: Fields, shape: Shape) -> Model:
    """Declare a DeepSeek V2 or V3: latent attention, and experts after some dense layers."""
    return _latent(fields, shape, {})


def _latent(fields: Fields, shape: Shape, lengths: Mapping[str, int]) -> Model:
    every = fields.size("moe_layer_freq", 1)
    if every != 1:
        fields.note("moe_layer_freq", "only 1 is declared: all later layers")
    biased = fields.flag("attention_bias", default=False)
    fields.require(holds=not biased, problem="only false is declared", name="attention_bias")
    fields.ignore("num_nextn_predict_layers", "head_dim", "qk_head_dim", "num_key_value_heads")
    rank = fields.optional_size("q_lora_rank")
    zero = fields.source.values.get("q_lora_rank") in (None, rank)
    fields.require(holds=zero, problem="null or a size is accepted", name="q_lora_rank")
    own = {axis: Integer(size) for axis, size in lengths.items()}
    decoder = decoder_of(fields)
    decoder = replace(decoder, lengths={**decoder.lengths, **own})
    chooses = isinstance(decoder.attention, LatentAttention) and decoder.attention.indexed
    fields.require(
        holds=bool(rank) or chooses is not Indexing.OWN,
        problem="a size is needed, which chooses keys",
        name="q_lora_rank",
    )
    return declared(fields, shape, decoder.attended(query="r_q" if rank else ""))


def gpt_bigcode(fields: Fields, shape: Shape) -> Model:
    """Declare a StarCoder: all heads share keys and values unless switched off."""
    single = fields.flag("multi_query", default=True)
    heads = 1 if single else fields.size("num_attention_heads")
    fields.ignore("num_key_value_heads")
    return declared(fields, shape, decoder_of(fields), heads=heads)


def gpt_neox_japanese(fields: Fields, shape: Shape) -> Model:
    """Declare a Japanese GPT-NeoX: the last block alone has a bias, of its output projection."""
    decoder = decoder_of(fields)
    widening = fields.size("intermediate_multiple_size", 4)
    if fields.has("intermediate_size"):
        fields.note("n_inner", "intermediate_multiple_size says it")
    reads = replace(decoder.reads, widening=widening, kinds=_last_is_biased)
    return declared(fields, shape, replace(decoder, reads=reads))


def _last_is_biased(_: Fields, layers: int) -> tuple[list[str], list[str]]:
    return [FULL] * (layers - 1) + ["biased_attention"], [DENSE] * layers


def imagegpt(fields: Fields, shape: Shape) -> Model:
    """Declare an ImageGPT: its head tells colours apart, all tokens but the one that begins."""
    model = build(fields, shape)
    *trunk, last = model.parts
    head = replace(last, ops=retitled(last.ops, {"v": "v_c"}))
    sizes = {**model.sizes, "v_c": model.sizes["v"] - 1}
    return replace(
        model,
        parts=(*trunk, head),
        sizes=sizes,
        axes={**model.axes, **axes("v_c vocabulary")},
        padded=(*model.padded, "v_c"),
    )


def mimo(fields: Fields, shape: Shape) -> Model:
    """Declare a MiMo: blocks for further tokens have weights, and do not run with the others."""
    further = fields.optional_size("num_nextn_predict_layers") or 0
    model = build(fields, shape)
    block = next(part for part in model.parts if part.is_block)
    entry = (stored("project", w="two e n_e"), stored("norms", w="c e"))
    part = Part("further.block", (*entry, *unused_weights(block.ops)), Integer(further))
    return replace(model, parts=(*model.parts, part)) if further else model


def modernbert(fields: Fields, shape: Shape) -> Model:
    """Declare a ModernBERT that generates: its first layer attends without a norm before."""
    decoder = decoder_of(fields)
    near = fields.optional_size("local_attention", 128) or 2
    decoder = replace(decoder, windows=Windows(0, near // 2))
    every = fields.size("global_attn_every_n_layers", 3)

    def kinds(fields: Fields, layers: int) -> tuple[list[str], list[str]]:
        rule = [SLIDES if layer % every else FULL for layer in range(layers)]
        mixers = listed_kinds(fields, decoder, layers) or rule
        if mixers[0] != FULL:
            fields.note("layer_types", "a first layer in full is declared")
        return ["first", *mixers[1:]], [DENSE] * layers

    hidden = Hidden("gelu", fields.flag("classifier_bias", default=False), Norm.LAYER_SCALE)
    biased = fields.flag("decoder_bias", default=True)
    head = replace(logits_of(decoder), hidden=hidden)
    steps = head.steps | Exit.BIAS if biased else head.steps & ~Exit.BIAS
    reads = replace(decoder.reads, kinds=kinds)
    return declared(fields, shape, replace(decoder, reads=reads, head=replace(head, steps=steps)))


def olmo_hybrid(fields: Fields, shape: Shape) -> Model:
    """Declare an OLMo whose layers are linear, but every fourth."""
    for part in ("num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim"):
        name = f"linear_{part}"
        fields.require(holds=fields.has(name), problem="a size is needed", name=name)
    rope = fields.source.values.get("rope_parameters") or {}
    if not rope.get("rope_theta") and not fields.has("rope_theta"):
        fields.note("rope_parameters", "layers without rotation are not declared")
    return build(fields, shape)


def smollm3(fields: Fields, shape: Shape) -> Model:
    """Declare a SmolLM3: every fourth layer is not rotated."""
    decoder = decoder_of(fields)

    def kinds(fields: Fields, layers: int) -> tuple[list[str], list[str]]:
        listed_kinds(fields, decoder, layers)
        return unrotated(fields, layers, 4), [DENSE] * layers

    return declared(fields, shape, replace(decoder, reads=replace(decoder.reads, kinds=kinds)))
