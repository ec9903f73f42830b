"""Decoders from the fields of a configuration: traits, sizes, the model."""

from dataclasses import replace

from symbolic_cost.layers.attention import Rotated
from symbolic_cost.layers.attention_core import Core, Step
from symbolic_cost.layers.heads import Hidden
from symbolic_cost.layers.latent import Expansion, LatentAttention
from symbolic_cost.layers.moe import Trait
from symbolic_cost.layers.residual import Outcome
from symbolic_cost.layers.tokens import Entry, Exit, Judged, Logits, Scores
from symbolic_cost.models.build import Fields, Shape, classes_of
from symbolic_cost.models.decoders.decoder import Decoder, Habit
from symbolic_cost.models.decoders.families import DECODERS
from symbolic_cost.models.decoders.fields import decoder_sizes, routed_groups
from symbolic_cost.models.decoders.plan import layer_plan
from symbolic_cost.models.decoders.sizes import Sizes
from symbolic_cost.models.functions import ACTIVATIONS, CORES, FUNCTIONS
from symbolic_cost.ops.declare import Model

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


def decoder_of(fields: Fields) -> Decoder:
    """Return the family, with what the configuration switches."""
    decoder = DECODERS[fields.family]
    for key, switch in decoder.reads.switches.items():
        if fields.stands(key):
            decoder = switch(decoder, fields.flag(key, default=False))
    decoder = _running(fields, _capped(fields, _latent(fields, _sharing(fields, decoder))))
    usual = decoder.perceptron.function
    accepted = tuple(ACTIVATIONS if usual == "xielu" else FUNCTIONS)
    name = fields.text("hidden_act", _name_of(usual), accepted)
    # Gemma 1 named the approximation by a tanh after what it approximates.
    function = usual if fields.family == "gemma" and name == "gelu" else ACTIVATIONS[name]
    return with_dropouts(
        fields,
        replace(
            decoder,
            perceptron=replace(decoder.perceptron, function=function),
            experts=replace(decoder.experts, function=function),
            head=logits_of(
                decoder, weight=tied(fields, default=logits_of(decoder).weight == "@token")
            ),
        ),
    )


def _sharing(fields: Fields, decoder: Decoder) -> Decoder:
    key = decoder.reads.shared_width or "n_shared_experts"
    if not decoder.experts.shared or not fields.has(key) or fields.optional_size(key) is not None:
        return decoder
    plain = decoder.experts.traits & ~Trait.SHARED_GATE
    return replace(decoder, experts=replace(decoder.experts, shared="", traits=plain))


def _latent(fields: Fields, decoder: Decoder) -> Decoder:
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
    name = fields.head
    logits = logits_of(decoder)
    if name.endswith(REWARD):
        judged = Judged.EACH if name.endswith(PROCESS) else Judged.LAST
        return Scores(judged, biased=True, width=logits.width, hidden=Hidden("relu"))
    if name.endswith(SEQUENCE):
        judged = Judged.MEAN if Habit.AVERAGE in decoder.habits else Judged.LAST
        return Scores(judged, width=logits.width)
    if name.endswith((TOKENS, SPAN)):
        biased = name.endswith(SPAN) or fields.flag("token_classification_bias", default=True)
        return Scores(Judged.EACH, biased, logits.width)
    bare = name.endswith("Model") and not name.endswith("LMHeadModel")
    return None if bare and name not in fields.record.headed else logits


def logits_of(decoder: Decoder, **changes: str) -> Logits:
    """Return the output head of a family, or the usual one, with other fields."""
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
