"""Alternating updates: the residual stream has copies, of which a layer computes one.

The others are predicted from it before the layer, and corrected by what it gives (Baykal et al.,
Alternating Updates for Efficient Transformers, 2023; Gemma 3n).

Axes: b sequences, r positions, e embedding, n_s copies, n_i copies that a sum runs over, n_m
features of the router, n_o copies but the first, n_e embedding, r_l rank of the learned residual.
"""

from dataclasses import replace

from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.declare import Op, axes, einsum, pointwise, scope, split, stored, view

AXES = axes(
    "b batch, r token residual, e hidden, n_e hidden, n_s latent, n_i latent, n_m latent, "
    "n_o latent, r_l latent"
)

_COPIES = "[n_s b r e]"


def copies() -> tuple[Op, ...]:
    """Declare the copies y[n_s b r e] of x[b r e]: itself and projections of its magnitude."""
    others = "[n_o b r e]"
    return (
        einsum("project", "x[b r e], *w[n_o e n_e] -> wide[n_o b r n_e]"),
        view("stream", f"wide[n_o b r n_e] -> others{others}"),
        Norm.RMS_BARE.op("magnitude", f"others{others}", f"scaled{others}"),
        pointwise("stack", f"x[b r e], scaled{others} -> y{_COPIES}", "copy", laid="n_o"),
    )


def joined() -> tuple[Op, ...]:
    """Declare the mean y[b r e] of the copies x[n_s b r e], the others projected back."""
    others = "[n_o b r e]"
    return (
        split("first", f"x{_COPIES} -> first[b r e]"),
        pointwise("rest", f"x{_COPIES} -> rest{others}", "copy", laid="n_s"),
        einsum("project", f"rest{others}, *w[n_o e n_e] -> wide[n_o b r n_e]"),
        view("stream", f"wide[n_o b r n_e] -> back{others}"),
        Norm.RMS_BARE.op("magnitude", f"back{others}", f"scaled{others}"),
        pointwise("mean", f"first[b r e], scaled{others} -> y[b r e]", "add", sums="n_o"),
    )


def predicted() -> tuple[Op, ...]:
    """Declare the copies that a layer starts from, predictions[n_s b r e], and the computed one."""
    return (
        split("first", f"x{_COPIES} -> first[b r e]"),
        *_router("router", "first", "modes"),
        einsum("predict", "modes[b r n_m], *w[n_m n_i n_s] -> shares[b r n_i n_s]"),
        view("mixed_from", f"x{_COPIES} -> from[n_i b r e]"),
        einsum("mix", f"from[n_i b r e], shares[b r n_i n_s] -> mixed{_COPIES}"),
        pointwise("add", f"x{_COPIES}, mixed{_COPIES} -> predictions{_COPIES}", "add"),
        split("computed", f"predictions{_COPIES} -> computed[b r e]"),
    )


def corrected() -> tuple[Op, ...]:
    """Declare corrections[n_s b r e] from predictions, the computed copy and the layer's result."""
    return (
        *_router("again", "result", "new_modes", weights="router"),
        einsum("correct", "new_modes[b r n_m], *w[n_m n_s] -> gains[b r n_s]"),
        pointwise("innovation", "result[b r e], computed[b r e] -> news[b r e]", "add"),
        pointwise("scale", f"news[b r e], gains[b r n_s] -> updates{_COPIES}", "mul"),
        pointwise(
            "update", f"predictions{_COPIES}, updates{_COPIES} -> corrections{_COPIES}", "add"
        ),
    )


def chosen(*, scaled: bool) -> tuple[Op, ...]:
    """Declare the corrected copy y[b r e] of x[n_s b r e], whose scale may be left unused."""
    first = split("first", f"x{_COPIES} -> {'plain' if scaled else 'y'}[b r e]")
    scale = pointwise("scale", "plain[b r e], *scale[e] -> y[b r e]", "mul")
    return (first, scale if scaled else stored("scale", scale="e"))


def low_rank() -> tuple[Op, ...]:
    """Declare a learned residual of low rank, from x[b r e] to y[b r e]."""
    return (
        einsum("left", "x[b r e], *w[e r_l] -> low[b r r_l]"),
        einsum("right", "low[b r r_l], *w[r_l e] -> plain[b r e]"),
        Norm.RMS_WIDE.op("norm", "plain[b r e]", "normed[b r e]"),
        pointwise("add", "x[b r e], normed[b r e] -> y[b r e]", "add"),
    )


def _router(path: str, tensor: str, result: str, weights: str = "") -> tuple[Op, ...]:
    """Declare features of one copy; a second router has the weights of the first."""
    ops = scope(
        path,
        (
            Norm.RMS_WIDE.op("norm", "x[b r e]", "normed[b r e]"),
            einsum("project", "normed[b r e], *w[e n_m] -> plain[b r n_m]"),
            pointwise("act", "plain[b r n_m] -> y[b r n_m]", "tanh"),
        ),
        x=tensor,
        y=result,
    )
    if not weights:
        return ops
    return tuple(
        op.mapped(
            lambda one: (
                replace(one, tensor=one.tensor.replace(f"{path}.", f"{weights}.", 1))
                if one.is_weight
                else one
            )
        )
        for op in ops
    )
