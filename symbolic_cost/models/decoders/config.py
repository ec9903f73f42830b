"""Builders of the decoder families: from the fields of a configuration to traits and sizes."""

from dataclasses import replace

from sympy import Integer

from symbolic_cost.layers.attention import CacheKind, HeadNorm, Rotated
from symbolic_cost.layers.attention_core import Core, Step
from symbolic_cost.layers.heads import Hidden
from symbolic_cost.layers.latent import Expansion, LatentAttention
from symbolic_cost.layers.moe import Trait
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.residual import Outcome, Placing
from symbolic_cost.layers.tokens import Entry, Exit, Judged, Logits, Scores
from symbolic_cost.models.decoders.decoder import Decoder, Habit, Order
from symbolic_cost.models.decoders.families import DECODERS
from symbolic_cost.models.decoders.fields import decoder_sizes, routed_groups
from symbolic_cost.models.decoders.kinds import DENSE, FULL, SLIDES, Windows
from symbolic_cost.models.decoders.plan import layer_plan, listed_kinds, unrotated
from symbolic_cost.models.decoders.sizes import Sizes
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.functions import ACTIVATIONS, CORES
from symbolic_cost.models.labels import classes_of
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.titles import retitled
from symbolic_cost.ops.declare import Model, Part, axes
from symbolic_cost.ops.unread import stored, unused_weights

SEQUENCE, TOKENS = "ForSequenceClassification", "ForTokenClassification"
SPAN = "ForQuestionAnswering"
REWARD, PROCESS = "RewardModel", "ForProcessRewardModel"
"""Heads by the ends of the names of Hugging Face."""

_FIXED = {SPAN: 2, PROCESS: 2, REWARD: 1}
"""Classes of heads that have the same number everywhere."""

ABSORBED = "absorbed"
"""How servers run latent attention: on the latents, whose keys and values are never expanded."""


def build(fields: Fields, shape: Shape) -> Model:
    """Declare a decoder of a family without peculiarities."""
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
    head = _logits(decoder, width=table)
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


def cohere(fields: Fields, shape: Shape) -> Model:
    """Declare a Command R: the larger one normalises every head of queries and keys."""
    normed = fields.flag("use_qk_norm", default=False)
    kind = HeadNorm.HEADS if normed else HeadNorm.NONE
    return declared(fields, shape, decoder_of(fields).attended(head_norm=kind))


def deepseek(fields: Fields, shape: Shape) -> Model:
    """Declare a DeepSeek V2 or V3: latent attention, and experts after some dense layers."""
    every = fields.size("moe_layer_freq", 1)
    if every != 1:
        fields.note("moe_layer_freq", "only 1 is declared: all later layers")
    biased = fields.flag("attention_bias", default=False)
    fields.require(holds=not biased, problem="only false is declared", name="attention_bias")
    fields.ignore("num_nextn_predict_layers", "head_dim", "qk_head_dim", "num_key_value_heads")
    rank = fields.optional_size("q_lora_rank")
    zero = fields.source.values.get("q_lora_rank") in (None, rank)
    fields.require(holds=zero, problem="null or a size is accepted", name="q_lora_rank")
    return declared(fields, shape, decoder_of(fields).attended(query="r_q" if rank else ""))


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
    head = replace(_logits(decoder), hidden=hidden)
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


def decoder_of(fields: Fields) -> Decoder:
    """Return the family, with what the configuration switches."""
    decoder = DECODERS[fields.family]
    for key, switch in decoder.reads.switches.items():
        if fields.stands(key):
            decoder = switch(decoder, fields.flag(key, default=False))
    decoder = _running(fields, _capped(fields, _latent(fields, _sharing(fields, decoder))))
    name = fields.text("hidden_act", _name_of(decoder.perceptron.function), tuple(ACTIVATIONS))
    # Gemma 1 named the approximation by a tanh after what it approximates.
    function = (
        decoder.perceptron.function
        if fields.family == "gemma" and name == "gelu"
        else ACTIVATIONS[name]
    )
    return with_dropouts(
        fields,
        replace(
            decoder,
            perceptron=replace(decoder.perceptron, function=function),
            experts=replace(decoder.experts, function=function),
            head=_logits(decoder, weight=tied(fields, default=_logits(decoder).weight == "@token")),
        ),
    )


def _sharing(fields: Fields, decoder: Decoder) -> Decoder:
    """Return the family without a shared expert where the configuration has none of them."""
    key = decoder.reads.shared_width or "n_shared_experts"
    if not decoder.experts.shared or not fields.has(key) or fields.optional_size(key) is not None:
        return decoder
    plain = decoder.experts.traits & ~Trait.SHARED_GATE
    return replace(decoder, experts=replace(decoder.experts, shared="", traits=plain))


def _latent(fields: Fields, decoder: Decoder) -> Decoder:
    """Return the family with experts on a latent where the configuration says how wide it is."""
    if not decoder.reads.latent_width or fields.optional_size(decoder.reads.latent_width) is None:
        return decoder
    biased = fields.flag("mlp_bias", default=False)
    if biased:
        fields.note("mlp_bias", "only false is declared beside moe_latent_size")
    return replace(decoder, experts=replace(decoder.experts, latent="r_m"))


def _capped(fields: Fields, decoder: Decoder) -> Decoder:
    """Return the family without what null switches off, and with clamps that are given."""
    values, head = fields.source.values, decoder.head
    if values.get("attn_logit_softcapping", 0) is None and Step.CAP in decoder.attention.core.steps:
        decoder = decoder.stepping(Step.CAP, on=False)
    if values.get("final_logit_softcapping", 0) is None and isinstance(head, Logits):
        decoder = replace(decoder, head=replace(head, steps=head.steps & ~Exit.CAP))
    if fields.family in _CLAMPED and values.get("clip_qkv") is not None:
        decoder = decoder.attended(clamped=True)
    return decoder


_CLAMPED = frozenset({"olmo", "olmoe"})
"""Families that clamp queries, keys and values where `clip_qkv` says to what."""


def _running(fields: Fields, decoder: Decoder) -> Decoder:
    """Return the family with the attention core that is asked for."""
    attention = decoder.attention
    latent = isinstance(attention, LatentAttention)
    accepted = (*CORES, *((ABSORBED,) if latent else ()))
    name = fields.text("attn_implementation", "eager", accepted)
    if name == ABSORBED:
        decoder = decoder.attended(expansion=Expansion.NEVER)
    core = replace(attention.core, kernel=CORES.get(name, Core.EAGER))
    return decoder.attended(core=core)


def with_dropouts(fields: Fields, decoder: Decoder) -> Decoder:
    """Return a decoder with the dropouts that the configuration has."""
    branch, entry = decoder.branch, decoder.tokens.steps
    dropped = fields.drops("resid_pdrop", default=branch.drops)
    attended = fields.drops("attn_pdrop", default=Step.DROP in decoder.attention.core.steps)
    embedded = fields.drops("embd_pdrop", default=Entry.DROP in entry) and fields.family != "phi3"
    steps = entry | Entry.DROP if embedded else entry & ~Entry.DROP
    return replace(
        decoder.stepping(Step.DROP, on=attended),
        branch=branch.having(Outcome.DROP, on=dropped),
        tokens=replace(decoder.tokens, steps=steps),
    )


def tied(fields: Fields, *, default: bool) -> str:
    """Return the weight of the output head: the token table, or its own."""
    return "@token" if fields.flag("tie_word_embeddings", default=default) else "w"


def _name_of(function: str) -> str:
    return next(name for name, kind in ACTIVATIONS.items() if kind == function)


def declared(fields: Fields, shape: Shape, decoder: Decoder, heads: int | None = None) -> Model:
    """Read the sizes, check them against each other, and declare the model of a family."""
    plan = layer_plan(fields, decoder)
    used = {kind.mixer for kind in plan.kinds} & decoder.mixers.keys()
    mixers = {name: decoder.mixers[name].read(fields)[0] for name in sorted(used)}
    for name in decoder.mixers.keys() - used:
        fields.absent(decoder.mixers[name].read)
    numbers = decoder_sizes(fields, decoder, plan, heads)
    head, routed = _headed(fields, decoder), routed_groups(fields)
    if isinstance(head, Scores):
        numbers["n_classes"] = next(
            (own for end, own in _FIXED.items() if fields.head.endswith(end)), 0
        ) or classes_of(fields)
    fields.refuse()
    if numbers.get("d_r") == numbers.get("q"):
        decoder = decoder.attended(rotated=Rotated.WHOLE) if "d_r" in numbers else decoder
    elif decoder.reads.share is not None:
        decoder = decoder.attended(rotated=Rotated.PART)
    alike = numbers.get("k") == numbers.get("h")
    sizes = replace(decoder.sizes, k=Sizes().h) if alike else replace(decoder.sizes, k=Sizes().k)
    decoder = replace(decoder, sizes=sizes, head=head, mixers=mixers)
    predicted = fields.size("num_nextn_predict_layers", 1) if fields.head.endswith("NextN") else 0
    decoder = _masked(decoder, numbers.get("W"), numbers.get("k"), shape)
    model = decoder.declare(fields.family, plan.kinds, shape, predicted)
    return replace(model, bindings=numbers, routed=routed)


def _headed(fields: Fields, decoder: Decoder) -> Logits | Scores | None:
    """Return what the architecture's name says that follows the blocks."""
    name = fields.head
    logits = _logits(decoder)
    if name.endswith(REWARD):
        judged = Judged.EACH if name.endswith(PROCESS) else Judged.LAST
        return Scores(judged, biased=True, width=logits.width, hidden=Hidden("relu"))
    if name.endswith(SEQUENCE):
        return Scores(width=logits.width)
    if name.endswith((TOKENS, SPAN)):
        biased = name.endswith(SPAN) or fields.flag("token_classification_bias", default=True)
        return Scores(Judged.EACH, biased, logits.width)
    bare = name.endswith("Model") and not name.endswith("LMHeadModel")
    return None if bare and name not in fields.record.headed else logits


def _logits(decoder: Decoder, **changes: str) -> Logits:
    own = decoder.head if isinstance(decoder.head, Logits) else Logits()
    return replace(own, **changes)  # type: ignore[arg-type]


def _masked(decoder: Decoder, window: int | None, heads: int | None, shape: Shape) -> Decoder:
    """Return a decoder whose windows are masks, unless they reach beyond the whole sequence.

    Args:
        decoder: of which that is said.
        window: keys that a query sees at most, if any.
        heads: of keys and values.
        shape: what it runs on.
    """
    core, tokens = decoder.attention.core, shape.l + shape.c
    whole = window is not None and tokens.is_Integer and tokens < window
    if core.kernel is Core.SDPA and whole:
        return decoder.attended(core=replace(core, kernel=Core.FLASH))
    if core.kernel is Core.SDPA and heads == 1:  # a view, which no masked kernel copies
        return decoder.stepping(Step.COPY, on=False)
    return decoder
