"""Hyper-connections: the residual stream has copies, which every branch mixes anew.

A branch sees one sum of them, and what it gives is added to all, mixed by a doubly stochastic
matrix (Xie et al., mHC: Manifold-Constrained Hyper-Connections, 2025; DeepSeek V4). In Qwen4-Exp
copies are normalised one by one, their shares are of every feature, by two narrow products, and
what a branch gives is added to them as they are.

Axes: b sequences, r positions, e embedding, n_o copies, n_t copies after mixing, n_x weights of
one mixing, n_r rounds in which the matrix is balanced, r_c rank of the shares of features.
"""

from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.declare import Op, axes, einsum, pointwise, scope, softmax, stored, view

AXES = axes(
    "b batch, r token residual, e hidden, n_o latent, n_t latent, n_x latent, n_r whole, n_c whole"
    ", r_c latent"
)

_COPIES = "[b r n_o e]"
_SQUARE = "[b r n_o n_t]"


def copies() -> tuple[Op, ...]:
    """Declare the copies y[b r n_o e] of x[b r e], all alike."""
    return (pointwise("copy", f"x[b r e] -> y{_COPIES}", "copy"),)


def connected(
    path: str,
    branch: tuple[Op, ...],
    x: str,
    y: str,
    sharing: tuple[Op, ...] = (),
    /,
    *,
    mixed: bool = True,
    **outside: str,
) -> tuple[Op, ...]:
    """Declare a branch, which maps x[b r e] to y[b r e], on copies.

    Args:
        path: of the ops.
        branch: the layer, with its norm.
        x: name of the copies that go in.
        y: name of those that come out.
        sharing: makes what the branch sees, and shares of what it gives; the usual if empty.
        mixed: whether copies are mixed as well, or stay as they are.
        outside: tensors that the branch takes from elsewhere, by their names in it.
    """
    own = f"{path}_copies"
    before = sharing or (
        Norm.RMS_BARE.op("norm", f"x{_COPIES}", f"flat{_COPIES}", row="n_o e"),
        einsum("mix", f"flat{_COPIES}, *w[n_o e n_x] -> plain[b r n_x]"),
        stored("scales", w="n_c"),
        pointwise("shift", "plain[b r n_x], *base[n_x] -> mixes[b r n_x]", "add"),
        pointwise("open", "mixes[b r n_x] -> before[b r n_o]", "sigmoid", laid="n_x"),
        pointwise("close", "mixes[b r n_x] -> after[b r n_o]", "sigmoid", laid="n_x"),
        *(_shares() if mixed else ()),
        pointwise("sum", f"x{_COPIES}, before[b r n_o] -> one[b r e]", "mul", sums="n_o"),
    )
    carried = (
        einsum("carry", f"x{_COPIES}, balanced{_SQUARE} -> carried[b r n_t e]"),
        view("carried", f"carried[b r n_t e] -> kept{_COPIES}"),
    )
    kept = "kept" if mixed else "x"
    after = (
        *(carried if mixed else ()),
        pointwise("spread", f"result[b r e], after[b r n_o] -> spread{_COPIES}", "mul"),
        pointwise("residual", f"{kept}{_COPIES}, spread{_COPIES} -> y{_COPIES}", "add"),
    )
    return (
        *scope(own, before, x=x),
        *scope(path, branch, x=f"{own}.one", y=f"{path}.result", **outside),
        *scope(own, after, x=x, y=y, result=f"{path}.result"),
    )


def _shares() -> tuple[Op, ...]:
    """Declare the share of every copy in every other, balanced over rounds."""
    return (
        pointwise("square", f"mixes[b r n_x] -> logits{_SQUARE}", "copy", laid="n_x"),
        softmax("share", f"logits{_SQUARE} -> shares{_SQUARE}", row="n_t"),
        pointwise(
            "balance",
            f"shares{_SQUARE}, !rounds[n_r]:index -> balanced{_SQUARE}",
            "mul",
            sums="n_r",
        ),
    )


def joined() -> tuple[Op, ...]:
    """Declare the weighed sum y[b r e] of the copies x[b r n_o e]."""
    return (
        Norm.RMS_BARE.op("norm", f"x{_COPIES}", f"flat{_COPIES}", row="n_o e"),
        view("copies", f"flat{_COPIES} -> read[b r n_t e]"),
        einsum("mix", "read[b r n_t e], *w[n_t e n_o] -> plain[b r n_o]"),
        stored("scale", w="one"),
        pointwise("shift", "plain[b r n_o], *base[n_o] -> mixes[b r n_o]", "add"),
        pointwise("open", "mixes[b r n_o] -> shares[b r n_o]", "sigmoid"),
        pointwise("sum", f"x{_COPIES}, shares[b r n_o] -> y[b r e]", "mul", sums="n_o"),
    )


def featured(*, closing: bool = True) -> tuple[Op, ...]:
    """Declare the mean one[b r e] of the copies x[b r n_o e], by shares of every feature.

    Args:
        closing: whether copies have shares after[b r n_o] of what a branch gives.
    """
    even = f"even{_COPIES}"
    shares = (
        einsum("close_mix", f"{even}, *w[n_o e n_t] -> plain[b r n_t]"),
        pointwise("close", "plain[b r n_t] -> after[b r n_o]", "sigmoid", laid="n_t"),
    )
    return (
        Norm.RMS_SHIFTED.op("norm", f"x{_COPIES}", even, row="e", scale="n_o e"),
        einsum("narrow", f"{even}, *w[n_o e r_c] -> narrow[b r r_c]"),
        pointwise("act", "narrow[b r r_c] -> acted[b r r_c]", "silu"),
        einsum("widen", f"acted[b r r_c], *w[r_c n_o e] -> wide{_COPIES}"),
        pointwise("open", f"wide{_COPIES} -> shares{_COPIES}", "sigmoid"),
        pointwise("sum", f"{even}, shares{_COPIES} -> one[b r e]", "mul", sums="n_o"),
        *(shares if closing else ()),
    )
