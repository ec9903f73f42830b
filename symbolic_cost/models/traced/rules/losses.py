"""Losses: functions of a result and of what it should be, summed."""

from sympy import Expr, Integer, Mul

from symbolic_cost.models.traced.acts import Ref, Use, put
from symbolic_cost.models.traced.rules.pointwise import broadcast, matched
from symbolic_cost.models.traced.trace import Trace, rule

_NONE = 0
"""The reduction that leaves every element's loss."""


def _reduced(t: Trace, ref: Ref, place: int) -> None:
    """Bind the losses of all elements, or their sum."""
    kept = t.arg("reduction", place) == _NONE
    t.bind(ref if kept else t.pointwise("sum", [ref], (), "sum"))


@rule("aten.cross_entropy_loss", "aten.nll_loss", "aten.nll_loss_nd", "aten.nll_loss2d")
def of_classes(t: Trace) -> None:
    """Minus the logarithm of the probability of one class, the second dimension or the only one."""
    ref, target = t.arg("self", 0), t.arg("target", 1)
    if ref.tensor.constant:
        t.bind(t.constant())
        return
    at = min(1, len(ref.dims) - 1)
    row, left = ref.dims[at], put(ref.dims, at)
    function = "cross_entropy" if "cross" in t.node.target else "sum"
    whole = len(target.dims) == len(ref.dims)  # probabilities of all classes
    wanted = Use(target, ref.dims if whole else left)
    taken = [ref, wanted] if function == "cross_entropy" else [ref]
    _reduced(t, t.pointwise(function, taken, left, row=row), 3)


@rule("aten.mse_loss", "aten.l1_loss", "aten.smooth_l1_loss", "aten.huber_loss",
      "aten.binary_cross_entropy", "aten.binary_cross_entropy_with_logits", "aten.kl_div",
      "aten.poisson_nll_loss", "aten.soft_margin_loss")  # fmt: skip
def of_elements(t: Trace) -> None:
    """A difference of two tensors, element by element."""
    place = 2 + t.node.target.count("cross_entropy") + t.node.target.count("with_logits")
    made = _together(t)
    if made is None:
        t.bind(t.constant())
    else:
        _reduced(t, made, place)


@rule("aten.triplet_margin_loss")
def of_triplets(t: Trace) -> None:
    """Distances of rows from one that is alike and from one that is not."""
    made = _together(t)
    if made is None:
        t.bind(t.constant())
    else:
        _reduced(t, t.pointwise("sum", [made], made.dims[:-1], "rows"), 7)


@rule("aten.cosine_similarity", "aten.pairwise_distance")
def of_pairs(t: Trace) -> None:
    """A measure of two tensors along a dimension, which is summed."""
    made = _together(t)
    if made is None:
        t.bind(t.constant())
        return
    named = t.arg("dim", 2) if "cosine" in t.node.target else -1
    place = (1 if named is None else named) % len(made.dims)
    left = put(made.dims, place, *((),) * (len(t.sizes()) == len(made.dims)))
    t.bind(t.pointwise("sum", [made], left, "sum"))


def _together(t: Trace) -> Ref | None:
    """Return what all tensors make, broadcast against each other; None of constants alone."""
    refs = t.tensors()
    moving = [ref for ref in refs if not ref.tensor.constant]
    if not moving:
        return None
    rank = max(len(ref.dims) for ref in refs)
    sizes: list[Expr] = [Integer(1)] * rank
    for ref in refs:
        for i, dim in enumerate(ref.dims, rank - len(ref.dims)):
            own = Mul(*(axis.size for axis in t.forest.flat(dim)))
            sizes[i] = own if sizes[i] == 1 else sizes[i]
    dims = broadcast(t, moving, sizes)
    return t.pointwise("mul", [Use(ref, matched(ref.dims, dims)) for ref in refs], dims)
