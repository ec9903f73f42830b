"""What families of encoders change besides switches and sizes, and the rows of their tables."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from sympy import Expr

from symbolic_cost.layers.attention import Rotated
from symbolic_cost.layers.embeddings import PLACES, TYPES, Words
from symbolic_cost.layers.grouped_products import GroupedMLP
from symbolic_cost.layers.heads import Cells, Classes, Hidden, Take
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.nystrom import PRODUCTS
from symbolic_cost.layers.residual import Placing
from symbolic_cost.models.encoders import characters
from symbolic_cost.models.encoders.encoder import (
    ATTENTION,
    MASKED,
    NEXT,
    SEQUENCE,
    SPAN,
    TANH,
    TOKENS,
    Encoder,
    Habit,
)
from symbolic_cost.models.encoders.families import BERT
from symbolic_cost.models.fields import Fields, is_size
from symbolic_cost.models.functions import FUNCTIONS
from symbolic_cost.models.labels import classes_of
from symbolic_cost.models.shape import Shape

Tables = dict[str, Expr | int]
"""Sizes by axis."""


def or_none(fields: Fields, name: str) -> int | None:
    """Read a size of which -1 or zero means none."""
    value = fields.source.values.get(name)
    if value in (-1, 0):
        fields.ignore(name)
        return None
    return fields.optional_size(name)


def as_wide(fields: Fields, name: str) -> None:
    """Note a width that is another than that of the model."""
    width = fields.size("hidden_size")
    if fields.size(name, width) != width:
        fields.note(name, f"only the {width} of hidden_size is declared")


def _deberta(fields: Fields, family: Encoder) -> Encoder:
    """Return a DeBERTa with the distances, types and positions that it has."""
    tables = {"type": TYPES} if or_none(fields, "type_vocab_size") else {}
    if fields.flag("position_biased_input", default=True):
        tables["position"] = PLACES
    family = family.worded(tables=tables)
    fields.ignore("pos_att_type", "share_att_key", "position_buckets")
    fields.ignore("max_relative_positions", "pooler_dropout")
    as_wide(fields, "pooler_hidden_size")
    fields.text("pooler_hidden_act", "gelu", tuple(FUNCTIONS))
    norm = fields.text("norm_rel_ebd", "none", ("none", "layer_norm"))
    if not fields.flag("relative_attention", default=False):
        if norm != "none":
            fields.note("norm_rel_ebd", "norms distances that are not there", "relative_attention")
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


def _luke(fields: Fields, family: Encoder) -> Encoder:
    """Return a LUKE whose entities are projected unless they are as wide as words.

    Those of a masked head are predicted as well, and heads of tokens have no pooler.
    """
    wide = fields.source.values.get("entity_emb_size") == fields.size("hidden_size")
    left: tuple[str, ...] = ("entity_project",) if wide else ()
    left += () if fields.head.endswith(MASKED) else ("predict", "predict_norm", "predict_bias")
    kept = {name: axes for name, axes in family.kept.items() if name not in left}
    bare = fields.head.endswith((TOKENS, SPAN))
    return replace(family, kept=kept, pooler=None if bare else family.pooler)


def _mobile(fields: Fields, family: Encoder) -> Encoder:
    """Return a MobileBERT with as many perceptrons as it has, and neighbours or none."""
    e = fields.size("hidden_size")
    problem = f"a width below the {e} of hidden_size is accepted"
    narrow = fields.size("embedding_size", 128)
    fields.require(holds=narrow < e, problem=problem, name="embedding_size")
    networks = fields.size("num_feedforward_networks", 4)
    near = "c " if fields.flag("trigram_input", default=True) else ""
    if not fields.flag("classifier_activation", default=True):
        plain = dict.fromkeys((SEQUENCE, NEXT), Classes())
        family = replace(family, pooler=None, heads={**family.heads, **plain})
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


_FEW_LABELS = 10
"""From so many labels on, LayoutLMv3 tells those of tokens apart behind a hidden layer."""


def _labelled(fields: Fields, family: Encoder) -> Encoder:
    """Return a LayoutLMv3 whose heads of spans and of many labels have a hidden layer."""
    behind = Classes(Take.EACH, hidden=TANH)
    many = fields.head.endswith(TOKENS) and classes_of(fields) >= _FEW_LABELS
    own = {SPAN: behind, **({TOKENS: behind} if many else {})}
    return replace(family, heads={**family.heads, **own})


def _tapas(fields: Fields, family: Encoder) -> Encoder:
    """Return a TAPAS with a table for each of its kinds of token types."""
    sizes = fields.items("type_vocab_sizes", (3, 256, 256, 2, 256, 256, 10))
    fine = bool(sizes) and all(map(is_size, sizes))
    fields.require(holds=fine, problem="sizes are accepted", name="type_vocab_sizes")
    tables = {f"kind{i}": f"kinds{i}" for i in range(len(sizes))}
    classes = "z" if fields.optional_size("num_aggregation_labels") else ""
    family = replace(family, heads={**family.heads, SPAN: Cells(classes)})
    # Positions begin anew in every cell, so that no sequence is too long.
    return family.worded(tables={"place": PLACES, **tables})


def _new(fields: Fields, family: Encoder) -> Encoder:
    """Return an early GTE, which may have no types."""
    return family if or_none(fields, "type_vocab_size") else family.worded(tables={})


def _kinds(fields: Fields, _: Shape) -> Tables:
    """Return the rows of TAPAS's tables of token types, by axis."""
    sizes = fields.items("type_vocab_sizes", (3, 256, 256, 2, 256, 256, 10))
    return {f"kinds{i}": size for i, size in enumerate(sizes) if is_size(size)}


def _squeezed(fields: Fields, _: Shape) -> Tables:
    """Return the groups of SqueezeBERT's products, and the features of one."""
    e, f = fields.size("hidden_size"), fields.size("intermediate_size")
    if fields.size("embedding_size", 768) != e:
        fields.note("embedding_size", f"only the {e} of hidden_size is declared")
    sizes: Tables = {"one": 1}
    for name, (key, wide, narrow) in {
        "q": ("q_groups", e, e),
        "k": ("k_groups", e, e),
        "v": ("v_groups", e, e),
        "proj": ("post_attention_groups", e, e),
        "fc1": ("intermediate_groups", e, f),
        "fc2": ("output_groups", f, e),
    }.items():
        groups = fields.size(key)
        fine = wide % groups == 0 and narrow % groups == 0
        if not fine:
            fields.note(key, f"{groups} groups do not divide {wide} and {narrow}")
        sizes |= {f"g_{name}": groups, f"i_{name}": wide // groups, f"o_{name}": narrow // groups}
    return {axis: max(size, 1) for axis, size in sizes.items()}


def _beside(fields: Fields, _: Shape) -> Tables:
    """Return the widths of LiLT's stream of boxes: a part of those of the tokens'."""
    e, h, share = (
        fields.size("hidden_size"),
        fields.size("num_attention_heads"),
        fields.size("channel_shrink_ratio", 4),
    )
    if e % 6 != 0:
        fields.note("hidden_size", "six tables side by side are as wide")
    if e // h % share != 0:
        fields.note("channel_shrink_ratio", f"it does not divide heads of {e // h} features")
    f, width = fields.size("intermediate_size"), max(e // 6, 1)
    fields.require(holds=f >= share, problem=f"no feature is left of {f}", name="intermediate_size")
    return {
        "n_page": fields.size("max_2d_position_embeddings", 1024),
        **dict.fromkeys(("w_c", "w_s"), width),
        "e_y": max(e // share, 1),
        "d_y": max(e // h // share, 1),
        "f_y": max(f // share, 1),
    }


def _page(fields: Fields, _: Shape) -> Tables:
    """Return the tables of LayoutLMv3, and what it keeps for images."""
    e, place, extent = (
        fields.size("hidden_size"),
        fields.size("coordinate_size", 128),
        fields.size("shape_size", 128),
    )
    fields.require(
        holds=4 * place + 2 * extent == e,
        problem=f"four of coordinate_size and two of shape_size are not the {e} of hidden_size",
        name="coordinate_size",
    )
    side = fields.size("patch_size", 16)
    fields.assume("visual_embed", "text alone: images have weights and no work")
    return {
        "w_c": place,
        "w_s": extent,
        "n_2d": fields.size("rel_2d_pos_bins", 64),
        "ch": fields.size("num_channels", 3),
        **dict.fromkeys(("s_x", "s_y"), side),
        # positions of patches and of a class token, that token, and a bias
        "n_img": (fields.size("input_size", 224) // side) ** 2 + 3,
        "n_few": 4,
    }


def _landmarks(fields: Fields, shape: Shape) -> Tables:
    """Return Nyströmformer's landmarks and kernel; a sequence is as long as its segments say."""
    marks, length = fields.size("num_landmarks", 64), fields.size("segment_means_seq_len", 64)
    kernel = fields.optional_size("conv_kernel_size", 65)
    if kernel is not None and kernel % 2 != 1:
        fields.note("conv_kernel_size", "an odd kernel is accepted")
    fields.require(
        holds=marks == length or (shape.l == length and length % marks == 0),
        problem=f"sequences of {length} tokens, which {marks} landmarks divide, are accepted",
        name="segment_means_seq_len",
    )
    sizes: Tables = dict.fromkeys(("n_mean", "n_of", "n_to"), marks)
    return sizes | {"n_inv": PRODUCTS, "s_n": kernel or 1}


def _marked(fields: Fields, family: Encoder) -> Encoder:
    """Return a Nyströmformer with landmarks or without, and with the convolution that it has."""
    few = fields.size("num_landmarks", 64) != fields.size("segment_means_seq_len", 64)
    kernel = fields.optional_size("conv_kernel_size", 65)
    return family.attended(marks="n_mean" if few else "", kernel="s_n" if kernel else "")


def _grouped(fields: Fields, family: Encoder) -> Encoder:
    """Return a ConvBERT whose perceptrons may be products in groups."""
    function = FUNCTIONS[fields.text("hidden_act", "gelu", tuple(FUNCTIONS))]
    heads = {**family.heads, SEQUENCE: Classes(hidden=Hidden(function))}
    if fields.size("num_groups", 1) == 1:
        return replace(family, heads=heads)
    return replace(family, heads=heads, perceptron=GroupedMLP(function, batched=True))


def _kernels(fields: Fields, _: Shape) -> Tables:
    """Return the kernel of ConvBERT's convolutions, and the groups of its products."""
    e, f, groups = (
        fields.size("hidden_size"),
        fields.size("intermediate_size"),
        fields.size("num_groups", 1),
    )
    kernel, heads = fields.size("conv_kernel_size", 9), fields.size("num_attention_heads")
    fields.require(
        holds=kernel % 2 == 1, problem="odd kernels are accepted", name="conv_kernel_size"
    )
    fine = e % groups == 0 and f % groups == 0
    fields.require(
        holds=fine, problem=f"{groups} groups do not divide {e} and {f}", name="num_groups"
    )
    sizes: Tables = {"s_n": kernel, "h_c": max(heads // fields.size("head_ratio", 2), 1), "two": 2}
    if groups == 1:
        return sizes
    for name, wide, narrow in (("fc1", e, f), ("fc2", f, e)):
        inner, outer = max(wide // groups, 1), max(narrow // groups, 1)
        sizes |= {f"g_{name}": groups, f"i_{name}": inner, f"o_{name}": outer}
    return sizes


def _hashed(fields: Fields, shape: Shape) -> Tables:
    """Return CANINE's tables of hashes, and the lengths of its chunks and kernels."""
    e, hashes = fields.size("hidden_size"), fields.size("num_hash_functions", 8)
    fields.require(
        holds=e % hashes == 0,
        problem=f"{hashes} tables side by side are the {e} of hidden_size",
        name="num_hash_functions",
    )
    chunk, rate = fields.size("local_transformer_stride", 128), fields.size("downsampling_rate", 4)
    problem = f"a sequence of {shape.l} is shorter than one of {rate}"
    fields.require(
        holds=not shape.l.is_Integer or shape.l >= rate, problem=problem, name="downsampling_rate"
    )
    tables: Tables = {"n_h": hashes, "w_h": max(e // hashes, 1), "e_o": e}
    tables |= dict.fromkeys(("n_b", "p_c"), fields.size("num_hash_buckets", 16384))
    kernel = fields.size("upsampling_kernel_size", 4)
    return {**tables, **characters.lengths(shape.l, chunk, rate, kernel)}


def _languages(fields: Fields, _: Shape) -> Tables:
    """Return the width of X-MOD's adapters, and how many are of other languages."""
    width, factor = fields.size("hidden_size"), fields.size("adapter_reduction_factor", 2)
    fields.require(
        holds=factor <= width,
        problem=f"{width} features leave none",
        name="adapter_reduction_factor",
    )
    others = len(fields.items("languages", ("en_XX",))) - 1
    return {"w_x": max(width // factor, 1), **({"n_o": others} if others > 0 else {})}


def _adapted(fields: Fields, family: Encoder) -> Encoder:
    """Return an X-MOD with the norms and the languages that it has."""
    named = fields.items("languages", ("en_XX",))
    problem = "one of the languages is needed: it says which adapter runs"
    known = fields.source.values.get("default_language") in named
    fields.require(holds=known, problem=problem, name="default_language")
    fields.ignore("default_language")
    pre = fields.flag("pre_norm", default=False)
    again = fields.flag("adapter_reuse_layer_norm", default=True)
    own = fields.flag("adapter_layer_norm", default=False)
    return replace(
        family,
        branch=replace(family.branch, placing=Placing.PRE if pre else Placing.POST),
        last=Norm.LAYER if pre else None,
        entry=Norm.LAYER if own else Norm.LAYER_BARE if again else None,  # type: ignore[call-arg]
        early=fields.flag("ln_before_adapter", default=True),
        others=len(named) > 1,
    )


CHANGES: Mapping[str, Callable[[Fields, Encoder], Encoder]] = {
    "convbert": _grouped,
    "deberta": _deberta,
    "deberta-v2": _deberta,
    "esm": _esm,
    "layoutlmv3": _labelled,
    "luke": _luke,
    "mobilebert": _mobile,
    "new": _new,
    "nystromformer": _marked,
    "roc_bert": _roc_bert,
    "tapas": _tapas,
    "xmod": _adapted,
}
"""What the fields of a family change besides its switches and its sizes."""

ROWS: Mapping[str, Callable[[Fields, Shape], Tables]] = {
    "canine": _hashed,
    "convbert": _kernels,
    "esm": lambda fields, _: {
        # One weight for every head of every layer, and a bias.
        "n_att": 1 + fields.size("num_hidden_layers") * fields.size("num_attention_heads")
    },
    "layoutlmv3": _page,
    "lilt": _beside,
    "luke": lambda fields, _: {"c_n": 2, "n_q": 3 * fields.size("num_hidden_layers")},
    "markuplm": lambda fields, _: {"f_x": 4 * fields.size("hidden_size")},
    "mobilebert": lambda fields, _: {
        "w_x": fields.size("hidden_size") - fields.size("embedding_size")
    },
    "nystromformer": _landmarks,
    "squeezebert": _squeezed,
    "tapas": _kinds,
    "xmod": _languages,
}
"""Sizes of further axes that follow from several fields."""
