"""Contractions that are named otherwise; recurrences, and single steps of them."""

from collections.abc import Sequence

from sympy import Expr, Mul

from symbolic_cost.errors import InputError
from symbolic_cost.models.traced.acts import Nature, Ref, Tensor, Use, names_in, put, under
from symbolic_cost.models.traced.forest import Dim
from symbolic_cost.models.traced.rules.products import apart_from, product, times
from symbolic_cost.models.traced.trace import Trace, rule


@rule("aten.outer", "aten.ger")
def outer(t: Trace) -> None:
    """Every element of one vector times every one of another."""
    one, other = t.tensors()
    if one.tensor.constant and other.tensor.constant:
        t.bind(t.constant())
        return
    dims = (one.dims[0], apart_from(t, other.dims[0], one.dims))
    t.bind(t.pointwise("mul", [Use(one, dims[:1]), Use(other, dims[1:])], dims))


@rule("aten.inner", "aten.tensordot")
def contracted(t: Trace) -> None:
    """A product over some dimensions of each, the last ones unless they are named."""
    x, w = t.tensors()
    both = [t.arg("dims_self", 2) or [-1], t.arg("dims_other", 3) or [-1]]
    first, second = ([p % len(r.dims) for p in own] for r, own in zip((x, w), both, strict=True))
    if len(x.dims) == len(first) or len(w.dims) == len(second):
        raise InputError(
            f"{t.graph.place}: {t.node.target} in {t.node.path or 'the model'}: a dimension that "
            "stays is accepted"
        )
    dims: dict[str, Dim] = {}
    letters = [""] * len(x.dims), [""] * len(w.dims)
    for letter, one, other in zip("klmn", first, second, strict=False):
        t.forest.unify(x.dims[one], w.dims[other])
        dims[letter], letters[0][one], letters[1][other] = x.dims[one], letter, letter
    names = iter("abcdefghij")
    for ref, own in zip((x, w), letters, strict=True):
        for place, letter in enumerate(own):
            if not letter:
                own[place] = next(names)
                dims[own[place]] = apart_from(t, ref.dims[place], [*dims.values()])
    result = "".join(letter for own in letters for letter in own if letter not in "klmn")
    taken = [(x, "".join(letters[0])), (w, "".join(letters[1]))]
    t.bind(product(t, taken, result, dims))


@rule("aten.lstm_cell", "aten.gru_cell")
def cell(t: Trace) -> None:
    """One step of a recurrence: products of all gates, and what they make."""
    x, state = t.arg("input", 0), t.arg("hx", 1)
    memory = state[1:] if isinstance(state, list) else [state]
    before = state[0] if isinstance(state, list) else state
    made = []
    for ref, name, place in ((x, "ih", 2), (before, "hh", 3)):
        w, bias = t.arg(f"w_{name}", place), t.arg(f"b_{name}", place + 2)
        gates = times(t, ref, under(w, w.dims[::-1]), bias)
        width = t.sizes()[-1]
        t.forest.split(w.dims[0], (t.forest.length(w.dims[0]) // t.forest.count(width), width))
        made.append(gates)
    dims = (*x.dims[:-1], t.forest.flat(made[0].dims[-1])[1:])
    for ref in memory:
        t.forest.unify(ref.dims[-1], dims[-1])
    taken: list[Ref | Use] = [*made, *(Use(ref, dims) for ref in memory)]
    t.bind(t.pointwise(t.node.target.partition(".")[2], taken, dims))
    if len(t.node.outputs) > 1:
        t.bind(t.pointwise("copy", made[:1], dims), 1)


@rule("aten.lstm", "aten.gru", "aten.rnn_tanh", "aten.rnn_relu")
def recurrence(t: Trace) -> None:
    """Layers of a recurrence over all steps, perhaps in both directions.

    The first step takes a state without a gradient, the others what the step before has made. So
    PyTorch counts them where its kernels are not fused; of fused ones it counts nothing.
    """
    x, given = t.arg("input", 0), t.arg("hx", 1)
    state = given[0] if isinstance(given, list) else given
    weights, ways = t.arg("params", 2), 2 if t.arg("bidirectional", 7) else 1
    many, count = t.arg("num_layers", 4), ways * t.arg("num_layers", 4)
    each = 4 if t.arg("has_biases", 3) else 2
    if not isinstance(x, Ref) or len(weights) not in (each * count, (each + 1) * count):
        raise InputError(
            f"{t.graph.place}: {t.node.target} in {t.node.path or 'the model'}: packed sequences "
            f"are refused, and weights other than {each} of each of {many} layers and {ways} ways"
        )
    each = len(weights) // count
    learnt = None if state.tensor.constant else state
    place = 1 if t.arg("batch_first", 8) and len(x.dims) > _UNBATCHED else 0
    for layer in range(0, len(weights), each * ways):
        made = [
            _direction(t, x, weights[layer + way * each : layer + (way + 1) * each], place, learnt)
            for way in range(ways)
        ]
        x = made[0]
        if ways > 1:
            width = t.forest.dim(t.sizes()[-1])
            x = t.pointwise("copy", made, (*x.dims[:-1], width))
    t.bind(x)
    args = [arg for node in t.graph.nodes for arg in node.args.values()]
    taken = {name.text for arg in args for name in names_in(arg)} | {*t.graph.outputs}
    for number, name in enumerate(t.node.outputs[1:], 1):
        if name in taken:
            t.bind(t.pointwise("copy", [x], t.forest.dims(t.sizes(number))), number)


_UNBATCHED = 2
"""Dimensions of one sequence alone: steps and features."""


def _direction(t: Trace, x: Ref, weights: Sequence[Ref], place: int, learnt: Ref | None) -> Ref:
    """Return what one direction of a layer makes of all steps.

    Args:
        t: trace that it is written in.
        x: what goes in.
        weights: of inputs and states, biases of both, the projection of states.
        place: of steps among the dimensions of x.
        learnt: first states, if they have a gradient.
    """
    forest, (w, v) = t.forest, weights[:2]
    kind = t.node.target.partition(".")[2].partition("_")[0]
    projection = weights[-1] if len(weights) % 2 else None
    width = v.dims[1] if projection is None else projection.dims[1]
    for one in (w, v):
        many = forest.length(one.dims[0]) // forest.length(width)
        forest.split(one.dims[0], (many, _size(t, width)))
    biases = [*(one for one in weights[2:] if one is not projection), None, None][:2]
    gates = [times(t, x, under(w, w.dims[::-1]), biases[0])]
    dims = (*x.dims[:-1], forest.flat(w.dims[0])[-1:])
    made = dims if projection is None else (*x.dims[:-1], projection.dims[0])
    first = put(made, place)
    before = [Ref(Tensor(first, nature=Nature.CONSTANT), first)]
    if learnt is not None:
        before = [t.pointwise("copy", [learnt], first)]
    steps = _size(t, x.dims[place]) - 1
    if steps != 0:
        before.append(t.pointwise("copy", gates, put(made, place, forest.dim(steps))))
    gates += [times(t, ref, under(v, v.dims[::-1]), biases[1]) for ref in before]
    hidden = t.pointwise(f"{kind}_cell", gates, dims)
    if projection is None:
        return hidden
    return times(t, hidden, under(projection, projection.dims[::-1]))


def _size(t: Trace, dim: Dim) -> Expr:
    return Mul(*(axis.size for axis in t.forest.flat(dim)))
