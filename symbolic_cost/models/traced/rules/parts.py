"""Operators that take parts of tensors and join them."""

from symbolic_cost.models.traced.acts import Act, Ref, Tensor, Use, put, under
from symbolic_cost.models.traced.forest import Dims
from symbolic_cost.models.traced.rules.views import spread
from symbolic_cost.models.traced.trace import Trace, rule


@rule("aten.slice", "aten.narrow", "aten.slice_copy")
def cut(t: Trace) -> None:
    """A part of a dimension."""
    ref = t.arg("self", 0)
    place = (t.arg("dim", 1) or 0) % len(ref.dims)
    size = t.sizes()[place]
    whole = t.forest.fits(ref.dims[place], size)
    t.bind(ref if whole else part(t, ref, put(ref.dims, place, t.forest.dim(size)), place))


def part(t: Trace, ref: Ref, dims: Dims, place: int) -> Ref:
    """Return a part of a tensor along a dimension, under other axes there.

    A part of a weight is looked up: positions that exist are more than those that are used.
    """
    if ref.tensor.constant:
        return under(ref, dims)
    others = set(t.forest.axes(put(ref.dims, place)))
    owned = set(t.forest.axes(ref.tensor.dims))
    if ref.tensor.weight:
        return t.lookup(ref, (dims[place],), dims)
    whole = t.forest.flat(ref.dims[place])
    if not set(whole) & owned:  # it is repeated along it, so a part is the same
        return under(ref, dims)
    if len(whole) == 1 and not set(whole) & others:
        (new,) = dims[place] or (t.forest.new(1),)
        result = t.act("view", [ref], dims, options={"from": whole[0], "to": new})
        result.tensor.units = ref.tensor.units + (() if dims[place] else (new,))
        return result
    return t.pointwise("copy", [ref], dims)


@rule("aten.select", "aten.select_copy")
def select(t: Trace) -> None:
    """One position of a dimension."""
    ref = t.arg("self", 0)
    place = (t.arg("dim", 1) or 0) % len(ref.dims)
    result = (
        part(t, ref, put(ref.dims, place, ()), place) if t.forest.flat(ref.dims[place]) else ref
    )
    t.bind(under(result, put(result.dims, place)))


@rule("aten.chunk", "aten.split", "aten.split_with_sizes", "aten.unbind", "aten.tensor_split",
      "aten.unsafe_chunk", "aten.unsafe_split")  # fmt: skip
def parts(t: Trace) -> None:
    """All parts of a dimension; equal ones are counted by the outer part of it."""
    ref = t.arg("self", 0)
    named = t.arg("dim", 1 if t.node.target == "aten.unbind" else 2)
    place = (named or 0) % len(ref.dims)
    gone = t.node.target == "aten.unbind"
    lengths = [1 if gone else t.sizes(i)[place] for i in range(len(t.node.outputs))]
    rest = put(ref.dims, place)
    equal = (
        t.forest.split(ref.dims[place], (len(lengths), lengths[0]))
        if len(set(lengths)) == 1
        else None
    )
    if len(lengths) == 1:
        t.bind(under(ref, rest) if gone else ref)
        return
    if equal is None or ref.tensor.constant or len(t.forest.flat(equal[0])) != 1:
        for i, length in enumerate(lengths):
            dims = put(ref.dims, place, t.forest.dim(length))
            result = part(t, ref, dims, place)
            t.bind(under(result, rest) if gone else result, i)
        return
    dims = rest if gone else put(ref.dims, place, equal[1])
    if set(t.forest.flat(equal[0])).isdisjoint(t.forest.axes(ref.tensor.dims)):
        for i in range(len(lengths)):
            t.bind(under(ref, dims), i)
        return
    tensors = tuple(Tensor(dims, units=ref.tensor.units) for _ in lengths)
    whole = put(ref.dims, place, equal[0], equal[1])
    use = Use(under(ref, whole), whole)
    t.write(Act("split", t.name(), (use,), tensors, options={"lost": equal[0]}))
    for i, tensor in enumerate(tensors):
        t.bind(Ref(tensor, dims), i)


@rule("aten.cat", "aten.concat", "aten.concatenate")
def cat(t: Trace) -> None:
    """Tensors one after the other along a dimension."""
    refs = [ref for ref in t.arg("tensors", 0) if isinstance(ref, Ref)]
    rank = len(t.sizes())
    refs = [ref for ref in refs if len(ref.dims) == rank and not _is_empty(t, ref)]
    place = (t.arg("dim", 1) or 0) % rank
    if len(refs) == 1:
        t.bind(refs[0])
        return
    for ref in refs[1:]:
        for i in range(rank):
            if i != place and not ref.tensor.constant and not refs[0].tensor.constant:
                t.forest.unify(refs[0].dims[i], ref.dims[i])
    lead = next((ref for ref in refs if not ref.tensor.constant), refs[0])
    dims = put(lead.dims, place, t.forest.dim(t.sizes()[place]))
    dims = spread(t, dims, t.sizes())
    if all(ref.tensor.constant for ref in refs):
        t.bind(t.constant())
        return
    uses = [
        Use(
            ref,
            tuple(
                own_dim if i == place else dims[i] if own_dim else ()
                for i, own_dim in enumerate(ref.dims)
            ),
        )
        for ref in refs
        if not ref.tensor.constant
    ]
    t.bind(t.pointwise("copy", uses, dims))


def _is_empty(t: Trace, ref: Ref) -> bool:
    """Tell whether a tensor has no elements: a cache before the first token."""
    return any(t.forest.length(dim) == 0 for dim in ref.dims)


@rule("aten.stack")
def stack(t: Trace) -> None:
    """Tensors one after the other along a new dimension."""
    refs = t.arg("tensors", 0)
    place = (t.arg("dim", 1) or 0) % len(t.sizes())
    for ref in refs[1:]:
        for one, other in zip(refs[0].dims, ref.dims, strict=True):
            t.forest.unify(one, other)
    new = t.forest.dim(t.sizes()[place])
    dims = (*refs[0].dims[:place], new, *refs[0].dims[place:])
    if all(ref.tensor.constant for ref in refs):
        t.bind(t.constant())
        return
    uses = [Use(ref, refs[0].dims) for ref in refs]
    t.bind(t.pointwise("copy", uses, dims))
