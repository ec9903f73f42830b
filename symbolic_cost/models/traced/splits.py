"""Products whose result is taken in parts are several products, one for each part.

    qkv[b l n] = x w[e n], of which n = 64 + 32 + 32 are queries, keys and values

is three products with the parts of one weight, whose axes are then told apart: queries have more
heads than keys. The parts together are the product: FLOP, parameters and traffic are the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from symbolic_cost.grouping import grouped
from symbolic_cost.models.traced.acts import PART, Act, Ref, Tensor
from symbolic_cost.models.traced.forest import Axis, Dim, Dims
from symbolic_cost.models.traced.trace import Trace


def split_products(trace: Trace) -> None:
    """Write every product that is used in parts alone as products of the parts."""
    uses = grouped((use.ref.tensor, act) for act in trace.acts for use in act.uses)
    outputs = {ref.tensor for ref in map(trace.value, trace.graph.outputs) if ref is not None}
    shared = {tensor for tensor, acts in uses.items() if tensor.weight and len(acts) > 1}
    instead: dict[int, list[Act]] = {}
    for act in trace.acts:
        result = act.outs[0]
        views = uses.get(result, [])
        weights = [use.ref.tensor for use in act.uses if use.ref.tensor.weight]
        if act.kind != "einsum" or result in outputs or not weights or shared & set(weights):
            continue
        cut = _cut(trace, act, views)
        if cut is not None:
            instead[id(act)] = []
            for place, view in enumerate(views):
                instead[id(view)] = [_part(trace, act, view, cut, place)]
    trace.acts = [one for act in trace.acts for one in instead.get(id(act), [act])]


def _cut(trace: Trace, act: Act, views: Sequence[Act]) -> Dim | None:
    """Return the axes of the weight along which views take all parts, if that is what they do."""
    flat = trace.forest.flat
    if not views or any(view.kind != "view" for view in views):
        return None
    cuts = {flat((view.options["from"],)) for view in views}
    cut = next(iter(cuts))
    parts = sum(view.options["to"].count for view in views)
    axes, data = trace.forest.axes, (use.ref for use in act.uses if not use.ref.tensor.weight)
    owned = {axis for ref in data for axis in axes(ref.dims)}
    result_axes = set(axes(act.outs[0].dims))
    whole = trace.forest.length(cut)
    fits = len(cuts) == 1 and parts == whole and set(cut) <= result_axes and not set(cut) & owned
    return cut if fits else None


def _part(trace: Trace, act: Act, view: Act, cut: Dim, place: int) -> Act:
    new = view.options["to"]

    def dims(old: Dims) -> Dims:
        return tuple(tuple(_replaced(trace.forest.flat(dim), cut, new)) for dim in old)

    uses = []
    for use in act.uses:
        tensor = use.ref.tensor
        if not tensor.weight:
            uses.append(use)
            continue
        name = f"{tensor.weight}{PART}{place + 1}"
        piece = Tensor(dims(tensor.dims), weight=name, nature=tensor.nature)
        uses.append(replace(use, ref=Ref(piece, dims(use.ref.dims)), want=dims(use.want)))
    (out,) = view.outs
    out.units = ()
    out.dims = dims(act.outs[0].dims)
    return replace(act, path=f"{act.path}.{place + 1}", uses=tuple(uses), outs=(out,))


def _replaced(dim: Dim, cut: Dim, new: Axis) -> Iterator[Axis]:
    """Yield the axes of a dimension, a run of some replaced by one."""
    place = 0
    while place < len(dim):
        if dim[place : place + len(cut)] == cut:
            if new.count > 1:
                yield new
            place += len(cut)
        else:
            yield dim[place]
            place += 1
