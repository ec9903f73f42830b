"""Operators that take parts of tensors, choose rows of them, or join them."""

from collections.abc import Sequence

from symbolic_cost.models.traced.acts import (
    CHOSEN,
    PART,
    Act,
    Ref,
    Tensor,
    Use,
    names_in,
    put,
    under,
)  # fmt: skip
from symbolic_cost.models.traced.forest import Dim, Dims
from symbolic_cost.models.traced.graph import Size, number
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
        made = dims[place] and (new,)
        result.tensor.dims = _without(t, ref, whole, made)
        result.tensor.units = ref.tensor.units + (() if made else (new,))
        return result
    return t.pointwise("copy", [ref], dims)


def _without(t: Trace, ref: Ref, gone: Dim, made: Dim = ()) -> Dims:
    """Return a tensor's own dimensions, with other axes or none in place of some.

    They stand in the tensor's own order, however the reference transposes them.
    """
    return tuple(
        made if axis in gone else (axis,)
        for axis in t.forest.axes(ref.tensor.dims)
        if made or axis not in gone
    )


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
    if _of_weight(t, ref, place, lengths if not gone else ()):
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
    own = _without(t, ref, t.forest.flat(equal[0]))
    tensors = tuple(Tensor(own, units=ref.tensor.units) for _ in lengths)
    whole = put(ref.dims, place, equal[0], equal[1])
    use = Use(under(ref, whole), whole)
    t.write(Act("split", t.name(), (use,), tensors, options={"lost": equal[0]}))
    for i, tensor in enumerate(tensors):
        t.bind(Ref(tensor, dims), i)


def _of_weight(t: Trace, ref: Ref, place: int, lengths: Sequence[Size]) -> bool:
    """Bind parts of a weight that nothing else takes as weights of their own; tell whether."""
    weight, graph = ref.tensor.weight, t.graph
    if not weight:
        return False
    values = {value for value, name in graph.weights.items() if name == weight}
    taken = [name for n in graph.nodes for arg in n.args.values() for name in names_in(arg)]
    whole, here = (t.forest.length(t.forest.axes(dims)) for dims in (ref.tensor.dims, ref.dims))
    if whole != here or sum(name.text in values for name in taken) > 1:
        return False
    for i in range(len(t.node.outputs)):
        within = (t.forest.dim(lengths[i]),) if lengths else ()
        dims = put(ref.dims, place, *within)
        piece = Tensor(dims, weight=f"{weight}{PART}{i + 1}", nature=ref.tensor.nature)
        t.bind(Ref(piece, dims), i)
    return True


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


def chosen_rows(t: Trace, ref: Ref, place: int) -> None:
    """Write rows of a weight that are looked up along a dimension."""
    rows = t.forest.dim(t.sizes()[place])
    t.bind(t.lookup(ref, (rows,), put(ref.dims, place, rows)))


@rule("aten.index", "aten._unsafe_index")
def index(t: Trace) -> None:
    """Positions chosen by indices: rows of a weight are looked up, others are copied."""
    ref, indices = t.arg("self", 0), t.arg("indices", 1)
    if ref.tensor.constant:
        t.bind(t.constant())
        return
    chosen = [i for i, item in enumerate(indices) if isinstance(item, Ref)]
    sizes = t.sizes()
    if chosen == [0] and len(sizes) == len(ref.dims):
        again = _rows_again(t, ref)
        if again is not None:
            t.bind(again)
            return
    if chosen == [0, 1] and not ref.tensor.weight and _of_every(t, ref):
        # one position of every sample, such as that of the last token
        dims = (ref.dims[0], *ref.dims[2:])
        t.bind(t.pointwise("copy", [ref], dims))
        return
    rest = [dim for i, dim in enumerate(ref.dims) if i not in chosen]
    lead = len(sizes) - len(rest)
    together = chosen and chosen == list(range(chosen[0], chosen[-1] + 1))
    first = chosen[0] if together else 0
    rows = t.forest.dims(sizes[first : first + lead])
    source = indices[chosen[0]]
    if len(source.dims) == lead and source.tensor.is_input:
        rows = source.dims
    dims = (*rest[:first], *rows, *rest[first:])
    if len(chosen) == lead == 1 and sizes[first] == 1 and not ref.tensor.weight:
        t.bind(part(t, ref, dims, first))
        return
    if ref.tensor.weight:
        t.bind(t.lookup(ref, rows, dims, CHOSEN | source.tensor.nature))
        return
    t.bind(t.pointwise("copy", [ref], dims))


def _of_every(t: Trace, ref: Ref) -> bool:
    """Tell whether a result has as many rows as there are samples, and the other dimensions."""
    sizes = t.sizes()
    samples = t.forest.flat(ref.dims[0])
    alike = bool(samples) and t.forest.count(sizes[0]) == t.forest.length(samples)
    return alike and set(samples) <= t.batch() and len(sizes) == len(ref.dims) - 1


def _rows_again(t: Trace, ref: Ref) -> Ref | None:
    """Return rows in another order, or each several times: samples keep theirs.

    Rows (b, l) taken a times each are (b, l, a); rows sorted by expert are as they were again.
    """
    if ref.tensor.weight:
        return None
    forest = t.forest
    rows = forest.flat(ref.dims[0])
    before = forest.unsorted(rows)
    wanted, length = forest.count(t.sizes()[0]), forest.length(before)
    if before != rows:
        sorted_no_more = (before, *ref.dims[1:])
        return t.pointwise("copy", [Use(ref, sorted_no_more)], sorted_no_more)
    if not rows or wanted % length or rows[0] not in t.batch():
        return None
    if wanted == length:
        return t.pointwise("copy", [ref], ref.dims)
    size = number(t.sizes()[0])
    for axis in rows:
        size /= axis.size
    slot = next((one for one in t.slots if one.count == wanted // length), None)
    dims = ((*rows, slot or forest.new(size)), *ref.dims[1:])
    return t.pointwise("copy", [ref], dims)


@rule("aten.embedding")
def embedding(t: Trace) -> None:
    """Rows of a table."""
    table, ids = t.arg("weight", 0), t.arg("indices", 1)
    dims = (*ids.dims, *table.dims[1:])
    if not table.tensor.weight:
        t.bind(t.pointwise("copy", [table], dims))
        return
    t.bind(t.act("lookup", [ids, table], dims))


@rule("aten.embedding_bag", "aten._embedding_bag", "aten._embedding_bag_forward_only")
def bags(t: Trace) -> None:
    """Rows of a table, summed over every bag; the largest are found by as much work."""
    table, ids, factors = t.arg("weight", 0), t.arg("indices", 1), t.arg("per_sample_weights", 6)
    count, width = t.sizes()[0], table.dims[1:]
    split = t.forest.split(ids.dims[0], (count, _each(t, ids, count)))
    dims = ((*split[0], *split[1]) if split else ids.dims[0], *width)
    rows = Ref(ids.tensor, (dims[0],))
    found = t.act("lookup", [rows, table], dims) if table.tensor.weight else table
    if isinstance(factors, Ref) and not factors.tensor.constant:
        found = t.pointwise("mul", [found, Use(factors, (dims[0],))], dims)
    made = (split[0] if split else t.forest.dim(count), *width)
    t.bind(t.pointwise("sum", [Use(found, dims)], made))


def _each(t: Trace, ids: Ref, count: Size) -> Size:
    """Return how many rows a bag has on average."""
    size = number(1)
    for axis in t.forest.flat(ids.dims[0]):
        size *= axis.size
    return size / number(count)
