"""Products in integers and tensors in few bits, as the real numbers that they stand for."""

from symbolic_cost.models.traced.onnx.file import Call
from symbolic_cost.models.traced.onnx.rewriting import MICROSOFT, Rewriting, rewrites

_BYTE = 8


@rewrites("QuantizeLinear", "DequantizeLinear")
@rewrites("QuantizeLinear", "DequantizeLinear", domain=MICROSOFT)
def rounded(w: Rewriting, call: Call) -> None:
    """The same numbers in other bits."""
    w.same(call.outputs[0], w.weight(call.inputs[0]))


@rewrites("DynamicQuantizeLinear")
def measured(w: Rewriting, call: Call) -> None:
    """The same numbers in integers, with a factor and an offset that are measured."""
    w.same(call.outputs[0], call.inputs[0])
    w.factors |= {*call.outputs[1:]}


@rewrites("Mul")
def scaled(w: Rewriting, call: Call) -> None:
    """A product, or integers that are scaled back."""
    plain = [name for name in call.inputs if name not in w.factors]
    if len(plain) == len(call.inputs):
        w.keep(call)
    elif all(name in w.stored for name in plain):
        w.factors.add(call.outputs[0])
    else:
        w.same(call.outputs[0], plain[0])


@rewrites("MatMulInteger", "ConvInteger")
def integer_product(w: Rewriting, call: Call) -> None:
    """A product of integers, whose offsets are not counted."""
    x, weight = call.inputs[:2]
    op = call.op.removesuffix("Integer")
    w.write(op, x, w.weight(weight), to=call.outputs[0], **call.attributes)


@rewrites("DynamicQuantizeMatMul", "MatMulIntegerToFloat", domain=MICROSOFT)
def scaled_product(w: Rewriting, call: Call) -> None:
    """A product of integers that are scaled back, and a bias."""
    bias = (*call.inputs, *[""] * 7)[4 if call.op.startswith("Dynamic") else 6]
    product = w.write("MatMul", call.inputs[0], w.weight(call.inputs[1]))
    w.sums(product, bias, to=call.outputs[0])


@rewrites("QLinearMatMul", "QLinearConv")
@rewrites("QGemm", domain=MICROSOFT)
def linear_product(w: Rewriting, call: Call) -> None:
    """A product of integers to integers: x, its factor and offset, the weight, its own, a bias."""
    op = {"QLinearMatMul": "MatMul", "QLinearConv": "Conv", "QGemm": "Gemm"}[call.op]
    place = {"MatMul": 99, "Conv": 8, "Gemm": 6}[op]
    x, weight, bias = (call.inputs[i] if i < len(call.inputs) else "" for i in (0, 3, place))
    bias = w.weight(bias) if bias else ""
    w.write(op, x, w.weight(weight), bias, to=call.outputs[0], **call.attributes)


@rewrites("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def linear_pair(w: Rewriting, call: Call) -> None:
    """A sum or a product of elements, each of which may be a weight."""
    one, other = (w.weight(call.inputs[i]) for i in (0, 3))
    w.write(call.op.removeprefix("QLinear"), one, other, to=call.outputs[0])


@rewrites("QLinearSoftmax", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearAveragePool",
          "QLinearGlobalAveragePool", "QLinearReduceMean", domain=MICROSOFT)  # fmt: skip
def linear_function(w: Rewriting, call: Call) -> None:
    """A function of one tensor in integers."""
    if call.attributes.get("channels_last", 0):
        raise ValueError("channels_last = 1: channels before positions are accepted")
    op = call.op.removeprefix("QLinear")
    w.write(op, call.inputs[0], to=call.outputs[0], **call.attributes)


@rewrites("QLinearConcat", domain=MICROSOFT)
def linear_concat(w: Rewriting, call: Call) -> None:
    """Tensors one after the other, each with a factor and an offset."""
    parts = [w.weight(name) for name in call.inputs[2::3]]
    w.write("Concat", *parts, to=call.outputs[0], **call.attributes)


@rewrites("MatMulNBits", domain=MICROSOFT)
def packed_product(w: Rewriting, call: Call) -> None:
    """A product with a matrix in blocks of few bits, and a bias."""
    x, matrix, *rest = (*call.inputs, *[""] * 4)[:6]
    rows, columns = call.attributes["K"], call.attributes["N"]
    blocks = -(-rows // call.attributes["block_size"])
    if w.dims(matrix)[:1] != (columns,) or blocks not in w.dims(matrix)[1:2]:
        raise ValueError(f"{w.dims(matrix)} are no {columns} columns of {blocks} blocks")
    product = w.write("MatMul", x, w.weight(matrix, (rows, columns)))
    w.sums(product, rest[3], to=call.outputs[0])


@rewrites("GatherBlockQuantized", domain=MICROSOFT)
def packed_lookup(w: Rewriting, call: Call) -> None:
    """Rows of a table in blocks of few bits, some in a byte."""
    table, ids = call.inputs[:2]
    *others, width = w.dims(table)
    packed = _BYTE // call.attributes.get("bits", 4) if w.stored[table].dtype == _BYTES else 1
    w.write("Gather", w.weight(table, (*others, width * packed)), ids, to=call.outputs[0],
            axis=call.attributes.get("gather_axis", 0))  # fmt: skip


_BYTES = 2
"""Number of the data type of bytes without a sign."""
