"""The two blocks as one chain of ops, their sizes, and where each variant places them.

Axes: b sequences, l and t query and key positions, e embedding, f MLP width, h heads, d head
width, c the three of query, key and value. Positions bear more names, since two things may split
them: r where norms and residual dropouts run, p where a reduction leaves its result, w between.
"""

from itertools import pairwise

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import dropout, norm, pointwise, softmax
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.part import fragment
from symbolic_cost.ops.placement import Placement
from symbolic_cost.ops.view import split, view

SIZES: dict[str, Expr] = {
    "b": symbols.b,
    **dict.fromkeys(("l", "t", "p", "w", "r"), symbols.l),
    "e": symbols.e,
    **dict.fromkeys(("f", "g"), symbols.f),
    "h": symbols.h,
    "d": symbols.e / symbols.h,
    "c": Integer(3),
}

_MLP = ("fc1", "act", "dpr1", "fc2", "dpr2")
_ATTENTION = (
    "layer_norm_1",
    "qkv_proj",
    "logits",
    "softmax",
    "dropout_softmax",
    "attend",
    "v_proj",
    "dropout",
)
_AS_PRINTED = {"mlp": _MLP, "sa": (*_ATTENTION, "layer_norm_2")}

LAYOUT = {
    "A": _AS_PRINTED,
    "B": {"mlp": ("layer_norm_2", *_MLP), "sa": _ATTENTION},
    "C": _AS_PRINTED,
}
"""Rows of the two tables by variant, as names of ops."""

LABELS = {"B": {"layer_norm_2": "layer_norm_1", "dpr2": "dpr1"}}
"""Printed names of ops by variant, where they differ; B gives one name to two rows."""


def block(variant: str) -> Model:
    """Declare the chain of both blocks from x[b r e] to y."""
    # As coded, the last dropout has the width of the MLP, so it cannot take what fc2 hands on.
    pattern = "wide[b l g] -> y[b l g]" if variant == "B" else "branch[b r e] -> y[b r e]"
    ops = (*_attention(), *_mlp(), dropout("dpr2", pattern))
    return Model("transformer-tables", (fragment("block", ops),), SIZES)


def placement(variant: str, *, sequence: bool) -> Placement:
    """Return where a variant places the axes, over degrees m1 and s1.

    Args:
        variant: A and C split the positions of norms with the tensors, B on their own.
        sequence: whether B splits them at all.
    """
    tensors = dict.fromkeys(("h", "f", "p"), ("m1",))
    if variant != "B":
        return Placement({"m1": symbols.m1}, {**tensors, "w": ("m1",), "r": ("m1",)})
    degrees = {"m1": symbols.m1, "s1": symbols.s1 if sequence else 1}
    return Placement(degrees, {**tensors, "r": ("s1",), "g": ("s1",)})


def _attention() -> tuple[Op, ...]:
    return (
        *_normed("layer_norm_1", "x", "whole"),
        einsum("qkv_proj", "whole[b l e], *w[c e h d] -> qkv[c b l h d]"),
        split("split", "qkv[c b l h d] -> q[b l h d], k[b l h d], v[b l h d]"),
        view("keys", "k[b l h d] -> keys[b t h d]"),
        view("values", "v[b l h d] -> values[b t h d]"),
        einsum("logits", "q[b l h d], keys[b t h d] -> scores[b h l t]"),
        softmax("softmax", "scores[b h l t] -> probabilities[b h l t]", row="t"),
        dropout("dropout_softmax", "probabilities[b h l t] -> dropped[b h l t]"),
        einsum("attend", "dropped[b h l t], values[b t h d] -> context[b l h d]"),
        einsum("v_proj", "context[b l h d], *w[h d e] + *bias[e] -> projected[b l e]"),
        *_reduced("projected", "attended"),
        dropout("dropout", "attended[b r e] -> middle[b r e]"),
    )


def _mlp() -> tuple[Op, ...]:
    return (
        *_normed("layer_norm_2", "middle", "full"),
        einsum("fc1", "full[b l e], *w[e f] + *bias[f] -> u[b l f]"),
        pointwise("act", "u[b l f] -> a[b l f]", "activation"),
        dropout("dpr1", "a[b l f] -> kept[b l f]"),
        einsum("fc2", "kept[b l f], *w[f e] + *bias[e] -> summed[b l e]"),
        *_reduced("summed", "branch"),
    )


def _normed(name: str, taken: str, result: str) -> tuple[Op, ...]:
    """Declare a norm and the gathering of its result to all positions."""
    return (
        norm(name, f"{taken}[b r e], *scale[e], *shift[e] -> {name}[b r e]", "layer_norm", "e"),
        *_positions(name, result, "r w p l"),
    )


def _reduced(taken: str, result: str) -> tuple[Op, ...]:
    """Declare the reduction of a result and its way to the residual positions."""
    return _positions(taken, result, "l p w r")


def _positions(taken: str, result: str, way: str) -> tuple[Op, ...]:
    """Declare the views that bring a tensor from one name of its positions to the next ones."""
    axes = way.split()
    names = [taken, *(f"{result}.{axis}" for axis in axes[1:-1]), result]
    return tuple(
        view(f"{result}.to_{new}", f"{before}[b {old} e] -> {after}[b {new} e]")
        for (before, old), (after, new) in pairwise(zip(names, axes, strict=True))
    )
