"""Operators that choose rows: of tables, of tensors, in another order."""

from symbolic_cost.models.traced.acts import CHOSEN, Ref, Use, put
from symbolic_cost.models.traced.graph import number
from symbolic_cost.models.traced.rules.parts import part
from symbolic_cost.models.traced.trace import Trace, rule


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


@rule("aten.embedding", "aten.embedding_bag")
def embedding(t: Trace) -> None:
    """Rows of a table."""
    table, ids = t.arg("weight", 0), t.arg("indices", 1)
    dims = (*ids.dims, *table.dims[1:])
    if not table.tensor.weight:
        t.bind(t.pointwise("copy", [table], dims))
        return
    t.bind(t.act("lookup", [ids, table], dims))
