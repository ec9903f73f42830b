"""Diffusion transformers by `_class_name`: DiT, PixArt, Stable Diffusion 3, Flux.

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
from symbolic_cost.layers import core, gated, joint, mlp, modulated, patch, relative
from symbolic_cost.layers.attention import Bias, Kept, Rotated
from symbolic_cost.layers.core import AttentionCore, Positions, Step
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.joint import IMAGE, JOINED, TEXT, Joint
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.modulated import (
    LAST,
    SIX,
    Embedded,
    conditioned,
    modulation,
    parted,
    tabled,
)
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.patch import Patches, Piece, Places
from symbolic_cost.layers.relative import CrossAttention
from symbolic_cost.models.diffusion_blocks import (
    block,
    double_block,
    ending,
    image_alone,
    joined_streams,
    pieces_of,
    single_block,
)
from symbolic_cost.models.fields import Fields, is_size
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.graph import Model, Part, Place, scope
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.pattern import Operand
from symbolic_cost.ops.view import view
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact

AXES = glossary(
    joint.AXES,
    modulated.AXES,
    core.AXES,
    mlp.AXES,
    gated.AXES,
    relative.AXES,
    {axis: entry for axis, entry in patch.AXES.items() if axis != "x"},
    axes(
        "x whole, e_x hidden, n_f whole, e_pool whole, n_l whole, e_q hidden, e_q_ hidden, "
        "pixels whole"
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
    """

    sides: tuple[int, int]
    patch: int
    channels: int
    text: Expr

    @property
    def tokens(self) -> int:
        """Patches."""
        return (self.sides[0] // self.patch) * (self.sides[1] // self.patch)


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


def _assumed(fields: Fields, side: int) -> None:
    """Note the side of the latents of a family whose configurations never say it."""
    if not fields.given("sample_size"):
        fields.assume("sample_size", f"{side}, latents of an image of {8 * side} pixels a side")


def _heads(fields: Fields, h: int, q: int) -> Numbers:
    """Read the heads, and the widths that follow."""
    h, q = fields.size("num_attention_heads", h), fields.size("attention_head_dim", q)
    return {"h": h, "e": h * q}


def _sizes(image: Sample, shape: Shape, **others: Expr | int) -> Mapping[str, Expr]:
    tokens = exact(image.tokens)
    named: dict[str, Expr | int] = {"b": shape.b, "e": symbols.e, "e_t": symbols.e}
    named |= {"e_h": symbols.e, "h": symbols.h, "d": symbols.e / symbols.h}
    named |= {"f": 4 * symbols.e, "k": symbols.h, "g": 1, "n_f": 256, "ch": image.channels}
    named |= dict(zip(("y", "x"), image.sides, strict=True)) | {
        "py": image.patch,
        "px": image.patch,
    }
    named |= dict.fromkeys(("r", "l", "t", "n"), tokens) | {"p": tokens, "n_x": 1, "s": 1, "ps": 1}
    named |= dict.fromkeys(("r_x", "l_x", "t_x"), image.text)
    named |= dict.fromkeys(("r_j", "j"), tokens + image.text) | {"t_j": tokens + image.text}
    named |= modulated.PIECES
    return {axis: exact(size) for axis, size in (named | others).items()}


def _declared(
    fields: Fields, parts: tuple[Part, ...], sizes: Mapping[str, Expr], numbers: Numbers
) -> Model:
    return Model(fields.family, parts, sizes, source="peebles-2022", axes=AXES, bindings=numbers)


TIME = Embedded("time", "n_f")
POOLED = Embedded("pooled", "e_pool")
GUIDANCE = Embedded("guidance", "n_f")


_EMBEDDING = Patches(Piece.BIAS, Places.COMPUTED)
_PROMPT = einsum("context", "!states[b r_x e_x], *w[e_x e] + *bias[e] -> prompt[b r_x e]")


def flux(fields: Fields, shape: Shape) -> Model:
    """Declare a Flux: blocks of two streams, then of both as one; latents are packed two by two.

    Raises:
        InputError: every problem of the fields.
    """
    channels, patch = fields.size("in_channels", 64), fields.size("patch_size", 1)
    _assumed(fields, 128)
    image = sample(fields, shape, 128, 2, channels)
    numbers = _heads(fields, 24, 128) | {"n_layers": fields.size("num_layers", 19)}
    singles = fields.size("num_single_layers", 38)
    guided = fields.flag("guidance_embeds", default=False)
    out = fields.size("out_channels", channels) * patch**2
    widths = fields.items("axes_dims_rope", (16, 56, 56))
    width = numbers["e"] // numbers["h"]
    fine = all(map(is_size, widths)) and sum(widths) == width and not any(w % 2 for w in widths)
    problem = (
        f"{list(widths)[:4]}: even widths that add up to that of a head, {width}, are accepted"
    )
    fields.require(holds=fine, problem=problem, name="axes_dims_rope")
    own = {"e_x": fields.size("joint_attention_dim", 4096)}
    own |= {"e_pool": fields.size("pooled_projection_dim", 768), "pixels": out}
    fields.refuse()
    attention = Joint((TEXT, IMAGE), (TEXT, IMAGE), Norm.RMS, rotated=Rotated.WHOLE)
    single = replace(attention, streams=(JOINED,), results=())
    embedded = einsum("embed", "!latents[b r ch], *w[ch e] + *bias[e] -> x[b r e]")
    angles = pointwise("angles", "!places[j]:index -> @cos[j d], @sin[j d]", "angles")
    condition = {"cond": "time"}
    parts = (
        Part("time", conditioned((TIME, *((GUIDANCE,) if guided else ()), POOLED))),
        Part("rotation", (angles,)),
        Part("prompt", (_PROMPT,)),
        Part("embedding", (embedded,)),
        Part(
            "block",
            double_block(attention),
            symbols.n_layers,
            {"x": "embedding", "prompt": "prompt", **condition},
            Place.BLOCK,
        ),
        Part("joined", joined_streams(), takes={"x": "block", "prompt": "block"}),
        Part(
            "single.block",
            single_block(single),
            Integer(singles),
            {"x": "joined", **condition},
            Place.BLOCK,
        ),
        Part("image", image_alone(), takes={"x": "single.block"}),
        Part("head", ending(modulation(LAST)), takes={"x": "image", **condition}),
    )
    return _declared(fields, parts, _sizes(image, shape, **own), numbers)


def sd3(fields: Fields, shape: Shape) -> Model:
    """Declare a Stable Diffusion 3: blocks of two streams, of which the last ends the prompt's.

    Raises:
        InputError: every problem of the fields.
    """
    channels, patch = fields.size("in_channels", 16), fields.size("patch_size", 2)
    image = sample(fields, shape, 128, patch, channels)
    numbers = _heads(fields, 18, 64)
    layers, most = fields.size("num_layers", 18), fields.optional_size("pos_embed_max_size", 96)
    fields.require(
        holds=most is None or max(image.sides) // patch <= most,
        problem=f"positions end at {most} patches a side",
        name="pos_embed_max_size",
    )
    own = {"e_x": fields.size("joint_attention_dim", 4096)}
    own |= {"e_pool": fields.size("pooled_projection_dim", 2048)}
    own["pixels"] = fields.size("out_channels", channels if _null(fields) else 16) * patch**2
    width = fields.size("caption_projection_dim", 1152)
    problem = f"{width} is not the width {numbers['e']} of the heads together"
    fields.require(holds=width == numbers["e"], problem=problem, name="caption_projection_dim")
    norm = _rms(fields)
    seconds = {at for at in fields.items("dual_attention_layers") if at in range(layers)}
    fields.refuse()
    both = Joint((IMAGE, TEXT), (IMAGE, TEXT), norm)
    alone, last = replace(both, streams=(IMAGE,), results=(IMAGE,)), replace(both, results=(IMAGE,))
    kinds = [(at in seconds, at == layers - 1) for at in range(layers)]
    parts = [
        Part("time", conditioned((TIME, POOLED))),
        Part("prompt", (_PROMPT,)),
        Part("embedding", _EMBEDDING.ops()),
    ]
    at = {"x": "embedding", "prompt": "prompt"}
    for i, ((second, ends), run) in enumerate(groupby(kinds)):
        path = f"blocks{i}.block"
        ops = double_block(last if ends else both, second=alone if second else None)
        count = Integer(len(list(run)))
        parts.append(Part(path, ops, count, {**at, "cond": "time"}, Place.BLOCK))
        at = {"x": path, "prompt": path}
    head = Part("head", ending(modulation(LAST)), takes={"x": at["x"], "cond": "time"})
    return _declared(fields, (*parts, head), _sizes(image, shape, **own), numbers)


def _null(fields: Fields) -> bool:
    """Return whether the configuration says that as many channels leave as come in."""
    return fields.source.values.get("out_channels", "") is None


def _rms(fields: Fields) -> Norm | None:
    """Read the norm of queries and keys."""
    if fields.source.values.get("qk_norm") is None:
        fields.ignore("qk_norm")
        return None
    fields.text("qk_norm", "rms_norm", ("rms_norm",))
    return Norm.RMS


def dit(fields: Fields, shape: Shape) -> Model:
    """Declare a DiT: every block embeds time step and class anew, the end as the first block.

    Raises:
        InputError: every problem of the fields.
    """
    channels, patch = fields.size("in_channels", 4), fields.size("patch_size", 2)
    image = sample(fields, shape, 32, patch, channels)
    numbers = _heads(fields, 16, 72)
    numbers["n_layers"] = fields.size("num_layers", 28)
    fields.text("norm_type", "ada_norm_zero", ("ada_norm_zero",))
    own = {"n_l": fields.size("num_embeds_ada_norm", 1000) + 1}
    own["pixels"] = fields.size("out_channels", channels) * patch**2
    layers = _layers(fields)
    norms = (Norm.LAYER_BARE, Norm.LAYER if _affine(fields) else Norm.LAYER_BARE)
    fields.refuse()
    first, later = (_times(shared) for shared in ("first", ""))
    kinds = ((*times, *pieces_of(IMAGE, SIX)) for times in (first, later))
    begin, block_ = (block(*layers, pieces, norms) for pieces in kinds)
    further = Part("block", block_, symbols.n_layers - 1, place=Place.BLOCK)
    parts = (
        Part("embedding", _EMBEDDING.ops()),
        Part("first.block", begin, place=Place.LEADING),
        *((further,) if numbers["n_layers"] > 1 else ()),
        Part("head", ending((*first, *modulation(LAST)))),
    )
    return _declared(fields, parts, _sizes(image, shape, **own), numbers)


def _affine(fields: Fields) -> bool:
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


def _layers(fields: Fields) -> tuple[Joint, MLP | GatedMLP]:
    """Read attention and perceptron of a block of one stream."""
    kind = fields.text("activation_fn", "gelu-approximate", tuple(_PERCEPTRONS))
    fields.ignore("norm_num_groups", "upcast_attention")
    return Joint((IMAGE,), (IMAGE,), bias=_bias(fields)), _PERCEPTRONS[kind]


def _bias(fields: Fields) -> Bias:
    return Bias.BOTH if fields.flag("attention_bias", default=True) else Bias.OUTPUT


def pixart(fields: Fields, shape: Shape) -> Model:
    """Declare a PixArt: one modulation for all blocks, plus a table in each, and the prompt beside.

    Raises:
        InputError: every problem of the fields.
    """
    channels, patch = fields.size("in_channels", 4), fields.size("patch_size", 2)
    image = sample(fields, shape, 128, patch, channels)
    numbers = _heads(fields, 16, 72) | {"n_layers": fields.size("num_layers", 28)}
    e, affine = numbers["e"], _affine(fields)
    fields.text("norm_type", "ada_norm_single", ("ada_norm_single",))
    fields.text("attention_type", "default", ("default",))
    fields.ignore("num_embeds_ada_norm", "interpolation_scale")
    width, projected = fields.size("cross_attention_dim", 1152), fields.given("caption_channels")
    own = {"e_s": width, "e_x": fields.size("caption_channels", width)}
    fields.require(
        holds=not projected or width == e,
        problem=f"a prompt projected to the width {e} of the heads together is not {width} wide",
        name="cross_attention_dim",
    )
    full = image.sides == (128, 128) and isinstance(
        fields.source.values.get("sample_size", 128), int
    )
    sized = fields.flag("use_additional_conditions", default=full)
    fields.require(
        holds=not sized or e % 3 == 0,
        problem=f"three sizes of the image have no equal parts of the width {e}",
        name="use_additional_conditions",
    )
    default = 8 if "out_channels" not in fields.source.values else channels
    own["pixels"] = fields.size("out_channels", default) * patch**2
    norm = Norm.LAYER if affine else Norm.LAYER_BARE
    layers, cross = _layers(fields), _prompted(_bias(fields))
    beside = cross if projected else _of_data(cross)
    fields.refuse()
    shared = (
        pointwise("act", "cond[b e_t] -> a[b e_t]", "silu"),
        einsum("linear", "a[b e_t], *w[m_6 e_t e] + *bias[m_6 e] -> pieces[m_6 b e]"),
    )
    own |= {"e_q": max(e // 3, 1), "e_q_": max(e // 3, 1), "two": 2}
    takes = {"x": "embedding", "shared": "modulation"}
    takes |= {"prompt": "prompt"} if projected else {}
    parts = (
        Part("time", _TIME_AND_SIZES if sized else conditioned((TIME,))),
        Part("modulation", shared, takes={"cond": "time"}),
        *((Part("prompt", _CAPTION),) if projected else ()),
        Part("embedding", _EMBEDDING.ops()),
        Part(
            "block",
            block(*layers, _tabled(), (norm, norm), beside),
            symbols.n_layers,
            takes,
            Place.BLOCK,
        ),
        Part("head", ending(_LAST_TABLE), takes={"x": "block", "cond": "time"}),
    )
    return _declared(fields, parts, _sizes(image, shape, **own), numbers)


def _tabled() -> tuple[Op, ...]:
    names = {piece: f"image.{piece}" for piece in SIX}
    return scope("image.modulation", tabled(SIX), shared="shared", **names)


def _prompted(bias: Bias) -> tuple[Op, ...]:
    """Declare attention to the prompt, from x to y."""
    at, source = Positions("r", "l"), Positions(TEXT.residual, TEXT.query, TEXT.key)
    cross = CrossAttention(at, source, PLAIN, bias=bias, width="e_s", kept=Kept.NOTHING)
    add = pointwise("residual", "x[b r e], outcome[b r e] -> y[b r e]", "add")
    layer = scope("cross", cross.ops(), x="x", memory="prompt", y="outcome")
    return (*layer, *scope("cross", (add,), x="x", outcome="outcome", y="y"))


def _of_data(cross: tuple[Op, ...]) -> tuple[Op, ...]:
    """Return attention to a prompt through which nothing flows back."""

    def data(operand: Operand) -> Operand:
        return replace(operand, constant=operand.constant or operand.tensor in _DATA)

    def inputs(op: Op) -> Op:
        pattern = replace(op.pattern, inputs=tuple(map(data, op.pattern.inputs)))
        return replace(op, pattern=pattern)

    return tuple(map(inputs, cross))


_DATA = ("prompt", "cross.read")


_CAPTION = (
    einsum("linear_1", "!states[b r_x e_x], *w[e_x e_h] + *bias[e_h] -> u[b r_x e_h]"),
    pointwise("act", "u[b r_x e_h] -> a[b r_x e_h]", "gelu_tanh"),
    einsum("linear_2", "a[b r_x e_h], *w[e_h e_s] + *bias[e_s] -> prompt[b r_x e_s]"),
)
_LAST_TABLE = (
    view("of_time", "cond[b e_t] -> wide[b e]"),
    pointwise("add", "wide[b e], *table[m_2 e] -> pieces[m_2 b e]", "add"),
    parted(LAST),
)


def _size_of(name: str, rows: str) -> tuple[Op, ...]:
    """Declare the embedding of sizes of an image, a third of the width for each."""
    return (
        einsum(
            f"{name}.linear_1",
            f"!{name}_of[{rows} n_f], *w[n_f e_q] + *bias[e_q] -> {name}.u[{rows} e_q]",
        ),
        pointwise(f"{name}.act", f"{name}.u[{rows} e_q] -> {name}.a[{rows} e_q]", "silu"),
        einsum(
            f"{name}.linear_2",
            f"{name}.a[{rows} e_q], *w[e_q e_q_] + *bias[e_q_] -> {name}[{rows} e_q_]",
        ),
    )


_TIME_AND_SIZES = (
    *TIME.ops(),
    *_size_of("resolution", "b two"),
    *_size_of("aspect", "b"),
    pointwise(
        "join", "resolution[b two e_q_], aspect[b e_q_] -> sizes[b e_t]", "copy", laid="two e_q_"
    ),
    pointwise("add", "time[b e_t], sizes[b e_t] -> cond[b e_t]", "add"),
)
