"""Diffusion transformers whose prompt and image share all weights: CogVideoX, CogView 3 and 4.

Axes: as in `diffusion`.
"""

from dataclasses import replace

from symbolic_cost import symbols
from symbolic_cost.layers.attention import Rotated
from symbolic_cost.layers.conditioning import (
    LAST,
    PERCEPTRON,
    Embedded,
    conditioned,
    modulation,
    parted,
)
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.joint_attention import IMAGE, JOINED, TEXT, Joint
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.norm import Norm
from symbolic_cost.models.build import Fields, Shape
from symbolic_cost.models.diffusion.blocks import (
    behind_first,
    ending,
    image_alone,
    joined_streams,
    modulated_perceptron,
)
from symbolic_cost.models.diffusion.transformers import (
    ANGLES,
    EMBEDDED,
    PROMPT,
    TIME,
    Numbers,
    Sample,
    assumed_side,
    bias_of,
    declared,
    heads_of,
    is_null,
    layers_of,
    sample,
    sizes_of,
    whole_patches,
)
from symbolic_cost.ops.declare import Op, Operand, einsum, joined, lookup, pointwise, unread, view
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.part import Part, Place, retitled, scope


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


def cogview(fields: Fields, shape: Shape) -> Model:
    """Declare a CogView 4: prompt and image share all weights, and a block makes pieces once.

    A GLM-Image adds the tokens of another model to the patches.
    """
    image, numbers, own = _view(fields, shape)
    prior = fields.family == "GlmImageTransformer2DModel"
    if prior:
        own |= {"e_x": fields.size("text_embed_dim", 1472), "n_f": own["e_t"]}
        own |= {"n_l": fields.size("prior_vq_quantizer_codebook_size", 16384)}
        own |= {"e_s": own["e_s"] // 6 * 4, **dict.fromkeys(("e_q", "e_i"), numbers["e"])}
        assumed_side(fields, 128)
    fine = numbers["e"] // numbers["h"] % 4 == 0
    problem = "a multiple of 4 is accepted: height and width turn a half each"
    fields.require(holds=fine, problem=problem, name="attention_head_dim")
    fields.refuse()
    bare = Norm.LAYER_BARE
    attention = Joint((JOINED,), (JOINED,), bare, rotated=Rotated.WHOLE)
    block = _shared(attention, MLP("gelu_tanh"), bare, ())
    condition = {"cond": "time"}
    streams = {"x": "joined", **condition}
    later = Part("block", _made_once(block, "mlp."), symbols.n_layers - 1, streams, Place.BLOCK)
    deep = numbers["n_layers"] > 1
    last = {"x": "block" if deep else "joined", **condition}
    parts = (
        Part("time", (*conditioned((TIME, Embedded("sizes", "e_s"))), _ACTIVE)),
        Part("rotation", (ANGLES,)),
        Part("prompt", _GLYPHS if prior else (PROMPT,)),
        Part("embedding", _OF_TOKENS if prior else (EMBEDDED,)),
        Part("joined", joined_streams(), takes={"x": "embedding", "prompt": "prompt"}),
        *((later,) if deep else ()),
        Part("last.block", _ended(attention), takes=last, place=Place.BLOCK),
        Part("head", ending(_linear(LAST)), takes={"x": "last.block", **condition}),
    )
    return declared(fields, parts, sizes_of(image, shape, **own), numbers)


_GLYPHS = (
    einsum("linear_1", "!states[b r_x e_x], *w[e_x e_q] + *bias[e_q] -> u[b r_x e_q]"),
    pointwise("act", "u[b r_x e_q] -> a[b r_x e_q]", "gelu"),
    einsum("linear_2", "a[b r_x e_q], *w[e_q e] + *bias[e] -> prompt[b r_x e]"),
)
_OF_TOKENS = (
    *scope("", (EMBEDDED,), x="plain"),
    lookup("prior.table", "!tokens[b r]:index, *table[n_l e_q] -> rows[b r e_q]"),
    einsum("prior.linear_1", "rows[b r e_q], *w[e_q e_i] + *bias[e_i] -> u[b r e_i]"),
    pointwise("prior.act", "u[b r e_i] -> a[b r e_i]", "silu"),
    einsum("prior.linear_2", "a[b r e_i], *w[e_i e] + *bias[e] -> prior[b r e]"),
    pointwise("add", "plain[b r e], prior[b r e] -> x[b r e]", "add"),
)


def cogview_3(fields: Fields, shape: Shape) -> Model:
    """Declare a CogView 3 Plus, whose every block activates the condition for itself."""
    image, numbers, own = _view(fields, shape)
    most = fields.size("pos_embed_max_size", 128)
    problem = f"positions end at {most} patches a side"
    fits = max(image.sides) // image.patch <= most
    fields.require(holds=fits, problem=problem, name="pos_embed_max_size")
    fields.refuse()
    bare, condition = Norm.LAYER_BARE, {"cond": "time"}
    pieces = modulation(
        tuple(f"{layer}.{piece}" for layer in ("attention", "mlp") for piece in _PIECES)
    )
    block = _shared(Joint((JOINED,), (JOINED,), bare), MLP("gelu_tanh"), bare, ())
    placed = pointwise("place", "plain[b r e], !places[r e]:buffer -> x[b r e]", "add")
    parts = (
        Part("time", conditioned((TIME, Embedded("sizes", "e_s")))),
        Part("prompt", (PROMPT,)),
        Part("embedding", (*scope("", (EMBEDDED,), x="plain"), placed)),
        Part("joined", joined_streams(), takes={"x": "embedding", "prompt": "prompt"}),
        Part(
            "block",
            behind_first(block, pieces),
            symbols.n_layers,
            {"x": "joined", **condition},
            Place.BLOCK,
        ),
        Part("image", image_alone(), takes={"x": "block"}),
        Part("head", ending(modulation(LAST)), takes={"x": "image", **condition}),
    )
    return declared(fields, parts, sizes_of(image, shape, **own), numbers)


def _view(fields: Fields, shape: Shape) -> tuple[Sample, Numbers, dict[str, int]]:
    """Read what all CogViews say: latents, heads and depth, and sizes of axes."""
    channels, patch = fields.size("in_channels", 16), fields.size("patch_size", 2)
    image = sample(fields, shape, 128, patch, channels)
    whole_patches(fields, image)
    numbers = heads_of(fields, 64, 40) | {"n_layers": fields.size("num_layers", 30)}
    out = fields.size("out_channels", 16)
    fields.require(holds=not is_null(fields), problem="a size is needed", name="out_channels")
    own = {"e_x": fields.size("text_embed_dim", 4096), "pixels": out * patch**2}
    own |= {"n_f": numbers["e"], "e_s": 6 * fields.size("condition_dim", 256)}
    own["ch"] = channels * patch**2
    own |= dict.fromkeys(("e_t", "e_h"), fields.size("time_embed_dim", 512))
    return image, numbers, own


def _made_once(block: tuple[Op, ...], *of_mlp: str) -> tuple[Op, ...]:
    """Return a block behind the pieces of both layers; `of_mlp` begin those of the second."""
    first = tuple(f"attention.{piece}" for piece in _PIECES)
    kinds = _PIECES if len(of_mlp) == 1 else PERCEPTRON
    return behind_first(block, _linear((*first, *(f"{n}{p}" for n in of_mlp for p in kinds))))


def _ended(attention: Joint) -> tuple[Op, ...]:
    """Declare the last block of a CogView 4, of whose second layer nobody reads the prompt.

    The layer runs on image and prompt one after the other, with the same weights.
    """
    ends = ("x_joined", "y_joined")
    first = _apart("attention", Norm.LAYER_BARE, attention.ops(), ends, ("x", "middle"), made=())
    image, text = (
        modulated_perceptron(stream, _of_one(MLP("gelu_tanh")), f"{stream.name}.middle", y)
        for stream, y in ((IMAGE, "y"), (TEXT, "z"))
    )
    apart = (
        view("gather", "middle[b r_j e] -> both[b j e]"),
        joined("part", "both[b j e] -> image.whole[b l e], text.whole[b l_x e]"),
        view("scatter_image", "image.whole[b l e] -> image.middle[b r e]"),
        view("scatter_text", "text.whole[b l_x e] -> text.middle[b r_x e]"),
    )
    return (*_made_once(first, "image.", "text."), *apart, *image, *unread(text))


def _of_one(perceptron: MLP) -> tuple[Op, ...]:
    """Declare a perceptron whose weights several use."""

    def shared(operand: Operand) -> Operand:
        own = operand.renamed(f"@last.{operand.tensor}")
        return own if operand.is_weight else operand

    return tuple(op.mapped(shared) for op in perceptron.ops())


_ACTIVE = pointwise("act", "cond[b e_t] -> active[b e_t]", "silu")


def _linear(pieces: tuple[str, ...]) -> tuple[Op, ...]:
    """Declare the product that makes pieces of a condition that is activated already."""
    axis = f"m_{len(pieces)}"
    made = f"cond[b e_t], *w[{axis} e_t e] + *bias[{axis} e] -> pieces[{axis} b e]"
    return (einsum("linear", made), parted(pieces))


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


_PIECES = tuple(f"{piece}{of}" for of in ("", "_text") for piece in ("shift", "scale", "gate"))
"""Of a layer, those of the image and those of the prompt."""


def _shared(
    attention: Joint,
    perceptron: MLP | GatedMLP,
    norm: Norm,
    made: tuple[Op, ...] = modulation(_PIECES),
) -> tuple[Op, ...]:
    """Declare a block whose layers see prompt and image as one, from x to y.

    Args:
        attention: of both.
        perceptron: behind it.
        norm: before either.
        made: what makes the pieces of a layer, if that is not done for both before.
    """
    mlp = retitled(perceptron.ops(), {"r": JOINED.residual, "l": JOINED.query})
    return (
        *_apart(
            "attention", norm, attention.ops(), ("x_joined", "y_joined"), ("x", "middle"), made=made
        ),
        *_apart("mlp", norm, mlp, ("x", "y"), ("middle", "y"), made=made),
    )


def _apart(
    name: str,
    norm: Norm,
    layer: tuple[Op, ...],
    ends: tuple[str, str],
    streams: tuple[str, str],
    *,
    made: tuple[Op, ...],
) -> tuple[Op, ...]:
    """Declare a layer behind a norm, whose two streams are modulated apart, and the sum."""
    a = "[b r_j e]"
    scale, shift, gate = (f"{p}[b e], {p}_text[b e]" for p in ("scale", "shift", "gate"))
    before = (
        *behind_first((norm.op("norm", f"x{a}", f"fine{a}"),), made),
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
