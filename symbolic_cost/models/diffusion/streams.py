"""Diffusion transformers that refine image and prompt before they are one: Z-Image, Lumina 2.

Axes: as in `diffusion`.
"""

from __future__ import annotations

from sympy import Integer, ceiling

from symbolic_cost import symbols
from symbolic_cost.layers.attention import Bias, Rotated
from symbolic_cost.layers.attention_core import GROUPED
from symbolic_cost.layers.conditioning import Embedded, modulation, parted
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.joint_attention import IMAGE, JOINED, TEXT, Joint, Stream
from symbolic_cost.layers.norm import Norm
from symbolic_cost.models.build import Fields, Shape, is_size
from symbolic_cost.models.diffusion.blocks import behind_first, joined_streams
from symbolic_cost.models.diffusion.transformers import (
    EMBEDDED,
    FINE_PROMPT,
    assumed_side,
    declared,
    rotated,
    sample,
    sizes_of,
    whole_patches,
)
from symbolic_cost.models.vision.maps_families import ratio_of
from symbolic_cost.ops.declare import Model, Op, Operand, Part, Place, einsum, pointwise, scope
from symbolic_cost.ops.part import retitled
from symbolic_cost.records import dataclass, replace

_MULTIPLE, _CONDITION, _HIDDEN = 32, 256, 1024
"""Of Z-Image: of tokens, to which each stream is filled; widths of its time step."""


def z_image(fields: Fields, shape: Shape) -> Model:
    """Declare a Z-Image: image and prompt are refined apart, then as one."""
    sizes = fields.items("all_patch_size", (2,))
    fine = len(sizes) == 1 and is_size(sizes[0])
    fields.require(holds=fine, problem="a list of one size is accepted", name="all_patch_size")
    patch = sizes[0] if fine else 2
    channels = fields.size("in_channels", 16)
    assumed_side(fields, 128)
    image = sample(fields, shape, 128, patch, channels)
    e, heads = fields.size("dim", 3840), fields.size("n_heads", 30)
    problem = f"{heads} heads do not divide the width, dim, of {e}"
    fields.require(holds=e % heads == 0, problem=problem, name="n_heads")
    numbers = {"h": heads, "e": e, "n_layers": fields.size("n_layers", 30)}
    refined = Integer(fields.size("n_refiner_layers", 2))
    norm = Norm.RMS if fields.flag("qk_norm", default=True) else None
    rotated(fields, numbers, "axes_dims", (32, 48, 48))
    pixels = patch**2 * channels
    both = Integer(image.tokens), image.text
    seen, text = (_MULTIPLE * ceiling(tokens / _MULTIPLE) for tokens in both)
    tokens = dict.fromkeys("rltnp", seen) | dict.fromkeys(("r_x", "l_x", "t_x"), text)
    tokens |= dict.fromkeys(("r_j", "j", "t_j"), seen + text)
    own = {"e_x": fields.size("cap_feat_dim", 2560), "pixels": pixels, "ch": pixels}
    # Its code divides as floats do.
    own |= {"f": int(e / 3 * 8), "e_t": min(e, _CONDITION), "e_h": _HIDDEN}
    fields.refuse()
    plain = (*scope("", (EMBEDDED,), x="plain"), _filling("b r"))
    filled = (*scope("", FINE_PROMPT, fine="fine", prompt="plain"), _filling("b r_x"))
    block = _Block(Joint((), (), norm, Bias.NONE, Rotated.WHOLE))
    parts = _refined(block, plain, filled, refined)
    return declared(fields, parts, sizes_of(image, shape, **own, **tokens), numbers)


def lumina(fields: Fields, shape: Shape) -> Model:
    """Declare a Lumina 2, whose heads share keys and values."""
    channels, patch = fields.size("in_channels", 16), fields.size("patch_size", 2)
    image = sample(fields, shape, 128, patch, channels)
    whole_patches(fields, image)
    e, heads = fields.size("hidden_size", 2304), fields.size("num_attention_heads", 24)
    shared = fields.size("num_kv_heads", 8)
    problem = f"{heads} heads do not divide hidden_size = {e}, or {shared} num_kv_heads not them"
    fine = e % heads == 0 and heads % shared == 0
    fields.require(holds=fine, problem=problem, name="num_attention_heads")
    numbers = {"h": heads, "e": e, "n_layers": fields.size("num_layers", 26)}
    refined = Integer(fields.size("num_refiner_layers", 2))
    rotated(fields, numbers, "axes_dim_rope", (32, 32, 32))
    wide, multiple = 4 * e, fields.size("multiple_of", 256)
    if fields.has("ffn_dim_multiplier"):
        wide = int(ratio_of(fields, "ffn_dim_multiplier", 1) * wide)
    own = {"e_x": fields.size("cap_feat_dim", 1024), "f": -(-wide // multiple) * multiple}
    own |= {"ch": channels * patch**2, "k": shared, "g": max(heads // shared, 1)}
    own["pixels"] = fields.size("out_channels", channels) * patch**2
    own |= dict.fromkeys(("e_t", "e_h"), min(e, _HIDDEN))
    fields.refuse()
    attention = Joint((), (), Norm.RMS, Bias.NONE, Rotated.WHOLE, heads=GROUPED)
    parts = _refined(_Block(attention, activated=True), (EMBEDDED,), FINE_PROMPT, refined)
    return declared(fields, parts, sizes_of(image, shape, **own), numbers)


def _refined(
    block: _Block, embedding: tuple[Op, ...], prompt: tuple[Op, ...], refined: Integer
) -> tuple[Part, ...]:
    """Declare a network that refines image and prompt apart before it sees both as one."""
    condition = {"cond": "time"}
    angles = tuple(turning(s, at) for s, at in ((IMAGE, "l"), (TEXT, "l_x"), (JOINED, "j")))
    whole = {"x": "joined", **condition}
    return (
        Part("time", tuple(Embedded("time", "n_f").ops())),
        Part("rotation", angles),
        Part("embedding", embedding),
        Part("noise.block", block.ops(IMAGE), refined, {"x": "embedding", **condition}),
        Part("prompt", prompt),
        Part("context.block", block.ops(TEXT, opened=False), refined, {"x": "prompt"}),
        Part("joined", joined_streams(), takes={"x": "noise.block", "prompt": "context.block"}),
        Part("block", block.ops(JOINED), symbols.n_layers, whole, Place.BLOCK),
        Part("head", _ENDING, takes={"x": "block", **condition}),
    )


def _angles(stream: Stream) -> tuple[str, str]:
    """Return the names of the angles of a stream, whose positions are its own."""
    return f"@cos_{stream.name}", f"@sin_{stream.name}"


def turning(stream: Stream, at: str) -> Op:
    """Declare the angles of a stream, of its query positions."""
    made = ", ".join(f"{name}[{at} d]" for name in _angles(stream))
    own = f"places_{stream.name}[{at}]:index"
    return pointwise(f"angles_{stream.name}", f"!{own} -> {made}", "angles")


def turned(ops: tuple[Op, ...], stream: Stream) -> tuple[Op, ...]:
    """Return ops that the angles of a stream turn."""
    names = dict(zip(("@cos", "@sin"), _angles(stream), strict=True))

    def own(operand: Operand) -> Operand:
        return operand.renamed(names.get(operand.tensor, operand.tensor))

    return tuple(op.mapped(own) for op in ops)


def _filling(rows: str) -> Op:
    """Declare a learned vector in place of the tokens that fill a stream."""
    return pointwise("fill", f"plain[{rows} e], *filling[e] -> x[{rows} e]", "add")


_ENDING = (
    Norm.LAYER_BARE.op("norm", "x[b r_j e]", "fine[b r_j e]"),
    pointwise("act", "cond[b e_t] -> a[b e_t]", "silu"),
    einsum("modulation", "a[b e_t], *w[e_t e] + *bias[e] -> scale[b e]"),
    pointwise("scale", "fine[b r_j e], scale[b e] -> scaled[b r_j e]", "mul"),
    einsum("proj_out", "scaled[b r_j e], *w[e pixels] + *bias[pixels] -> out[b r_j pixels]"),
)


@dataclass(frozen=True)
class _Block:
    """A block with norms before and after every layer.

    Args:
        attention: of a stream, whichever it is.
        activated: whether the condition is, before it makes scales and gates.
    """

    attention: Joint
    activated: bool = False

    def ops(self, stream: Stream, *, opened: bool = True) -> tuple[Op, ...]:
        """Declare the block of a stream from x to y, modulated or not."""
        attention = replace(self.attention, streams=(stream,), results=(stream,))
        mlp = retitled(GatedMLP("silu").ops(), {"r": stream.residual, "l": stream.query})
        first = branch(stream, "attention", "x", "middle", opened=opened)
        second = branch(stream, "mlp", "middle", "y", opened=opened)
        ends = {f"x_{stream.name}": "attention.entry", f"y_{stream.name}": "attention.outcome"}
        return (
            *behind_first(first[0], self._pieces() if opened else ()),
            *scope("attention", turned(attention.ops(), stream), **ends),
            *first[1],
            *second[0],
            *scope("mlp", mlp, x="mlp.entry", y="mlp.outcome"),
            *second[1],
        )

    def _pieces(self) -> tuple[Op, ...]:
        if self.activated:
            return four_pieces()
        made = "cond[b e_t], *w[m_4 e_t e] + *bias[m_4 e] -> pieces[m_4 b e]"
        return (einsum("modulation", made), parted(FOUR))


FOUR = ("scale_attention", "gate_attention", "scale_mlp", "gate_mlp")


def four_pieces() -> tuple[Op, ...]:
    """Declare scale and gate of either layer, of a condition that is activated first."""
    return scope("modulation", modulation(FOUR), cond="cond", **{piece: piece for piece in FOUR})


def branch(
    stream: Stream, name: str, x: str, y: str, *, opened: bool, norm: Norm = Norm.RMS
) -> tuple[tuple[Op, ...], tuple[Op, ...]]:
    """Declare what stands before a layer and behind it, from x to the sum y."""
    a = f"[b {stream.residual} e]"
    fine, last = ("fine", "opened") if opened else ("entry", "normed")
    scaling = pointwise("scaling", f"fine{a}, scale[b e] -> entry{a}", "mul")
    opening = (
        pointwise("tanh", "gate[b e] -> opening[b e]", "tanh"),
        pointwise("open", f"normed{a}, opening[b e] -> opened{a}", "mul"),
    )
    before = (norm.op("norm", f"x{a}", f"{fine}{a}"), *((scaling,) if opened else ()))
    after = (
        norm.op("norm_after", f"outcome{a}", f"normed{a}"),
        *(opening if opened else ()),
        pointwise("residual", f"x{a}, {last}{a} -> y{a}", "add"),
    )
    pieces = {"scale": f"scale_{name}", "gate": f"gate_{name}"}
    return scope(name, before, x=x, **pieces), scope(name, after, x=x, y=y, **pieces)
