"""What families of encoders change besides switches and sizes, and the rows of their tables."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from sympy import Expr

from symbolic_cost.layers.attention import Bias, Rotated
from symbolic_cost.layers.embeddings import PLACES, TYPES, Words
from symbolic_cost.layers.grouped_products import GroupedMLP
from symbolic_cost.layers.heads import Cells, Classes, Hidden, Projected, Take
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.moe import MixtureOfExperts, Shares, Trait
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.residual import Placing
from symbolic_cost.models.build import Fields, classes_of, is_size
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
from symbolic_cost.models.functions import FUNCTIONS

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


def _rotary(fields: Fields, family: Encoder) -> Encoder:
    kinds = ("absolute", "rotary")
    fields.need("position_embedding_type")  # null is a third kind, without positions
    if fields.text("position_embedding_type", kinds[0], kinds) == kinds[0]:
        return family
    tables = family.words.tables if isinstance(family.words, Words) else {}
    left = {name: rows for name, rows in tables.items() if rows != PLACES}
    return family.worded(tables=left).attended(rotated=Rotated.WHOLE)


def _jina(fields: Fields, family: Encoder) -> Encoder:
    """Return a JinaBERT; that for code has further norms, which are not declared."""
    other = "qk-post-norm" in str(fields.source.values.get("auto_map"))
    problem = "the code of jina-bert-v2-qk-post-norm, which norms queries and keys, is not declared"
    fields.require(holds=not other, problem=problem, name="auto_map")
    return family


def _flash(fields: Fields, family: Encoder) -> Encoder:
    """Return an XLM-RoBERTa; Jina's code may rotate it, and has adapters for tasks beside it.

    Source: jinaai/xlm-roberta-flash-implementation, modeling_lora.py.
    """
    code = fields.source.values.get("auto_map")
    named = code.get("AutoConfig") if isinstance(code, Mapping) else None
    if not str(named).endswith("XLMRobertaFlashConfig"):
        turned = fields.text("position_embedding_type", "absolute") == "rotary"
        problem = "rotary is declared for the code of XLMRobertaFlashConfig (auto_map) alone"
        fields.require(holds=not turned, problem=problem, name="position_embedding_type")
        return family
    family = _rotary(fields, family)
    tasks = fields.items("lora_adaptations")
    fields.ignore("lora_rank", "lora_main_params_trainable")
    if not tasks or not fields.head.endswith(("Model", "LoRA")):
        return family
    fields.assume("lora_adaptations", "adapters are stored, and none runs: no task is chosen")
    return replace(family, unused=_ADAPTERS)


_ADAPTERS: Mapping[str, str] = {
    f"adapters_{name}": axes
    for layer, taken, given in (
        ("token", "n_a v", "n_a e"),
        ("type", "n_a types", "n_a e"),
        ("qkv", "n_al e", "n_al c e"),
        ("proj", "n_al e", "n_al e"),
        ("fc1", "n_al e", "n_al f"),
        ("fc2", "n_al f", "n_al e"),
        ("pooler", "n_a e", "n_a e"),
    )
    for name, axes in ((f"{layer}_in", taken), (f"{layer}_out", given))
}
"""Two weights for every product and table: n_a ranks of all tasks, n_al the same in all layers."""


def _luke(fields: Fields, family: Encoder) -> Encoder:
    """Return a LUKE whose entities are projected unless they are as wide as words.

    Those of a masked head are predicted as well, and heads of tokens have no pooler.
    """
    wide = fields.source.values.get("entity_emb_size") == fields.size("hidden_size")
    left: tuple[str, ...] = ("entity_project",) if wide else ()
    left += () if fields.head.endswith(MASKED) else ("predict", "predict_norm", "predict_bias")
    kept = {name: axes for name, axes in family.unused.items() if name not in left}
    bare = fields.head.endswith((TOKENS, SPAN))
    return replace(family, unused=kept, pooler=None if bare else family.pooler)


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


def _neo(fields: Fields, family: Encoder) -> Encoder:
    """Return a NeoBERT: its perceptron is two thirds as wide as it says, a multiple of eight."""
    width = -(-int(2 * fields.size("intermediate_size") / 3) // _EIGHT) * _EIGHT
    values = {**fields.source.values, "intermediate_size": width}
    fields.source = replace(fields.source, values=values)
    return family


_EIGHT = 8


def _nomic(fields: Fields, family: Encoder) -> Encoder:
    """Return a Nomic BERT whose perceptron may be plain, and be experts in every so many layers.

    Source: nomic-ai/nomic-bert-2048, modeling_hf_nomic_bert.py.
    """
    function = fields.source.values.get("activation_function")
    inner, outer, own = (
        fields.flag(f"{name}_bias", default=False) for name in ("mlp_fc1", "mlp_fc2", "qkv_proj")
    )
    bias = (Bias.INNER if inner else Bias.NONE) | (Bias.OUTPUT if outer else Bias.NONE)
    plain = function not in (None, "swiglu")
    layer = MLP("gelu", bias) if plain else replace(family.perceptron, bias=bias)
    family = replace(family.attended(bias=Bias.BOTH if own else Bias.NONE), perceptron=layer)
    every = fields.optional_size("moe_every_n_layers") or 0
    several = fields.optional_size("num_experts") is not None
    fields.ignore("moe_top_k", "moe_normalize_expert_weights")
    # Of every so many layers the second one, counted from the first.
    sparse = (fields.size("num_hidden_layers") + every - 2) // every if every > 1 and several else 0
    problem = "experts are declared as two products, of gelu"
    fields.require(holds=plain or not sparse, problem=problem, name="activation_function")
    normed = fields.flag("moe_normalize_expert_weights", default=False)
    traits = Trait.PLAIN | Trait.OFFSET
    shares = Shares.NORMALISED if normed else Shares.PLAIN
    return replace(
        family,
        experts=MixtureOfExperts("gelu", shares=shares, traits=traits),  # type: ignore[call-arg]
        sparse=sparse,
    )


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
    return replace(family, unused={name: named[name] for name in named if name not in used})


_FEW_LABELS = 10
"""From so many labels on, LayoutLMv3 tells those of tokens apart behind a hidden layer."""


def _labelled(fields: Fields, family: Encoder) -> Encoder:
    """Return a LayoutLMv3 whose heads of spans and of many labels have a hidden layer."""
    behind = Classes(Take.EACH, hidden=TANH)
    many = fields.head.endswith(TOKENS) and classes_of(fields) >= _FEW_LABELS
    own = {SPAN: behind, **({TOKENS: behind} if many else {})}
    return replace(family, heads={**family.heads, **own})


def _tapas(fields: Fields, family: Encoder) -> Encoder:
    sizes = fields.items("type_vocab_sizes", (3, 256, 256, 2, 256, 256, 10))
    fine = bool(sizes) and all(map(is_size, sizes))
    fields.require(holds=fine, problem="sizes are accepted", name="type_vocab_sizes")
    tables = {f"kind{i}": f"kinds{i}" for i in range(len(sizes))}
    classes = "z" if fields.optional_size("num_aggregation_labels") else ""
    family = replace(family, heads={**family.heads, SPAN: Cells(classes)})
    # Positions begin anew in every cell, so that no sequence is too long.
    return family.worded(tables={"place": PLACES, **tables})


def _new(fields: Fields, family: Encoder) -> Encoder:
    return family if or_none(fields, "type_vocab_size") else family.worded(tables={})


def _marked(fields: Fields, family: Encoder) -> Encoder:
    few = fields.size("num_landmarks", 64) != fields.size("segment_means_seq_len", 64)
    kernel = fields.optional_size("conv_kernel_size", 65)
    return family.attended(marks="n_mean" if few else "", kernel="s_n" if kernel else "")


def _grouped(fields: Fields, family: Encoder) -> Encoder:
    """Return a ConvBERT whose perceptrons may be products in groups."""
    function = FUNCTIONS[fields.text("hidden_act", "gelu", tuple(FUNCTIONS))]
    heads = {**family.heads, SEQUENCE: Classes(hidden=Hidden(function))}
    if fields.size("num_groups", 1) == 1:
        return replace(family, heads=heads)
    return replace(family, heads=heads, perceptron=GroupedMLP(function, kernel=""))


def _adapted(fields: Fields, family: Encoder) -> Encoder:
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
        added="taken" if fields.flag("ln_before_adapter", default=True) else "summed",
        others="n_o" if len(named) > 1 else "",
    )


def _expected(fields: Fields, family: Encoder) -> Encoder:
    """Return a YOSO, whose weights are what its hashes would give in the mean."""
    fields.assume("use_expectation", "the arc cosine of scores is taken for a softmax")
    function = FUNCTIONS[fields.text("hidden_act", "gelu", tuple(FUNCTIONS))]
    return replace(family, heads={**family.heads, SEQUENCE: Classes(hidden=Hidden(function))})


def _late(fields: Fields, family: Encoder) -> Encoder:
    """Return a BERT whose tokens are compared one by one, if it is one; its pooler is not read."""
    if not fields.head.endswith(LATE):
        return family
    heads = {**family.heads, LATE: Projected(take=Take.EACH)}
    return replace(family, habits=family.habits | Habit.POOL, heads=heads)


LATE = "ColBERT"
"""End of the name of a class that compares tokens one by one."""

CHANGES: Mapping[str, Callable[[Fields, Encoder], Encoder]] = {
    "bert": _late,
    "convbert": _grouped,
    "deberta": _deberta,
    "deberta-v2": _deberta,
    "esm": _rotary,
    "jina_bert": _jina,
    "layoutlmv3": _labelled,
    "luke": _luke,
    "mobilebert": _mobile,
    "new": _new,
    "neobert": _neo,
    "nomic_bert": _nomic,
    "nystromformer": _marked,
    "roc_bert": _roc_bert,
    "tapas": _tapas,
    "xlm-roberta": _flash,
    "xmod": _adapted,
    "yoso": _expected,
}
"""What the fields of a family change besides its switches and its sizes."""
