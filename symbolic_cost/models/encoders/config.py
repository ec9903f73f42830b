"""Builder of the encoder families: from the fields of a configuration to traits and sizes."""

from dataclasses import replace

from sympy import Integer, ceiling

from symbolic_cost import symbols
from symbolic_cost.extrema import Min
from symbolic_cost.layers import moe, page_layout
from symbolic_cost.layers.attention import Rotated
from symbolic_cost.layers.attention_core import PLAIN, AttentionCore, Step
from symbolic_cost.layers.block_sparse import SparseBlocks
from symbolic_cost.layers.disentangled import Disentangled, Shifted, Spanned
from symbolic_cost.layers.embeddings import PLACES, TYPES, Change, Words
from symbolic_cost.layers.heads import Cells, Classes, Output, Predicted, Projected, Take
from symbolic_cost.layers.local_attention import Neighbours
from symbolic_cost.layers.relative import Distances
from symbolic_cost.layers.residual import Outcome
from symbolic_cost.layers.span_convolution import Spans
from symbolic_cost.models.build import Fields, Shape, classes_of, is_size, span_of
from symbolic_cost.models.decoders.mixers import renamed
from symbolic_cost.models.encoders import characters
from symbolic_cost.models.encoders.blocks import sparse_blocks
from symbolic_cost.models.encoders.changes import CHANGES, Tables, or_none
from symbolic_cost.models.encoders.characters import Characters
from symbolic_cost.models.encoders.encoder import (
    MASKED,
    MULTIPLE,
    PAIRED,
    SEQUENCE,
    SPAN,
    TRUNK,
    Assumed,
    Encoder,
    Habit,
)
from symbolic_cost.models.encoders.families import ENCODERS
from symbolic_cost.models.encoders.routed import Routed
from symbolic_cost.models.encoders.rows import ROWS
from symbolic_cost.models.encoders.sizes import Sizes
from symbolic_cost.models.functions import CORES, FUNCTIONS
from symbolic_cost.ops.declare import Model, pointwise, scope
from symbolic_cost.ops.part import retitled
from symbolic_cost.symbols import exact

_POOLINGS = {"late": Take.EACH, "bos": Take.FIRST, "cls": Take.FIRST, "mean": Take.MEAN}

_TIED = ("jina_bert", "mobilebert", "new")
"""Families whose untied head is not declared."""
_ONE_BIAS = frozenset(
    (
        *("convbert", "distilbert", "electra", "esm", "flaubert", "funnel", "gte", "modernbert"),
        *("xlm", "xlnet"),
    )
)
"""Families whose untied head has one bias; of others it has two, which are one where it is tied."""
_APART = ("luke", "rembert")
"""Families whose output head has a weight of its own, whatever the configuration says."""

Numbers = dict[str, int]
"""Sizes by symbol."""


def build(fields: Fields, shape: Shape) -> Model:
    """Read the fields of a configuration and declare the model."""
    family = running(fields, ENCODERS[fields.family])
    if fields.family in CHANGES:
        family = CHANGES[fields.family](fields, family)
    family = choosing(fields, family)
    head = head_of(fields, family)
    family, numbers, tables = _sized(fields, family, head, shape)
    if isinstance(family.attention, Shifted):
        tables["s_rel"] = 2 * shape.l
    elif isinstance(family.attention, Spanned):
        tables["s_rel"] = 2 * Min(shape.l, Integer(numbers["n_rel"] // 2))
    groups = fields.size("num_hidden_groups", 1) if Habit.SHARE in family.habits else 1
    layers = numbers["n_layers"]
    spare = f"{groups} groups share {layers} layers: no more groups than layers are accepted"
    fields.require(holds=groups <= layers, problem=spare, name="num_hidden_groups")
    whole = shape
    if fields.family == "big_bird":
        attention, padded, own = sparse_blocks(fields, family.attention, shape.l)
        family, shape = replace(family, attention=attention), replace(shape, l=padded)
        tables |= own
    if isinstance(family.attention, Neighbours):
        shape, own = chunks(fields, shape, fields.size("num_hidden_layers"))
        tables |= own
    near = isinstance(family.attention, Neighbours | SparseBlocks)
    if isinstance(family, Characters):
        shape = replace(shape, l=exact(tables["l_m"]))
    fields.refuse()
    alike = numbers["k"] == numbers["h"]
    sizes = Sizes(
        k=symbols.h if alike else symbols.k,
        q=symbols.q if "q" in numbers else symbols.e / symbols.h,
        tables=tables,
        known={**page_layout.AXES, **characters.AXES, **renamed(moe.AXES)},
    )
    if groups > 1:
        sizes = replace(sizes, n_layers=numbers["n_layers"])
    model = family.declare(fields.family, shape, sizes, head, groups=groups)
    model = _unpadded(model) if near and whole.l != shape.l else model
    means: tuple[str, ...] = ("t_n",) if isinstance(family, Characters) else ()
    means = ("z_s", "z_r_s") if isinstance(family, Routed) and family.sparse else means
    return replace(model, bindings=numbers, means=means)


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
    name = fields.head.removesuffix("Simple")
    if name.endswith(("LMHeadModel", "LMHead", "ForCausalLM", "GenerationDecoder")):
        causal = fields.flag("is_decoder", default=False)
        fields.require(holds=not causal, problem="only false is declared", name="is_decoder")
        return MASKED
    return next((end for end in (*family.heads, PAIRED) if name.endswith(end)), TRUNK)


_SUMMED = ("convbert", "electra", "roformer")
"""Families whose choices are scored as a summary of the sequence."""


def choosing(fields: Fields, family: Encoder) -> Encoder:
    """Return the family with a head that scores choices, each a sequence, as it tells classes."""
    if not fields.head.endswith(MULTIPLE):
        return family
    fields.assume("num_choices", "every choice is a sequence of the batch")
    own = family.heads.get(MULTIPLE, family.heads[SEQUENCE])
    usual = own.hidden is not None
    if fields.family in _SUMMED and fields.flag("summary_use_proj", default=usual) is not usual:
        fields.note("summary_use_proj", f"only {str(usual).lower()} is declared for choices")
    return replace(family, heads={**family.heads, MULTIPLE: own})


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
        words = words.having(Change.DROP | Change.LATE, on=False)
    scores = "" if family.distances is Distances.NONE else "position"
    return replace(
        family.attended(core=replace(core, position=scores)),
        words=words,
        branch=family.branch.having(Outcome.DROP, on=hidden),
        perceptron=replace(family.perceptron, function=function),
    )


def _sized(
    fields: Fields, family: Encoder, head: str, shape: Shape
) -> tuple[Encoder, Numbers, Tables]:
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
    if isinstance(family.attention, Spans):
        numbers |= _halved(fields, e)
    if "e_b" in traits.tables:
        numbers["q"] = _narrowed(fields, numbers["h"])
    width = numbers.get("q", e // numbers["h"])
    fields.require(
        holds=width % 2 == 0 or family.attention.rotated is Rotated.NOTHING,
        problem=f"heads of {width} features cannot be rotated in pairs",
        name="head_dim" if "q" in numbers else "num_attention_heads",
    )
    rows |= {axis for axes in family.unused.values() for axis in axes.split()}
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
    family = headed(fields, family, head)
    tables: Tables = {axis: fields.size(key) for axis, key in traits.tables.items()}
    if fields.family in ROWS:
        tables |= ROWS[fields.family](fields, shape)
    return family, numbers | head_numbers(fields, family, head), tables


def head_numbers(fields: Fields, family: Encoder, head: str) -> Numbers:
    """Read the sizes of a head."""
    own = family.heads.get(head)
    if isinstance(own, Classes):
        labelled = span_of if head == SPAN else classes_of
        return {"n_classes": family.traits.classes.get(head) or labelled(fields)}
    if isinstance(own, Cells) and own.classes:
        return {"n_classes": fields.size("num_aggregation_labels")}
    if isinstance(own, Projected):
        if own.biased:
            return {"e_p": fields.size("projection_size", fields.size("hidden_size"))}
        if own.take is Take.EACH:
            told = "128 features of a token, ColBERT's default: its files say it beside this one"
            if not fields.has("dim"):
                fields.assume("dim", told)
            return {"e_p": fields.size("dim", 128)}
        return {"e_p": fields.size("projection_dim", 512)}
    return {"n_classes": 2} if head == PAIRED else {}


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
    stated = fields.optional_width("head_dim") if grouped else None
    if stated is None and width % h != 0:
        fields.note("num_attention_heads", f"{h} heads do not divide a hidden_size of {width}")
    if fields.family == "xlnet" and width == h:  # whose products of one feature are no products
        fields.note("num_attention_heads", "1 is no width of a head", "hidden_size")
    if fields.family == "esmc" and stated is not None:  # which norms them as wide as the stream
        problem = f"{h} heads of {stated} are not as wide as a hidden_size of {width}"
        fields.require(holds=h * stated == width, problem=problem, name="head_dim")
    return {"h": h, "k": k, **({"q": stated} if stated else {})}


def _narrowed(fields: Fields, heads: int) -> int:
    """Read the width of a head inside a block that is narrower than the stream."""
    width = fields.size("intra_bottleneck_size", 128)
    problem = f"{heads} heads do not divide it"
    fields.require(holds=width % heads == 0, problem=problem, name="intra_bottleneck_size")
    problem = f"only the {width} of intra_bottleneck_size is declared"
    inner = fields.size("true_hidden_size", width)
    fields.require(holds=inner == width, problem=problem, name="true_hidden_size")
    return width // heads


def _halved(fields: Fields, width: int) -> Numbers:
    """Read ConvBERT's heads, some of which a convolution takes the place of, each half as wide."""
    stated = fields.size("num_attention_heads")
    heads = max(stated // fields.size("head_ratio", 2), 1)
    fields.require(
        holds=width % (2 * heads) == 0 and width % stated == 0,
        problem=f"{heads} heads of even width do not make a hidden_size of {width}",
        name="head_ratio",
    )
    return {"h": heads, "k": heads, "q": max(width // heads // 2, 1)}


_FOLLOWING = frozenset(
    (
        *("albert", "bert", "big_bird", "deberta", "deberta-v2", "distilbert", "ernie", "fnet"),
        *("layoutlm", "markuplm", "megatron-bert", "mobilebert", "mra", "nomic_bert", "yoso"),
        *("nystromformer", "rembert", "roc_bert", "roformer", "squeezebert", "tapas"),
    )
)
"""Families whose masked head has the activation of their layers."""


def headed(fields: Fields, family: Encoder, head: str) -> Encoder:
    """Return the family with its head as the configuration ties and pools it."""
    untied = Assumed.OWN_HEAD in family.traits.assumed
    tied = fields.flag("tie_word_embeddings", default=not untied)
    head = MASKED if head == PAIRED and PAIRED not in family.heads else head
    output = family.heads.get(head)
    if isinstance(output, Predicted):
        parted = not tied and not untied and fields.family not in _APART
        if parted and fields.family in _TIED:
            fields.note("tie_word_embeddings", "only true is declared")
        output = output.having(Output.TIE, on=tied and fields.family not in _APART)
        output = output.having(Output.SPARE, on=parted and fields.family not in _ONE_BIAS)
        if output.hidden and fields.family in _FOLLOWING:
            own = replace(output.hidden, function=family.perceptron.function)
            output = replace(output, hidden=own)
    elif isinstance(output, Classes) and head == SEQUENCE and fields.has("classifier_pooling"):
        take = _POOLINGS[fields.text("classifier_pooling", "cls", tuple(_POOLINGS))]
        output = replace(output, take=take)
    fields.ignore(*fields.names("classifier_pooling"))
    return family if output is None else replace(family, heads={**family.heads, head: output})


def _distances(fields: Fields) -> int:
    """Read how many distances are told apart: twice the buckets, or twice the positions."""
    buckets, most = (
        or_none(fields, name) for name in ("position_buckets", "max_relative_positions")
    )
    return 2 * (buckets or most or fields.size("max_position_embeddings"))
