"""Every op computed from its declaration, on the part of one rank, forward and backward.

A forward pass is a generator: where a row is split it yields the sums (or maxima) of its part and
is sent those of the whole row. A backward pass is given a `Kept`, which notes what it reads: that
is what has to be saved. Functions of elements are any function of their class (a square where
inputs are kept, a tanh where results are), rows are normalised as the kind says; derivatives are
those of what is computed.
"""

from string import ascii_letters

import numpy as np

from symbolic_cost.ops.conv import Conv
from symbolic_cost.ops.einsum import Einsum
from symbolic_cost.ops.elementwise import Elementwise
from symbolic_cost.ops.fused import Fused
from symbolic_cost.ops.lookup import Lookup
from symbolic_cost.ops.scan import Recurrent, Scan

LINEAR = {"add", "copy", "sum", "scale", "choice", "rotary", "gathered_sum"}
SQUARES = {"silu", "gelu", "gelu_tanh", "softplus", "activation"}
NORMS = {"layer_norm", "rms_norm", "rms_norm_wide", "rms_norm_shifted", "ratio"}
TANHS = {"relu", "tanh", "exp", "sigmoid", "softcap"}


class Local:
    """Where a rank stands: the indices that it holds of every axis, of the sizes of all.

    Args:
        indices: function from an axis to the indices.
        sizes: whole size by axis.
    """

    def __init__(self, indices, sizes):
        self.indices, self.sizes = indices, sizes

    def shape(self, axes):
        return tuple(len(self.indices(axis)) for axis in axes)

    def table(self, axes):
        """A fixed table over some axes, the part of this rank."""
        whole = tuple(int(self.sizes[axis]) for axis in axes)
        values = np.cos(np.arange(np.prod(whole, dtype=int)) + len(axes)).reshape(whole)
        return values[np.ix_(*(self.indices(axis) for axis in axes))]

    def mapped(self, values, old, new):
        """Take values over old axes to new ones: axes that change mix by a fixed table."""
        lost = tuple(axis for axis in old if axis not in new)
        made = tuple(axis for axis in new if axis not in old)
        mix = self.table(lost + made) if lost and made else np.ones(self.shape(lost + made))
        return contracted(new, (old, values), (lost + made, mix))


def contracted(result, *factors):
    """A sum of products, axes by name."""
    names = dict.fromkeys(axis for axes, _ in factors for axis in axes)
    letter = dict(zip(names, ascii_letters, strict=False))
    text = ",".join("".join(letter[axis] for axis in axes) for axes, _ in factors)
    made = "".join(letter[axis] for axis in result)
    return np.einsum(f"{text}->{made}", *(values for _, values in factors))


def forward(op, at, values):
    """Return a generator of an op's results by tensor; `values` holds its operands by tensor."""
    for kind, run, _ in RULES:
        if kind(op):
            return run(op, at, values)
    raise NotImplementedError(f"{op.path}: {op.kind}")


def backward(op, at, kept, gradients):
    """Return a generator of the gradients of an op's operands, as (operand, array)."""
    for kind, _, run in RULES:
        if kind(op):
            return run(op, at, kept, gradients)
    raise NotImplementedError(f"{op.path}: {op.kind}")


# Products.


def product(op, at, values):
    yield from ()
    made = op.result.axes
    total = contracted(made, *((o.axes, values[o.tensor]) for o in op.pattern.inputs))
    if values["*first"]:  # of ranks that share a sum one adds the bias
        for bias in op.pattern.biases:
            total = total + at.mapped(values[bias.tensor], bias.axes, made)
    return {op.result.tensor: total}


def product_back(op, at, kept, gradients):  # noqa: ARG001 - one signature
    yield from ()
    given = (op.result.axes, gradients[op.result.tensor])
    found = []
    for place, operand in enumerate(op.pattern.inputs):
        if not operand.constant:
            others = [o for j, o in enumerate(op.pattern.inputs) if j != place]
            factors = ((o.axes, kept[o]) for o in others)
            found.append((operand, contracted(operand.axes, given, *factors)))
    return found + [(bias, contracted(bias.axes, given)) for bias in op.pattern.biases]


# Functions of elements.


def function(op, at, values):
    yield from ()
    made = op.outputs[0].axes
    parts = [(o.axes, values[o.tensor]) for o in (*op.inputs, *op.weights) if o.role != "index"]
    if op.function == "mul":
        ones = np.ones(at.shape(made))
        return {op.outputs[0].tensor: contracted(made, *parts, (made, ones))}
    if op.function == "dropout":
        return {op.outputs[0].tensor: parts[0][1] * mask(op, at)}
    if op.function in ("order", "angles"):
        return {o.tensor: at.table(o.axes) for o in op.outputs}
    if op.function == "rotary":
        parts = parts[:1]
    if op.function in SQUARES and len(parts) == 1:
        axes, x = parts[0]
        return {op.outputs[0].tensor: at.mapped(x * x, axes, made)}
    total = sum(at.mapped(x, axes, made) for axes, x in parts)
    if op.function in SQUARES:
        total = total * total
    if op.function in TANHS:
        total = np.tanh(total)
    return {op.outputs[0].tensor: total} | {o.tensor: at.table(o.axes) for o in op.outputs[1:]}


def function_back(op, at, kept, gradients):
    yield from ()
    made, dy = op.outputs[0], gradients.get(op.outputs[0].tensor)
    operands = [o for o in (*op.inputs, *op.weights) if o.role != "index"]
    for name, axes in besides(op):
        kept.read(name, axes)
    if op.function in ("order", "angles"):
        return []
    if op.function == "mul":
        return [(o, product_of_others(o, operands, kept, made, dy)) for o in operands]
    if op.function == "dropout":
        return [(operands[0], dy * mask(op, at))]
    if op.function == "rotary":
        operands = operands[:1]
    if op.function in SQUARES and len(operands) == 1:
        (operand,) = operands
        return [(operand, 2 * kept[operand] * at.mapped(dy, made.axes, operand.axes))]
    if op.function in SQUARES:
        dy = dy * 2 * sum(at.mapped(kept[o], o.axes, made.axes) for o in operands)
    if op.function in TANHS:
        dy = dy * (1 - kept[made] ** 2)
    return [(o, at.mapped(dy, made.axes, o.axes)) for o in operands if not o.constant]


def besides(op):
    """What backward reads besides operands: masks, angles, places, and how tokens were sorted."""
    made = op.outputs[0]
    if op.function == "dropout":
        return [(f"{made.tensor}.mask", made.axes)]
    if op.function == "rotary":
        return [(angle.tensor, angle.axes) for angle in op.inputs[1:]]
    if op.function in ("order", "angles"):  # read where tokens are moved, rows are rotated
        between = [(f"{made.tensor}.between", made.axes)] * (op.function == "order")
        return [(o.tensor, o.axes) for o in op.outputs] + between
    return [(index.tensor, index.axes) for index in op.outputs[1:]]


def product_of_others(operand, operands, kept, made, dy):
    others = ((o.axes, kept[o]) for o in operands if o is not operand)
    return contracted(operand.axes, (made.axes, dy), *others)


def mask(op, at):
    return (at.table(op.outputs[0].axes) > 0).astype(float)


# Rows.


def along(op):
    return tuple(place for place, axis in enumerate(op.inputs[0].axes) if axis in op.row)


def length(op, at):
    return np.prod([int(at.sizes[axis]) for axis in op.row])


def shift(op):
    """What is added to the scale of a norm."""
    return 1 if op.function == "rms_norm_shifted" else 0


def normed(op, at, values):
    """Subtract the mean (but for root mean squares), divide by the root, scale and shift."""
    x, rows = values[op.inputs[0].tensor], along(op)
    axes, count = op.inputs[0].axes, length(op, at)
    if op.function == "ratio":
        return {op.outputs[0].tensor: x / x.sum(axis=rows, keepdims=True)}
    squares = (x * x).sum(axis=rows, keepdims=True)
    centred = op.function == "layer_norm"
    sums = yield [(np.add, x.sum(axis=rows, keepdims=True))] * centred + [(np.add, squares)]
    mean = sums[0] / count if centred else 0
    root = 1 / np.sqrt(sums[-1] / count - mean**2 + 1)
    values["*made"] = {"mean": mean, "root": root}
    result = (x - mean) * root
    weights = [at.mapped(values[w.tensor], w.axes, axes) for w in op.weights]
    for place, weight in enumerate(weights):
        result = result + weight if place else result * (weight + shift(op))
    return {op.outputs[0].tensor: result}


def normed_back(op, at, kept, gradients):
    operand, made = op.inputs[0], op.outputs[0]
    x, rows, axes, dy = kept[operand], along(op), operand.axes, gradients[made.tensor]
    outside = tuple(axis for axis in axes if axis not in op.row)
    copies = 2 if op.function == "layer_norm" else 1
    kept.read(f"{made.tensor}.statistics", outside, copies)
    if op.function == "ratio":
        total = x.sum(axis=rows, keepdims=True)
        return [(operand, dy / total - (dy * x).sum(axis=rows, keepdims=True) / total**2)]
    mean, root = kept.made["mean"], kept.made["root"]
    plain = (x - mean) * root
    factors = (dy * plain, dy)
    found = [(w, at.mapped(f, axes, w.axes)) for w, f in zip(op.weights, factors, strict=False)]
    if operand.constant:  # the weights alone learn
        return found
    scaled = dy
    if op.weights:
        scaled = dy * (at.mapped(kept[op.weights[0]], op.weights[0].axes, axes) + shift(op))
    inner = (scaled * plain).sum(axis=rows, keepdims=True)
    outer = [(np.add, scaled.sum(axis=rows, keepdims=True))] * (copies == 2)
    sums = yield [*outer, (np.add, inner)]
    centre = sums[0] if copies == 2 else 0
    dx = root * (scaled - (centre + plain * sums[-1]) / length(op, at))
    return [(operand, dx), *found]


def softmax(op, at, values):
    x, rows = values[op.inputs[0].tensor], along(op)
    sums = [(np.maximum, x.max(axis=rows, keepdims=True))]
    sums += [(np.add, np.exp(x).sum(axis=rows, keepdims=True))]
    loss = op.function.startswith("cross_entropy")
    if loss:
        sums += [(np.add, (x * target(op, at)).sum(axis=rows, keepdims=True))]
    _, total, *logit = yield sums
    values["*made"] = {"p": np.exp(x) / total}
    if not loss:
        return {op.outputs[0].tensor: np.exp(x) / total}
    lost = (np.log(total) - logit[0]).reshape(at.shape(op.outputs[0].axes))
    return {op.outputs[0].tensor: lost}


def softmax_back(op, at, kept, gradients):
    operand, made = op.inputs[0], op.outputs[0]
    dy, p = gradients[made.tensor], kept.made["p"]
    if op.function.startswith("cross_entropy"):
        single = "logarithms" if "values" in op.function else "single"
        kept.read(f"{made.tensor}.{single}", operand.axes)
        return [(operand, (p - target(op, at)) * at.mapped(dy, made.axes, operand.axes))]
    if op.function == "softmax_single":
        kept.read(f"{made.tensor}.single", operand.axes)
    else:
        p = kept[made]
    (inner,) = yield [(np.add, (p * dy).sum(axis=along(op), keepdims=True))]
    return [(operand, p * (dy - inner))]


def target(op, at):
    """The class of every row is the third."""
    (row,) = op.row
    chosen = (np.array(at.indices(row)) == 2).astype(float)
    return at.mapped(chosen, (row,), op.inputs[0].axes)


# Tables, convolutions, recurrences.


def found(op, at, values):
    """Rows of a table; what a rank has not it leaves to the others."""
    yield from ()
    return {op.outputs[0].tensor: contracted(op.outputs[0].axes, *chosen(op, at, values))}


def chosen(op, at, values):
    """The table and, for every place that the result has, which row of it is taken."""
    table, made = op.weights[0], op.outputs[0]
    places = tuple(axis for axis in made.axes if axis not in table.axes)
    (rows,) = (axis for axis in table.axes if axis not in made.axes)
    ids = np.round(at.table(places) * 100).astype(int) % int(at.sizes[rows])
    hot = (ids[..., None] == np.array(at.indices(rows))).astype(float)
    taken = None if values is None else values[table.tensor]
    return (table.axes, taken), ((*places, rows), hot)


def found_back(op, at, kept, gradients):
    yield from ()
    for ids in op.inputs:
        kept.read(ids.tensor, ids.axes)
    made = op.outputs[0]
    (axes, _), hot = chosen(op, at, None)
    given = (made.axes, gradients[made.tensor])
    return [(op.weights[0], contracted(axes, given, hot))]


def kernel(op, at):
    """Which products of positions and kernel reach which result: any fixed table."""
    image, weight, made = op.inputs[0], op.weights[0], op.outputs[0]
    once = [
        axis
        for axis in dict.fromkeys(image.axes + weight.axes + made.axes)
        if sum(axis in o.axes for o in (image, weight, made)) == 1
    ]
    return tuple(once), at.table(tuple(once))


def convolved(op, at, values):
    yield from ()
    factors = [(o.axes, values[o.tensor]) for o in op.pattern.inputs]
    made = op.outputs[0]
    total = contracted(made.axes, *factors, kernel(op, at))
    for bias in op.pattern.biases if values["*first"] else ():
        total = total + at.mapped(values[bias.tensor], bias.axes, made.axes)
    return {made.tensor: total}


def convolved_back(op, at, kept, gradients):
    yield from ()
    image, weight, made = op.inputs[0], op.weights[0], op.outputs[0]
    given = (made.axes, gradients[made.tensor])
    terms = [(weight, contracted(weight.axes, given, (image.axes, kept[image]), kernel(op, at)))]
    if not image.constant:
        factors = (given, (weight.axes, kept[weight]), kernel(op, at))
        terms.append((image, contracted(image.axes, *factors)))
    return terms + [(bias, contracted(bias.axes, given)) for bias in op.pattern.biases]


def scanned(op, at, values):  # noqa: ARG001 - one signature
    yield from ()
    decay, drive = (np.moveaxis(values[o.tensor], o.axes.index(op.along), 0) for o in op.inputs)
    states = np.zeros_like(drive)
    for place, (factor, term) in enumerate(zip(decay, drive, strict=True)):
        states[place] = factor * (states[place - 1] if place else 0) + term
    made = op.outputs[0]
    return {made.tensor: np.moveaxis(states, 0, made.axes.index(op.along))}


def scanned_back(op, at, kept, gradients):  # noqa: ARG001 - one signature
    yield from ()
    (decays, drives), made = op.inputs, op.outputs[0]
    place = made.axes.index(op.along)
    decay, states, dy = (
        np.moveaxis(v, place, 0) for v in (kept[decays], kept[made], gradients[made.tensor])
    )
    carried, ddecay, ddrive = 0, np.zeros_like(decay), np.zeros_like(decay)
    for i in reversed(range(len(dy))):
        ddrive[i] = dy[i] + carried
        ddecay[i] = ddrive[i] * (states[i - 1] if i else 0)
        carried = ddrive[i] * decay[i]
    return [(decays, np.moveaxis(ddecay, 0, place)), (drives, np.moveaxis(ddrive, 0, place))]


def recurred(op, at, values):  # noqa: ARG001 - one signature
    """An LSTM whose gates are tanh: from x[b l i] to y[b l o]."""
    yield from ()
    x = values[op.inputs[0].tensor]
    w_in, b_in, w_hidden, b_hidden = (values[w.tensor] for w in op.weights)
    batch, steps, width = *x.shape[:2], w_in.shape[2]
    gates = np.zeros((4, batch, steps, width))
    memory, y = np.zeros((batch, steps, width)), np.zeros((batch, steps, width))
    for t in range(steps):
        before = y[:, t - 1] if t else np.zeros((batch, width))
        gates[:, :, t] = np.tanh(
            np.einsum("bi,ino->nbo", x[:, t], w_in)
            + np.einsum("bm,mno->nbo", before, w_hidden)
            + (b_in + b_hidden)[:, None]
        )
        i, f, g, o = gates[:, :, t]
        memory[:, t] = f * (memory[:, t - 1] if t else 0) + i * g
        y[:, t] = o * np.tanh(memory[:, t])
    values["*made"] = {"gates": gates, "memory": memory}
    return {op.outputs[0].tensor: y}


def recurred_back(op, at, kept, gradients):  # noqa: ARG001 - one signature
    yield from ()
    entry, made = op.inputs[0], op.outputs[0]
    x, y, gates, memory = kept[entry], kept[made], kept.made["gates"], kept.made["memory"]
    prefix = made.tensor.rpartition(".")[0]
    for name, axes in (("gates", ("n", *made.axes)), ("memory", made.axes)):
        own = next(o for o in op.saved if o.tensor.rpartition(".")[2] == name)
        kept.read(own.tensor, axes)
    del prefix
    w_in, _, w_hidden, _ = (kept[w] for w in op.weights)
    dy = gradients[made.tensor]
    dx, dw_in, dw_hidden = np.zeros_like(x), np.zeros_like(w_in), np.zeros_like(w_hidden)
    db, dh, dc = np.zeros(w_in.shape[1:]), np.zeros_like(y[:, 0]), np.zeros_like(y[:, 0])
    for t in reversed(range(y.shape[1])):
        i, f, g, o = gates[:, :, t]
        squashed = np.tanh(memory[:, t])
        total = dy[:, t] + dh
        dc = dc + total * o * (1 - squashed**2)
        before = memory[:, t - 1] if t else np.zeros_like(dc)
        raw = np.stack([dc * g, dc * before, dc * i, total * squashed]) * (1 - gates[:, :, t] ** 2)
        dx[:, t] = np.einsum("nbo,ino->bi", raw, w_in)
        dw_in += np.einsum("nbo,bi->ino", raw, x[:, t])
        db += raw.sum(axis=1)
        dh = np.einsum("nbo,mno->bm", raw, w_hidden)
        if t:
            dw_hidden += np.einsum("nbo,bm->mno", raw, y[:, t - 1])
        dc = dc * f
    return [(entry, dx), *zip(op.weights, (dw_in, db, dw_hidden, db), strict=True)]


# Fused groups: the ops inside, run again in backward.


def fused(op, at, values):
    inside = dict(values)
    for each in op.ops:
        inside |= yield from forward(each, at, inside)
    return {o.tensor: inside[o.tensor] for o in op.outputs}


def fused_back(op, at, kept, gradients):
    values = {"*first": True} | {o.tensor: kept[o] for o in (*op.inputs, *op.weights)}
    made = {}
    for each in op.ops:
        values |= yield from forward(each, at, values)
        made[each.path] = values.pop("*made", {})
    for operand in op.saved:
        kept.read(operand.tensor, operand.axes)
    given, terms = dict(gradients), {}
    for each in reversed(op.ops):
        for operand, term in (
            yield from backward(each, at, kept.inside(values, made[each.path]), given)
        ):
            terms[operand.tensor] = (operand, term)
            given[operand.tensor] = given.get(operand.tensor, 0) + term
    border = {o.tensor for o in (*op.inputs, *op.weights) if not o.constant}
    return [(operand, given[name]) for name, (operand, _) in terms.items() if name in border]


def _is(kind, *functions):
    names = set().union(*functions)
    return lambda op: isinstance(op, kind) and (not names or op.function in names)


RULES = (
    (_is(Einsum), product, product_back),
    (_is(Elementwise, NORMS), normed, normed_back),
    (
        _is(Elementwise, {"softmax", "softmax_single", "cross_entropy", "cross_entropy_values"}),
        softmax,
        softmax_back,
    ),
    (_is(Elementwise), function, function_back),
    (_is(Lookup), found, found_back),
    (_is(Conv), convolved, convolved_back),
    (_is(Scan), scanned, scanned_back),
    (_is(Recurrent), recurred, recurred_back),
    (_is(Fused), fused, fused_back),
)
"""How an op runs, by what it is: the first rule that fits."""
