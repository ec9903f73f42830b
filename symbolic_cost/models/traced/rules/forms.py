"""Sums over products that PyTorch computes element by element: forms of three tensors, distances.

Its counter of FLOP knows only products of matrices, and these call none, backward either.
"""

from collections.abc import Collection, Sequence

from sympy import Integer, Mul

from symbolic_cost.errors import InputError
from symbolic_cost.models.traced.acts import Ref, Use, under
from symbolic_cost.models.traced.forest import Dims
from symbolic_cost.models.traced.rules.pointwise import broadcast, combined
from symbolic_cost.models.traced.trace import Trace, rule

_NO_PRODUCTS = 2
"""The mode of distances that never takes products."""
_FEW = 25
"""Rows up to which distances take no products where no mode is named."""


def _form(t: Trace, operands: Sequence[tuple[Ref, Dims]], summed: Collection[int]) -> Ref:
    """Return the sum over some places of tensors times each other.

    Args:
        t: trace that it is written in.
        operands: each with its dimensions at all places, none where it has none.
        summed: places that the result lacks.
    """
    if all(ref.tensor.constant for ref, _ in operands):
        return t.constant()
    spread = [under(ref, dims) for ref, dims in operands]
    dims = broadcast(t, spread, [Integer(1)] * max(len(ref.dims) for ref in spread))
    uses = [
        Use(
            ref,
            tuple(whole for whole, own in zip(dims[-len(places) :], places, strict=True) if own),
        )
        for ref, places in operands
    ]
    made = t.pointwise("mul", uses, dims)
    left = tuple(dim for place, dim in enumerate(dims) if place not in summed)
    return t.pointwise("sum", [made], left, "sum")


@rule("aten.bilinear")
def bilinear(t: Trace) -> None:
    """A form of two rows for every output, and a bias: x[b i], y[b j], w[o i j] -> z[b o]."""
    x, y, w, bias = t.arg("input1", 0), t.arg("input2", 1), t.arg("weight", 2), t.arg("bias", 3)
    rows, none = len(x.dims) - 1, ()
    operands = [
        (x, (*x.dims[:-1], none, x.dims[-1], none)),
        (y, (*y.dims[:-1], none, none, y.dims[-1])),
        (w, (*(none,) * rows, *w.dims)),
    ]
    made = _form(t, operands, (rows + 1, rows + 2))
    t.bind(made if bias is None else combined(t, [made, bias], "add"))


@rule("aten._trilinear")
def trilinear(t: Trace) -> None:
    """What a form is decomposed to: places at which each of three tensors has no dimension."""
    operands = []
    for place in range(3):
        ref, lacks = t.arg(f"i{place + 1}", place), t.arg(f"expand{place + 1}", place + 3)
        own = iter(ref.dims)
        rank = len(ref.dims) + len(lacks)
        operands.append((ref, tuple(() if i in lacks else next(own) for i in range(rank))))
    t.bind(_form(t, operands, t.arg("sumdim", 6)))


@rule("aten.cdist", "aten._cdist_forward")
def distances(t: Trace) -> None:
    """Distances of all rows of one tensor from all of another: x[b m k], y[b n k] -> d[b m n]."""
    x, y = t.arg("x1", 0), t.arg("x2", 1)
    power, mode = t.arg("p", 2), t.arg("compute_mode", 3) or 0
    rows = [Mul(*(axis.size for axis in t.forest.flat(ref.dims[-2]))) for ref in (x, y)]
    few = mode == 0 and all(count.is_Integer and count <= _FEW for count in rows)
    euclidean = t.node.target == "aten.cdist" and power in (None, 2)
    if euclidean and mode != _NO_PRODUCTS and not few:
        raise InputError(
            f"{t.graph.place}: aten.cdist in {t.node.path or 'the model'}: of more than {_FEW} "
            "rows PyTorch computes products that its counter sees in backward alone: "
            "compute_mode='donot_use_mm_for_euclid_dist' and p other than 2 are accepted"
        )
    operands = [(x, (*x.dims[:-1], (), x.dims[-1])), (y, (*y.dims[:-2], (), *y.dims[-2:]))]
    t.bind(_form(t, operands, (max(len(x.dims), len(y.dims)),)))


@rule("aten.addr")
def outer_sum(t: Trace) -> None:
    """A matrix, and every element of one vector times every one of another."""
    one, other = t.arg("vec1", 1), t.arg("vec2", 2)
    made = combined(t, [under(one, (one.dims[0], ())), under(other, ((), other.dims[0]))], "mul")
    t.bind(combined(t, [t.arg("self", 0), made], "add"))
