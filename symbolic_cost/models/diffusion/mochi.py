"""Mochi: a video and a narrower prompt in blocks with norms before and after every layer.

Axes: as in `diffusion`; e_c width of the prompt's stream, n_p its tokens and their mean, h_x and
d_x heads that see these, n_g coordinates of a position, d_o frequencies of a head.
"""

from __future__ import annotations

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.conditioning import LAST, modulation
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.joint_attention import IMAGE, TEXT, Joint, Stream
from symbolic_cost.layers.norm import Norm
from symbolic_cost.models.diffusion.blocks import behind_first, ending
from symbolic_cost.models.diffusion.streams import branch, four_pieces
from symbolic_cost.models.diffusion.tabled import TUBES
from symbolic_cost.models.diffusion.transformers import (
    PROMPT,
    TIME,
    Sample,
    declared,
    heads_of,
    is_null,
    sizes_of,
    video,
    whole_patches,
)
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise, softmax
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.part import Part, Place, retitled, scope
from symbolic_cost.ops.pattern import Operand
from symbolic_cost.ops.view import split

_HEADS = 8
"""That see a prompt for the condition."""
_BARE = Norm.RMS_BARE


def mochi(fields: Fields, shape: Shape) -> Model:
    """Declare a Mochi, whose last block ends the prompt's stream."""
    patch, channels = fields.size("patch_size", 2), fields.size("in_channels", 12)
    image = video(fields, shape, Sample((60, 106), patch, channels, symbols.l, (28, 1)))
    whole_patches(fields, image)
    numbers = heads_of(fields, 24, 128) | {"n_layers": fields.size("num_layers", 48)}
    e, wide = numbers["e"], fields.size("text_embed_dim", 4096)
    own: dict[str, Expr | int] = {"e_c": fields.size("pooled_projection_dim", 1536), "e_x": wide}
    own |= {"n_f": fields.size("time_embed_dim", 256), "n_p": image.text + 1, "two": 2}
    own |= {"h_x": _HEADS, "d_x": wide // _HEADS, "n_g": 3, "d_o": e // numbers["h"] // 2}
    own |= {"f": 8 * e // 3, "f_s": 8 * int(own["e_c"]) // 3}
    out = fields.size("out_channels", channels) if not is_null(fields) else channels
    own["pixels"] = out * patch**2
    for name, size, by in (
        ("text_embed_dim", wide, _HEADS),
        ("attention_head_dim", e // numbers["h"], 2),
    ):
        fields.require(holds=size % by == 0, problem=f"{by} does not divide it", name=name)
    fields.refuse()
    takes = {"cond": "time", "cos": "rotation", "sin": "rotation"}
    at = {"x": "embedding", "prompt": "prompt"}
    parts = [
        Part("time", _CONDITION),
        Part("rotation", _ROTATION),
        Part("prompt", retitled((PROMPT,), {"e": "e_c"})),
        Part("embedding", TUBES),
    ]
    if numbers["n_layers"] > 1:
        count = symbols.n_layers - 1
        parts.append(Part("block", _block(), count, {**at, **takes}, Place.LEADING))
        at = dict.fromkeys(at, "block")
    last = Part("last.block", _block(ends=True), Integer(1), {**at, **takes}, Place.BLOCK)
    head = Part("head", ending(modulation(LAST)), takes={"x": "last.block", "cond": "time"})
    return declared(fields, (*parts, last, head), sizes_of(image, shape, **own), numbers)


def _block(*, ends: bool = False) -> tuple[Op, ...]:
    """Declare a block from x and prompt to one result each, or to that of x where it ends."""
    results = (IMAGE,) if ends else (IMAGE, TEXT)
    attention = Joint((IMAGE, TEXT), results, Norm.RMS, Bias.OUTPUT)
    before, after = _stream(IMAGE, GatedMLP("silu"))
    text, left = _stream(TEXT, GatedMLP("silu", width="f_s"))
    if ends:
        text, left = _ENTERED, ()
    seen = {f"x_{s.name}": f"{s.name}.attention.entry" for s in (IMAGE, TEXT)}
    seen |= {f"y_{s.name}": f"{s.name}.attention.outcome" for s in results}
    turns = {"cos": "cos", "sin": "sin"}
    return (
        *scope("image", before, x="x", cond="cond"),
        *scope("text", retitled(text, {"e": "e_c"}), x="prompt", cond="cond"),
        *scope("attention", tuple(_turned(attention)), **seen, **turns),
        *scope("image", after, x="x", y="y"),
        *scope("text", retitled(left, {"e": "e_c"}), x="prompt", y="z"),
    )


def _stream(stream: Stream, perceptron: GatedMLP) -> tuple[tuple[Op, ...], tuple[Op, ...]]:
    """Declare what stands before attention and behind it."""
    layer = retitled(perceptron.ops(), {"r": stream.residual, "l": stream.query})
    first = branch(stream, "attention", "x", "middle", opened=True, norm=_BARE)
    second = branch(stream, "mlp", "middle", "y", opened=True, norm=_BARE)
    inner = scope("mlp", layer, x="mlp.entry", y="mlp.outcome")
    return behind_first(first[0], four_pieces()), (*first[1], *second[0], *inner, *second[1])


_ENTERED = (
    _BARE.op("norm", "x[b r_x e]", "fine[b r_x e]"),
    pointwise("act", "cond[b e_t] -> a[b e_t]", "silu"),
    einsum("linear", "a[b e_t], *w[e_t e] + *bias[e] -> scale[b e]"),
    pointwise("scaling", "fine[b r_x e], scale[b e] -> attention.entry[b r_x e]", "mul"),
)


def _turned(attention: Joint) -> tuple[Op, ...]:
    """Declare attention in which queries and keys of the video alone are rotated."""
    ops: list[Op] = []
    for op in attention.ops():
        named = op.path.startswith("text.")
        own = retitled((op,), {"e": "e_c"})[0] if named else op
        if op.path not in ("image.norm_q", "image.norm_k"):
            ops.append(own)
            continue
        name = op.path[-1]
        plain, axes = f"image.unturned_{name}", "[b l h d]"

        def renamed(operand: Operand, name: str = name, plain: str = plain) -> Operand:
            return operand.renamed(plain) if operand.tensor == f"image.{name}" else operand

        pattern = f"{plain}{axes}, cos[l h d], sin[l h d] -> image.{name}{axes}"
        ops += [own.mapped(renamed), pointwise(f"rotate_{name}", pattern, "rotary")]
    return tuple(ops)


_ROTATION = (
    einsum("frequencies", "!places[l n_g], *w[n_g h d_o] -> turned[l h d_o]"),
    *(
        pointwise(name, f"turned[l h d_o] -> {name}[l h d]", "copy", laid="d_o")
        for name in ("cos", "sin")
    ),
)
_POOLED = (
    einsum(
        "kv",
        "!tokens[b n_p e_x], *w[two e_x h_x d_x] + *bias[two h_x d_x] -> kv[two b n_p h_x d_x]",
    ),
    split("split", "kv[two b n_p h_x d_x] -> k[b n_p h_x d_x], v[b n_p h_x d_x]"),
    einsum("q", "!mean[b e_x], *w[e_x h_x d_x] + *bias[h_x d_x] -> q[b h_x d_x]"),
    einsum("scores", "q[b h_x d_x], k[b n_p h_x d_x] -> scores[b h_x n_p]"),
    softmax("softmax", "scores[b h_x n_p] -> p[b h_x n_p]", row="n_p"),
    einsum("attend", "p[b h_x n_p], v[b n_p h_x d_x] -> seen[b h_x d_x]"),
    einsum("out", "seen[b h_x d_x], *w[h_x d_x e_t] + *bias[e_t] -> pooled[b e_t]"),
)
_CONDITION = (
    *TIME.ops(),
    *scope("pool", _POOLED, pooled="pooled"),
    pointwise("add", "time[b e_t], pooled[b e_t] -> cond[b e_t]", "add"),
)
