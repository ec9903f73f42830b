"""Builder of the encoder families: from the fields of a configuration to traits and sizes."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from sympy import Expr, Integer, ceiling

from symbolic_cost import symbols
from symbolic_cost.extrema import Min
from symbolic_cost.layers.attention import Rotated
from symbolic_cost.layers.core import PLAIN, AttentionCore, Step
from symbolic_cost.layers.disentangled import Disentangled, Shifted, Spanned
from symbolic_cost.layers.heads import Classes, Output, Predicted, Projected, Take
from symbolic_cost.layers.neighbours import Neighbours
from symbolic_cost.layers.relative import Distances
from symbolic_cost.layers.residual import Outcome
from symbolic_cost.layers.words import PLACES, TYPES, Change, Words
from symbolic_cost.models.encoder import (
    ATTENTION,
    MASKED,
    PAIRED,
    SEQUENCE,
    TRUNK,
    Assumed,
    Encoder,
    Habit,
    Sizes,
)
from symbolic_cost.models.encoder_families import BERT, ENCODERS
from symbolic_cost.models.fields import Fields, is_size
from symbolic_cost.models.functions import CORES, FUNCTIONS
from symbolic_cost.models.labels import classes_of
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.titles import retitled
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.graph import Model, scope

_POOLINGS = {"late": Take.EACH, "bos": Take.FIRST, "cls": Take.FIRST, "mean": Take.MEAN}

_APART = ("luke", "rembert")
"""Families whose output head has a weight of its own, whatever the configuration says."""

Numbers = dict[str, int]
"""Sizes by symbol."""

Tables = dict[str, Expr | int]
"""Sizes by axis."""


def build(fields: Fields, shape: Shape) -> Model:
    """Read the fields of a configuration and declare the model.

    Raises:
        InputError: every problem of the fields.
    """
    family = running(fields, ENCODERS[fields.family])
    if fields.family in CHANGES:
        family = CHANGES[fields.family](fields, family)
    head = head_of(fields, family)
    family, numbers, tables = _sized(fields, family, head)
    if isinstance(family.attention, Shifted):
        tables["s_rel"] = 2 * shape.l
    elif isinstance(family.attention, Spanned):
        tables["s_rel"] = 2 * Min(shape.l, Integer(numbers["n_rel"] // 2))
    groups = fields.size("num_hidden_groups", 1) if Habit.SHARE in family.habits else 1
    if fields.family == "big_bird":
        _check_blocks(fields, shape)
    whole, near = shape, isinstance(family.attention, Neighbours)
    if near:
        shape, own = chunks(fields, shape, fields.size("num_hidden_layers"))
        tables |= own
    fields.refuse()
    alike = numbers["k"] == numbers["h"]
    sizes = Sizes(
        k=symbols.h if alike else symbols.k,
        q=symbols.q if "q" in numbers else symbols.e / symbols.h,
        tables=tables,
    )
    if groups > 1:
        sizes = replace(sizes, n_layers=numbers["n_layers"])
    model = family.declare(fields.family, shape, sizes, head, groups=groups)
    model = _unpadded(model) if near and whole.l != shape.l else model
    return replace(model, bindings=numbers)


def chunks(fields: Fields, shape: Shape, layers: int) -> tuple[Shape, Tables]:
    """Return the shape padded to whole windows, and the sizes of chunks.

    100 tokens in windows of 16 run as 112: 13 chunks of 16, 14 pieces of 8 that see 24 keys.
    """
    stated = fields.source.values.get("attention_window", 512)
    listed = isinstance(stated, list | tuple)
    windows = stated if listed else [stated]
    fields.ignore("attention_window")
    size = windows[0] if windows and is_size(windows[0]) else 2
    alike = all(one == size for one in windows) and (len(windows) == layers or not listed)
    fields.require(
        holds=size > 2 and size % 2 == 0 and alike,  # noqa: PLR2004
        problem=f"an even window above 2, alike in all {layers} layers, is accepted",
        name="attention_window",
    )
    reach, padded = size // 2, ceiling(shape.l / size) * size
    own: Tables = {"c_n": padded / reach - 1, "s_n": padded / reach, "n_b": size + 1}
    own |= {**dict.fromkeys(("i_n", "j_n"), size), "x_n": reach, "y_n": 3 * reach}
    own |= dict.fromkeys(("r_u", "l_u"), shape.l)
    return replace(shape, l=padded), own


def _unpadded(model: Model) -> Model:
    """Return a model whose head sees no padding."""
    *trunk, head = model.parts
    cut = pointwise("unpad", "x[b r e] -> unpadded[b r_u e]", "copy", laid="r")
    ops = scope("tokens", retitled(head.ops, {"r": "r_u", "l": "l_u"}), x="unpadded")
    return replace(model, parts=(*trunk, replace(head, ops=(cut, *ops))))


def head_of(fields: Fields, family: Encoder) -> str:
    """Return which head the architecture's name ends with."""
    if fields.head.endswith("LMHeadModel"):
        return MASKED
    ends = (*family.heads, PAIRED)
    return next((end for end in ends if fields.head.endswith(end)), TRUNK)


def running(fields: Fields, family: Encoder) -> Encoder:
    """Return the family, with what the configuration switches and drops out."""
    traits = family.traits
    for key, switch in traits.switches.items():
        if fields.source.values.get(key) is not None:
            family = switch(family, fields.flag(key, default=False))
    drops = Assumed.DROP in traits.assumed
    attended, hidden = (fields.drops(name, default=drops) for name in traits.dropouts)
    kernel = CORES[fields.text("attn_implementation", "eager", tuple(CORES))]
    own = family.attention.core.steps
    core = AttentionCore(kernel, own | Step.DROP if attended else own & ~Step.DROP)
    function = FUNCTIONS[fields.text("hidden_act", traits.function, tuple(FUNCTIONS))]
    words = family.words
    if isinstance(words, Words) and not hidden:
        words = words.having(Change.DROP, on=False)
    scores = "" if family.distances is Distances.NONE else "position"
    return replace(
        family.attended(core=replace(core, position=scores)),
        words=words,
        branch=family.branch.having(Outcome.DROP, on=hidden),
        perceptron=replace(family.perceptron, function=function),
    )


def _sized(fields: Fields, family: Encoder, head: str) -> tuple[Encoder, Numbers, Tables]:
    """Return the family with the widths that it has, sizes by symbol, and rows of tables."""
    traits, words = family.traits, family.words
    rows = set(words.tables.values()) if isinstance(words, Words) else set()
    e = fields.size("hidden_size")
    wide = () if traits.widening is None else (traits.widening * e,)
    numbers = {
        "e": e,
        "f": fields.size("intermediate_size", *wide),
        "V": fields.size("vocab_size"),
        "n_layers": fields.size("num_hidden_layers"),
        **head_sizes(fields, e, grouped=family.attention.heads != PLAIN),
    }
    if "e_b" in traits.tables:
        numbers["q"] = fields.size("intra_bottleneck_size", 128) // numbers["h"]
        fields.require(
            holds=fields.size("intra_bottleneck_size") % numbers["h"] == 0,
            problem=f"{numbers['h']} heads do not divide it",
            name="intra_bottleneck_size",
        )
    width = numbers.get("q", e // numbers["h"])
    fields.require(
        holds=width % 2 == 0 or family.attention.rotated is Rotated.NOTHING,
        problem=f"heads of {width} features cannot be rotated in pairs",
        name="head_dim" if "q" in numbers else "num_attention_heads",
    )
    rows |= {axis for axes in family.kept.values() for axis in axes.split()}
    if PLACES in rows:
        numbers["P"] = fields.size("max_position_embeddings") + traits.offset
    if TYPES in rows:
        numbers["T"] = fields.size("type_vocab_size", 2)
    if family.distances is not Distances.NONE:
        numbers["n_rel"] = fields.size("relative_attention_num_buckets", 32)
    if isinstance(family.attention, Disentangled) and not isinstance(family.attention, Shifted):
        numbers["n_rel"] = _distances(fields)
    if "w_t" not in traits.tables and isinstance(words, Words) and words.width == "w_t":
        numbers["e_p"] = fields.size("embedding_size", e)
        if numbers["e_p"] == e and Assumed.PROJECT not in traits.assumed:
            family = family.worded(width="e")
    family = _headed(fields, family, head)
    return family, numbers | _head_numbers(fields, family, head), _tables(fields, family)


def _head_numbers(fields: Fields, family: Encoder, head: str) -> Numbers:
    """Read how many classes a head has, or how wide its features are."""
    own = family.heads.get(head)
    if isinstance(own, Classes):
        return {"n_classes": family.traits.classes.get(head) or classes_of(fields)}
    if isinstance(own, Projected):
        return {"e_p": fields.size("projection_dim", 512)}
    return {"n_classes": 2} if head == PAIRED else {}


def _tables(fields: Fields, family: Encoder) -> Tables:
    """Read the sizes of further tables, by axis."""
    if fields.family == "tapas":
        return {**_kinds(fields)}
    tables: Tables = {axis: fields.size(key) for axis, key in family.traits.tables.items()}
    if fields.family == "markuplm":
        tables["f_x"] = 4 * fields.size("hidden_size")
    if fields.family == "mobilebert":
        tables["w_x"] = fields.size("hidden_size") - fields.size("embedding_size")
    if fields.family == "luke":
        tables |= {"c_n": 2, "n_q": 3 * fields.size("num_hidden_layers")}
    if fields.family == "esm":  # one weight for every head of every layer, and a bias
        tables["n_att"] = 1 + fields.size("num_hidden_layers") * fields.size("num_attention_heads")
    return tables


def head_sizes(fields: Fields, width: int, *, grouped: bool) -> Numbers:
    """Read heads and, where they are grouped or given, their width, checked against each other."""
    h = fields.size("num_attention_heads")
    k = fields.size("num_key_value_heads", h) if grouped else h
    fields.require(
        holds=h % k == 0,
        problem=f"{k} key/value heads do not divide {h} attention heads",
        name="num_key_value_heads",
        other="num_attention_heads",
    )
    stated = fields.optional_size("head_dim") if grouped else None
    fields.require(
        holds=stated is not None or width % h == 0,
        problem=f"{h} heads do not divide a hidden_size of {width}",
        name="num_attention_heads",
    )
    return {"h": h, "k": k, **({"q": stated} if stated else {})}


def _headed(fields: Fields, family: Encoder, head: str) -> Encoder:
    """Return the family with the head as the configuration has it."""
    untied = Assumed.OWN_HEAD in family.traits.assumed
    tied = fields.flag("tie_word_embeddings", default=not untied)
    fields.require(
        holds=tied or untied or head not in (MASKED, PAIRED),
        problem="only true is declared: an untied head has a second bias",
        name="tie_word_embeddings",
    )
    output = family.heads.get(head)
    if isinstance(output, Predicted):
        output = output.having(Output.TIE, on=tied and fields.family not in _APART)
    elif isinstance(output, Classes) and head == SEQUENCE and fields.given("classifier_pooling"):
        take = _POOLINGS[fields.text("classifier_pooling", "cls", tuple(_POOLINGS))]
        output = replace(output, take=take)
    fields.ignore("classifier_pooling")
    return family if output is None else replace(family, heads={**family.heads, head: output})


def _distances(fields: Fields) -> int:
    """Read how many distances are told apart: twice the buckets, or twice the positions."""
    buckets, most = (
        _or_none(fields, name) for name in ("position_buckets", "max_relative_positions")
    )
    return 2 * (buckets or most or fields.size("max_position_embeddings"))


def _check_blocks(fields: Fields, shape: Shape) -> None:
    """Note lengths beyond which BigBird does not attend to all positions."""
    kinds = ("block_sparse", "original_full")
    kind = fields.text("attention_type", kinds[0], kinds)
    most = (5 + 2 * fields.size("num_random_blocks", 3)) * fields.size("block_size", 64)
    dense = kind == kinds[1] or (shape.l.is_Integer and shape.l <= most)
    problem = f"blocks are declared up to {most} tokens, where they attend to all; beyond, only "
    fields.require(holds=bool(dense), problem=problem + kinds[1], name="attention_type")


def _or_none(fields: Fields, name: str) -> int | None:
    """Read a size of which -1 or zero means none."""
    value = fields.source.values.get(name)
    if value in (-1, 0):
        fields.ignore(name)
        return None
    return fields.optional_size(name)


def _deberta(fields: Fields, family: Encoder) -> Encoder:
    """Return a DeBERTa with the distances, types and positions that it has."""
    tables = {"type": TYPES} if _or_none(fields, "type_vocab_size") else {}
    if fields.flag("position_biased_input", default=True):
        tables["position"] = PLACES
    family = family.worded(tables=tables)
    fields.ignore("pos_att_type", "share_att_key", "position_buckets")
    fields.ignore("max_relative_positions", "pooler_dropout", "pooler_hidden_size")
    fields.text("pooler_hidden_act", "gelu", tuple(FUNCTIONS))
    norm = fields.text("norm_rel_ebd", "none", ("none", "layer_norm"))
    if not fields.flag("relative_attention", default=False):
        fields.require(
            holds=norm == "none",
            problem="norms distances that are not there",
            name="norm_rel_ebd",
            other="relative_attention",
        )
        own = replace(ATTENTION, core=family.attention.core, bias=family.attention.bias)
        return replace(family, attention=own)
    kinds = fields.source.values.get("pos_att_type") or ()
    kinds = kinds.split("|") if isinstance(kinds, str) else kinds
    both = sorted(str(kind).strip() for kind in kinds) == ["c2p", "p2c"]
    fields.require(holds=both, problem="only c2p and p2c is declared", name="pos_att_type")
    shared = fields.flag("share_att_key", default=False)
    family = family.attended(shared=shared)
    return replace(family, habits=Habit.NONE if norm == "none" else Habit.NORM_DISTANCES)


def _esm(fields: Fields, family: Encoder) -> Encoder:
    """Return an ESM whose positions are learned or rotated."""
    kinds = ("absolute", "rotary")
    if fields.text("position_embedding_type", kinds[0], kinds) == kinds[0]:
        return family
    return family.worded(tables={}).attended(rotated=Rotated.WHOLE)


def _mobile(fields: Fields, family: Encoder) -> Encoder:
    """Return a MobileBERT with as many perceptrons as it has, and neighbours or none."""
    e = fields.size("hidden_size")
    problem = f"a width below the {e} of hidden_size is accepted"
    narrow = fields.size("embedding_size", 128)
    fields.require(holds=narrow < e, problem=problem, name="embedding_size")
    networks = fields.size("num_feedforward_networks", 4)
    near = "c " if fields.flag("trigram_input", default=True) else ""
    if not fields.flag("classifier_activation", default=True):
        family = replace(family, pooler=None, heads={**family.heads, SEQUENCE: Classes()})
    return replace(family, networks=networks).worded(near=near)  # type: ignore[call-arg]


def _roc_bert(fields: Fields, family: Encoder) -> Encoder:
    """Return a RoCBert with glyphs and sounds beside the tokens, or their tables unused."""
    named = {"shape": "n_shape w_shape", "sound": "n_sound w_sound"}
    keys = {"shape": "enable_shape", "sound": "enable_pronunciation"}
    used = {name for name, key in keys.items() if fields.flag(key, default=True)}
    if not fields.flag("concat_input", default=True):
        plain = Words(changes=family.words.changes) if isinstance(family.words, Words) else Words()
        family, used = replace(family, words=plain, heads=BERT.heads), set()
    else:
        family = family.worded(beside={name: named[name] for name in named if name in used})
    return replace(family, kept={name: named[name] for name in named if name not in used})


def _tapas(fields: Fields, family: Encoder) -> Encoder:
    """Return a TAPAS with a table for each of its kinds of token types."""
    sizes = fields.items("type_vocab_sizes", (3, 256, 256, 2, 256, 256, 10))
    fine = bool(sizes) and all(map(is_size, sizes))
    fields.require(holds=fine, problem="sizes are accepted", name="type_vocab_sizes")
    tables = {f"kind{i}": f"kinds{i}" for i in range(len(sizes))}
    return family.worded(tables={"position": PLACES, **tables})


def _new(fields: Fields, family: Encoder) -> Encoder:
    """Return an early GTE, which may have no types."""
    return family if _or_none(fields, "type_vocab_size") else family.worded(tables={})


def _kinds(fields: Fields) -> dict[str, int]:
    """Return the rows of TAPAS's tables of token types, by axis."""
    sizes = fields.items("type_vocab_sizes", (3, 256, 256, 2, 256, 256, 10))
    return {f"kinds{i}": size for i, size in enumerate(sizes) if is_size(size)}


CHANGES: Mapping[str, Callable[[Fields, Encoder], Encoder]] = {
    "deberta": _deberta,
    "deberta-v2": _deberta,
    "esm": _esm,
    "mobilebert": _mobile,
    "new": _new,
    "roc_bert": _roc_bert,
    "tapas": _tapas,
}
"""What the fields of a family change besides its switches and its sizes."""
