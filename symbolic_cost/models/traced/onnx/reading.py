"""From a file to the graph that a .pt2 file gives too: values with sizes, aten nodes."""

import ast
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import isfinite, prod
from operator import add, mul, sub
from typing import Any, TypeAlias

from sympy import Expr, Integer, Rational, floor

from symbolic_cost.errors import InputError, quote
from symbolic_cost.models.traced.graph import (
    Graph,
    Name,
    Node,
    Size,
    Value,
    refuse_unknown,
)
from symbolic_cost.models.traced.onnx.file import Call, OnnxFile, Shape, Stored
from symbolic_cost.models.traced.onnx.sizes import (
    MOST,
    SAME,
    DataDependentError,
    Numbers,
    Sizes,
    as_integer,
    evaluated,
)
from symbolic_cost.models.traced.onnx.weights import (
    copies,
    note_computed,
    parameter_names,
    weights_of,
)
from symbolic_cost.models.traced.shapes import dynamic

Meaning: TypeAlias = "Callable[[Reading, Call], None]"
OPS: dict[str, Meaning] = {}
"""What a node means, by the name of its operator."""

_DTYPES = {1: 7, 2: 1, 3: 2, 5: 3, 6: 4, 7: 5, 9: 12, 10: 6, 11: 8, 14: 10, 15: 11, 16: 13} | {
    17: 29, 18: 30, 19: 31, 20: 32
}  # fmt: skip
"""Numbers of data types in archives of torch.export, by those of ONNX."""

INTEGER, BOOLEAN, FLOAT = 5, 12, 7
_ENDLESS = 10**30
_MISREAD = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


def op(*names: str) -> Callable[[Meaning], Meaning]:
    """Register what operators mean."""

    def added(meaning: Meaning) -> Meaning:
        OPS.update(dict.fromkeys(names, meaning))
        return meaning

    return added


class Reading:
    """Goes through the nodes of a file, which stand in order.

    Args:
        file: as read, its nodes folded.
    """

    def __init__(self, file: OnnxFile) -> None:
        self.file, self.place = file, file.place
        self.opset = file.opset
        self.values: dict[str, Value] = {}
        self._numbers: dict[str, Numbers] = {}
        self.nodes: list[Node] = []
        self.call = Call("", "", (), (), {})
        self._path = ("", "")
        self.notes: Counter[str] = Counter()
        self.weights = weights_of(file, self.notes)
        for name, tensor in file.stored.items():
            self.hold(name, tensor)
        self._names = parameter_names(file, self.weights)
        for name, (own, flip) in copies(file, self.weights, self.notes).items():
            self.call = Call("Identity", "", (own,), (name,), {})
            target = "aten.t" if flip else "aten.alias"
            self.emit(target, {"self": Name(own)}, self.values[name].sizes)
            del self._names[name]
        note_computed(file, self._names, self.notes)
        self.dims, self._symbols = self._dynamic()
        for name, shape in file.inputs.items():
            self.values[name] = Value(
                self._declared_sizes(shape, name), _DTYPES.get(shape.dtype, INTEGER)
            )

    def graph(self) -> Graph:
        """Return the graph.

        Raises:
            InputError: operators that are not known, with count and shapes; sizes that cannot be
                told or contradict each other.
        """
        strange: Counter[str] = Counter()
        for call in self.file.calls:
            self.call = call
            self._path = (call.path, call.kind) if call.path else self._path
            meaning = OPS.get(call.op) if call.domain in ("", "com.microsoft") else None
            if meaning is None:
                strange[self._call_text(call)] += 1
                if not self._assumed(call):
                    break
                continue
            try:
                meaning(self, call)
                self._evaluate(call)
            except _MISREAD as error:
                unknown = isinstance(error, DataDependentError)
                if not unknown or not self._assumed(call):
                    raise InputError(self._misread(call, error)) from None
        refuse_unknown(self.place, strange)
        outputs = tuple(name for name in self.file.outputs if name in self.values)
        if not outputs:
            raise InputError(f"{self.place}: no node makes an output")
        names = self._names
        constants = frozenset(self.file.stored) - self.weights
        parameters = {name: value for value, name in names.items()}
        return Graph(
            self.place, self.values, tuple(self.nodes), names, parameters, constants,
            tuple(self.file.inputs), outputs, self.dims,
        )  # fmt: skip

    # What is known of values.

    def sizes(self, name: str) -> Sizes:
        """Return the sizes of a value."""
        if name not in self.values:
            raise InputError(
                f"{self.place}: {self.call.op} takes the value {quote(name)} before it is made"
            )
        return self.values[name].sizes

    def rank(self, name: str) -> int:
        """Return how many dimensions a value has."""
        return len(self.sizes(name))

    def dtype(self, name: str) -> int:
        """Return the data type of a value."""
        self.sizes(name)
        return self.values[name].dtype

    def numbers(self, name: str) -> Numbers | None:
        """Return the elements of a value where they are known."""
        return self._numbers.get(name)

    def constants(self, call: Call, place: int, attribute: str = "") -> Numbers | None:
        """Return numbers that a node takes as an attribute, or as an input; None if as neither.

        Raises:
            DataDependentError: they depend on data.
        """
        told = call.attributes.get(attribute)
        if told is not None:
            return tuple(told) if isinstance(told, list) else (told,)
        if place >= len(call.inputs) or not call.inputs[place]:
            return None
        numbers = self.numbers(call.inputs[place])
        if numbers is None:
            raise DataDependentError(f"{attribute or call.inputs[place]} depends on data")
        return numbers

    def arg(self, name: str) -> Any:  # noqa: ANN401 - any argument
        """Return what a node takes: a value, a number, or None."""
        if not name:
            return None
        self.sizes(name)
        known = self._numbers.get(name)
        alone = known is not None and len(known) == 1 and name not in self.weights
        if alone and known is not None and not isinstance(known[0], Expr):
            return float(known[0]) if self.values[name].floating else int(known[0])
        return Name(name)

    def hold(self, name: str, tensor: Stored) -> None:
        """Note a tensor of the file."""
        self.values[name] = Value(tensor.dims, _DTYPES.get(tensor.dtype, INTEGER))
        if tensor.numbers is not None and len(tensor.numbers) <= MOST and name not in self.weights:
            self._numbers[name] = tuple(_exact(one) for one in tensor.numbers)

    def know(self, name: str, numbers: Sequence[Size]) -> None:
        """Note the elements of a value."""
        self._numbers[name] = tuple(numbers)

    # What nodes make.

    def make(self, name: str, sizes: Sequence[Size], dtype: int) -> str:
        """Note a value that a node makes."""
        if any(isinstance(size, int) and size < 0 for size in sizes):
            raise ValueError(f"sizes {', '.join(map(str, sizes))}")
        self.values[name] = Value(tuple(sizes), dtype)
        return name

    def emit(
        self, target: str, args: Mapping[str, Any], sizes: Sequence[Size], dtype: int = FLOAT,
        output: str | int = 0,
    ) -> str:  # fmt: skip
        """Write a node with one result, which is an output of the call at hand, or between."""
        name = self.call.outputs[output] if isinstance(output, int) else output
        self.make(name, sizes, dtype)
        self.emits(target, args, [name])
        return name

    def moves(self, target: str, sizes: Sequence[Size], **args: Any) -> str:  # noqa: ANN401
        """Write a node that takes the first input of the call at hand, and makes its data type."""
        name = self.call.inputs[0]
        return self.emit(target, {"self": Name(name), **args}, sizes, self.dtype(name))

    def angles(self, name: str) -> str:
        """Return what a cosine or a sine is of; the value itself if it is none."""
        node = next((one for one in reversed(self.nodes) if one.outputs == (name,)), None)
        known = node is not None and node.target in ("aten.cos", "aten.sin")
        return str(node.args["self"].text) if node is not None and known else name

    def between(self) -> str:
        """Return the name of a value between two nodes for one call."""
        return f"{self.call.outputs[0]}/{len(self.nodes)}"

    def emits(self, target: str, args: Mapping[str, Any], outputs: Sequence[str]) -> None:
        """Write a node with several results, which are noted already."""
        made = (len(self.nodes), target, "", dict(args), tuple(outputs), *self._path)
        self.nodes.append(Node(*made))

    # Dynamic dimensions.

    def _dynamic(self) -> tuple[dict[str, str], dict[str, Expr]]:
        """Name the dynamic dimensions of the inputs; those without a name are one each."""
        places: dict[str, tuple[str, str]] = {}
        for name, shape in self.file.inputs.items():
            for place, dim in enumerate(shape.dims or ()):
                if not isinstance(dim, int) or dim <= 0:
                    text = dim if isinstance(dim, str) and dim.isidentifier() else f"{name}/{place}"
                    if dim is None or dim == text or not isinstance(dim, str):
                        kind = "batch" if place == 0 else "length"
                        places.setdefault(text, (kind, f"dimension {place} of {name}"))
        symbols = dynamic(places)
        return {symbols[text].name: where for text, (_, where) in places.items()}, symbols

    def _declared_sizes(self, shape: Shape, name: str) -> Sizes:
        if shape.dims is None:
            raise InputError(f"{self.place}: input {quote(name)} has no shape")
        return tuple(
            dim
            if isinstance(dim, int) and dim > 0
            else self._symbols[f"{name}/{place}"]
            if f"{name}/{place}" in self._symbols
            else read_dim(str(dim), self._symbols, self.place)
            for place, dim in enumerate(shape.dims)
        )

    # What is not understood.

    def _assumed(self, call: Call) -> bool:
        """Take results at the shapes that the file gives them; tell whether it does."""
        for name in filter(None, call.outputs):
            shape = self.file.shapes.get(name)
            if shape is None or shape.dims is None or None in shape.dims:
                return False
            try:
                sizes = tuple(
                    dim if isinstance(dim, int) else read_dim(str(dim), self._symbols, self.place)
                    for dim in shape.dims
                )
            except InputError:
                return False
            self.make(name, sizes, _DTYPES.get(shape.dtype, INTEGER))
        names = [Name(name) for name in call.inputs if name in self.values]
        self.emits(f"onnx.{call.op}", {str(i): name for i, name in enumerate(names)}, call.outputs)
        return True

    def _call_text(self, call: Call) -> str:
        shapes = [
            f"[{', '.join(map(str, self.values[name].sizes))}]"
            for name in call.inputs
            if name in self.values
        ]
        domain = f"{call.domain}." if call.domain else ""
        return f"{domain}{call.op} of {', '.join(shapes) or 'nothing'}"

    def _misread(self, call: Call, error: Exception) -> str:
        said = quote(str(error)) if str(error) else type(error).__name__
        return f"{self.place}: {self._call_text(call)} in {call.path or 'the model'}: {said}"

    def _evaluate(self, call: Call) -> None:
        """Follow the numbers through a node, where they are few and known."""
        (output, *_) = (*call.outputs, "")
        if output not in self.values or output in self._numbers or not call.inputs:
            return
        sizes = self.values[output].sizes
        if any(isinstance(size, Expr) for size in sizes) or prod(map(int, sizes)) > MOST:
            return
        taken = [self._numbers.get(name) for name in call.inputs if name]
        known = [one for one in taken if one is not None]
        if len(known) < (1 if call.op in ("Unsqueeze", "Squeeze", "Reshape") else len(taken)):
            return
        if taken[0] is None or (len(sizes) > 1 and call.op not in SAME - {"Concat"}):
            return
        numbers = evaluated(call.op, known, integer=not self.values[output].floating)
        if numbers is not None and len(numbers) == prod(map(int, sizes)):
            self._numbers[output] = numbers


def _exact(value: float) -> Size:
    """Return a number of the file exactly; what is none or endless only bounds masks."""
    if not isfinite(value):
        return _ENDLESS
    number = Rational(value)
    return int(number) if number.is_Integer else number


_OPERATORS: Mapping[type[ast.operator], Callable[[Expr, Expr], Expr]] = {
    ast.Add: add,
    ast.Sub: sub,
    ast.Mult: mul,
    ast.FloorDiv: lambda one, other: floor(one / other),
}


def read_dim(text: str, symbols: Mapping[str, Expr], place: str) -> Size:
    """Return the size that a text says, which is parsed and never evaluated.

    Raises:
        InputError: anything but sums, differences, products and whole quotients of known names.
    """
    try:
        return as_integer(_expr(ast.parse(text.strip(), mode="eval").body, symbols))
    except (SyntaxError, ValueError, KeyError, RecursionError, MemoryError, ZeroDivisionError):
        raise InputError(
            f"{place}: dimension {quote(text)} is no sum, product or whole quotient of dimensions "
            f"of the inputs: {', '.join(symbols) or 'none is dynamic'}"
        ) from None


def _expr(node: ast.expr, symbols: Mapping[str, Expr]) -> Expr:
    match node:
        case ast.Name(id=name):
            return symbols[name]
        case ast.Constant(value=int(value)) if type(value) is int:
            return Integer(value)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_expr(left, symbols), _expr(right, symbols))
    raise ValueError(ast.unparse(node))
