"""AuraFlow: blocks of prompt and image, then of both as one, none with a bias.

Axes: as in `diffusion`; n_p tokens of the prompt, n_g learned tokens before it.
"""

from math import isqrt

from sympy import Integer

from symbolic_cost import symbols
from symbolic_cost.layers.conditioning import LAST, SIX, conditioned, modulation
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.joint_attention import IMAGE, JOINED, TEXT, Joint
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.patch import Patches, Piece, Places
from symbolic_cost.models.build import Fields, Shape
from symbolic_cost.models.diffusion.blocks import (
    block,
    double_block,
    image_alone,
    joined_streams,
    pieces_of,
    unbiased,
)
from symbolic_cost.models.diffusion.transformers import (
    TIME,
    declared,
    heads_of,
    is_null,
    sample,
    sizes_of,
    whole_patches,
)
from symbolic_cost.ops.declare import Model, Part, Place, einsum, pointwise, view
from symbolic_cost.ops.part import retitled

_LEARNED, _MULTIPLE = 8, 256
"""Tokens before a prompt, and what divides the width of perceptrons."""


def auraflow(fields: Fields, shape: Shape) -> Model:
    """Declare an AuraFlow.

    Raises:
        InputError: every problem of the fields.
    """
    channels, patch = fields.size("in_channels", 4), fields.size("patch_size", 2)
    image = sample(fields, shape, 64, patch, channels)
    whole_patches(fields, image)
    numbers = heads_of(fields, 12, 256) | {"n_layers": fields.size("num_mmdit_layers", 4)}
    e, singles = numbers["e"], Integer(fields.size("num_single_dit_layers", 32))
    places, width = (
        fields.size("pos_embed_max_size", 1024),
        fields.size("caption_projection_dim", 3072),
    )
    problem = f"positions end at {isqrt(places)} patches a side"
    fits = max(image.sides) // patch <= isqrt(places)
    fields.require(holds=fits, problem=problem, name="pos_embed_max_size")
    problem = f"{width} is not the width {e} of the heads together"
    fields.require(holds=width == e, problem=problem, name="caption_projection_dim")
    out = fields.size("out_channels", channels if is_null(fields) else 4)
    own = {"e_x": fields.size("joint_attention_dim", 2048), "p": places, "pixels": out * patch**2}
    own["f"] = -(-(8 * e // 3) // _MULTIPLE) * _MULTIPLE
    fields.refuse()
    text = image.text + _LEARNED
    tokens = dict.fromkeys(TEXT.axes, text) | {"n_p": image.text, "n_g": _LEARNED}
    tokens |= dict.fromkeys(JOINED.axes, text + image.tokens)
    double = double_block(
        Joint((TEXT, IMAGE), (TEXT, IMAGE), Norm.LAYER_BARE), perceptron=GatedMLP("silu")
    )
    alone, bare = Joint((IMAGE,), (IMAGE,), Norm.LAYER_BARE), (Norm.LAYER_BARE,) * 2
    single = block(alone, GatedMLP("silu"), pieces_of(IMAGE, SIX), bare)
    whole = retitled(single, dict(zip(IMAGE.axes, JOINED.axes, strict=True)))
    condition = {"cond": "time"}
    streams = {"x": "embedding", "prompt": "prompt", **condition}
    parts = (
        Part("time", conditioned((TIME,))),
        Part("prompt", _PROMPT),
        Part("embedding", Patches(Piece.BIAS, Places.ALL).ops()),
        Part("block", unbiased(double), symbols.n_layers, streams, Place.LEADING),
        Part("joined", joined_streams(), takes={"x": "block", "prompt": "block"}),
        Part("single.block", unbiased(whole), singles, {"x": "joined", **condition}, Place.BLOCK),
        Part("image", image_alone(), takes={"x": "single.block"}),
        Part("head", unbiased(_ENDING), takes={"x": "image", **condition}),
    )
    return declared(fields, parts, sizes_of(image, shape, **(own | tokens)), numbers)


_PROMPT = (
    einsum("context", "!states[b n_p e_x], *w[e_x e] -> plain[b n_p e]"),
    pointwise(
        "learned", "plain[b n_p e], *tokens[n_g e] -> prompt[b r_x e]", "copy", laid="n_p n_g"
    ),
)
_ENDING = (
    view("whole", "x[b r e] -> plain[b r e]"),
    *modulation(LAST),
    pointwise("scale", "plain[b r e], scale[b e] -> scaled[b r e]", "mul"),
    pointwise("shift", "scaled[b r e], shift[b e] -> fine[b r e]", "add"),
    einsum("proj_out", "fine[b r e], *w[e pixels] -> out[b r pixels]"),
)
