"""Operators that compute nothing: the same elements under other dimensions.

What only arranges dimensions anew makes another reference to the same tensor.
"""

from collections.abc import Sequence

from symbolic_cost.models.traced.acts import Act, Nature, Ref, Use, under
from symbolic_cost.models.traced.forest import Dim, Dims
from symbolic_cost.models.traced.graph import DETACH, Size, number
from symbolic_cost.models.traced.trace import Trace, rule
from symbolic_cost.records import replace


@rule(
    "aten.alias", "aten.alias_copy", "aten.clone", "aten.contiguous", "aten.lift_fresh_copy",
    "aten.lift_fresh", "aten.to", "aten._to_copy", "aten.type_as",
    "aten.requires_grad_", "aten.positive", "aten.real", "aten.imag",
    "aten.conj", "aten.resolve_conj", "aten.resolve_neg",
    "aten.float", "aten.half", "aten.bfloat16", "prims.convert_element_type", "aten.conj_physical",
)  # fmt: skip
def same(t: Trace) -> None:
    """The same elements, perhaps in another precision."""
    refs = t.tensors()
    if not refs:
        t.opaque()
        return
    ref = refs[0]
    if ref.tensor.floating and not t.floating():
        ref = t.constant()
    t.bind(ref)


@rule(DETACH, f"{DETACH}_")
def detached(t: Trace) -> None:
    """The same elements, through which no gradient flows: what makes them runs forward alone."""
    ref = t.tensors()[0]
    tensor = ref.tensor
    if not tensor.constant:
        fixed_as = Nature.FROZEN if tensor.weight else Nature.CONSTANT
        fixed = replace(tensor, nature=tensor.nature | fixed_as)
        if not tensor.weight:
            whole = Use(Ref(tensor, tensor.dims), tensor.dims)
            t.write(Act("detach", t.name(), (whole,), (fixed,)))
        ref = Ref(fixed, ref.dims)
    t.bind(ref)


@rule(
    "aten._assert_tensor_metadata", "aten._assert_scalar", "aten.sym_constrain_range_for_size",
    "aten.sym_constrain_range", "aten._assert_async", "aten.sym_size", "aten.sym_numel",
    "aten.item",
    "_operator.mul", "_operator.add", "_operator.sub", "_operator.floordiv", "_operator.mod",
    "_operator.truediv", "_operator.ge", "_operator.le", "_operator.eq", "_operator.gt",
    "_operator.lt", "_operator.neg", "_operator.pow", "math.ceil", "math.floor", "math.trunc",
    "torch.sym_max", "torch.sym_min", "torch.sym_not", "aten._local_scalar_dense",
)  # fmt: skip
def nothing(t: Trace) -> None:
    """Numbers that shapes are made of, and checks."""


@rule("aten.view", "aten.reshape", "aten._unsafe_view", "aten.flatten", "aten.unflatten",
      "aten._reshape_alias", "aten.view_as", "aten.reshape_as", "aten.ravel")  # fmt: skip
def reshape(t: Trace) -> None:
    """Dimensions split and joined."""
    ref = t.tensors()[0]
    t.bind(reshaped(t, ref, t.sizes()))


def reshaped(t: Trace, ref: Ref, sizes: Sequence[Size]) -> Ref:
    """Return a reference under other sizes; a copy where an axis stands across a border."""
    forest = t.forest
    old = [(dim, forest.length(dim)) for dim in ref.dims]
    result: list[Dim] = []
    place = 0
    column = 0
    while column < len(sizes):
        group, wanted = [sizes[column]], forest.count(sizes[column])
        column += 1
        taken: list[Dim] = []
        length = 1
        while length != wanted:
            if length < wanted and place < len(old):
                taken.append(old[place][0])
                length *= old[place][1]
                place += 1
            elif column < len(sizes) and length:
                group.append(sizes[column])
                wanted *= forest.count(sizes[column])
                column += 1
            else:
                return _relaid(t, ref, sizes)
        whole = tuple(axis for dim in taken for axis in dim)
        parts = (whole,) if len(group) == 1 else forest.split(whole, group)
        if parts is None:
            return _relaid(t, ref, sizes)
        result += parts
    return under(ref, tuple(result))


def _relaid(t: Trace, ref: Ref, sizes: Sequence[Size]) -> Ref:
    if ref.tensor.constant or ref.tensor.weight:
        return under(ref, t.forest.dims(sizes))
    return t.pointwise("copy", [ref], t.forest.dims(sizes))


@rule("aten.transpose", "aten.swapaxes", "aten.swapdims")
def transpose(t: Trace) -> None:
    """Two dimensions exchanged."""
    ref = t.arg("self", 0)
    dims = list(ref.dims)
    first, second = (t.arg(f"dim{i}", i + 1) or 0 for i in (0, 1))
    first, second = (
        t.arg(f"axis{i}") if t.arg(f"axis{i}") is not None else d
        for i, d in enumerate((first, second))
    )
    dims[first], dims[second] = dims[second], dims[first]
    t.bind(under(ref, tuple(dims)))


@rule("aten.t", "aten.numpy_T", "aten.mT", "aten.matrix_H", "aten.mH", "aten.adjoint")
def turned(t: Trace) -> None:
    """The last two dimensions exchanged, or all of them."""
    ref = t.arg("self", 0)
    swapped = (*ref.dims[:-2], *reversed(ref.dims[-2:]))
    t.bind(under(ref, ref.dims[::-1] if t.node.target == "aten.numpy_T" else swapped))


@rule("aten.permute")
def permute(t: Trace) -> None:
    """Dimensions in another order."""
    ref = t.arg("self", 0)
    t.bind(under(ref, tuple(ref.dims[place] for place in t.arg("dims", 1))))


@rule("aten.movedim")
def movedim(t: Trace) -> None:
    """Dimensions moved to other places."""
    ref = t.arg("self", 0)
    rank = len(ref.dims)
    source, target = (
        [p] if isinstance(p, int) else p for p in (t.arg("source", 1), t.arg("destination", 2))
    )
    order = [p for p in range(rank) if p not in {s % rank for s in source}]
    for where, what in sorted(
        zip((d % rank for d in target), (s % rank for s in source), strict=True)
    ):
        order.insert(where, what)
    t.bind(under(ref, tuple(ref.dims[p] for p in order)))


@rule("aten.unsqueeze", "aten.squeeze", "aten.squeeze_", "aten.unsqueeze_")
def squeeze(t: Trace) -> None:
    """Dimensions of size 1 come and go."""
    ref = t.arg("self", 0)
    rest = [dim for dim in ref.dims if t.forest.length(dim) != 1]
    sizes = t.sizes()
    wide = iter(rest)
    t.bind(under(ref, tuple(() if size == 1 else next(wide) for size in sizes)))


@rule("aten.expand", "aten.expand_as", "aten.broadcast_to", "aten.broadcast_tensors")
def expand(t: Trace) -> None:
    """Repetition along dimensions that were of size 1."""
    ref = t.tensors()[0]
    t.bind(under(ref, spread(t, ref.dims, t.sizes())))


def spread(t: Trace, dims: Dims, sizes: Sequence[Size]) -> Dims:
    """Return dimensions repeated to sizes: new axes where there were none."""
    lead = ((),) * (len(sizes) - len(dims))
    return tuple(
        t.forest.dim(size) if not dim and size != 1 else dim
        for dim, size in zip((*lead, *dims), sizes, strict=True)
    )


@rule("aten.repeat", "aten.tile")
def repeat(t: Trace) -> None:
    """Copies one after the other: the outer part of a dimension counts them."""
    ref = t.arg("self", 0)
    times = t.arg("repeats", 1) or t.arg("dims", 1)
    lead = ((),) * (len(times) - len(ref.dims))
    old = (*lead, *ref.dims)
    dims = []
    for dim, size in zip(old, t.sizes(), strict=True):
        have = t.forest.length(dim)
        if t.forest.count(size) == have:
            dims.append(dim)
            continue
        known = number(size)
        for axis in t.forest.flat(dim):
            known /= axis.size
        dims.append((t.forest.new(known), *dim))
    t.bind(under(ref, tuple(dims)))


@rule("aten.repeat_interleave")
def interleave(t: Trace) -> None:
    """Copies of every element: the inner part of a dimension counts them."""
    times, place = t.arg("repeats", 1), t.arg("dim", 2)
    if not isinstance(times, int) or place is None:
        t.opaque()
        return
    ref = t.arg("self", 0)
    dims = list(ref.dims)
    dims[place] = (*dims[place], *t.forest.dim(times))
    t.bind(under(ref, tuple(dims)))
