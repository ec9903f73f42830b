"""Builder of models that embed every token of a page or a question, to compare them one by one."""

from collections.abc import Mapping
from dataclasses import replace

from sympy import Integer

from symbolic_cost.errors import InputError
from symbolic_cost.models.build import Fields, Shape, bound
from symbolic_cost.models.config import imported
from symbolic_cost.models.families import FAMILIES
from symbolic_cost.ops.declare import Model, Part, axes, einsum

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


_KINDS = ("paligemma", "qwen2_vl", "qwen2_5_vl")
