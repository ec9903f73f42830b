"""Towers of images and texts whose embeddings are compared, as in CLIP.

Axes: as in the towers; w_p common width, w_t width of widened texts, b_all images that a text is
compared to, those of the batch.
"""

from dataclasses import replace

from sympy import Integer

from symbolic_cost.axes import axes
from symbolic_cost.layers.norm import Norm
from symbolic_cost.models.build import Fields, Shape, bound, classes_of
from symbolic_cost.models.encoders import config as encoder_config
from symbolic_cost.models.encoders.encoder import CLASSES
from symbolic_cost.models.nested.families import CONTRASTIVE, Contrastive, Meeting
from symbolic_cost.models.nested.parts import section
from symbolic_cost.models.nested.towers import tower
from symbolic_cost.models.vision import config as vision_config
from symbolic_cost.ops.declare import Model, Op, Part, Place, cross_entropy, einsum, stored, view
from symbolic_cost.ops.part import retitled

AXES = axes("w_p hidden, w_t hidden, b_all batch all, n_s whole, one whole")

_VISION = "vision"


def build(fields: Fields, shape: Shape) -> Model:
    """Read both towers and declare them with what compares them; or the classes of an image."""
    family = CONTRASTIVE[fields.family]
    inner = section(fields, "vision_config", family.vision)
    if fields.head.endswith(CLASSES):
        inner.head = f"{inner.family}{CLASSES}"
        read, sizes, numbers, head = vision_config.read(inner, shape)
        numbers["n_classes"] = classes_of(fields)
        fields.ignore("text_config", "projection_dim")
        inner.refuse()
        fields.refuse()
        return replace(read.declare(fields.family, shape, sizes, head), bindings=numbers)
    words = section(fields, "text_config", family.text)
    words.head = ""  # both are projected alike, here
    text = bound(encoder_config.build(words, shape))
    seen = bound(vision_config.build(inner, shape))
    wide = _width(words, family, text)
    headed = inner.source.values.get("vision_use_head", True) is not False
    problem = "with a head is accepted: what it gives is compared"
    inner.require(holds=headed, problem=problem, name="vision_use_head")
    projected = family.meeting is not Meeting.HEADED
    common = fields.size("projection_dim", 512) if projected else int(seen.sizes["e"])
    if not projected and words.size("projection_size", int(text.sizes["e"])) != common:
        fields.note("text_config", f"texts and images of {common} features are compared")
    words.refuse()
    fields.refuse()
    return _compared(fields.family, family, text, seen, {"w_p": common, "w_t": wide})


def _width(words: Fields, family: Contrastive, text: Model) -> int:
    widened = family.meeting is Meeting.WIDENED
    return words.size("project_dim", 768) if widened else int(text.sizes["e"])


def _compared(
    name: str, family: Contrastive, text: Model, seen: Model, sizes: dict[str, int]
) -> Model:
    images = tower(seen, _VISION)
    new = {axis: f"{axis}_{_VISION}" for axis in ("b", "r", "one", "e")}
    pooled = "pooled" if seen.parts[-1].path == "pooler" else "first"
    ops: tuple[Op, ...] = ()
    if pooled == "first":
        ops = (view("first", "x[b r e] -> first[b one e]"),)
    if any(op.path == "post_norm" for op in seen.parts[0].ops):
        ops += (Norm.LAYER_BARE.op("norm", "first[b one e]", "normed[b one e]", row="e"),)
        pooled = "normed"
    if family.meeting is not Meeting.HEADED:
        ops += (einsum("projection", f"{pooled}[b one e], *w[e w_p] -> image[b one w_p]"),)
    else:
        ops += (view("projection", f"{pooled}[b one e] -> image[b one w_p]"),)
    renamed = retitled(ops, new)
    takes = {renamed[0].inputs[0].tensor: images.last}
    joining = Part("image", renamed, takes=takes, place=Place.END)
    heads = Part("logits", _logits(family), takes={"x": text.parts[-1].path, "image": "image"})
    own = {axis: Integer(size) for axis, size in sizes.items()} | {
        "b_all": text.sizes["b"],
        "n_s": Integer(family.scalars),
        "one": Integer(1),
    }
    return replace(
        text,
        name=name,
        parts=(*images.parts, joining, *text.parts, heads),
        sizes={**text.sizes, **images.sizes, **own},
        axes={**text.axes, **images.axes, **AXES},
    )


def _logits(family: Contrastive) -> tuple[Op, ...]:
    """Declare the embedding of a text, from its first position, and its products with images."""
    ops: tuple[Op, ...] = ()
    taken, width = "x", "e"
    if family.meeting is Meeting.WIDENED:
        ops = (
            Norm.LAYER.op("norm", "x[b r e]", "normed[b r e]"),
            einsum("widen", "normed[b r e], *w[e w_t] + *bias[w_t] -> wide[b r w_t]"),
        )
        taken, width = "wide", "w_t"
    bias = " + *bias[w_p]" if family.meeting is Meeting.HEADED else ""
    return (
        *ops,
        view("first", f"{taken}[b r {width}] -> first[b one {width}]"),
        einsum("projection", f"first[b one {width}], *w[{width} w_p]{bias} -> text[b one w_p]"),
        view("images", f"image[b_{_VISION} one_{_VISION} w_p] -> others[b_all one w_p]"),
        einsum("logits", "text[b one w_p], others[b_all one w_p] -> logits[b one b_all]"),
        stored("scalars", w="n_s"),
        cross_entropy(
            "loss", "logits[b one b_all], !targets[b one]:index -> loss[b one]", row="b_all"
        ),
    )
