"""Products, attention, convolutions and pools."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from symbolic_cost.models.traced.graph import Name, Size, number
from symbolic_cost.models.traced.onnx.file import Call
from symbolic_cost.models.traced.onnx.reading import FLOAT, INTEGER, Reading, op
from symbolic_cost.models.traced.onnx.sizes import Sizes, as_integer, broadcast, windows

_MATRIX = 2


@op("MatMul")
def matmul(r: Reading, call: Call) -> None:
    """A product over the last and the last but one dimension."""
    one, other = call.inputs
    args = {"self": Name(one), "other": Name(other)}
    r.emit("aten.matmul", args, _times(r.sizes(one), r.sizes(other)))


def _times(one: Sizes, other: Sizes) -> Sizes:
    if not one or not other:
        raise ValueError("a number has no product over a dimension")
    left = one if len(one) > 1 else (1, *one)
    right = other if len(other) > 1 else (*other, 1)
    if left[-1] != right[-2]:
        raise ValueError(f"{left[-1]} columns meet {right[-2]} rows")
    rows = (left[-2],) if len(one) > 1 else ()
    columns = (right[-1],) if len(other) > 1 else ()
    return (*broadcast(left[:-2], right[:-2]), *rows, *columns)


@op("FusedMatMul")
def fused(r: Reading, call: Call) -> None:
    """A product of which a side is perhaps turned (of com.microsoft)."""
    if any(call.attributes.get(f"transBatch{side}", 0) for side in "AB"):
        raise ValueError("transBatchA and transBatchB are 0 where they are read")
    sides = []
    for name, side in zip(call.inputs, "AB", strict=True):
        sizes, rank = r.sizes(name), r.rank(name)
        if call.attributes.get(f"trans{side}", 0) and rank > 1:
            order = [*range(rank - 2), rank - 1, rank - 2]
            args, sizes = {"self": Name(name), "dims": order}, tuple(sizes[i] for i in order)
            name = r.emit("aten.permute", args, sizes, r.dtype(name), r.between())  # noqa: PLW2901
        sides.append((name, sizes))
    (one, left), (other, right) = sides
    r.emit("aten.matmul", {"self": Name(one), "other": Name(other)}, _times(left, right))


@op("Linear")
def linear(r: Reading, call: Call) -> None:
    """A product with a matrix, and a bias."""
    x, matrix, bias = call.inputs
    sizes = _times(r.sizes(x), r.sizes(matrix))
    args = {"self": Name(bias), "mat1": Name(x), "mat2": Name(matrix)}
    if bias in r.weights and matrix in r.weights:
        r.emit("aten.addmm", args, sizes)
        return
    product = r.emit("aten.matmul", {"self": Name(x), "other": Name(matrix)}, sizes, 7, r.between())
    r.emit("aten.add", {"self": Name(product), "other": Name(bias)}, sizes)


@op("Gemm")
def gemm(r: Reading, call: Call) -> None:
    """A product of matrices, each perhaps turned, and a bias."""
    sides = []
    for name, turned in zip(call.inputs[:2], ("transA", "transB"), strict=True):
        sizes, side = r.sizes(name), name
        if call.attributes.get(turned, 0):
            sizes = sizes[::-1]
            side = r.emit("aten.t", {"self": Name(name)}, sizes, r.dtype(name), r.between())
        sides.append((side, sizes))
    (x, left), (matrix, right) = sides
    bias = call.inputs[2] if len(call.inputs) > _MATRIX else ""
    result = _times(left, right)
    args: dict[str, Any] = {"self": Name(x), "other": Name(matrix)}
    if not bias:
        r.emit("aten.matmul", args, result)
    elif bias in r.weights and r.rank(bias) == 1:
        r.emit("aten.addmm", {"self": Name(bias), "mat1": Name(x), "mat2": Name(matrix)}, result)
    else:
        between = r.emit("aten.matmul", args, result, 7, r.between())
        r.emit("aten.add", {"self": Name(between), "other": r.arg(bias)}, result)


@op("Einsum")
def einsum(r: Reading, call: Call) -> None:
    """A product as its letters say."""
    text = call.attributes["equation"].replace(" ", "")
    inputs, arrow, result = text.partition("->")
    if not arrow or not re.fullmatch(r"[A-Za-z,]+->[A-Za-z]*", text):
        raise ValueError(f"equation {text!r}: letters, commas and an arrow are accepted")
    known: dict[str, Size] = {}
    for letters, name in zip(inputs.split(","), call.inputs, strict=True):
        for letter, size in zip(letters, r.sizes(name), strict=True):
            if known.setdefault(letter, size) != size:
                raise ValueError(f"equation {text!r}: {letter} is {known[letter]} and {size}")
    args = {"equation": text, "tensors": [Name(name) for name in call.inputs]}
    r.emit("aten.einsum", args, [known[letter] for letter in result])


@op("Attention")
def attention(r: Reading, call: Call) -> None:
    """Scores, softmax and weighted sum of heads (opset 23)."""
    if call.domain or any(call.inputs[4:]) or len(list(filter(None, call.outputs))) > 1:
        raise ValueError("attention of ai.onnx without a cache is read")
    names = call.inputs[:3]
    heads = [call.attributes.get(f"{side}_num_heads") for side in ("q", "kv", "kv")]
    sides = [_headed(r, name, many) for name, many in zip(names, heads, strict=True)]
    (q, queries), (k, _), (v, values) = sides
    args: dict[str, Any] = {"query": Name(q), "key": Name(k), "value": Name(v)}
    if len(call.inputs) > 3 and call.inputs[3]:  # noqa: PLR2004
        args["attn_mask"] = Name(call.inputs[3])
    args["is_causal"] = bool(call.attributes.get("is_causal", 0))
    args["enable_gqa"] = queries[1] != values[1]
    result = (*queries[:-1], values[-1])
    flat = r.rank(names[0]) == 3  # noqa: PLR2004 - heads in the last dimension
    between = r.emit(
        "aten.scaled_dot_product_attention", args, result, 7, r.between() if flat else 0
    )
    if flat:
        b, h, l, d = result
        turned = r.emit("aten.permute", {"self": Name(between), "dims": [0, 2, 1, 3]},
                        (b, l, h, d), 7, r.between())  # fmt: skip
        r.emit("aten.reshape", {"self": Name(turned)}, (b, l, as_integer(number(h) * number(d))))


@op("RotaryEmbedding")
def rotary(r: Reading, call: Call) -> None:
    """A rotation of heads by tables of half their width (opset 23)."""
    name = call.inputs[0]
    sizes = r.sizes(name)
    part = call.attributes.get("rotary_embedding_dim", 0)
    if call.domain or len(sizes) != 4 or part not in (0, sizes[-1]):  # noqa: PLR2004 - with heads
        raise ValueError("rotations of ai.onnx of whole heads [b, h, l, d] are read")
    table, width = (1, 1, *sizes[-2:]), sizes[-1]
    tables = [
        r.make(f"{r.angles(one)}/{side}/{width}", table, FLOAT)
        for one, side in zip(call.inputs[1:3], ("cos", "sin"), strict=True)
    ]
    args = {"input": Name(name), "cos": Name(tables[0]), "sin": Name(tables[1])}
    r.emit("onnx.rotary", args, sizes)


def _headed(r: Reading, name: str, heads: int | None) -> tuple[str, Sizes]:
    sizes = r.sizes(name)
    if len(sizes) == 4:  # noqa: PLR2004
        return name, sizes
    b, l, width = sizes
    if not heads or not isinstance(width, int) or width % heads:
        raise ValueError(f"{heads} heads of {width}")
    split = (b, l, heads, width // heads)
    apart = r.emit("aten.reshape", {"self": Name(name)}, split, 7, r.between())
    turned = (b, heads, l, width // heads)
    args = {"self": Name(apart), "dims": [0, 2, 1, 3]}
    return r.emit("aten.permute", args, turned, 7, r.between()), turned


def _numbers(call: Call, name: str, count: int, default: int) -> list[int]:
    numbers = call.attributes.get(name) or [default] * count
    if len(numbers) != count or any(value < 0 for value in numbers):
        raise ValueError(f"{name} = {numbers}: {count} whole numbers are accepted")
    return list(numbers)


def _pads(call: Call, spatial: int, spans: Sequence[int], strides: Sequence[int],
          sizes: Sequence[Size]) -> list[int]:  # fmt: skip
    auto = call.attributes.get("auto_pad", "NOTSET") or "NOTSET"
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        if any(not isinstance(size, int) for size in sizes):
            raise ValueError(f"auto_pad = {auto} of a dynamic size")
        places = zip(map(int, sizes), strides, spans, strict=True)
        return [
            max((-(-size // stride) - 1) * stride + span - size, 0) for size, stride, span in places
        ]
    pads = _numbers(call, "pads", 2 * spatial, 0) if auto == "NOTSET" else [0] * 2 * spatial
    return [pads[i] + pads[i + spatial] for i in range(spatial)]


@op("Conv", "ConvTranspose")
def conv(r: Reading, call: Call) -> None:
    """A convolution, or one the other way round."""
    x, w = call.inputs[:2]
    (samples, channels, *positions), kernel = r.sizes(x), r.sizes(w)
    spatial, groups = len(positions), call.attributes.get("group", 1)
    spans = [int(size) for size in kernel[2:]]
    strides, dilations = (_numbers(call, n, spatial, 1) for n in ("strides", "dilations"))
    wide = [d * (k - 1) + 1 for d, k in zip(dilations, spans, strict=True)]
    pads = _pads(call, spatial, wide, strides, positions)
    turned = call.op == "ConvTranspose"
    rows = number(kernel[0] if turned else as_integer(number(kernel[1]) * groups))
    if rows != number(channels):
        raise ValueError(f"{channels} channels meet a kernel of {rows}")
    out = as_integer(number(kernel[1]) * groups) if turned else kernel[0]
    if not turned:
        swept = list(map(windows, positions, wide, strides, pads))
    elif call.attributes.get("output_shape"):
        swept = list(call.attributes["output_shape"])[-spatial:]
    else:
        more = _numbers(call, "output_padding", spatial, 0)
        swept = [
            as_integer((number(p) - 1) * s + span + m - pad)
            for p, s, span, m, pad in zip(positions, strides, wide, more, pads, strict=True)
        ]
    args = {"input": Name(x), "weight": Name(w), "groups": groups, "transposed": turned}
    if len(call.inputs) > _MATRIX and call.inputs[2]:
        args["bias"] = Name(call.inputs[2])
    r.emit("aten.convolution", args, (samples, out, *swept))


@op("MaxPool", "AveragePool", "LpPool")
def pool(r: Reading, call: Call) -> None:
    """A reduction over windows."""
    name, (samples, channels, *positions) = call.inputs[0], r.sizes(call.inputs[0])
    spatial = len(positions)
    spans = _numbers(call, "kernel_shape", spatial, 1)
    strides, dilations = (_numbers(call, n, spatial, 1) for n in ("strides", "dilations"))
    wide = [d * (k - 1) + 1 for d, k in zip(dilations, spans, strict=True)]
    pads = _pads(call, spatial, wide, strides, positions)
    up = bool(call.attributes.get("ceil_mode", 0))
    swept = map(partial(windows, up=up), positions, wide, strides, pads)
    kind = "max_pool" if call.op == "MaxPool" else "avg_pool"
    sizes = (samples, channels, *swept)
    if len(call.outputs) > 1 and call.outputs[1]:
        r.make(call.outputs[1], sizes, INTEGER)
    r.emit(f"aten.{kind}{spatial}d", {"self": Name(name), "kernel_size": spans}, sizes)


@op("GlobalAveragePool", "GlobalMaxPool")
def whole_pool(r: Reading, call: Call) -> None:
    """A reduction over all positions."""
    name, sizes = call.inputs[0], r.sizes(call.inputs[0])
    dims = list(range(2, len(sizes)))
    kind = "mean" if "Average" in call.op else "sum"
    result = (*sizes[:2], *[1] * len(dims))
    r.emit(f"aten.{kind}", {"self": Name(name), "dim": dims, "keepdim": True}, result)
