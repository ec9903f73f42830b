"""Diffusion transformers whose modulations are made for many at once: Chroma, CogVideoX.

Axes: as in `diffusion`; n_c pieces of all modulations of a Chroma.
"""

from __future__ import annotations

from dataclasses import replace

from sympy import Integer

from symbolic_cost import symbols
from symbolic_cost.layers.attention import Rotated
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.joint import IMAGE, JOINED, TEXT, Joint, Stream
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.modulated import LAST, Embedded, conditioned, modulation, parted
from symbolic_cost.layers.norm import Norm
from symbolic_cost.models.diffusion.blocks import (
    behind_first,
    double_block,
    ending,
    image_alone,
    joined_streams,
    single_block,
)
from symbolic_cost.models.diffusion.transformers import (
    ANGLES,
    EMBEDDED,
    PROMPT,
    TIME,
    Sample,
    assumed_side,
    bias_of,
    declared,
    heads_of,
    is_null,
    layers_of,
    rotated,
    sample,
    sizes_of,
)
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.titles import retitled
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.graph import Model, Part, Place, scope
from symbolic_cost.ops.op import Op


def chroma(fields: Fields, shape: Shape) -> Model:
    """Declare a Chroma: a Flux of which one small network makes all modulations.

    Raises:
        InputError: every problem of the fields.
    """
    channels, patch = fields.size("in_channels", 64), fields.size("patch_size", 1)
    assumed_side(fields, 128)
    image = sample(fields, shape, 128, 2, channels)
    numbers = heads_of(fields, 24, 128) | {"n_layers": fields.size("num_layers", 19)}
    singles = fields.size("num_single_layers", 38)
    rotated(fields, numbers)
    entered, wide = (
        fields.size(f"approximator_{name}", usual)
        for name, usual in (("num_channels", 64), ("hidden_dim", 5120))
    )
    problem = f"{entered} channels are no four equal parts"
    fields.require(holds=entered % 4 == 0, problem=problem, name="approximator_num_channels")
    depth = Integer(fields.size("approximator_layers", 5))
    own = {"e_x": fields.size("joint_attention_dim", 4096), "n_f": entered}
    own |= {"pixels": fields.size("out_channels", channels) * patch**2, "e_h": wide, "e_q": wide}
    own["n_c"] = 3 * singles + 12 * numbers["n_layers"] + 2
    fields.refuse()
    return declared(
        fields, _given_parts(depth, Integer(singles)), sizes_of(image, shape, **own), numbers
    )


def _given_parts(depth: Integer, singles: Integer) -> tuple[Part, ...]:
    """Declare a Chroma with so many layers that make modulations, and blocks of one stream."""
    attention = Joint((TEXT, IMAGE), (TEXT, IMAGE), Norm.RMS, rotated=Rotated.WHOLE)
    single = replace(attention, streams=(JOINED,), results=())
    two = dict.fromkeys(("image_pieces", "text_pieces"), "pieces")
    return (
        Part("condition", (_ENTERED,)),
        Part("approximator", _APPROXIMATED, depth, {"x": "condition"}),
        Part("pieces", _PIECES, takes={"x": "approximator"}),
        Part("rotation", (ANGLES,)),
        Part("prompt", (PROMPT,)),
        Part("embedding", (EMBEDDED,)),
        Part(
            "block",
            double_block(attention, made=_given),
            symbols.n_layers,
            {"x": "embedding", "prompt": "prompt", **two},
            Place.BLOCK,
        ),
        Part("joined", joined_streams(), takes={"x": "block", "prompt": "block"}),
        Part(
            "single.block",
            single_block(single, made=_given),
            singles,
            {"x": "joined", "joined_pieces": "pieces"},
            Place.BLOCK,
        ),
        Part("image", image_alone(), takes={"x": "single.block"}),
        Part(
            "head",
            ending((parted(LAST),)),
            takes={"x": "image", "modulation.pieces": "pieces"},
        ),
    )


def _given(stream: Stream, pieces: tuple[str, ...]) -> tuple[Op, ...]:
    """Declare the pieces of a stream's modulation, of those that were made for all."""
    own = stream.name
    names = {piece: f"{own}.{piece}" for piece in pieces}
    return scope(f"{own}.modulation", (parted(pieces),), pieces=f"{own}_pieces", **names)


_ENTERED = einsum("in_proj", "!times[b n_c n_f], *w[n_f e_h] + *bias[e_h] -> x[b n_c e_h]")
_APPROXIMATED = (
    Norm.RMS.op("norm", "x[b n_c e_h]", "fine[b n_c e_h]", row="e_h"),
    einsum("linear_1", "fine[b n_c e_h], *w[e_h e_q] + *bias[e_q] -> u[b n_c e_q]"),
    pointwise("act", "u[b n_c e_q] -> a[b n_c e_q]", "silu"),
    einsum("linear_2", "a[b n_c e_q], *w[e_q e_h] + *bias[e_h] -> done[b n_c e_h]"),
    pointwise("residual", "x[b n_c e_h], done[b n_c e_h] -> y[b n_c e_h]", "add"),
)
_PIECES = (
    einsum("out_proj", "x[b n_c e_h], *w[e_h e] + *bias[e] -> every[b n_c e]"),
    *(
        pointwise(name, f"every[b n_c e] -> {name}_pieces[m_{number} b e]", "copy", laid="n_c")
        for name, number in (("image", 6), ("text", 6), ("joined", 3), ("last", 2))
    ),
)


def cogvideox(fields: Fields, shape: Shape) -> Model:
    """Declare a CogVideoX: prompt and video share all weights but are modulated apart."""
    image, deep = _video(fields, shape)
    depth, patch, channels = image.frames[1], image.patch, image.channels
    numbers = heads_of(fields, 30, 64) | {"n_layers": fields.size("num_layers", 30)}
    wide, further = fields.size("time_embed_dim", 512), fields.optional_size("ofs_embed_dim")
    problem = f"{further} is added to the time step's {wide}"
    fields.require(holds=further in (None, wide), problem=problem, name="ofs_embed_dim")
    fields.text("timestep_activation_fn", "silu", ("silu",))
    out = fields.size("out_channels", 16)
    fields.require(holds=not is_null(fields), problem="a size is needed", name="out_channels")
    own = {"e_x": fields.size("text_embed_dim", 4096), "n_f": numbers["e"], "e_s": further or 1}
    own |= {"e_t": wide, "e_h": wide, "ch": channels * depth * patch**2}
    own["pixels"] = out * depth * patch**2
    affine = fields.flag("norm_elementwise_affine", default=True)
    turned = fields.flag("use_rotary_positional_embeddings", default=False)
    biased = fields.flag("patch_bias", default=True) or deep
    norm = Norm.LAYER if affine else Norm.LAYER_BARE
    _, perceptron = layers_of(fields)
    bias = bias_of(fields)
    fields.refuse()
    attention = Joint((JOINED,), (JOINED,), Norm.LAYER, bias)
    attention = replace(attention, rotated=Rotated.WHOLE if turned else Rotated.NOTHING)
    times = (TIME, *((Embedded("ofs", "e_s"),) if further else ()))
    plain = einsum("embed", "!latents[b r ch], *w[ch e] -> x[b r e]")
    parts = (
        Part("time", conditioned(times)),
        *((Part("rotation", (ANGLES,)),) if turned else ()),
        Part("prompt", (PROMPT,)),
        Part("embedding", (EMBEDDED if biased else plain,)),
        Part("joined", joined_streams(), takes={"x": "embedding", "prompt": "prompt"}),
        Part(
            "block",
            _shared(attention, perceptron, norm),
            symbols.n_layers,
            {"x": "joined", "cond": "time"},
            Place.BLOCK,
        ),
        Part("image", image_alone(), takes={"x": "block"}),
        Part("head", _twice_normed(norm), takes={"x": "image", "cond": "time"}),
    )
    return declared(fields, parts, sizes_of(image, shape, **own), numbers)


def _video(fields: Fields, shape: Shape) -> tuple[Sample, bool]:
    """Read the latents of a video, and whether patches span several frames."""
    patch, several = fields.size("patch_size", 2), fields.optional_size("patch_size_t")
    sides = fields.size("sample_height", 60), fields.size("sample_width", 90)
    problem = f"patches of {patch} do not fit latents of {list(sides)}"
    fields.require(holds=min(sides) >= patch, problem=problem, name="patch_size")
    ratio, depth = fields.size("temporal_compression_ratio", 4), several or 1
    frames = (fields.size("sample_frames", 49) - 1) // ratio + 1
    text = shape.l if shape.c == 0 else shape.c
    filled = -(-frames // depth) * depth, depth
    return Sample(sides, patch, fields.size("in_channels", 16), text, filled), bool(several)


def _twice_normed(norm: Norm) -> tuple[Op, ...]:
    """Declare the end of a CogVideoX, with a norm before the modulated one."""
    first = norm.op("norm_final", "x[b r e]", "final[b r e]")
    shifted = (
        norm.op("norm", "final[b r e]", "normed[b r e]"),
        *modulation(LAST),
        pointwise("scale", "normed[b r e], scale[b e] -> scaled[b r e]", "mul"),
        pointwise("shift", "scaled[b r e], shift[b e] -> fine[b r e]", "add"),
    )
    out = einsum("proj_out", "fine[b r e], *w[e pixels] + *bias[pixels] -> out[b r pixels]")
    return (first, *shifted, out)


def _shared(attention: Joint, perceptron: MLP | GatedMLP, norm: Norm) -> tuple[Op, ...]:
    """Declare a block whose layers see prompt and video as one, from x to y."""
    mlp = retitled(perceptron.ops(), {"r": JOINED.residual, "l": JOINED.query})
    return (
        *_apart("attention", norm, attention.ops(), ("x_joined", "y_joined"), ("x", "middle")),
        *_apart("mlp", norm, mlp, ("x", "y"), ("middle", "y")),
    )


def _apart(
    name: str,
    norm: Norm,
    layer: tuple[Op, ...],
    ends: tuple[str, str],
    streams: tuple[str, str],
) -> tuple[Op, ...]:
    """Declare a layer behind a norm, whose two streams are modulated apart, and the sum."""
    a = "[b r_j e]"
    pieces = tuple(f"{piece}{of}" for of in ("", "_text") for piece in ("shift", "scale", "gate"))
    scale, shift, gate = (f"{p}[b e], {p}_text[b e]" for p in ("scale", "shift", "gate"))
    before = (
        *behind_first((norm.op("norm", f"x{a}", f"fine{a}"),), modulation(pieces)),
        pointwise("scaling", f"fine{a}, {scale} -> scaled{a}", "mul"),
        pointwise("shifting", f"scaled{a}, {shift} -> entry{a}", "add"),
    )
    after = (
        pointwise("opening", f"outcome{a}, {gate} -> opened{a}", "mul"),
        pointwise("residual", f"x{a}, opened{a} -> y{a}", "add"),
    )
    inner = {ends[0]: f"{name}.entry", ends[1]: f"{name}.outcome"}
    return (
        *scope(name, before, x=streams[0], cond="cond"),
        *scope(f"{name}.layer" if name == "mlp" else name, layer, **inner),
        *scope(name, after, x=streams[0], y=streams[1]),
    )
