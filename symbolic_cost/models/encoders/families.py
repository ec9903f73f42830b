"""The encoder families, as values: a family that mixes known parts is one entry."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from symbolic_cost.layers.attention import Bias, HeadNorm, Rotated
from symbolic_cost.layers.attention_core import GROUPED, AttentionCore, Step
from symbolic_cost.layers.disentangled import Disentangled, Shifted, Spanned
from symbolic_cost.layers.embeddings import PLACES, TYPES, Change, Mapped, Paths, Words
from symbolic_cost.layers.fourier import Fourier
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.grouped_products import GroupedAttention, GroupedMLP
from symbolic_cost.layers.heads import Asked, Classes, Hidden, Output, Predicted, Projected, Take
from symbolic_cost.layers.local_attention import Neighbours
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.nystrom import Landmarks
from symbolic_cost.layers.page_layout import Boxed, OnPage, Page
from symbolic_cost.layers.relative import Distances
from symbolic_cost.layers.residual import Branch, Outcome
from symbolic_cost.layers.span_convolution import Spans
from symbolic_cost.models.encoders.adapted import Adapted
from symbolic_cost.models.encoders.bottleneck import MOBILE, Widened
from symbolic_cost.models.encoders.characters import CANINE
from symbolic_cost.models.encoders.encoder import (
    ATTENTION,
    MATCHED,
    MULTIPLE,
    PAIRED,
    SPAN,
    TANH,
    Assumed,
    Encoder,
    Habit,
    Traits,
)
from symbolic_cost.models.encoders.layout import LILT
from symbolic_cost.models.encoders.routed import Routed
from symbolic_cost.models.encoders.switches import (
    BIASES,
    EURO_BIASES,
    NORM_BIAS,
    QKV_BIASES,
    entry_norm,
)
from symbolic_cost.ops.einsum import Call

_PRE = Branch(outcome=Outcome.DROP)
_SPANS = {MULTIPLE: 1, PAIRED: 2, SPAN: 2}
"""Classes of families whose spans have a start and an end, whatever the labels."""
_PLACED = Words(tables={"position": PLACES})
_TYPED = Words(tables={"type": TYPES})
_NARROW = Words("w_t")
_TURNED = replace(ATTENTION, rotated=Rotated.WHOLE)

BERT = Encoder()
_BARE = replace(BERT, pooler=None)
_POOLED = replace(BERT, habits=Habit.POOL)
_SCALED = Hidden("gelu", biased=False, norm=Norm.LAYER_SCALE)
_LAYOUT = dict.fromkeys(("x_place", "y_place", "h_place", "w_place"), "near_page")
_ATTENTION_DROPOUT = ("attention_dropout", "dropout")

_CLIP = replace(
    _BARE,
    words=replace(_PLACED, norm=None),
    attention=replace(ATTENTION, core=AttentionCore(steps=Step.MASK)),
    branch=Branch(),
    last=Norm.LAYER,
    heads={MATCHED: Projected()},
    traits=Traits(dropouts=_ATTENTION_DROPOUT, assumed=Assumed.NONE),
)

ENCODERS: Mapping[str, Encoder] = MappingProxyType(
    {
        **dict.fromkeys(("bert", "roberta", "xlm-roberta", "camembert", "clap_text_model"), BERT),
        **dict.fromkeys(("ernie", "data2vec-text", "ibert"), BERT),
        "jina_bert": replace(BERT, words=_TYPED, perceptron=GatedMLP("gelu", Bias.OUTPUT)),
        "distilbert": replace(
            _BARE, words=_PLACED, traits=Traits(dropouts=_ATTENTION_DROPOUT)
        ).headed(SEQUENCE=Classes(hidden=Hidden("relu"))),
        "electra": replace(
            _BARE, words=_NARROW, traits=Traits(classes={PAIRED: 1, MULTIPLE: 1})
        ).headed(
            MASKED=Predicted(Hidden("gelu", norm=Norm.LAYER), "w_t"),
            SEQUENCE=Classes(hidden=Hidden("gelu")),
            PAIRED=Classes(Take.EACH, hidden=Hidden("gelu")),
        ),
        "albert": replace(
            BERT,
            words=_NARROW,
            habits=Habit.SHARE,
            traits=Traits(function="gelu_new", assumed=Assumed.DROP | Assumed.PROJECT),
        ).headed(MASKED=Predicted(Hidden("gelu_new", norm=Norm.LAYER), "w_t")),
        "mpnet": replace(BERT, words=_PLACED, distances=Distances.ONCE),
        "megatron-bert": replace(BERT, words=Words(norm=None), branch=_PRE, last=Norm.LAYER),
        "roberta-prelayernorm": replace(BERT, branch=_PRE, last=Norm.LAYER),
        "xlm-roberta-xl": replace(BERT, words=Words(norm=None), branch=_PRE, last=Norm.LAYER),
        "layoutlm": replace(
            _POOLED,
            words=Words(tables={"position": PLACES, **_LAYOUT, "type": TYPES}),
            traits=Traits(tables={"near_page": "max_2d_position_embeddings"}),
        ),
        "roformer": replace(
            _BARE,
            words=replace(_NARROW, tables=_TYPED.tables),
            attention=_TURNED,
            unused={"angles": "p d"},
            traits=Traits(classes=_SPANS),
        ).headed(
            MASKED=Predicted(Hidden("gelu", norm=Norm.LAYER), "w_t"),
            SEQUENCE=Classes(hidden=Hidden("gelu")),
            MULTIPLE=Classes(),
        ),
        "jina_embeddings_v3": replace(BERT, words=_TYPED, attention=_TURNED),
        **dict.fromkeys(
            ("gte", "new"),
            replace(
                _BARE,
                words=_TYPED,
                attention=_TURNED,
                perceptron=GatedMLP("gelu", Bias.OUTPUT),
            ),
        ),
        "eurobert": replace(
            _BARE,
            words=Words(tables={}, norm=None, changes=Change.NONE),
            attention=replace(_TURNED, heads=GROUPED, bias=Bias.NONE),
            perceptron=GatedMLP(),
            branch=Branch(Norm.RMS),
            last=Norm.RMS,
            traits=Traits(EURO_BIASES, function="silu", assumed=Assumed.OWN_HEAD),
        ).headed(
            MASKED=Predicted(output=Output.TIE),
            SEQUENCE=Classes(Take.EACH, hidden=Hidden("gelu")),
        ),
        "neobert": replace(
            _BARE,
            words=Words(tables={}, norm=None, changes=Change.NONE),
            attention=replace(_TURNED, bias=Bias.NONE),
            perceptron=GatedMLP(),
            branch=Branch(Norm.RMS),
            last=Norm.RMS,
            traits=Traits(function="silu", assumed=Assumed.OWN_HEAD),
        ).headed(MASKED=Predicted(output=Output.BIAS)),
        "modernbert": replace(
            _BARE,
            words=Words(tables={}, norm=Norm.LAYER_SCALE, changes=Change.NONE),
            attention=replace(_TURNED, bias=Bias.NONE),
            perceptron=GatedMLP("gelu"),
            branch=Branch(Norm.LAYER_SCALE),
            habits=Habit.BARE_FIRST,
            last=Norm.LAYER_SCALE,
            traits=Traits(
                {**BIASES, **NORM_BIAS},
                dropouts=("attention_dropout", "mlp_dropout"),
                assumed=Assumed.NONE,
            ),
        ).headed(
            MASKED=Predicted(_SCALED),
            SEQUENCE=Classes(hidden=_SCALED),
            TOKENS=Classes(Take.EACH, hidden=_SCALED),
            SPAN=Classes(Take.EACH, hidden=_SCALED),
        ),
        **dict.fromkeys(
            ("flaubert", "xlm"),
            replace(
                _BARE, words=_PLACED, traits=Traits(widening=4, dropouts=_ATTENTION_DROPOUT)
            ).headed(MASKED=Predicted(), SEQUENCE=Classes()),
        ),
        "deberta-v2": replace(
            _BARE, attention=Disentangled(**vars(ATTENTION)), words=Words(tables={})
        ).headed(SEQUENCE=Classes(hidden=Hidden("gelu"))),
        "deberta": replace(
            _BARE,
            attention=replace(Spanned(**vars(ATTENTION)), bias=Bias.BOTH & ~Bias.KEY, shared=False),
            words=Words(tables={}),
        ).headed(SEQUENCE=Classes(hidden=Hidden("gelu"))),
        "longformer": replace(BERT, attention=Neighbours(**vars(ATTENTION))),
        "luke": replace(
            _POOLED,
            unused={
                "entity": "n_ent e_n",
                "entity_project": "e_n e",
                "entity_place": "p e",
                "entity_kind": "types e",
                "entity_norm": "c_n e",
                "entity_queries": "n_q e w",
                "entity_biases": "n_q e",
                "predict": "e_n e",
                "predict_norm": "c e_n",
                "predict_bias": "n_ent",
            },
            traits=Traits(
                tables={"n_ent": "entity_vocab_size", "e_n": "entity_emb_size"},
                assumed=Assumed.DROP | Assumed.OWN_HEAD,
            ),
        ),
        "tapas": replace(BERT, words=_PLACED),
        "lilt": LILT,
        "layoutlmv3": replace(
            _BARE,
            words=Page(tables={"position": PLACES, "type": TYPES}),
            attention=OnPage(**vars(ATTENTION)),
            distances=Distances.ONCE,
            unused={"patch": "ch e s_x s_y", "image": "n_img e", "image_norms": "n_few e"},
            traits=Traits(tables={"n_page": "max_2d_position_embeddings"}),
        ),
        "squeezebert": replace(
            _POOLED, attention=GroupedAttention(core=ATTENTION.core), perceptron=GroupedMLP()
        ),
        "fnet": replace(
            _POOLED,
            words=Words("w_t", changes=Change.LATE),
            attention=Fourier(core=ATTENTION.core),
            traits=Traits(tables={"w_t": "hidden_size"}, function="gelu_new", assumed=Assumed.DROP),
        ),
        "nystromformer": replace(
            _BARE,
            attention=Landmarks(**vars(ATTENTION)),
            traits=Traits(function="gelu_new", offset=2, classes=_SPANS),
        ).headed(SEQUENCE=Classes(hidden=Hidden("gelu_new"))),
        "roc_bert": replace(
            BERT,
            words=Mapped(beside={"shape": "n_shape w_shape", "sound": "n_sound w_sound"}),
            traits=Traits(
                tables={
                    "n_shape": "shape_vocab_size",
                    "w_shape": "shape_embed_dim",
                    "n_sound": "pronunciation_vocab_size",
                    "w_sound": "pronunciation_embed_dim",
                }
            ),
        ).headed(MASKED=Predicted(Hidden("gelu", norm=Norm.LAYER), "w")),
        "mobilebert": replace(
            MOBILE,
            traits=Traits(
                tables={"e_b": "intra_bottleneck_size", "w_t": "embedding_size"}, function="relu"
            ),
        ).headed(
            MASKED=Widened(Hidden("relu", norm=Norm.LAYER)), SEQUENCE=Classes(hidden=Hidden())
        ),
        "rembert": replace(
            BERT,
            words=_NARROW,
            traits=Traits(
                tables={"w_o": "output_embedding_size"},
                assumed=Assumed.DROP | Assumed.PROJECT | Assumed.OWN_HEAD,
            ),
        ).headed(MASKED=Predicted(Hidden("gelu", norm=Norm.LAYER), "w_o", Output.BIAS)),
        "bert-generation": replace(_BARE, words=_PLACED).headed(MASKED=Predicted()),
        "markuplm": replace(
            BERT,
            words=Paths(),
            traits=Traits(
                tables={
                    "n_dep": "max_depth",
                    "n_tag": "max_xpath_tag_unit_embeddings",
                    "n_sub": "max_xpath_subs_unit_embeddings",
                    "w_u": "xpath_unit_hidden_size",
                }
            ),
        ),
        **dict.fromkeys(("clip_text_model", "metaclip_2_text_model"), _CLIP),
        **dict.fromkeys(
            ("siglip_text_model", "siglip2_text_model"),
            replace(_CLIP, attention=ATTENTION, heads={"TextModel": Projected(biased=True)}),
        ),
        **dict.fromkeys(("chinese_clip_text_model", "altclip_text_model"), _BARE),
        "aimv2_text_model": replace(
            _CLIP,
            attention=replace(ATTENTION, bias=Bias.NONE),
            perceptron=GatedMLP(),
            branch=Branch(Norm.RMS),
            last=Norm.RMS,
            heads={},
            traits=replace(_CLIP.traits, switches=QKV_BIASES, function="silu"),
        ),
        "dpr": _BARE,
        "xlnet": replace(
            _BARE,
            words=Words(tables={}, norm=None),
            attention=replace(Shifted(**vars(ATTENTION)), bias=Bias.NONE, call=Call.BARE),
            unused={"masked": "one e"},
            traits=Traits(dropouts=("dropout", "dropout")),
        ).headed(MASKED=Predicted()),
        "nomic_bert": Routed(
            **vars(
                replace(
                    _BARE,
                    words=_TYPED,
                    attention=replace(_TURNED, heads=GROUPED, bias=Bias.NONE),
                    perceptron=GatedMLP("silu"),
                    traits=Traits(function="silu"),
                ).headed(MASKED=Predicted(Hidden("silu", norm=Norm.LAYER)))
            )
        ),
        "esm": replace(
            BERT,
            words=replace(_PLACED, norm=None, changes=Change.NONE),
            branch=_PRE,
            last=Norm.LAYER,
            unused={"contacts": "n_att"},
            traits=Traits({"emb_layer_norm_before": entry_norm}),
        ),
        "bros": replace(_POOLED, attention=Boxed(**vars(ATTENTION)), distances=Distances.ONCE),
        "canine": CANINE,
        "convbert": replace(
            _BARE,
            words=_NARROW,
            attention=Spans(core=ATTENTION.core),
        ).headed(
            MASKED=Predicted(Hidden("gelu", norm=Norm.LAYER), "w_t"),
            SEQUENCE=Classes(hidden=Hidden("gelu")),
            MULTIPLE=Classes(),
        ),
        "esmc": replace(
            _BARE,
            words=Words(tables={}, norm=None, changes=Change.NONE),
            attention=replace(
                _TURNED,
                heads=GROUPED,
                bias=Bias.NONE,
                head_norm=HeadNorm.WIDTH,
                norm=Norm.LAYER_SCALE,
            ),
            perceptron=GatedMLP(),
            branch=Branch(),
            last=Norm.LAYER_SCALE,
            traits=Traits(
                BIASES,
                function="silu",
                dropouts=("attention_dropout", "hidden_dropout_prob"),
                assumed=Assumed.OWN_HEAD,
            ),
        ).headed(MASKED=Predicted(Hidden("gelu", norm=Norm.LAYER), output=Output.BIAS)),
        "xmod": Adapted(source="pfeiffer-2022"),
        "yoso": replace(_BARE, traits=Traits(offset=2, classes=_SPANS)).headed(
            SEQUENCE=Classes(hidden=Hidden("gelu")), MULTIPLE=Classes(hidden=Hidden("relu"))
        ),
        "splinter": replace(_BARE).headed(SPAN=Asked()),
        "big_bird": replace(_POOLED, traits=Traits(function="gelu_new")).headed(
            SEQUENCE=Classes(hidden=Hidden("gelu_new")), MULTIPLE=Classes(hidden=TANH)
        ),
    }
)
"""Families by model_type."""
