"""Diffusion transformers with one modulation for all blocks, plus a table in each: PixArt, Wan.

A prompt is attended to beside. Axes: as in `diffusion`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from sympy import Expr

from symbolic_cost import symbols
from symbolic_cost.layers.attention import Bias, CacheKind, Rotated, output
from symbolic_cost.layers.attention_core import Positions
from symbolic_cost.layers.conditioning import LAST, SIX, conditioned, parted, tabled
from symbolic_cost.layers.joint_attention import IMAGE, SHOWN, TEXT, Joint
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.patch import Patches, Piece, Places
from symbolic_cost.layers.relative import CrossAttention
from symbolic_cost.models.build import Fields, Model, Shape, is_size
from symbolic_cost.models.diffusion.blocks import block, ending
from symbolic_cost.models.diffusion.transformers import (
    EMBEDDED,
    EMBEDDING,
    PLAIN,
    TIME,
    Sample,
    bias_of,
    declared,
    heads_of,
    is_affine,
    is_null,
    layers_of,
    sample,
    sizes_of,
    video,
)
from symbolic_cost.ops.declare import Op, Operand, Part, Place, einsum, pointwise, scope, view


def pixart(fields: Fields, shape: Shape) -> Model:
    """Declare a PixArt: one modulation of all blocks, plus a table in each, the prompt beside."""
    channels, patch = fields.size("in_channels", 4), fields.size("patch_size", 2)
    image = sample(fields, shape, 128, patch, channels)
    numbers = heads_of(fields, 16, 72) | {"n_layers": fields.size("num_layers", 28)}
    e, affine = numbers["e"], is_affine(fields)
    fields.text("norm_type", "ada_norm_single", ("ada_norm_single",))
    fields.text("attention_type", "default", ("default",))
    fields.ignore("num_embeds_ada_norm", "interpolation_scale")
    width, projected = fields.size("cross_attention_dim", 1152), fields.has("caption_channels")
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
    layers, cross = layers_of(fields), prompted(bias_of(fields))
    beside = cross if projected else of_data(cross)
    fields.refuse()
    own |= {"e_q": max(e // 3, 1), "e_q_": max(e // 3, 1), "two": 2}
    takes = {"x": "embedding", "shared": "modulation"}
    takes |= {"prompt": "prompt"} if projected else {}
    parts = (
        Part("time", _TIME_AND_SIZES if sized else conditioned((TIME,))),
        Part("modulation", SHARED, takes={"cond": "time"}),
        *((Part("prompt", CAPTION),) if projected else ()),
        Part("embedding", EMBEDDING.ops()),
        Part(
            "block",
            block(*layers, tabled_six(), (norm, norm), beside),
            symbols.n_layers,
            takes,
            Place.BLOCK,
        ),
        Part("head", ending(LAST_TABLE), takes={"x": "block", "cond": "time"}),
    )
    return declared(fields, parts, sizes_of(image, shape, **own), numbers)


def _parts(
    embedding: tuple[Op, ...],
    ops: tuple[Op, ...],
    shown: tuple[Op, ...] = (),
    steered: Steered | None = None,
) -> tuple[Part, ...]:
    """Declare a network of videos around the ops of a block; `shown` embeds an image beside."""
    angles = pointwise("angles", "!places[l]:index -> @cos[l d], @sin[l d]", "angles")
    takes = {"x": "embedding", "shared": "modulation", "prompt": "prompt"}
    takes |= {"shown": "shown"} if shown else {}
    plain = (Part("block", ops, symbols.n_layers, takes, Place.BLOCK),)
    blocks = steered.blocks(ops, takes) if steered else plain
    return (
        Part("time", conditioned((TIME,))),
        Part("rotation", (angles,)),
        Part("modulation", SHARED, takes={"cond": "time"}),
        Part("prompt", CAPTION),
        *((Part("shown", shown),) if shown else ()),
        Part("embedding", embedding),
        *blocks,
        Part("head", ending(LAST_TABLE), takes={"x": blocks[-1].path, "cond": "time"}),
    )


_ACROSS = "rms_norm_across_heads"
_BARE = (Norm.LAYER_BARE, Norm.LAYER_BARE)


class Steered(NamedTuple):
    """What steers the blocks of a network: its channels, and blocks of the ops and ports of one."""

    channels: int
    blocks: Callable[[tuple[Op, ...], Mapping[str, str]], tuple[Part, ...]]


def wan(fields: Fields, shape: Shape, steered: Steered | None = None) -> Model:
    """Declare a Wan, of videos."""
    depth, side = tubes(fields)
    usual = Sample((60, 104), side, fields.size("in_channels", 16), symbols.l, (21, depth))
    image = video(fields, shape, usual)
    numbers = heads_of(fields, 40, 128) | {"n_layers": fields.size("num_layers", 40)}
    even = numbers["e"] // numbers["h"] % 2 == 0
    fields.require(holds=even, problem="an even size is rotated", name="attention_head_dim")
    fields.text("qk_norm", _ACROSS, (_ACROSS,))
    own = {"e_x": fields.size("text_dim", 4096), "n_f": fields.size("freq_dim", 256)}
    null = fields.source.values.get("ffn_dim", "") is None
    own |= {"n_x": steered.channels, "e_q": numbers["e"]} if steered else {}
    own |= {"f": fields.size("ffn_dim", 4 * numbers["e"] if null else 13824), "e_s": numbers["e"]}
    out = fields.size("out_channels", usual.channels if is_null(fields) else 16)
    own["pixels"] = out * depth * side**2
    normed = fields.flag("cross_attn_norm", default=True)
    embedded = _image_context(fields, image.text, own)
    fields.refuse()
    attention = Joint((IMAGE,), (IMAGE,), Norm.RMS, rotated=Rotated.WHOLE, row="h d")
    beside = prompted(Bias.BOTH, Norm.RMS, normed=normed, shown=bool(embedded))
    ops = block(attention, MLP("gelu_tanh"), tabled_six(), _BARE, beside)
    parts = _parts(TUBES, ops, embedded, steered)
    return declared(fields, parts, sizes_of(image, shape, **own), numbers)


def tubes(fields: Fields) -> tuple[int, int]:
    """Read the frames of a patch and its side."""
    patch = fields.items("patch_size", (1, 2, 2))
    fine = len(patch) == _AXES and all(map(is_size, patch)) and patch[1] == patch[2]
    if not fine:
        fields.note("patch_size", "frames, and the same side twice, are accepted")
    return (patch[0], patch[1]) if fine else (1, 2)


TUBES = Patches(Piece.BIAS | Piece.FRAMES, Places.NONE).ops()


def _image_context(fields: Fields, text: Expr, own: dict[str, int]) -> tuple[Op, ...]:
    """Read the image that a Wan attends to beside the prompt, if any, and declare its embedding."""
    wide, keys = fields.optional_size("image_dim"), fields.optional_size("added_kv_proj_dim")
    tokens = fields.optional_size("pos_embed_seq_len")
    e = own["e_s"]
    for name, holds, problem in (
        ("added_kv_proj_dim", (keys or e) == e, f"the width {e} of the heads together is accepted"),
        ("image_dim", bool(wide) == bool(keys), "it stands with added_kv_proj_dim, or neither"),
        ("pos_embed_seq_len", not tokens or bool(wide), "positions of an image need image_dim"),
        (
            "image_dim",
            not wide or text in (symbols.l, _PROMPT),
            f"behind an image a prompt has {_PROMPT} tokens, not {text}",
        ),
    ):
        fields.require(holds=holds, problem=problem, name=name)
    if not wide:
        return ()
    own |= dict.fromkeys(SHOWN.axes, tokens or _SEEN) | {"e_i": wide, "e_q": wide}
    if not tokens:
        fields.assume("pos_embed_seq_len", f"{_SEEN} tokens of an image")
    placed = pointwise("position", "!image[b r_v e_i], *table[r_v e_i] -> placed[b r_v e_i]", "add")
    x = "placed[b r_v e_i]" if tokens else "!image[b r_v e_i]"
    return (
        *((placed,) if tokens else ()),
        Norm.LAYER.op("norm1", x, "fine[b r_v e_i]", row="e_i"),
        *_two_layers("fine plain", "b r_v", "e_i e_q e_s", "gelu"),
        Norm.LAYER.op("norm2", "plain[b r_v e_s]", "shown[b r_v e_s]", row="e_s"),
    )


_PROMPT, _SEEN = 512, 257
"""Tokens of the prompt that its code splits from those of an image, and those of one image."""


def ltx(fields: Fields, shape: Shape) -> Model:
    """Declare an LTX-Video: every element of the latents is a token."""
    usual = Sample((16, 22), 1, fields.size("in_channels", 128), symbols.l, (21, 1))
    image = video(fields, shape, usual)
    numbers = heads_of(fields, 32, 64) | {"n_layers": fields.size("num_layers", 28)}
    e = numbers["e"]
    fields.text("qk_norm", _ACROSS, (_ACROSS,))
    own = _captions(fields, e, 2048)
    own["pixels"] = fields.size("out_channels", usual.channels if is_null(fields) else 128)
    attention, perceptron = layers_of(fields)
    norm = Norm.RMS if is_affine(fields) else Norm.RMS_BARE
    bias = bias_of(fields)
    fields.refuse()
    attention = replace(attention, norm=Norm.RMS, rotated=Rotated.WHOLE, row="h d")
    ops = block(attention, perceptron, tabled_six(), (norm, norm), prompted(bias, Norm.RMS))
    parts = _parts((EMBEDDED,), ops)
    return declared(fields, parts, sizes_of(image, shape, **own), numbers)


def allegro(fields: Fields, shape: Shape) -> Model:
    """Declare an Allegro, whose frames are cut into patches one by one."""
    patch, channels = fields.size("patch_size", 2), fields.size("in_channels", 4)
    named = {"sample_height": 90, "sample_width": 160}
    height, width = (fields.size(name, usual) for name, usual in named.items())
    for name, side in zip(named, (height, width), strict=True):
        problem = f"patch_size = {patch} does not divide it"
        fields.require(holds=side % patch == 0, problem=problem, name=name)
    frames = fields.size("sample_frames", 22)
    text = shape.l if shape.c == 0 else shape.c
    image = Sample((height, width), patch, channels, text, (frames, 1))
    numbers = heads_of(fields, 24, 96) | {"n_layers": fields.size("num_layers", 32)}
    e = numbers["e"]
    own = _captions(fields, e, 2304)
    own["pixels"] = fields.size("out_channels", 4) * patch**2
    thirds = e // numbers["h"] % (2 * _AXES) == 0
    problem = "three even parts are rotated"
    fields.require(holds=thirds, problem=problem, name="attention_head_dim")
    attention, perceptron = layers_of(fields)
    bias = bias_of(fields)
    fields.refuse()
    attention = replace(attention, rotated=Rotated.WHOLE)
    ops = block(attention, perceptron, tabled_six(), _BARE, prompted(bias))
    return declared(fields, _parts(TUBES, ops), sizes_of(image, shape, **own), numbers)


def _captions(fields: Fields, e: int, usual: int) -> dict[str, int]:
    """Return the widths of a prompt, which is projected to that of the heads together."""
    problem = f"the prompt is projected to the width {e} of the heads together"
    width = fields.size("cross_attention_dim", usual)
    fields.require(holds=width == e, problem=problem, name="cross_attention_dim")
    return {"e_x": fields.size("caption_channels", 4096), "e_s": e}


_AXES = 3
"""Of a video: frames, height and width."""


def tabled_six() -> tuple[Op, ...]:
    """Declare the pieces of a block: those that all blocks share, plus a table of its own."""
    names = {piece: f"image.{piece}" for piece in SIX}
    return scope("image.modulation", tabled(SIX), shared="shared", **names)


def prompted(
    bias: Bias, norm: Norm | None = None, *, normed: bool = False, shown: bool = False
) -> tuple[Op, ...]:
    """Declare attention to the prompt, from x to y, behind a norm if any, and to an image."""
    at = Positions("r", "l")
    text, seen = (
        CrossAttention(at, one, PLAIN, bias=bias, width="e_s", cache=CacheKind.NOTHING, norm=norm)
        for one in (Positions(*TEXT.axes), Positions(*SHOWN.axes))
    )
    cross = _two_attentions(text, seen) if shown else text.ops()
    x = "fine" if normed else "x"
    first = (Norm.LAYER.op("norm", "x[b r e]", "fine[b r e]"),) if normed else ()
    add = pointwise("residual", "x[b r e], outcome[b r e] -> y[b r e]", "add")
    return (
        *scope("cross", first, x="x", fine="fine"),
        *scope("cross", cross, x=x, memory="prompt", y="outcome", shown="shown"),
        *scope("cross", (add,), x="x", outcome="outcome", y="y"),
    )


def _two_attentions(text: CrossAttention, seen: CrossAttention) -> tuple[Op, ...]:
    """Declare attention of the same queries to a prompt and to an image, and the sum."""
    own = [op for op in seen.ops() if op.path not in ("gather", "q", "norm_q", "proj", "scatter")]
    rows = f"[b {text.at.query} {text.heads.query} d]"
    add = pointwise("add", f"context{rows}, seen{rows} -> both{rows}", "add")
    return (
        *text.ops()[:-2],
        *scope("image", own, memory="shown", q="q", context="seen"),
        add,
        *output(text.at, text.heads.query, bias=text.bias, context="both"),
    )


def of_data(cross: tuple[Op, ...]) -> tuple[Op, ...]:
    """Return attention to a prompt through which nothing flows back."""

    def data(operand: Operand) -> Operand:
        given = operand.tensor in ("prompt", "cross.read")
        return replace(operand, constant=operand.constant or given)

    def inputs(op: Op) -> Op:
        pattern = replace(op.pattern, inputs=tuple(map(data, op.pattern.inputs)))
        return replace(op, pattern=pattern)

    return tuple(map(inputs, cross))


def _two_layers(
    tensors: str, rows: str, widths: str, function: str, below: str = ""
) -> tuple[Op, ...]:
    """Declare two linear layers and what is between them; `below` is where they stand."""
    (x, y), (i, j, o) = tensors.split(), widths.split()
    u, a = f"{below}u[{rows} {j}]", f"{below}a[{rows} {j}]"
    return (
        einsum(f"{below}linear_1", f"{x}[{rows} {i}], *w[{i} {j}] + *bias[{j}] -> {u}"),
        pointwise(f"{below}act", f"{u} -> {a}", function),
        einsum(f"{below}linear_2", f"{a}, *w[{j} {o}] + *bias[{o}] -> {y}[{rows} {o}]"),
    )


SHARED = (
    pointwise("act", "cond[b e_t] -> a[b e_t]", "silu"),
    einsum("linear", "a[b e_t], *w[m_6 e_t e] + *bias[m_6 e] -> pieces[m_6 b e]"),
)
LAST_TABLE = (
    view("of_time", "cond[b e_t] -> wide[b e]"),
    pointwise("add", "wide[b e], *table[m_2 e] -> pieces[m_2 b e]", "add"),
    parted(LAST),
)


CAPTION = _two_layers("!states prompt", "b r_x", "e_x e_h e_s", "gelu_tanh")
_THIRD = "n_f e_q e_q_", "silu"
"""Of the embedding of sizes of an image, a third of the width for each."""

_TIME_AND_SIZES = (
    *TIME.ops(),
    *_two_layers("!resolution_of resolution", "b two", *_THIRD, below="resolution."),
    *_two_layers("!aspect_of aspect", "b", *_THIRD, below="aspect."),
    pointwise(
        "join", "resolution[b two e_q_], aspect[b e_q_] -> sizes[b e_t]", "copy", laid="two e_q_"
    ),
    pointwise("add", "time[b e_t], sizes[b e_t] -> cond[b e_t]", "add"),
)
