"""What an ONNX file says: nodes, shapes, and of its tensors names, dimensions and small integers.

Numbers of fields are those of onnx.proto3 (github.com/onnx/onnx, IR version 4 to 13).
"""

import struct
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

from symbolic_cost.errors import InputError, quote
from symbolic_cost.models.traced.onnx.wire import Wire, last, last_integer, plain, signed
from symbolic_cost.reading import mapped
from symbolic_cost.records import dataclass, field, replace

MOST_NODES = 200_000
MOST_NUMBERS = 4_096
"""Elements of the longest tensor whose numbers are read: shapes, axes, positions."""

_MOST_DIMENSIONS = 64
_PACKS = {1: "f", 2: "B", 3: "b", 4: "H", 5: "h", 6: "i", 7: "q", 9: "?", 11: "d", 12: "I", 13: "Q"}
"""How numbers of a data type stand in raw bytes."""

_KIND = "pkg.torch.export.graph_signature.InputSpec.kind"
_SPACE = "namespace"


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor of a file.

    Args:
        numbers: its elements, row by row, where they are few and are there.
        raw: bytes of its elements, which are looked at here and there.
        kind: what torch.export says that it is: "PARAMETER", "BUFFER"; empty if nothing does.
    """

    name: str
    dims: tuple[int, ...]
    dtype: int
    numbers: tuple[float, ...] | None = None
    kind: str = ""
    raw: memoryview | None = field(default=None, repr=False, compare=False)

    @property
    def count(self) -> int:
        """Number of its elements."""
        return prod(self.dims)


@dataclass(frozen=True, slots=True)
class Shape:
    """What is said of a value: dimensions are numbers, names, or None; None in all if nothing."""

    dtype: int
    dims: tuple[int | str | None, ...] | None


@dataclass(frozen=True, slots=True)
class Call:
    """A node of a file.

    Args:
        attributes: whole numbers, floats, texts, lists of them, tensors; None for a graph.
        path: of the module that calls it, as far as the file says.
        kind: class of that module.
    """

    op: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    path: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a file, by which nodes of its name are written out."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    calls: tuple[Call, ...]
    defaults: Mapping[str, Any]


@dataclass(frozen=True)
class OnnxFile:
    """A file as read."""

    place: str
    opset: int
    calls: tuple[Call, ...]
    stored: Mapping[str, Stored]
    inputs: Mapping[str, Shape]
    outputs: tuple[str, ...]
    shapes: Mapping[str, Shape] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ref:
    """An attribute of a function that its caller gives."""

    name: str


def read_onnx(source: str | Path | bytes, name: str = "") -> OnnxFile:
    """Read an ONNX file; weights stay where they are.

    Raises:
        InputError: no model, damaged, or too large.
    """
    place = name or (quote(str(source)) if not isinstance(source, bytes) else "the file")
    data = memoryview(source) if isinstance(source, bytes) else mapped(source, place)
    return _Reader(Wire(place)).model(data)


class _Reader:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._place = wire.place
        self._nodes = 0

    def model(self, data: memoryview) -> OnnxFile:
        held = self._wire.read(data, {7: plain, 8: self._opset, 25: self._function})
        graphs = [graph for graph in held[7] if isinstance(graph, memoryview)]
        opsets = [version for domain, version in held[8] if domain in ("", "ai.onnx")]
        if len(graphs) != 1 or not any(opsets[-1:]):
            raise self._wire.refusal("one graph and the version of its operators are expected")
        return self._graph(graphs[0], opsets[-1], dict(held[25]))

    def _opset(self, message: int | memoryview) -> tuple[str, int]:
        held = self._wire.read(message, {1: self._wire.text, 2: plain})
        return last(held[1]), last_integer(held[2])

    def _graph(
        self, data: memoryview, opset: int, functions: Mapping[tuple[str, str], Function]
    ) -> OnnxFile:
        values = dict.fromkeys((11, 12, 13), self._value)
        held = self._wire.read(data, {1: self._call, 5: self.tensor, 15: plain, **values})
        if held[15]:
            raise self._wire.refusal("sparse initializers are not read")
        inputs, outputs, shapes = ({name: shape for name, shape, _ in held[n]} for n in values)
        kinds = {name: kind for number in values for name, _, kind in held[number]}
        stored = {
            one.name: replace(one, kind=one.kind or kinds.get(one.name, "")) for one in held[5]
        }
        own = {name: shape for name, shape in inputs.items() if name not in stored}
        written = inlined(held[1], functions, self._place)
        return OnnxFile(
            self._place, opset, written, stored, own, tuple(outputs), {**outputs, **shapes}
        )

    def tensor(self, message: int | memoryview) -> Stored:
        wire = self._wire
        fields: dict[int, Any] = {1: self._dims, 8: wire.text, 16: self._kind}
        held = wire.read(message, fields | dict.fromkeys((2, 4, 5, 7, 9), plain))
        dims = [size for sizes in held[1] for size in sizes][: _MOST_DIMENSIONS + 1]
        name, dtype = last(held[8]), last_integer(held[2])
        if any(size < 0 for size in dims) or len(dims) > _MOST_DIMENSIONS:
            raise wire.refusal(f"tensor {quote(name)} has dimensions {quote(dims)}")
        raw = next((value for value in held[9][::-1] if isinstance(value, memoryview)), None)
        count, numbers = prod(dims), None
        if count <= MOST_NUMBERS and dtype in _PACKS:
            numbers = self._numbers(raw, (*held[4], *held[5], *held[7]), dtype, count)
        return Stored(name, tuple(dims), dtype, numbers, last(held[16]), raw)

    def _dims(self, value: int | memoryview) -> list[int]:
        return self._wire.varints(value, _MOST_DIMENSIONS)

    def _numbers(
        self, raw: memoryview | None, typed: Sequence[memoryview | int], dtype: int, count: int
    ) -> tuple[float, ...] | None:
        pack = _PACKS[dtype]
        if raw is not None:
            if len(raw) != count * struct.calcsize(f"<{pack}"):
                return None
            return struct.unpack(f"<{count}{pack}", raw)
        numbers: list[float] = []
        for value in typed:
            if pack == "f" and isinstance(value, memoryview) and len(value) % 4 == 0:
                numbers += struct.unpack(f"<{len(value) // 4}f", value)
            elif pack not in "fd":
                numbers += self._wire.varints(value, MOST_NUMBERS)
        return tuple(numbers) if len(numbers) == count else None

    def _value(self, message: int | memoryview) -> tuple[str, Shape, str]:
        held = self._wire.read(message, {1: self._wire.text, 2: self._type, 4: self._kind})
        shapes = [shape for shape in held[2] if shape is not None]
        return last(held[1]), (shapes or [Shape(0, None)])[-1], last(held[4])

    def _type(self, message: int | memoryview) -> Shape | None:
        """Return the shape of a tensor; None for values of another kind."""
        shapes = self._wire.read(message, {1: self._shape})[1]
        return shapes[-1] if shapes else None

    def _shape(self, message: int | memoryview) -> Shape:
        held = self._wire.read(message, {1: plain, 2: self._dimensions})
        return Shape(last_integer(held[1]), held[2][-1] if held[2] else None)

    def _dimensions(self, message: int | memoryview) -> tuple[int | str | None, ...]:
        return tuple(self._wire.read(message, {1: self._dim})[1])

    def _dim(self, message: int | memoryview) -> int | str | None:
        for number, value in self._wire.fields(message):
            if number == 1 and isinstance(value, int):
                return signed(value)
            if number == 2:
                return self._wire.text(value) or None
        return None

    def _kind(self, message: int | memoryview) -> str:
        return self._entry(message, _KIND)

    def _space(self, message: int | memoryview) -> str:
        return self._entry(message, _SPACE)

    def _entry(self, message: int | memoryview, key: str) -> str:
        """Return the value of a pair of texts if it has a key; others may be long."""
        texts = dict(self._wire.fields(message))
        if bytes(texts.get(1, b"")) != key.encode():
            return ""
        return self._wire.text(texts.get(2, memoryview(b"")))

    def _call(self, message: int | memoryview) -> Call:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise self._wire.refusal(f"has more than {MOST_NODES} nodes")
        texts = dict.fromkeys((1, 2, 3, 4, 7), self._wire.text)
        held = self._wire.read(message, {**texts, 5: self._attribute, 9: self._space})
        path, kind = _module(last(held[3]), last(held[9]))
        domain = last(held[7])
        domain = "" if domain == "ai.onnx" else domain
        inputs, outputs = tuple(held[1]), tuple(held[2])
        return Call(last(held[4]), domain, inputs, outputs, dict(held[5]), path, kind)

    def _attribute(self, message: int | memoryview) -> tuple[str, Any]:
        """Return name and value; a list where the kind is one of lists, or is not said."""
        name, kind = "", 0
        values: dict[int, list[Any]] = {}
        for number, value in self._wire.fields(message):
            if number == 1:
                name = self._wire.text(value)
            elif number == 20 and isinstance(value, int):
                kind = value
            elif number == 21:
                return name, Ref(self._wire.text(value))
            else:
                values.setdefault(number, []).extend(self._items(number, value))
        if kind in (1, 2, 3, 4):
            default: list[Any] = [0 if kind in (1, 2) else ""]
            return name, values.get(kind + 1, default)[0]
        return name, values.get(kind + 1, next(iter(values.values()), []) if not kind else [])

    def _items(self, number: int, value: int | memoryview) -> Sequence[Any]:
        """Return what a field of an attribute holds; None for a graph."""
        if number in (2, 7) and isinstance(value, memoryview) and len(value) % 4 == 0:
            return struct.unpack(
                f"<{min(len(value) // 4, MOST_NUMBERS)}f", value[: 4 * MOST_NUMBERS]
            )
        if number in (3, 8):
            return self._wire.varints(value, MOST_NUMBERS)
        if number in (4, 9):
            return (self._wire.text(value, 100_000),)
        return (self.tensor(value),) if number in (5, 10) else (None,)

    def _function(self, message: int | memoryview) -> tuple[tuple[str, str], Function]:
        texts = dict.fromkeys((1, 4, 5, 10), self._wire.text)
        held = self._wire.read(message, {**texts, 7: self._call, 11: self._attribute})
        domain = last(held[10])
        key = "" if domain == "ai.onnx" else domain, last(held[1])
        return key, Function(tuple(held[4]), tuple(held[5]), tuple(held[7]), dict(held[11]))


def _module(name: str, space: str) -> tuple[str, str]:
    """Return path and class of the module that calls a node.

    torch.onnx says ": Output/model: transformers.Bert/model.encoder: .../linear: aten.linear", or
    names the node /model/encoder/MatMul; the last is the node itself.
    """
    if space:
        parts = space.split("/")[:-1]
        path, _, kind = (parts[-1] if parts else "").partition(": ")
        return path.strip(": "), kind.rpartition(".")[2]
    return ".".join(part for part in name.split("/")[:-1] if part), ""


def inlined(
    calls: Sequence[Call], functions: Mapping[tuple[str, str], Function], place: str
) -> tuple[Call, ...]:
    """Write out calls of the file's own functions, values renamed.

    Raises:
        InputError: functions that call themselves, or too many nodes.
    """
    written: list[Call] = []

    def write(call: Call, depth: int) -> None:
        function = functions.get((call.domain, call.op))
        if function is None:
            written.append(call)
        if len(written) > MOST_NODES or depth > len(functions):
            raise InputError(f"{place}: functions call each other without end, or too often")
        if function is None:
            return
        prefix = f"{call.outputs[0] if call.outputs else ''}/{len(written)}/"
        names = dict(
            zip(function.inputs, (*call.inputs, *[""] * len(function.inputs)), strict=False)
        )
        names |= dict(zip(function.outputs, call.outputs, strict=False))

        def renamed(values: Sequence[str]) -> tuple[str, ...]:
            return tuple(names.get(v, prefix + v) if v else v for v in values)

        told = {**function.defaults, **call.attributes}
        for inner in function.calls:
            attributes = {
                key: told.get(value.name) if isinstance(value, Ref) else value
                for key, value in inner.attributes.items()
                if not isinstance(value, Ref) or value.name in told
            }
            write(
                Call(
                    inner.op, inner.domain, renamed(inner.inputs), renamed(inner.outputs),
                    attributes, inner.path or call.path, inner.kind or call.kind,
                ),
                depth + 1,
            )  # fmt: skip

    for call in calls:
        write(call, 0)
    return tuple(written)
