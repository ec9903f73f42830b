"""What makes the embedding of an image from that of a prompt: the prior of Kandinsky and unCLIP.

Axes: as in `diffusion`; r tokens of the prompt, then its embedding, the time step, the image and a
token that becomes the result.
"""

from __future__ import annotations

from sympy import Expr

from symbolic_cost import symbols
from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.joint_attention import IMAGE, Joint
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.norm import Norm
from symbolic_cost.models.diffusion.transformers import Sample, declared, heads_of, sizes_of
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.functions import FUNCTIONS
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.part import Part, Place, scope
from symbolic_cost.ops.unread import stored

_BESIDE = 4
"""Tokens behind the prompt."""


def prior(fields: Fields, shape: Shape) -> Model:
    """Declare a prior, which sees a prompt of all its positions."""
    numbers = heads_of(fields, 32, 64) | {"n_layers": fields.size("num_layers", 20)}
    e, wide = numbers["e"], fields.size("embedding_dim", 768)
    prompt = fields.size("num_embeddings", 77)
    tokens = prompt + _BESIDE
    own: dict[str, Expr | int] = {"e_x": wide, "n_p": prompt, "n_f": e}
    own["e_pool"] = fields.optional_size("embedding_proj_dim") or wide
    own["pixels"] = fields.optional_size("clip_embed_dim") or wide
    own |= {"e_h": fields.optional_size("time_embed_dim") or e, "e_t": e}
    own |= dict.fromkeys(("r", "l", "t", "p"), tokens)
    function = FUNCTIONS[fields.text("time_embed_act_fn", "silu", tuple(FUNCTIONS))]
    entered, projected = (
        _is_normed(fields, name) for name in ("norm_in_type", "embedding_proj_norm_type")
    )
    fields.refuse()
    image = Sample((tokens, 1), 1, 1, symbols.l)
    parts = (
        Part("embedding", _embedded(function, projected=projected, entered=entered)),
        Part("block", _BLOCK, symbols.n_layers, place=Place.BLOCK),
        Part("head", _ENDING),
    )
    return declared(fields, parts, sizes_of(image, shape, **own), numbers)


def _is_normed(fields: Fields, name: str) -> bool:
    """Return whether there is a norm; null is none."""
    there = fields.has(name)
    if there:
        fields.text(name, "layer", ("layer",))
    fields.ignore(name)
    return there


def _embedded(function: str, *, projected: bool, entered: bool) -> tuple[Op, ...]:
    """Declare all tokens, one behind the other."""
    pool = "!pooled[b e_pool]"
    fine = Norm.LAYER.op("pooled.norm", pool, "pooled.fine[b e_pool]", row="e_pool")
    source = "pooled.fine[b e_pool]" if projected else pool
    parts = "prompt[b n_p e], pooled.token[b e], time[b e_t], image[b e], *token[e]"
    last = "plain" if entered else "x"
    norm = Norm.LAYER.op("norm", "plain[b r e]", "x[b r e]")
    return (
        einsum("time.linear_1", "!time_of[b n_f], *w[n_f e_h] + *bias[e_h] -> time.u[b e_h]"),
        pointwise("time.act", "time.u[b e_h] -> time.a[b e_h]", function),
        einsum("time.linear_2", "time.a[b e_h], *w[e_h e_t] + *bias[e_t] -> time[b e_t]"),
        *((fine,) if projected else ()),
        einsum("pooled.project", f"{source}, *w[e_pool e] + *bias[e] -> pooled.token[b e]"),
        einsum("prompt", "!states[b n_p e_x], *w[e_x e] + *bias[e] -> prompt[b n_p e]"),
        einsum("image", "!latent[b e_x], *w[e_x e] + *bias[e] -> image[b e]"),
        pointwise("join", f"{parts} -> tokens[b r e]", "copy", laid="n_p e_t"),
        pointwise("position", f"tokens[b r e], *table[p e] -> {last}[b r e]", "add", laid="p"),
        *((norm,) if entered else ()),
    )


def _block() -> tuple[Op, ...]:
    """Declare a block of all tokens."""
    a = "[b r e]"
    return (
        Norm.LAYER.op("norm1", f"x{a}", f"x_image{a}"),
        *scope(
            "attention",
            Joint((IMAGE,), (IMAGE,), bias=Bias.BOTH).ops(),
            x_image="x_image",
            y_image="seen",
        ),
        pointwise("add1", f"x{a}, seen{a} -> middle{a}", "add"),
        Norm.LAYER.op("norm2", f"middle{a}", f"fine{a}"),
        *scope("mlp", MLP("gelu").ops(), x="fine", y="done"),
        pointwise("add2", f"middle{a}, done{a} -> y{a}", "add"),
    )


_BLOCK = _block()
_ENDING = (
    Norm.LAYER.op("norm", "x[b r e]", "fine[b r e]"),
    pointwise("last", "fine[b r e] -> chosen[b e]", "copy", laid="r"),
    einsum("project", "chosen[b e], *w[e pixels] + *bias[pixels] -> out[b pixels]"),
    stored("statistics", mean="pixels", deviation="pixels"),
)
