"""Operators that arrange, choose and join elements."""

from collections.abc import Sequence
from math import prod

from symbolic_cost.models.traced.graph import Name, Size, number
from symbolic_cost.models.traced.onnx.file import Call, Stored
from symbolic_cost.models.traced.onnx.reading import INTEGER, Reading, op
from symbolic_cost.models.traced.onnx.sizes import (
    MOST,
    DataDependentError,
    Numbers,
    Sizes,
    as_integer,
    broadcast,
    product,
    quotient,
    reshaped,
    sliced,
)  # fmt: skip


@op("Reshape")
def reshape(r: Reading, call: Call) -> None:
    """Dimensions split and joined."""
    sizes, zeros = r.sizes(call.inputs[0]), bool(call.attributes.get("allowzero", 0))
    result = reshaped(sizes, r.constants(call, 1, "shape") or (), zeros=zeros)
    if product(result) != product(sizes):
        raise ValueError(f"{sizes} is not reshaped to {result}")
    r.moves("aten.reshape", result)


@op("Flatten")
def flatten(r: Reading, call: Call) -> None:
    """A matrix of what is before an axis and after it."""
    sizes = r.sizes(call.inputs[0])
    axis = call.attributes.get("axis", 1)
    axis = axis + len(sizes) if axis < 0 else axis
    r.moves("aten.reshape", (product(sizes[:axis]), product(sizes[axis:])))


@op("Transpose")
def transpose(r: Reading, call: Call) -> None:
    """Dimensions in another order."""
    name, sizes = call.inputs[0], r.sizes(call.inputs[0])
    order = call.attributes.get("perm") or list(reversed(range(len(sizes))))
    if sorted(order) != list(range(len(sizes))):
        raise ValueError(f"perm = {order} is no order of {len(sizes)} dimensions")
    made, known = r.moves("aten.permute", [sizes[at] for at in order], dims=order), r.numbers(name)
    if known is not None and len(sizes) == 2 and order == [1, 0]:  # noqa: PLR2004 - pads in pairs
        columns = int(sizes[1])
        r.know(made, [one for i in range(columns) for one in known[i::columns]])


@op("Unsqueeze", "Squeeze")
def squeeze(r: Reading, call: Call) -> None:
    """Dimensions of size 1 come and go."""
    sizes, axes = r.sizes(call.inputs[0]), r.constants(call, 1, "axes")
    if call.op == "Squeeze":
        places = range(len(sizes)) if axes is None else [int(a) % len(sizes) for a in axes]
        gone = {i for i in places if axes is not None or sizes[i] == 1}
        if any(sizes[i] != 1 for i in gone):
            raise ValueError(f"axes {axes}: only dimensions of size 1 go")
        r.moves("aten.squeeze", [size for i, size in enumerate(sizes) if i not in gone])
        return
    rank = len(sizes) + len(axes or ())
    new, old = {int(a) % rank for a in axes or ()}, iter(sizes)
    r.moves("aten.unsqueeze", [1 if i in new else next(old) for i in range(rank)])


@op("Expand")
def expand(r: Reading, call: Call) -> None:
    """Repetition along dimensions of size 1."""
    shape = tuple(r.constants(call, 1, "shape") or ())
    r.moves("aten.expand", broadcast(r.sizes(call.inputs[0]), shape))


@op("Tile")
def tile(r: Reading, call: Call) -> None:
    """Copies one after the other."""
    sizes, times = r.sizes(call.inputs[0]), list(r.constants(call, 1, "repeats") or ())
    result = [as_integer(number(a) * number(n)) for a, n in zip(sizes, times, strict=True)]
    r.moves("aten.repeat", result, repeats=times)


@op("Concat")
def concat(r: Reading, call: Call) -> None:
    """Tensors one after the other."""
    shapes = [r.sizes(name) for name in call.inputs]
    axis = call.attributes["axis"] % len(shapes[0])
    rest = {(*one[:axis], *one[axis + 1 :]) for one in shapes}
    if len(rest) > 1:
        raise ValueError(f"what is joined along dimension {axis} differs elsewhere")
    total = as_integer(sum((number(one[axis]) for one in shapes), start=number(0)))
    result = (*shapes[0][:axis], total, *shapes[0][axis + 1 :])
    names = [Name(name) for name in call.inputs]
    r.emit("aten.cat", {"tensors": names, "dim": axis}, result, r.dtype(call.inputs[0]))


@op("Split")
def split(r: Reading, call: Call) -> None:
    """All parts of a dimension."""
    name, sizes = call.inputs[0], r.sizes(call.inputs[0])
    axis = call.attributes.get("axis", 0) % len(sizes)
    lengths = r.constants(call, 1, "split") or _equal(sizes[axis], len(call.outputs))
    for output, length in zip(call.outputs, lengths, strict=True):
        r.make(output, (*sizes[:axis], length, *sizes[axis + 1 :]), r.dtype(name))
    r.emits("aten.split_with_sizes", {"self": Name(name), "dim": axis}, call.outputs)


def _equal(size: Size, count: int) -> Sizes:
    if isinstance(size, int) and size % count:
        each = -(-size // count)
        return (*[each] * (count - 1), size - each * (count - 1))
    return (quotient(size, count),) * count


@op("Slice")
def cut(r: Reading, call: Call) -> None:
    """Parts of dimensions, one after the other."""
    name, sizes = call.inputs[0], list(r.sizes(call.inputs[0]))
    starts, ends = r.constants(call, 1, "starts") or (), r.constants(call, 2, "ends") or ()
    axes = r.constants(call, 3, "axes") or tuple(range(len(starts)))
    steps = r.constants(call, 4, "steps") or (1,) * len(starts)
    known, source = r.numbers(name), name
    for i, (start, end, axis, step) in enumerate(zip(starts, ends, axes, steps, strict=True)):
        at = int(axis) % len(sizes)
        size, first, last = sliced(sizes[at], start, end, step)
        sizes[at] = size
        output: str | int = 0 if i == len(starts) - 1 else r.between()
        target = "aten.flip" if step == -1 else "aten.slice"
        args = {"self": Name(source), "dim": at, "dims": [at]}
        source = r.emit(target, args, sizes, r.dtype(name), output)
        if known is not None and at == 0 and len(starts) == 1 and isinstance(first, int):
            taken = slice(None, None, -1) if step == -1 else slice(first, last, int(step))
            _know_rows(r, source, known, taken)
    if not starts:
        r.moves("aten.alias", sizes)


def _know_rows(r: Reading, name: str, known: Numbers, taken: slice) -> None:
    """Note the numbers of rows that are taken of all."""
    width = prod(int(size) for size in r.sizes(name)[1:])
    rows = [known[at : at + width] for at in range(0, len(known), width)]
    r.know(name, [one for row in rows[taken] for one in row])


@op("Gather")
def gather(r: Reading, call: Call) -> None:
    """Positions of a dimension, by indices."""
    name, indices = call.inputs
    sizes, rows = r.sizes(name), r.sizes(indices)
    axis = call.attributes.get("axis", 0) % len(sizes)
    result = (*sizes[:axis], *rows, *sizes[axis + 1 :])
    known, chosen = r.numbers(name), r.numbers(indices)
    if known is not None and chosen is not None and len(sizes) == 1:
        r.make(call.outputs[0], result, r.dtype(name))
        r.know(call.outputs[0], [known[int(i)] for i in chosen])
        return
    if name in r.weights and axis == 0:
        args = {"weight": Name(name), "indices": Name(indices)}
        r.emit("aten.embedding", args, result, r.dtype(name))
    elif not rows:
        r.moves("aten.select", result, dim=axis)
    elif product(rows) == 1:
        args, one = {"self": Name(name), "dim": axis}, (*sizes[:axis], 1, *sizes[axis + 1 :])
        between = r.emit("aten.slice", args, one, r.dtype(name), r.between())
        r.emit("aten.reshape", {"self": Name(between)}, result, r.dtype(name))
    elif len(rows) == 1:
        r.moves("aten.index_select", result, dim=axis, index=Name(indices))
    else:
        r.moves("aten.index", result, indices=[None] * axis + [Name(indices)])


@op("GatherElements")
def picked(r: Reading, call: Call) -> None:
    """Elements along a dimension, by indices of their own."""
    name, indices = call.inputs
    axis = call.attributes.get("axis", 0) % r.rank(name)
    r.moves("aten.gather", r.sizes(indices), dim=axis, index=Name(indices))


@op("ScatterElements", "ScatterND", "Scatter")
def scattered(r: Reading, call: Call) -> None:
    """Elements written at places."""
    name, indices, values = call.inputs
    r.moves("aten.scatter", r.sizes(name), index=Name(indices), src=Name(values))


@op("GatherND")
def chosen(r: Reading, call: Call) -> None:
    """Elements by several indices at once."""
    name, indices = call.inputs
    sizes, rows = r.sizes(name), r.sizes(indices)
    lead = call.attributes.get("batch_dims", 0)
    result = (*rows[:-1], *sizes[lead + int(rows[-1]) :])
    if name in r.weights:
        if rows[-1] != 1 or lead:
            raise ValueError("rows of a parameter by several indices are not read")
        flat = r.emit("aten.reshape", {"self": Name(indices)}, rows[:-1], INTEGER, r.between())
        r.emit("aten.embedding", {"weight": Name(name), "indices": Name(flat)}, result)
        return
    target = "aten.index_put" if lead else "aten.take_along_dim"
    r.moves(target, result, dim=0, index=Name(indices))


@op("Pad")
def pad(r: Reading, call: Call) -> None:
    """Elements added at the ends."""
    sizes = r.sizes(call.inputs[0])
    pads = r.constants(call, 1, "pads") or ()
    axes = [int(a) % len(sizes) for a in r.constants(call, 3) or range(len(sizes))]
    added = dict.fromkeys(range(len(sizes)), (0, 0)) | {
        axis: (pads[i], pads[i + len(axes)]) for i, axis in enumerate(axes)
    }
    result = [
        as_integer(number(s) + number(added[i][0]) + number(added[i][1]))
        for i, s in enumerate(sizes)
    ]
    r.moves("aten.pad", result, pad=[end for i in reversed(range(len(sizes))) for end in added[i]])


@op("Shape")
def shape(r: Reading, call: Call) -> None:
    """Sizes as numbers."""
    sizes = r.sizes(call.inputs[0])
    taken = sizes[slice(call.attributes.get("start", 0), call.attributes.get("end"))]
    r.make(call.outputs[0], (len(taken),), INTEGER)
    r.know(call.outputs[0], taken)


@op("Size")
def size(r: Reading, call: Call) -> None:
    """The number of elements as a number."""
    r.make(call.outputs[0], (), INTEGER)
    r.know(call.outputs[0], (product(r.sizes(call.inputs[0])),))


@op("Range")
def steps(r: Reading, call: Call) -> None:
    """Numbers one after the other."""
    start, end, step = (_single(r, name) for name in call.inputs)
    count = as_integer((number(end) - number(start)) / number(step))
    r.emit("aten.arange", {}, (count,), r.dtype(call.inputs[0]))
    whole_ones = all(isinstance(one, int) for one in (start, step, count))
    if whole_ones and int(count) <= MOST:
        r.know(call.outputs[0], [int(start) + i * int(step) for i in range(int(count))])


def _single(r: Reading, name: str) -> Size:
    known = r.numbers(name)
    if known is None or len(known) != 1:
        raise DataDependentError(f"{name} depends on data")
    return known[0]


@op("ConstantOfShape")
def filled(r: Reading, call: Call) -> None:
    """One number at all places."""
    sizes = r.constants(call, 0) or ()
    value = call.attributes.get("value")
    stored = value if isinstance(value, Stored) else Stored("", (1,), 1, (0,))
    between = Stored("", tuple(1 for _ in sizes), stored.dtype, None)
    r.hold(call.outputs[0], between)
    r.make(call.outputs[0], sizes, r.dtype(call.outputs[0]))
    few = all(isinstance(one, int) for one in sizes) and prod(map(int, sizes)) <= MOST
    if few and stored.numbers and stored.numbers[0] == int(stored.numbers[0]):
        r.know(call.outputs[0], [int(stored.numbers[0])] * prod(map(int, sizes)))


@op("EyeLike", "RandomNormalLike", "RandomUniformLike", "Bernoulli")
def like(r: Reading, call: Call) -> None:
    """A tensor that takes of another its shape alone."""
    r.moves("aten.zeros_like", r.sizes(call.inputs[0]))


@op("OneHot")
def one_hot(r: Reading, call: Call) -> None:
    """A dimension of classes, one of which is marked."""
    sizes = list(r.sizes(call.inputs[0]))
    axis = call.attributes.get("axis", -1)
    sizes.insert(axis if axis >= 0 else axis + len(sizes) + 1, _single(r, call.inputs[1]))
    r.make(call.outputs[0], sizes, r.dtype(call.inputs[2]))


def resized(sizes: Sizes, wanted: Sequence[Size]) -> Sizes:
    """Return the sizes of a map that is resized: samples and channels as before."""
    if len(wanted) != len(sizes) or tuple(wanted[:2]) != tuple(sizes[:2]):
        raise ValueError("only positions of maps are resized")
    return tuple(wanted)


@op("Resize", "Upsample")
def resample(r: Reading, call: Call) -> None:
    """Maps between positions."""
    sizes = r.sizes(call.inputs[0])
    place = 3 if call.op == "Resize" else -1
    wanted = r.constants(call, place) if 0 < place < len(call.inputs) else None
    if not wanted:
        place = 2 if call.op == "Resize" and r.opset > 10 else 1  # noqa: PLR2004 - the opset that changed it
        factors = r.constants(call, place, "scales") or ()
        wanted = tuple(
            as_integer(number(a) * number(f)) for a, f in zip(sizes, factors, strict=True)
        )
    axes = call.attributes.get("axes")
    if axes:
        wanted = tuple(wanted[axes.index(i)] if i in axes else s for i, s in enumerate(sizes))
    r.moves("aten.upsample_nearest2d", resized(sizes, wanted))


@op("GridSample")
def sampled(r: Reading, call: Call) -> None:
    """Maps at other places, each between positions."""
    samples, channels, *_ = r.sizes(call.inputs[0])
    positions = r.sizes(call.inputs[1])[1:-1]
    r.moves("aten.grid_sampler", (samples, channels, *positions))


@op("DepthToSpace", "SpaceToDepth")
def shuffled(r: Reading, call: Call) -> None:
    """Channels to positions, and back."""
    samples, channels, *map_ = r.sizes(call.inputs[0])
    side = call.attributes["blocksize"]
    out = call.op == "DepthToSpace"
    result = (
        samples,
        quotient(channels, side**2) if out else as_integer(number(channels) * side**2),
        *(as_integer(number(s) * side) if out else quotient(s, side) for s in map_),
    )
    r.moves("aten.pixel_shuffle" if out else "aten.pixel_unshuffle", result)
