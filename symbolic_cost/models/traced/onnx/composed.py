"""Operators of ai.onnx that others of it compose."""

from fractions import Fraction

from symbolic_cost.models.traced.onnx.file import Call
from symbolic_cost.models.traced.onnx.rewriting import Rewriting, rewrites


@rewrites("LRN")
def across_channels(w: Rewriting, call: Call) -> None:
    """A tensor over a power of the mean of its squares on neighbouring channels."""
    x, size = call.inputs[0], call.attributes["size"]
    alpha, beta, bias = (
        w.number(call.attributes.get(name, usual))
        for name, usual in (("alpha", Fraction(1, 10_000)), ("beta", Fraction(3, 4)), ("bias", 1))
    )
    axis, before = w.integers(1), (size - 1) // 2
    squares = w.write("Unsqueeze", w.write("Mul", x, x), axis)
    pads = [before, 0, 0, size - 1 - before, 0, 0]
    mean = w.write("AveragePool", squares, kernel_shape=[size, 1, 1], pads=pads)
    scaled = w.write("Mul", w.write("Squeeze", mean, axis), alpha)
    power = w.write("Pow", w.write("Add", scaled, bias), beta)
    w.write("Div", x, power, to=call.outputs[0])


@rewrites("LpNormalization")
def to_unit_length(w: Rewriting, call: Call) -> None:
    """Vectors along a dimension over their lengths."""
    x, degree = call.inputs[0], call.attributes.get("p", 2)
    length = w.write(f"ReduceL{degree}", x, axes=[call.attributes.get("axis", -1)], keepdims=1)
    w.write("Div", x, length, to=call.outputs[0])


@rewrites("MeanVarianceNormalization")
def standardized(w: Rewriting, call: Call) -> None:
    """(x - mean(x)) / sqrt(mean((x - mean(x))**2)) along dimensions."""
    x, axes = call.inputs[0], call.attributes.get("axes") or [0, 2, 3]
    centred = w.write("Sub", x, w.write("ReduceMean", x, axes=axes))
    variance = w.write("ReduceMean", w.write("Mul", centred, centred), axes=axes)
    w.write("Div", centred, w.write("Sqrt", variance), to=call.outputs[0])
