"""Diffusion transformers with other modulations: Kandinsky 5, Cosmos, ERNIE-Image.

Axes: as in `diffusion`; e_c width of what makes a modulation out of few features.
"""

from __future__ import annotations

from sympy import Integer

from symbolic_cost import symbols
from symbolic_cost.layers.attention import Bias, CacheKind, Rotated
from symbolic_cost.layers.attention_core import Positions
from symbolic_cost.layers.conditioning import (
    ATTENTION,
    LAST,
    PERCEPTRON,
    SECOND,
    SIX,
    conditioned,
    modulation,
    parted,
)
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.joint_attention import IMAGE, JOINED, TEXT, Joint
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.relative import CrossAttention
from symbolic_cost.models.build import Fields, Model, Shape, is_size
from symbolic_cost.models.diffusion.blocks import (
    behind_first,
    block,
    ending,
    joined_streams,
    modulated_entry,
    modulated_exit,
    modulated_perceptron,
    pieces_of,
    unbiased,
)
from symbolic_cost.models.diffusion.streams import turned, turning
from symbolic_cost.models.diffusion.tabled import SHARED, of_data, tubes
from symbolic_cost.models.diffusion.transformers import (
    ANGLES,
    EMBEDDED,
    PLAIN,
    PROMPT,
    TIME,
    Sample,
    declared,
    heads_of,
    rotated,
    sample,
    sizes_of,
    video,
    whole_patches,
)
from symbolic_cost.models.vision.maps_families import ratio_of
from symbolic_cost.ops.declare import Op, Part, Place, einsum, lookup, pointwise, scope
from symbolic_cost.ops.part import retitled

_THIRDS = 12
"""Features of a head of Cosmos of which frames, height and width turn more than two each."""
_BARE = (Norm.LAYER_BARE, Norm.LAYER_BARE)


def kandinsky(fields: Fields, shape: Shape) -> Model:
    """Declare a Kandinsky 5, whose prompt has blocks of its own before the video sees it."""
    depth, side = tubes(fields)
    channels = fields.size("in_visual_dim", 4)
    image = video(fields, shape, Sample((64, 96), side, channels, symbols.l, (31, depth)))
    whole_patches(fields, image)
    _whole_frames(fields, image)
    e, places = fields.size("model_dim", 2048), fields.items("axes_dims", (16, 24, 24))
    width = sum(places) if all(map(is_size, places)) and places else 1
    problem = f"{width} features of a head, which are rotated, do not divide model_dim = {e}"
    fields.require(holds=e % width == 0, problem=problem, name="axes_dims")
    numbers = {"e": e, "h": max(e // width, 1), "n_layers": fields.size("num_visual_blocks", 32)}
    rotated(fields, numbers, "axes_dims", (16, 24, 24))
    refined = Integer(fields.size("num_text_blocks", 2))
    condition = dict.fromkeys(("e_t", "e_h"), fields.size("time_dim", 512))
    seen = 2 * channels + 1 if fields.flag("visual_cond", default=False) else channels
    own = {"n_f": e, "f": fields.size("ff_dim", 5120), "ch": seen * depth * side**2, **condition}
    own |= {"e_x": fields.size("in_text_dim", 3584), "e_pool": fields.size("in_text_dim2", 768)}
    own["pixels"] = fields.size("out_visual_dim", 4) * depth * side**2
    fields.text("attention_type", "regular", ("regular",))
    fields.refuse()
    attention = Joint((IMAGE,), (IMAGE,), Norm.RMS, rotated=Rotated.WHOLE)
    mlp = MLP("gelu", Bias.NONE)
    alone = block(attention, mlp, pieces_of(IMAGE, SIX), _BARE)
    text = turned(retitled(alone, dict(zip(IMAGE.axes, TEXT.axes, strict=True))), TEXT)
    ops = _seeing(attention, mlp, _cross(Bias.BOTH, "e"), pieces_of(IMAGE, (*SIX, *SECOND)))
    takes = {"x": "embedding", "prompt": "text.block", "cond": "time"}
    parts = (
        Part("time", _TIME_AND_PROMPT),
        Part("rotation", (turning(IMAGE, "l"), turning(TEXT, "l_x"))),
        Part("prompt", _FINE),
        Part("text.block", text, refined, {"x": "prompt", "cond": "time"}),
        Part("embedding", (EMBEDDED,)),
        Part("block", turned(ops, IMAGE), symbols.n_layers, takes, Place.BLOCK),
        Part("head", ending(modulation(LAST)), takes={"x": "block", "cond": "time"}),
    )
    return declared(fields, parts, sizes_of(image, shape, **own), numbers)


def cosmos(fields: Fields, shape: Shape) -> Model:
    """Declare a Cosmos, whose modulations are products of few features and a share of all."""
    depth, side = tubes(fields)
    channels = fields.size("in_channels", 16)
    image = video(fields, shape, Sample((88, 160), side, channels, symbols.l, (16, depth)))
    whole_patches(fields, image)
    _whole_frames(fields, image)
    numbers = heads_of(fields, 32, 128) | {"n_layers": fields.size("num_layers", 28)}
    e = numbers["e"]
    width = e // numbers["h"]
    fine = width % 2 == 0 and width >= _THIRDS
    problem = f"an even size of {_THIRDS} and more is rotated"
    fields.require(holds=fine, problem=problem, name="attention_head_dim")
    masked = fields.flag("concat_padding_mask", default=True)
    own = {"ch": (channels + masked) * depth * side**2, "e_c": fields.size("adaln_lora_dim", 256)}
    own |= {"n_f": e, "f": int(e * ratio_of(fields, "mlp_ratio", 4))}
    own |= {"pixels": fields.size("out_channels", 16) * depth * side**2}
    own |= {"e_s": fields.size("text_embed_dim", 1024)}
    most = fields.items("max_size", (128, 240, 240))
    fine = len(most) == 3 and all(map(is_size, most))  # noqa: PLR2004 - frames, height, width
    fields.require(holds=fine, problem="3 sizes are accepted", name="max_size")
    rows = [n // p for n, p in zip(most, (depth, side, side), strict=True)] if fine else [1]
    have = [
        n // p for n, p in zip((image.frames[0], *image.sides), (depth, side, side), strict=True)
    ]
    fits = not fine or all(n <= row for n, row in zip(have, rows, strict=True))
    fields.require(holds=fits, problem=f"positions end at {rows} patches", name="max_size")
    placed = fields.source.values.get("extra_pos_embed_type", "learnable") is not None
    if placed:
        fields.text("extra_pos_embed_type", "learnable", ("learnable",))
    fields.ignore("extra_pos_embed_type")
    own |= {"p": sum(rows)} if placed else {}
    projected = fields.flag("use_crossattn_projection", default=False)
    given = fields.size("encoder_hidden_states_channels", 1024)
    alike = not projected or given == own["e_s"]
    problem = f"the {own['e_s']} of text_embed_dim is accepted"
    fields.require(holds=alike, problem=problem, name="encoder_hidden_states_channels")
    own["e_x"] = fields.size("crossattn_proj_in_channels", 1024)
    shown = fields.has("img_context_dim_in")
    fields.require(holds=not shown, problem="null is accepted", name="img_context_dim_in")
    fields.ignore("img_context_dim_in")
    fields.refuse()
    attention = Joint((IMAGE,), (IMAGE,), Norm.RMS, Bias.NONE, Rotated.WHOLE)
    pieces = tuple(op for three in (ATTENTION, SECOND, PERCEPTRON) for op in _of_few(three))
    start = "placed" if placed else "x"
    cross = _cross(Bias.NONE, "e_s")
    ops = _seeing(attention, MLP("gelu", Bias.NONE), cross, pieces, start)
    ops = (*(_PLACED if placed else ()), *(ops if projected else of_data(ops)))
    times = {"cond": "time", "shared": "time"}
    takes = {"x": "embedding", **times} | ({"places": "places"} if placed else {})
    takes |= {"prompt": "prompt"} if projected else {}
    parts = (
        Part("time", _TIME_OF_COSMOS),
        Part("rotation", (turning(IMAGE, "l"),)),
        *((Part("places", _PLACES),) if placed else ()),
        *((Part("prompt", _PROJECTED),) if projected else ()),
        Part("embedding", unbiased((EMBEDDED,))),
        Part("block", turned(ops, IMAGE), symbols.n_layers, takes, Place.BLOCK),
        Part(
            "head", unbiased(ending(_LAST_OF_FEW, shared="shared")), takes={"x": "block", **times}
        ),
    )
    return declared(fields, parts, sizes_of(image, shape, **own), numbers)


def ernie(fields: Fields, shape: Shape) -> Model:
    """Declare an ERNIE-Image: one stream, and one modulation for all blocks."""
    patch, channels = fields.size("patch_size", 1), fields.size("in_channels", 128)
    if not fields.has("sample_size"):
        fields.assume("sample_size", "64, latents of an image of 1024 pixels a side")
    image = sample(fields, shape, 64, patch, channels)
    whole_patches(fields, image)
    e, h = fields.size("hidden_size", 3072), fields.size("num_attention_heads", 24)
    problem = f"{h} heads do not divide hidden_size = {e}"
    fields.require(holds=e % h == 0, problem=problem, name="num_attention_heads")
    numbers = {"e": e, "h": h, "n_layers": fields.size("num_layers", 24)}
    rotated(fields, numbers, "rope_axes_dim", (32, 48, 48))
    normed = fields.flag("qk_layernorm", default=True)
    fields.require(holds=normed, problem="true is accepted", name="qk_layernorm")
    own = {"e_x": fields.size("text_in_dim", 2560), "f": fields.size("ffn_hidden_size", 8192)}
    problem = f"a prompt of hidden_size = {e} is not projected: another width is accepted"
    fields.require(holds=own["e_x"] != e, problem=problem, name="text_in_dim")
    own |= {"n_f": e, "ch": channels * patch**2}
    own |= {"pixels": fields.size("out_channels", 128) * patch**2}
    fields.refuse()
    attention = Joint((IMAGE,), (IMAGE,), Norm.RMS, Bias.NONE, Rotated.WHOLE)
    names = {piece: f"image.{piece}" for piece in SIX}
    pieces = scope("image.modulation", (parted(SIX),), pieces="shared", **names)
    one = block(attention, GatedMLP("gelu"), pieces, (Norm.RMS, Norm.RMS))
    whole = dict(zip(IMAGE.axes, JOINED.axes, strict=True))
    times = {"x": "block", "cond": "time"}
    parts = (
        Part("time", conditioned((TIME,))),
        Part("rotation", (ANGLES,)),
        Part("modulation", SHARED, takes={"cond": "time"}),
        Part("prompt", unbiased((PROMPT,))),
        Part("embedding", (EMBEDDED,)),
        Part("joined", joined_streams(), takes={"x": "embedding", "prompt": "prompt"}),
        Part(
            "block",
            retitled(one, whole),
            symbols.n_layers,
            {"x": "joined", "shared": "modulation"},
            Place.BLOCK,
        ),
        Part("head", retitled(ending(_UNACTIVATED), whole), takes=times),
    )
    return declared(fields, parts, sizes_of(image, shape, **own), numbers)


def _whole_frames(fields: Fields, image: Sample) -> None:
    frames, depth = image.frames
    problem = f"patches of {depth} do not divide {frames} frames"
    fields.require(holds=frames % depth == 0, problem=problem, name="sample_frames")


def _cross(bias: Bias, width: str) -> tuple[Op, ...]:
    at, of = Positions("r", "l"), Positions(*TEXT.axes)
    nothing = CacheKind.NOTHING
    own = CrossAttention(
        at, of, PLAIN, bias=bias, width=width, cache=nothing, norm=Norm.RMS, row="d"
    )
    return own.ops()


def _seeing(
    attention: Joint,
    mlp: MLP,
    cross: tuple[Op, ...],
    pieces: tuple[Op, ...],
    start: str = "x",
) -> tuple[Op, ...]:
    """Declare a block that sees itself, then the prompt, from x to y; each is modulated."""
    return (
        *behind_first(modulated_entry(IMAGE, ATTENTION, start, "x_image"), pieces),
        *scope("attention", attention.ops(), x_image="x_image", y_image="y_image"),
        *modulated_exit(IMAGE, ATTENTION, "y_image", start, "attended"),
        *modulated_entry(IMAGE, SECOND, "attended", "x_cross"),
        *scope("cross", cross, x="x_cross", memory="prompt", prompt="prompt", y="y_cross"),
        *modulated_exit(IMAGE, SECOND, "y_cross", "attended", "middle"),
        *modulated_perceptron(IMAGE, mlp.ops(), "middle", "y"),
    )


def _few(axis: str, shared: str) -> tuple[Op, ...]:
    return (
        pointwise("act", "cond[b e_t] -> a[b e_t]", "silu"),
        einsum("down", "a[b e_t], *w[e_t e_c] -> few[b e_c]"),
        einsum("up", f"few[b e_c], *w[{axis} e_c e] -> own[{axis} b e]"),
        pointwise("add", f"own[{axis} b e], {shared}[{axis} b e] -> pieces[{axis} b e]", "add"),
    )


def _of_few(pieces: tuple[str, ...]) -> tuple[Op, ...]:
    names = {piece: f"image.{piece}" for piece in pieces}
    ops = (*_few("m_3", "shared"), parted(pieces))
    return scope(f"image.modulation_{pieces[0]}", ops, cond="cond", shared="shared", **names)


_LAST_OF_FEW = (
    pointwise("first", "shared[m_3 b e] -> two[m_2 b e]", "copy", laid="m_3"),
    *_few("m_2", "two"),
    parted(LAST),
)
_UNACTIVATED = (
    einsum("linear", "cond[b e_t], *w[m_2 e_t e] + *bias[m_2 e] -> pieces[m_2 b e]"),
    parted(LAST),
)
_TIME_OF_COSMOS = (
    einsum("linear_1", "!time_of[b e_t], *w[e_t e_h] -> u[b e_h]"),
    pointwise("act", "u[b e_h] -> a[b e_h]", "silu"),
    einsum("linear_2", "a[b e_h], *w[m_3 e_h e] -> shared[m_3 b e]"),
    Norm.RMS.op("norm", "!time_of[b e_t]", "cond[b e_t]", row="e_t"),
)
_TIME_AND_PROMPT = (
    *TIME.ops(),
    einsum("pooled", "!pooled_of[b e_pool], *w[e_pool e_t] + *bias[e_t] -> plain[b e_t]"),
    Norm.LAYER.op("norm", "plain[b e_t]", "pooled[b e_t]", row="e_t"),
    pointwise("add", "time[b e_t], pooled[b e_t] -> cond[b e_t]", "add"),
)
_FINE = (
    einsum("context", "!states[b r_x e_x], *w[e_x e] + *bias[e] -> plain[b r_x e]"),
    Norm.LAYER.op("norm", "plain[b r_x e]", "x[b r_x e]"),
)
_PROJECTED = (
    einsum("context", "!states[b r_x e_x], *w[e_x e_s] + *bias[e_s] -> u[b r_x e_s]"),
    pointwise("act", "u[b r_x e_s] -> prompt[b r_x e_s]", "gelu"),
)
_PLACES = (
    lookup("sum", "!at[r]:index, *table[p e] -> plain[r e]"),
    Norm.RMS_BARE.op("norm", "plain[r e]", "places[r e]", row="e"),
)
_PLACED = (pointwise("place", "x[b r e], places[r e] -> placed[b r e]", "add"),)
