"""Builders of models that embed tokens of a page or a question one by one, or a text as a whole."""

from collections.abc import Mapping
from dataclasses import replace

from sympy import Integer

from symbolic_cost.errors import InputError
from symbolic_cost.layers import pooling
from symbolic_cost.layers.pooling import VectorPool
from symbolic_cost.models.build import Fields, Shape, bound
from symbolic_cost.models.config import imported
from symbolic_cost.models.families import FAMILIES
from symbolic_cost.ops.declare import Model, Part, axes, einsum
from symbolic_cost.ops.part import retitled

AXES = axes("w_c hidden")
_SECTION = "vlm_config"


def build(fields: Fields, shape: Shape) -> Model:
    """Declare the model that sees images, and the projection of what it gives.

    Raises:
        InputError: every problem of the whole or of the section.
    """
    inner = fields.source.values.get(_SECTION)
    fields.ignore(_SECTION)
    kind = inner.get("model_type") if isinstance(inner, Mapping) else None
    if not isinstance(inner, Mapping) or kind not in _KINDS:
        known = ", ".join(_KINDS)
        raise InputError(f"{fields.source.where(_SECTION)}: a section of {known} is accepted")
    width = fields.size("embedding_dim", 128)
    fields.refuse()
    bare = next(head for head in FAMILIES[kind].heads if head.endswith("Model"))
    source = replace(fields.source, values={**inner, "architectures": [bare]})
    read = imported(source, shape)
    fields.ignored |= read.ignored
    model = bound(read.model)
    ops = (einsum("project", "x[b r e], *w[e w_c] + *bias[w_c] -> y[b r w_c]"),)
    return replace(
        model,
        parts=(*model.parts, Part("projection", ops)),
        sizes={**model.sizes, "w_c": Integer(width)},
        axes={**model.axes, **AXES},
    )


def pooled(fields: Fields, shape: Shape) -> Model:
    """Declare an NV-Embed: a decoder without a mask, whose positions are pooled.

    Source: nvidia/NV-Embed-v2, modeling_nvembed.py and configuration_nvembed.py.

    Raises:
        InputError: every problem of the whole or of a section.
    """
    part = fields.part("latent_attention_config") or fields.holding({})
    sizes = {axis: part.size(key, usual) for axis, (key, usual) in _VECTORS.items()}
    part.flag("output_normalize", default=True)
    part.ignore("model_type")
    inner = fields.part("text_config")
    problem = "a section of bidir_mistral is accepted"
    fields.require(holds=inner is not None, problem=problem, name="text_config")
    fields.problems += part.not_understood().values()
    fields.refuse()
    values = {**_MISTRAL, **(inner.source.values if inner else {})}
    known = {**values, "model_type": _BIDIRECTIONAL, "architectures": ["MistralModel"]}
    read = imported(replace(fields.source, values=known), shape)
    model = bound(read.model)
    wide, widths = values["hidden_size"], (sizes.pop("e_v"), sizes.pop("e_x"))
    if widths != (wide, wide):
        name = "hidden_dim and latent_dim"
        where = fields.source.where("latent_attention_config")
        raise InputError(f"{where}: {name}: only the {wide} of hidden_size is declared")
    fields.ignored |= read.ignored
    names = {"h": "h_v", "d": "d_v", "f": "f_v"}
    ops = retitled(VectorPool().ops(), names)
    own = {**sizes, "f_v": 4 * wide, **dict.fromkeys(("r_m", "l_m", "t_m"), sizes["n_m"])}
    return replace(
        model,
        parts=(*model.parts, Part("pool", ops)),
        sizes={**model.sizes, "one": Integer(1), **{a: Integer(n) for a, n in own.items()}},
        axes={**model.axes, **pooling.AXES, **axes("h_v head, d_v width, f_v inner")},
    )


_BIDIRECTIONAL = "bidir_mistral"
_VECTORS = {
    "n_m": ("num_latents_value", 512),
    "h_v": ("num_cross_heads", 8),
    "d_v": ("cross_dim_head", 4096),
    "e_v": ("hidden_dim", 4096),
    "e_x": ("latent_dim", 4096),
}
"""Fields of the pooling by axis, and their defaults."""
_MISTRAL = {
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 32000,
}
"""What a section of a Mistral leaves out."""

_KINDS = ("paligemma", "qwen2_vl", "qwen2_5_vl")
