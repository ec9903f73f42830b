"""Diffusion transformers by `_class_name`: DiT, Stable Diffusion 3.

A sample is a square of latents, `sample_size` a side; the sequence is that of the prompt. Axes: as
in the layers; e_x width of the prompt's embeddings, n_f frequencies of a time step, e_pool width of
the prompt's one vector, n_l rows of the table of classes, pixels those of a patch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.axes import axes, glossary
from symbolic_cost.layers import (
    attention_core,
    conditioning,
    gated,
    joint_attention,
    mlp,
    patch,
    relative,
)
from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.attention_core import AttentionCore, Step
from symbolic_cost.layers.conditioning import (
    LAST,
    SIX,
    Embedded,
    conditioned,
    modulation,
)
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.joint_attention import IMAGE, TEXT, Joint
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.patch import Patches, Piece, Places
from symbolic_cost.models.diffusion.blocks import (
    block,
    double_block,
    ending,
    pieces_of,
)
from symbolic_cost.models.fields import Fields, is_size
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.part import Part, Place
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact

AXES = glossary(
    joint_attention.AXES,
    conditioning.AXES,
    attention_core.AXES,
    mlp.AXES,
    gated.AXES,
    relative.AXES,
    {axis: entry for axis, entry in patch.AXES.items() if axis != "x"},
    axes(
        "x whole, e_x hidden, n_f whole, e_pool whole, n_l whole, e_q hidden, e_q_ hidden, "
        "pixels whole, e_i hidden, n_p token patch, n_g whole, h_x head, d_x width, d_o width, "
        "y_m token patch, x_m token patch, y_n token patch, x_n token patch, k_y whole, k_x whole, "
        "e_c hidden"
    ),
)

PLAIN = AttentionCore(steps=Step.NONE)

Numbers = dict[str, int]


@dataclass(frozen=True)
class Sample:
    """What a network sees.

    Args:
        sides: of the latents [elements].
        patch: side of one patch.
        channels: of the latents.
        text: tokens of the prompt.
        frames: of a video, and those of one patch.
    """

    sides: tuple[int, int]
    patch: int
    channels: int
    text: Expr
    frames: tuple[int, int] = (1, 1)

    @property
    def tokens(self) -> int:
        """Patches."""
        return (
            (self.sides[0] // self.patch)
            * (self.sides[1] // self.patch)
            * (self.frames[0] // self.frames[1])
        )


def sample(fields: Fields, shape: Shape, default: int, patch: int, channels: int) -> Sample:
    """Read the latents; nothing is generated token by token, so a step is the whole prompt."""
    stated = fields.source.values.get("sample_size")
    if isinstance(stated, list | tuple):
        sides = tuple(fields.items("sample_size"))
        fine = len(sides) == 2 and all(map(is_size, sides))  # noqa: PLR2004 - height and width
        fields.require(holds=fine, problem="a side, or two, is accepted", name="sample_size")
        sides = sides if fine else (default, default)
    else:
        sides = (fields.size("sample_size", default),) * 2
    fits = min(sides) >= patch
    problem = f"patches of {patch} do not fit latents of {list(sides)}"
    fields.require(holds=fits, problem=problem, name="sample_size")
    text = shape.l if shape.c == 0 else shape.c
    return Sample((sides[0], sides[1]), patch, channels, text)


def video(fields: Fields, shape: Shape, usual: Sample) -> Sample:
    """Read the latents of a video, `sample_frames` times `sample_size`."""
    if not fields.has("sample_size"):
        values = {**fields.source.values, "sample_size": list(usual.sides)}
        fields.source = replace(fields.source, values=values)
        fields.assume("sample_size", f"{list(usual.sides)}, the sides of latents")
    count, depth = usual.frames
    if not fields.has("sample_frames"):
        fields.assume("sample_frames", f"{count}, frames of latents")
    frames = fields.size("sample_frames", count)
    problem = f"patches of {depth} do not fit {frames} frames"
    fields.require(holds=frames >= depth, problem=problem, name="sample_frames")
    image = sample(fields, shape, usual.sides[0], usual.patch, usual.channels)
    return replace(image, frames=(frames, depth))


def whole_patches(fields: Fields, image: Sample) -> None:
    """Note latents that patches do not divide."""
    problem = f"patches of {image.patch} do not divide latents of {list(image.sides)}"
    fits = not any(side % image.patch for side in image.sides)
    fields.require(holds=fits, problem=problem, name="sample_size")


def assumed_side(fields: Fields, side: int) -> None:
    """Note the side of the latents of a family whose configurations never say it."""
    if not fields.has("sample_size"):
        fields.assume("sample_size", f"{side}, latents of an image of {8 * side} pixels a side")


def heads_of(fields: Fields, h: int, q: int) -> Numbers:
    """Read the heads, and the widths that follow."""
    h, q = fields.size("num_attention_heads", h), fields.size("attention_head_dim", q)
    return {"h": h, "e": h * q}


def sizes_of(image: Sample, shape: Shape, **others: Expr | int) -> Mapping[str, Expr]:
    """Return the size of every axis; `others` are those of the family."""
    tokens = exact(image.tokens)
    named: dict[str, Expr | int] = {"b": shape.b, "e": symbols.e, "e_t": symbols.e}
    named |= {"e_h": symbols.e, "h": symbols.h, "d": symbols.e / symbols.h}
    named |= {"f": 4 * symbols.e, "k": symbols.h, "g": 1, "n_f": 256, "ch": image.channels}
    named |= dict(zip(("y", "x"), image.sides, strict=True)) | {
        "py": image.patch,
        "px": image.patch,
    }
    named |= dict.fromkeys(("r", "l", "t", "n"), tokens) | {"p": tokens, "n_x": 1}
    named |= dict(zip(("s", "ps"), image.frames, strict=True))
    named |= dict.fromkeys(("r_x", "l_x", "t_x"), image.text)
    named |= dict.fromkeys(("r_j", "j"), tokens + image.text) | {"t_j": tokens + image.text}
    named |= conditioning.PIECES
    return {axis: exact(size) for axis, size in (named | others).items()}


def declared(
    fields: Fields, parts: tuple[Part, ...], sizes: Mapping[str, Expr], numbers: Numbers
) -> Model:
    """Return the model of some parts."""
    return Model(fields.family, parts, sizes, source="peebles-2022", axes=AXES, bindings=numbers)


TIME = Embedded("time", "n_f")
POOLED = Embedded("pooled", "e_pool")
GUIDANCE = Embedded("guidance", "n_f")
EMBEDDING = Patches(Piece.BIAS, Places.COMPUTED)
PROMPT = einsum("context", "!states[b r_x e_x], *w[e_x e] + *bias[e] -> prompt[b r_x e]")
FINE_PROMPT = (
    Norm.RMS.op("norm", "!states[b r_x e_x]", "fine[b r_x e_x]", row="e_x"),
    einsum("context", "fine[b r_x e_x], *w[e_x e] + *bias[e] -> prompt[b r_x e]"),
)


def rotated(
    fields: Fields,
    numbers: Numbers,
    name: str = "axes_dims_rope",
    usual: tuple[int, ...] = (16, 56, 56),
) -> None:
    """Check the widths of a head that positions along each axis rotate."""
    widths = fields.items(name, usual)
    width = numbers["e"] // numbers["h"]
    fine = all(map(is_size, widths)) and sum(widths) == width and not any(w % 2 for w in widths)
    problem = (
        f"{list(widths)[:4]}: even widths that add up to that of a head, {width}, are accepted"
    )
    fields.require(holds=fine, problem=problem, name=name)


ANGLES = pointwise("angles", "!places[j]:index -> @cos[j d], @sin[j d]", "angles")
EMBEDDED = einsum("embed", "!latents[b r ch], *w[ch e] + *bias[e] -> x[b r e]")


def sd3(fields: Fields, shape: Shape) -> Model:
    """Declare a Stable Diffusion 3: blocks of two streams, of which the last ends the prompt's."""
    channels, patch = fields.size("in_channels", 16), fields.size("patch_size", 2)
    image = sample(fields, shape, 128, patch, channels)
    numbers = heads_of(fields, 18, 64)
    layers, most = fields.size("num_layers", 18), fields.optional_size("pos_embed_max_size", 96)
    if most is not None and max(image.sides) // patch > most:
        fields.note("pos_embed_max_size", f"positions end at {most} patches a side")
    own = {"e_x": fields.size("joint_attention_dim", 4096)}
    own |= {"e_pool": fields.size("pooled_projection_dim", 2048)}
    own["pixels"] = fields.size("out_channels", channels if is_null(fields) else 16) * patch**2
    width = fields.size("caption_projection_dim", 1152)
    problem = f"{width} is not the width {numbers['e']} of the heads together"
    fields.require(holds=width == numbers["e"], problem=problem, name="caption_projection_dim")
    norm = rms_of(fields)
    seconds = {at for at in fields.items("dual_attention_layers") if at in range(layers)}
    fields.refuse()
    both = Joint((IMAGE, TEXT), (IMAGE, TEXT), norm)
    alone, last = replace(both, streams=(IMAGE,), results=(IMAGE,)), replace(both, results=(IMAGE,))
    kinds = [(at in seconds, at == layers - 1) for at in range(layers)]
    parts = [
        Part("time", conditioned((TIME, POOLED))),
        Part("prompt", (PROMPT,)),
        Part("embedding", EMBEDDING.ops()),
    ]
    at = {"x": "embedding", "prompt": "prompt"}
    for i, ((second, ends), run) in enumerate(groupby(kinds)):
        path = f"blocks{i}.block"
        ops = double_block(last if ends else both, second=alone if second else None)
        count = Integer(len(list(run)))
        place = Place.BLOCK if ends else Place.LEADING
        parts.append(Part(path, ops, count, {**at, "cond": "time"}, place))
        at = {"x": path, "prompt": path}
    head = Part("head", ending(modulation(LAST)), takes={"x": at["x"], "cond": "time"})
    return declared(fields, (*parts, head), sizes_of(image, shape, **own), numbers)


def is_null(fields: Fields) -> bool:
    """Return whether the configuration says that as many channels leave as come in."""
    return fields.source.values.get("out_channels", "") is None


def rms_of(fields: Fields, usual: str | None = None) -> Norm | None:
    """Read the norm of queries and keys; null is none."""
    if fields.source.values.get("qk_norm", usual) is None:
        fields.ignore("qk_norm")
        return None
    fields.text("qk_norm", "rms_norm", ("rms_norm",))
    return Norm.RMS


def dit(fields: Fields, shape: Shape) -> Model:
    """Declare a DiT: every block embeds time step and class anew, the end as the first block."""
    channels, patch = fields.size("in_channels", 4), fields.size("patch_size", 2)
    image = sample(fields, shape, 32, patch, channels)
    numbers = heads_of(fields, 16, 72)
    numbers["n_layers"] = fields.size("num_layers", 28)
    fields.text("norm_type", "ada_norm_zero", ("ada_norm_zero",))
    own = {"n_l": fields.size("num_embeds_ada_norm", 1000) + 1}
    own["pixels"] = fields.size("out_channels", channels) * patch**2
    layers = layers_of(fields)
    norms = (Norm.LAYER_BARE, Norm.LAYER if is_affine(fields) else Norm.LAYER_BARE)
    fields.refuse()
    first, later = (_times(shared) for shared in ("first", ""))
    kinds = ((*times, *pieces_of(IMAGE, SIX)) for times in (first, later))
    begin, block_ = (block(*layers, pieces, norms) for pieces in kinds)
    further = Part("block", block_, symbols.n_layers - 1, place=Place.BLOCK)
    parts = (
        Part("embedding", EMBEDDING.ops()),
        Part("first.block", begin, place=Place.LEADING),
        *((further,) if numbers["n_layers"] > 1 else ()),
        Part("head", ending((*first, *modulation(LAST)))),
    )
    return declared(fields, parts, sizes_of(image, shape, **own), numbers)


def is_affine(fields: Fields) -> bool:
    """Return whether the norms before attention and perceptron have weights."""
    return fields.flag("norm_elementwise_affine", default=False)


def _times(shared: str) -> tuple[Op, ...]:
    """Declare the condition of a time step and a class."""
    label = Embedded("label", "n_l", "", shared)
    return conditioned((replace(TIME, shared=shared), label))


_PERCEPTRONS: Mapping[str, MLP | GatedMLP] = {
    "gelu": MLP("gelu"),
    "gelu-approximate": MLP("gelu_tanh"),
    "geglu": GatedMLP("gelu", Bias.BOTH),
    "geglu-approximate": MLP("silu"),
    "swiglu": GatedMLP("silu", Bias.BOTH),
    "linear-silu": MLP("silu"),
}


def layers_of(fields: Fields) -> tuple[Joint, MLP | GatedMLP]:
    """Read attention and perceptron of a block of one stream."""
    kind = fields.text("activation_fn", "gelu-approximate", tuple(_PERCEPTRONS))
    fields.ignore("norm_num_groups", "upcast_attention")
    return Joint((IMAGE,), (IMAGE,), bias=bias_of(fields)), _PERCEPTRONS[kind]


def bias_of(fields: Fields) -> Bias:
    """Read which projections have a bias."""
    return Bias.BOTH if fields.flag("attention_bias", default=True) else Bias.OUTPUT
