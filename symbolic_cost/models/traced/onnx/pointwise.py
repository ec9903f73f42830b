"""Operators on elements and rows, as the aten operators that they are."""

from symbolic_cost.models.traced.graph import Name
from symbolic_cost.models.traced.onnx.file import Call, Stored
from symbolic_cost.models.traced.onnx.reading import (
    BOOLEAN,
    FLOAT,
    INTEGER,
    OPS,
    Meaning,
    Reading,
    op,
)
from symbolic_cost.models.traced.onnx.sizes import Sizes, broadcast

_ALIKE = (
    "Relu Elu Selu Celu Sigmoid HardSigmoid HardSwish Mish Softplus Tanh Erf Exp Log Sqrt "
    "Reciprocal Neg Abs Sin Cos Tan Asin Acos Atan Sinh Cosh Gelu Rsqrt"
)
_ALONE = {name: name.lower() for name in _ALIKE.split()}
_ALONE |= dict.fromkeys(("Floor", "Ceil", "Round", "Sign"), "abs")
_ALONE |= dict.fromkeys(("Softsign", "ThresholdedRelu", "Shrink"), "threshold")
_ALONE |= dict.fromkeys(("FastGelu", "QuickGelu"), "gelu")
_ALONE |= {"LeakyRelu": "leaky_relu", "Swish": "silu", "Clip": "clamp"}
_ALONE |= {"Asinh": "asin", "Acosh": "acos", "Atanh": "atan"}
"""Functions of one tensor; numbers that bound or slope them have no cost."""

_SEVERAL = dict.fromkeys(("Add", "Sum", "Mean"), "add")
_SEVERAL |= {"Sub": "sub", "Mul": "mul", "Div": "div", "Pow": "pow", "Mod": "remainder"}
_SEVERAL |= {"Max": "maximum", "Min": "minimum", "PRelu": "prelu"}
_TRUTHS = {name: f"logical_{name.lower()}" for name in ("And", "Or", "Xor", "Not")}
_TRUTHS |= {"Equal": "eq", "IsNaN": "isnan", "IsInf": "isinf"}
_TRUTHS |= {"Greater": "gt", "GreaterOrEqual": "ge", "Less": "lt", "LessOrEqual": "le"}


def _shapes(r: Reading, call: Call) -> Sizes:
    return broadcast(*(r.sizes(name) for name in call.inputs if name))


def _alone(target: str) -> Meaning:
    def meaning(r: Reading, call: Call) -> None:
        r.moves(f"aten.{target}", r.sizes(call.inputs[0]))

    return meaning


def _several(target: str) -> Meaning:
    def meaning(r: Reading, call: Call) -> None:
        name = call.inputs[0]
        if len(call.inputs) == 1:
            same(r, call)
            return
        if target == "pow" and isinstance(r.arg(call.inputs[1]), int | float):
            r.moves("aten.pow", r.sizes(name), exponent=r.arg(call.inputs[1]))
            return
        taken, sizes = r.arg(name), r.sizes(name)
        for place, other in enumerate(call.inputs[1:], 1):
            sizes = broadcast(sizes, r.sizes(other))
            last = place == len(call.inputs) - 1
            result = r.emit(
                f"aten.{target}", {"self": taken, "other": r.arg(other)}, sizes, r.dtype(name),
                0 if last else r.between(),
            )  # fmt: skip
            taken = Name(result)

    return meaning


def _truths(target: str) -> Meaning:
    def meaning(r: Reading, call: Call) -> None:
        args = {str(i): r.arg(name) for i, name in enumerate(call.inputs)}
        r.emit(f"aten.{target}", args, _shapes(r, call), BOOLEAN)

    return meaning


OPS |= {name: _alone(target) for name, target in _ALONE.items()}
OPS |= {name: _several(target) for name, target in _SEVERAL.items()}
OPS |= {name: _truths(target) for name, target in _TRUTHS.items()}


@op("Identity", "CastLike")
def same(r: Reading, call: Call) -> None:
    """The same elements."""
    r.moves("aten.alias", r.sizes(call.inputs[0]))


@op("Cast")
def cast(r: Reading, call: Call) -> None:
    """The same elements in another precision."""
    name, to = call.inputs[0], call.attributes["to"]
    dtype = BOOLEAN if to == 9 else FLOAT if to in (1, 10, 11, 16) else INTEGER  # noqa: PLR2004 - numbers of data types
    r.emit("aten._to_copy", {"self": Name(name)}, r.sizes(name), dtype)


@op("Dropout")
def dropout(r: Reading, call: Call) -> None:
    """Dropout, where training is on; opset 12 and later say so by an input."""
    name = call.inputs[0]
    on = len(call.inputs) > 2 and r.arg(call.inputs[2]) == 1  # noqa: PLR2004
    ratio = r.arg(call.inputs[1]) if len(call.inputs) > 1 else None
    args = {"input": Name(name), "p": 1 if ratio is None else ratio, "train": on}
    r.emit("aten.dropout", args, r.sizes(name), r.dtype(name))
    if len(call.outputs) > 1 and call.outputs[1]:
        r.make(call.outputs[1], r.sizes(name), BOOLEAN)


@op("Where")
def where(r: Reading, call: Call) -> None:
    """One tensor or the other."""
    condition, one, other = call.inputs
    sizes = _shapes(r, call)
    args = {"condition": r.arg(condition), "self": r.arg(one), "other": r.arg(other)}
    r.emit("aten.where", args, sizes, r.dtype(one))


@op("Softmax", "LogSoftmax")
def softmax(r: Reading, call: Call) -> None:
    """Softmax along a dimension; before opset 13 along that and all after it."""
    name = call.inputs[0]
    rank = r.rank(name)
    old = r.opset < 13  # noqa: PLR2004 - the opset that changed it
    axis = call.attributes.get("axis", 1 if old else -1) % rank
    if old and axis != rank - 1 and any(size != 1 for size in r.sizes(name)[axis + 1 :]):
        raise ValueError(f"rows of the dimensions from {axis} on, as before opset 13, are not read")
    target = "softmax" if call.op == "Softmax" else "log_softmax"
    dim = -1 if axis == rank - 1 else axis
    r.emit(f"aten.{target}", {"self": Name(name), "dim": dim}, r.sizes(name))


@op("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
    "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare", "ArgMax", "ArgMin")  # fmt: skip
def reduction(r: Reading, call: Call) -> None:
    """Sums and the like over dimensions."""
    name, keep = call.inputs[0], bool(call.attributes.get("keepdims", 1))
    sizes = r.sizes(name)
    argument = call.op.startswith("Arg")
    axes = (call.attributes.get("axis", 0),) if argument else r.constants(call, 1, "axes")
    if not axes and call.attributes.get("noop_with_empty_axes"):
        same(r, call)
        return
    gone = {axis % len(sizes) for axis in axes or range(len(sizes))}
    left = [1 if i in gone else size for i, size in enumerate(sizes) if keep or i not in gone]
    dims = [-1] if gone == {len(sizes) - 1} else sorted(gone)
    dtype = INTEGER if argument else r.dtype(name)
    kind = "mean" if call.op == "ReduceMean" else "argmax" if argument else "sum"
    r.emit(f"aten.{kind}", {"self": Name(name), "dim": dims, "keepdim": keep}, left, dtype)


@op("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")
def layer_norm(r: Reading, call: Call) -> None:
    """A norm along the last dimensions."""
    name = call.inputs[0]
    sizes = r.sizes(name)
    axis = call.attributes.get("axis", -1) % len(sizes)
    weights = [r.arg(one) for one in call.inputs[1:3]] + [None, None]
    target = "layer_norm" if call.op == "LayerNormalization" else "rms_norm"
    args = {"input": Name(name), "normalized_shape": list(sizes[axis:]),
            "weight": weights[0], "bias": weights[1]}  # fmt: skip
    r.emit(f"aten.{target}", args, sizes)
    for place, output in enumerate(call.outputs[1:], 1):
        if output:
            r.make(call.outputs[place], (*sizes[:axis], *[1] * (len(sizes) - axis)), FLOAT)


@op("BatchNormalization", "InstanceNormalization", "GroupNormalization")
def channel_norm(r: Reading, call: Call) -> None:
    """Norms of channels, or of groups of them."""
    name, weight, bias = call.inputs[:3]
    target = {"B": "batch_norm", "I": "instance_norm", "G": "group_norm"}[call.op[0]]
    args = {"input": Name(name), "weight": Name(weight), "bias": Name(bias)}
    if target == "group_norm":
        args["num_groups"] = call.attributes["num_groups"]
    r.emit(f"aten.{target}", args, r.sizes(name))


@op("CumSum")
def cumulated(r: Reading, call: Call) -> None:
    """Sums up to every position."""
    (axis,) = r.constants(call, 1) or (0,)
    r.moves("aten.cumsum", r.sizes(call.inputs[0]), dim=axis)


@op("TopK")
def top(r: Reading, call: Call) -> None:
    """The largest along a dimension, and where they are."""
    name = call.inputs[0]
    (count,) = r.constants(call, 1, "k") or ()
    sizes = r.sizes(name)
    axis = call.attributes.get("axis", -1) % len(sizes)
    result = (*sizes[:axis], count, *sizes[axis + 1 :])
    r.make(call.outputs[0], result, r.dtype(name))
    r.make(call.outputs[1], result, INTEGER)
    r.emits("aten.topk", {"self": Name(name), "k": count, "dim": axis}, call.outputs)


@op("Trilu")
def triangle(r: Reading, call: Call) -> None:
    """One half of a matrix."""
    upper = call.attributes.get("upper", 1)
    r.moves("aten.triu" if upper else "aten.tril", r.sizes(call.inputs[0]))


@op("Constant")
def constant(r: Reading, call: Call) -> None:
    """Numbers that stand in the node."""
    name = call.outputs[0]
    ((key, told),) = call.attributes.items()
    if isinstance(told, Stored):
        r.hold(name, told)
        return
    if key.startswith("value_string") or key == "sparse_value":
        raise ValueError(f"a constant of kind {key} is not read")
    items = told if isinstance(told, list) else [told]
    dtype = 7 if key.startswith("value_int") else 1
    dims = (len(items),) if isinstance(told, list) else ()
    r.hold(name, Stored(name, dims, dtype, tuple(items)))
