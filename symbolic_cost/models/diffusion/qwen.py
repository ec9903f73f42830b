"""Qwen-Image and its ControlNet, by `_class_name`; of the last block nobody reads the prompt.

Axes: as in `diffusion`; two the time steps that condition an edit: that of what is denoised, and
zero, that of the images that are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sympy import Expr

from symbolic_cost import symbols
from symbolic_cost.layers.attention import Rotated
from symbolic_cost.layers.conditioning import LAST, Embedded, conditioned, modulation, parted
from symbolic_cost.layers.joint_attention import IMAGE, TEXT, Joint, Stream
from symbolic_cost.layers.norm import Norm
from symbolic_cost.models.diffusion.blocks import double_block, ending, pieces_of, prompt_unread
from symbolic_cost.models.diffusion.controls import handing, shown_beside
from symbolic_cost.models.diffusion.transformers import (
    ANGLES,
    EMBEDDED,
    FINE_PROMPT,
    TIME,
    Numbers,
    Sample,
    assumed_side,
    declared,
    heads_of,
    is_null,
    rotated,
    sample,
    sizes_of,
)
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.part import Part, Place, retitled, scope

TOLD = Embedded("told", "n_l", "")
"""Which of two kinds of samples it is."""
_ATTENTION = Joint((TEXT, IMAGE), (TEXT, IMAGE), Norm.RMS, rotated=Rotated.WHOLE)


def qwen_image(fields: Fields, shape: Shape) -> Model:
    """Declare a Qwen-Image, whose edits see two time steps."""
    image, numbers, own = _image(fields, shape)
    out = fields.size("out_channels", image.channels if is_null(fields) else 16)
    own |= {"pixels": out * fields.size("patch_size", 2) ** 2, "n_l": 2, "two": 2}
    told, edits = (
        fields.flag(name, default=False) for name in ("use_additional_t_cond", "zero_cond_t")
    )
    problem = "true stands without use_additional_t_cond"
    fields.require(holds=not (told and edits), problem=problem, name="zero_cond_t")
    fields.refuse()
    times = [Part("time", conditioned((TIME, *((TOLD,) if told else ()))))]
    if edits:
        times = [Part("times", _TIMES), Part("time", (_FIRST,), takes={"both": "times"})]
    block = double_block(_ATTENTION, made=_pieces_of_both if edits else pieces_of)
    at = {"x": "embedding", "prompt": "prompt"}
    parts = (
        *times,
        Part("rotation", (ANGLES,)),
        Part("prompt", FINE_PROMPT),
        Part("embedding", (EMBEDDED,)),
        *_blocks(block, numbers, at, {"both": "times"} if edits else {}),
        Part("head", ending(modulation(LAST)), takes={"x": "last.block", "cond": "time"}),
    )
    return declared(fields, parts, sizes_of(image, shape, **own), numbers)


def controlnet(fields: Fields, shape: Shape) -> Model:
    """Declare a ControlNet of Qwen-Image."""
    image, numbers, own = _image(fields, shape)
    further = fields.optional_size("extra_condition_channels") or 0
    own |= {"e_q": numbers["e"], "pixels": 1, "n_x": image.channels + further}
    fields.ignore("out_channels", "patch_size")
    fields.refuse()
    shown = retitled((EMBEDDED,), {"ch": "n_x"})
    parts = (
        Part("time", conditioned((TIME,))),
        Part("rotation", (ANGLES,)),
        Part("prompt", FINE_PROMPT),
        Part("embedding", shown_beside((EMBEDDED,), shown)),
        *_blocks(
            handing(double_block(_ATTENTION)), numbers, {"x": "embedding", "prompt": "prompt"}
        ),
    )
    return declared(fields, parts, sizes_of(image, shape, **own), numbers)


def _image(fields: Fields, shape: Shape) -> tuple[Sample, Numbers, dict[str, Expr | int]]:
    """Read latents that are packed two by two, heads and depth, and the width of the prompt."""
    channels = fields.size("in_channels", 64)
    assumed_side(fields, 128)
    image = sample(fields, shape, 128, 2, channels)
    numbers = heads_of(fields, 24, 128) | {"n_layers": fields.size("num_layers", 60)}
    rotated(fields, numbers)
    return image, numbers, {"e_x": fields.size("joint_attention_dim", 3584)}


def _blocks(
    block: tuple[Op, ...],
    numbers: Numbers,
    at: Mapping[str, str],
    further: Mapping[str, str] | None = None,
) -> Iterator[Part]:
    """Declare blocks of two streams, of whose last nobody reads the prompt."""
    beside = {"cond": "time", **(further or {})}
    if numbers["n_layers"] > 1:
        count = symbols.n_layers - 1
        yield Part("block", block, count, {**at, **beside}, Place.LEADING)
        at = dict.fromkeys(at, "block")
    yield Part("last.block", prompt_unread(block), takes={**at, **beside}, place=Place.BLOCK)


def _pieces_of_both(stream: Stream, pieces: tuple[str, ...]) -> tuple[Op, ...]:
    """Declare the pieces of a stream's modulation, of the image those of its two time steps."""
    if stream is not IMAGE:
        return pieces_of(stream, pieces)
    axis = f"m_{len(pieces)}"
    made = f"a[b two e_t], *w[{axis} e_t e] + *bias[{axis} e] -> every[{axis} b two e]"
    ops = (
        pointwise("act", "both[b two e_t] -> a[b two e_t]", "silu"),
        einsum("linear", made),
        pointwise("choose", f"every[{axis} b two e] -> pieces[{axis} b e]", "copy", laid="two"),
        parted(pieces),
    )
    own = stream.name
    return scope(f"{own}.modulation", ops, both="both", **{p: f"{own}.{p}" for p in pieces})


_TIMES = (
    einsum("linear_1", "!time_of[b two n_f], *w[n_f e_h] + *bias[e_h] -> u[b two e_h]"),
    pointwise("act", "u[b two e_h] -> a[b two e_h]", "silu"),
    einsum("linear_2", "a[b two e_h], *w[e_h e_t] + *bias[e_t] -> both[b two e_t]"),
)
_FIRST = pointwise("first", "both[b two e_t] -> cond[b e_t]", "copy", laid="two")
