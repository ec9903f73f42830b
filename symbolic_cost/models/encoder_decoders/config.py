"""Builders of the encoder-decoder families: from a configuration to traits and sizes."""

from collections.abc import Callable
from dataclasses import replace

from sympy import Expr

from symbolic_cost import symbols
from symbolic_cost.errors import InputError
from symbolic_cost.layers import block_sparse, foreseeing, local_attention
from symbolic_cost.layers.attention_core import AttentionCore, Step
from symbolic_cost.layers.embeddings import Change
from symbolic_cost.layers.heads import Averaged, Classes
from symbolic_cost.layers.relative import Distances
from symbolic_cost.layers.residual import Outcome
from symbolic_cost.models.encoder_decoders.families import SEQ2SEQ
from symbolic_cost.models.encoder_decoders.seq2seq import (
    ENCODER_ONLY,
    GENERATED,
    Seq2Seq,
)
from symbolic_cost.models.encoder_decoders.sizes import Sizes, Source
from symbolic_cost.models.encoders.blocks import sparse_blocks
from symbolic_cost.models.encoders.changes import Tables
from symbolic_cost.models.encoders.config import Numbers, chunks
from symbolic_cost.models.encoders.encoder import SEQUENCE, SPAN, TRUNK
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.functions import CORES, FUNCTIONS
from symbolic_cost.models.labels import classes_of
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.declare import Model, axes
from symbolic_cost.ops.view import uncached
from symbolic_cost.symbols import exact


def build(fields: Fields, shape: Shape) -> Model:
    """Read the fields of a configuration as BART's and declare the model."""
    family = running(fields, SEQ2SEQ[fields.family])
    family, numbers, own = bart_numbers(fields, family)
    if "p" in family.words.tables.values() and fields.family != "led":
        numbers["P"] = fields.size("max_position_embeddings") + family.reads.offset
    if fields.family == "fsmt":
        numbers["P"] += (
            fields.size("pad_token_id", 1) if fields.source.values.get("pad_token_id") != 0 else 0
        )
        if fields.flag("tie_word_embeddings", default=False):
            family = replace(family, tables=("@token", "@token"))
            fields.require(
                holds=_source_words(fields) == numbers["V"],
                problem="source and target share a table and differ in their vocabulary",
                name="tie_word_embeddings",
            )
    if fields.family == "prophetnet":
        return _foreseeing(fields, shape, family, numbers, own)
    if fields.family == "led":
        return _chunked(fields, shape, family, numbers, own)
    if fields.family == "bigbird_pegasus":
        return _sparse_source(fields, shape, family, numbers, own)
    if family.experts is None:
        return declared(fields, shape, family, numbers, own)
    if "f" in own:
        fields.note("decoder_ffn_dim", "the encoder's is declared")
    fields.ignore("expert_capacity")
    sparse = sparse_layers(fields, (numbers["n_layers"], numbers["n_dec"]), _nth)
    return declared(fields, shape, family, numbers | routed_sizes(fields, 2), own, sparse=sparse)


def _chunked(
    fields: Fields, shape: Shape, family: Seq2Seq, numbers: Numbers, own: Numbers
) -> Model:
    """Declare an encoder-decoder whose source attends to neighbours, as LED."""
    numbers["P"] = fields.size("max_decoder_position_embeddings", 1024)
    places = fields.size("max_encoder_position_embeddings", 16384)
    tokens = shape.c if shape.c != 0 else shape.l
    padded, sizes = chunks(fields, replace(shape, l=tokens), numbers["n_layers"])
    sizes["t_u"] = tokens
    known = {**local_attention.AXES, **axes("t_u key-token")}
    source = Source(padded.l, sizes, known)
    return declared(fields, shape, family, numbers, own, source=source, places=places)


def _sparse_source(
    fields: Fields, shape: Shape, family: Seq2Seq, numbers: Numbers, own: Numbers
) -> Model:
    """Declare an encoder-decoder whose source attends in sparse blocks, as BigBird-Pegasus."""
    tokens = shape.c if shape.c != 0 else shape.l
    near, padded, sizes = sparse_blocks(fields, family.attention, tokens)
    known = {**block_sparse.AXES, **axes("r_u token residual, l_u token query, t_u key-token")}
    source = Source(padded, sizes, known) if sizes else None
    family = replace(family, near=near) if sizes else family
    return declared(fields, shape, family, numbers, own, source=source)


def _foreseeing(
    fields: Fields, shape: Shape, family: Seq2Seq, numbers: Numbers, own: Numbers
) -> Model:
    """Declare an encoder-decoder whose target has streams that foresee, as ProphetNet."""
    numbers["n_rel"], ahead = fields.size("num_buckets", 32), fields.size("ngram", 2)
    known = lengths(shape, GENERATED)
    tokens = exact(known["l_t"])
    keys = tokens + exact(known["cached"] or 0)
    sizes: Tables = dict.fromkeys(("o", "m"), (1 + ahead) * tokens)
    sizes |= {"u": keys, "t_g": keys + tokens, "l_g": tokens, "n_g": ahead, "n_u": ahead}
    source = Source(exact(known["l"]), sizes, foreseeing.AXES)
    return declared(fields, shape, family, numbers, own, source=source)


def bart_numbers(fields: Fields, family: Seq2Seq) -> tuple[Seq2Seq, Numbers, Numbers]:
    """Read the sizes of BART and its kind: of both sides, and the decoder's own."""
    function = FUNCTIONS[fields.text("hidden_act", family.reads.function, tuple(FUNCTIONS))]
    family = replace(family, perceptron=replace(family.perceptron, function=function))
    e = fields.size("hidden_size")
    layers, heads, f = (
        [fields.size(f"{side}_{name}") for side in ("encoder", "decoder")]
        for name in ("layers", "attention_heads", "ffn_dim")
    )
    _divides(fields, e, heads)
    numbers = {
        "e": e,
        "f": f[0],
        "h": heads[0],
        "q": e // heads[0],
        "V": fields.size("vocab_size"),
        "n_layers": layers[0],
        "n_dec": layers[1],
    }
    own = {} if heads[0] == heads[1] else {"h": heads[1], "d": e // heads[1]}
    own |= {} if f[0] == f[1] else {"f": f[1]}
    return family, numbers, own


def _nth(fields: Fields, side: str, layers: int) -> int:
    """Return how many layers are sparse: the last of every so many."""
    return layers // fields.size(f"{side}_sparse_step", 4)


def sparse_layers(
    fields: Fields, layers: tuple[int, int], rule: Callable[[Fields, str, int], int]
) -> tuple[int, int]:
    """Return how many layers of the encoder and of the decoder are sparse, by a rule for a side."""
    fields.assume("expert_capacity", "experts take all tokens that are sent to them")
    source, target = layers
    return rule(fields, "encoder", source), rule(fields, "decoder", target)


def routed_sizes(fields: Fields, chosen: int) -> Numbers:
    """Read how many experts there are, of which so many are chosen."""
    experts = fields.size("num_experts")
    fields.require(holds=experts >= chosen, problem=f"{chosen} are chosen", name="num_experts")
    return {"E": experts, "E_t": chosen}


def declared(
    fields: Fields,
    shape: Shape,
    family: Seq2Seq,
    numbers: Numbers,
    own: Numbers,
    *,
    source: Source | None = None,
    places: int | None = None,
    sliding: int = 0,
    sparse: tuple[int, int] = (0, 0),
) -> Model:
    """Declare the model of a family.

    The target is half as long as the source, but where classes are told apart, which take it from
    the source; a decode step has half as many in its cache.
    """
    head, words = head_of(fields, family), _source_words(fields)
    family = _headed(fields, family, head)
    if isinstance(family.heads.get(head), Averaged | Classes):
        numbers = numbers | {"n_classes": 2 if head == SPAN else classes_of(fields)}
    fields.refuse()
    k = symbols.k if "k" in numbers else symbols.h
    sizes = Sizes(
        decoder=own,
        source=source,
        k=k,
        sliding=sliding,
        sparse=sparse,
        V_s=words,
        P_s=places,
        capacity=family.capacity,
        **lengths(shape, head),
    )
    sizes = sizes if source is None else replace(sizes, l=source.frames)
    model = replace(family.declare(fields.family, sizes, head), bindings=numbers)
    if fields.family == "mvp" and head in (SEQUENCE, SPAN):  # these take no cache
        parts = tuple(replace(part, ops=uncached(part.ops)) for part in model.parts)
        model = replace(model, parts=parts)
    halved = shape.l // 2
    if shape.c != 0 or sizes.l_t != halved or TARGET not in model.axis_names:
        return model
    if halved == 0:
        raise InputError(f"{shape.l} token: a target is half as long, so 2 are the least")
    return replace(model, notes=(f"a target of {halved} tokens, half of {shape.l}",))


TARGET = "o"
"""Axis of the target's tokens."""


def _source_words(fields: Fields) -> int | None:
    return fields.size("src_vocab_size") if fields.family == "fsmt" else None


def lengths(shape: Shape, head: str) -> dict[str, Expr | None]:
    """Return batch, source, target and what is cached of it, of a shape."""
    decodes = shape.c != 0
    whole = head in (SEQUENCE, SPAN)
    return {
        "b": shape.b,
        "l": shape.c if decodes else shape.l,
        "l_t": shape.l if decodes or whole else shape.l // 2,
        "cached": (shape.c if whole else shape.c // 2) if decodes else None,
    }


def head_of(fields: Fields, family: Seq2Seq) -> str:
    """Return which head the architecture's name ends with."""
    if fields.head.endswith("MTModel"):
        return GENERATED
    return next(end for end in (*family.heads, ENCODER_ONLY, TRUNK) if fields.head.endswith(end))


def running(fields: Fields, family: Seq2Seq) -> Seq2Seq:
    """Return the family, with what the configuration switches and drops out."""
    for key, switch in family.reads.switches.items():
        if fields.source.values.get(key) is not None:
            family = switch(family, fields.flag(key, default=False))
    attended, hidden = (fields.drops(name, default=True) for name in family.reads.dropouts)
    kernel = CORES[fields.text("attn_implementation", "eager", tuple(CORES))]
    own = family.attention.core.steps
    steps = own | Step.DROP if attended else own & ~Step.DROP
    return replace(
        family,
        attention=replace(family.attention, core=AttentionCore(kernel, steps)),
        words=family.words.having(Change.DROP, on=hidden),
        branch=family.branch.having(Outcome.DROP, on=hidden),
        last_dropped=family.last_dropped and hidden,
    )


def _headed(fields: Fields, family: Seq2Seq, head: str) -> Seq2Seq:
    tied = fields.flag("tie_word_embeddings", default=True)
    if not tied and not family.reads.untied:
        fields.note(
            "tie_word_embeddings", "only true is declared: source, target and head share a table"
        )
    t5s = family.distances is not Distances.NONE and fields.family != "pop2piano"
    if not tied and head == GENERATED and t5s:
        fields.assume("tie_word_embeddings", "a head of its own, which Transformers 5 ties")
    return family.tied(tied=tied) if head == GENERATED else family


def _divides(fields: Fields, width: int, heads: list[int]) -> None:
    for side, number in zip(("encoder", "decoder"), heads, strict=True):
        if width % number != 0:
            fields.note(
                f"{side}_attention_heads", f"{number} heads do not divide the width {width}"
            )
