"""What a runtime fuses into one node or computes in integers, written as the nodes it stands for.

So are operators that others compose. A rule says what a node is by nodes of ai.onnx; their sizes
and costs are known to the rest. So the file of an optimised or quantised network counts what that
of the network itself does.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import TypeAlias

from symbolic_cost.errors import InputError
from symbolic_cost.models.traced.onnx.file import Call, OnnxFile, Stored
from symbolic_cost.models.traced.onnx.weights import FLOATS, MOVED
from symbolic_cost.records import replace

Rule: TypeAlias = "Callable[[Rewriting, Call], None]"
_RULES: dict[tuple[str, str], Rule] = {}
MICROSOFT = "com.microsoft"
"""Domain of the operators of ONNX Runtime (docs/ContribOperators.md of its repository)."""

_FLOAT, _INTEGER = 1, 7
_FEWER_BITS = "weights stand in integers: a job keeps them in its own precision"
_LOOKED_UP = MOVED | {"Gather"}


def rewrites(*names: str, domain: str = "") -> Callable[[Rule], Rule]:
    """Register what operators stand for."""

    def added(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(((domain, name) for name in names), rule))
        return rule

    return added


class Rewriting:
    """Goes through the nodes of a file, and writes others.

    Args:
        file: as read.
    """

    def __init__(self, file: OnnxFile) -> None:
        self._file = file
        self.stored = dict(file.stored)
        self.notes: Counter[str] = Counter()
        self.factors: set[str] = set()
        """Values that only scale integers."""
        self._calls: list[Call] = []
        self._same: dict[str, str] = {}
        self._makers: dict[str, Call] = {}
        self._caches: set[str] = set()
        self._call = Call("", "", (), (), {})

    def file(self) -> OnnxFile:
        """Return the file with other nodes.

        Raises:
            InputError: a fused node is used in a way that has no rule.
        """
        for call in self._file.calls:
            self._call = replace(call, inputs=tuple(map(self._name, call.inputs)))
            rule = _RULES.get((call.domain, call.op))
            try:
                self.keep(self._call) if rule is None else rule(self, self._call)
            except (ValueError, LookupError, TypeError) as error:
                text = f"{call.domain}.{call.op}".lstrip(".")
                where = call.path or "the model"
                raise InputError(f"{self._file.place}: {text} in {where}: {error}") from None
        outputs = tuple(map(self._name, self._file.outputs))
        calls, inputs = tuple(self._calls), dict(self._file.inputs)
        if self._caches:
            calls = _needed(calls, outputs)
            taken = {name for call in calls for name in call.inputs}
            inputs = {name: one for name, one in inputs.items() if name in taken}
        return replace(self._file, calls=calls, stored=self.stored, outputs=outputs, inputs=inputs)

    def _name(self, name: str) -> str:
        return self._same.get(name, name)

    # What rules write.

    def keep(self, call: Call) -> None:
        """Write a node as it stands."""
        self._calls.append(call)
        self._makers.update(dict.fromkeys(filter(None, call.outputs), call))

    def write(self, op: str, *inputs: str, to: str = "", **attributes: object) -> str:
        """Write a node of ai.onnx in the place of the one at hand; return its result."""
        return self.parts(op, inputs, (to or self._between(),), **attributes)[0]

    def parts(
        self, op: str, inputs: Sequence[str], to: Sequence[str], **attributes: object
    ) -> Sequence[str]:
        """Write a node with several results; return them."""
        while inputs and not inputs[-1]:
            inputs = inputs[:-1]
        here = self._call
        self.keep(Call(op, "", tuple(inputs), tuple(to), attributes, here.path, here.kind))
        return to

    def same(self, output: str, source: str) -> None:
        """Let a result be what something else is already."""
        self._same[output] = source

    def integers(self, *numbers: int) -> str:
        """Return a constant of whole numbers."""
        name = f"integers {', '.join(map(str, numbers))}"
        self.stored[name] = Stored(name, (len(numbers),), _INTEGER, numbers)
        return name

    def number(self, value: float | Fraction) -> str:
        """Return a constant of one number."""
        name = f"/number {value}"  # a slash: no name of a module
        self.stored[name] = Stored(name, (), _FLOAT, (float(value),))
        return name

    def sums(self, name: str, other: str, to: str = "") -> str:
        """Return a sum, of which one may be absent."""
        if other:
            return self.write("Add", name, other, to=to)
        return self.write("Identity", name, to=to) if to else name

    def between(self, count: int) -> tuple[str, ...]:
        """Return names of values between nodes."""
        return tuple(f"{self._between()}/{part}" for part in range(count))

    def _between(self) -> str:
        return f"{next(filter(None, self._call.outputs), '')}/plain/{len(self._calls)}"

    def cached(self, *names: str) -> None:
        """Take caches that are inputs of the file as empty.

        Raises:
            ValueError: caches that nodes make.
        """
        if any(name and name not in self._file.inputs for name in names):
            raise ValueError("caches that are inputs of the file are accepted")
        if any(names):
            self._caches |= {*filter(None, names)}
            self.notes["caches are taken as empty: prompts are counted"] = 1

    # Weights in integers.

    def weight(self, name: str, dims: Sequence[int] | None = None) -> str:
        """Take what a tensor of the file stands for as a weight, perhaps of other dimensions."""
        root = name
        while root not in self.stored and root in self._makers:
            maker = self._makers[root]
            if maker.op not in _LOOKED_UP:
                return name
            root = maker.inputs[0]
        one = self.stored.get(root)
        if one is not None and (one.dtype not in FLOATS or dims is not None):
            own = one.dims if dims is None else tuple(dims)
            self.stored[root] = replace(one, dtype=_FLOAT, dims=own, numbers=None)
            self.notes[_FEWER_BITS] = 1
        return name

    def dims(self, name: str) -> tuple[int, ...]:
        """Return the dimensions of a tensor of the file.

        Raises:
            ValueError: it is none.
        """
        if name not in self.stored:
            raise ValueError(f"{name or 'what is left out'} is no tensor of the file")
        return self.stored[name].dims


def _needed(calls: Iterable[Call], outputs: Iterable[str]) -> tuple[Call, ...]:
    """Return the nodes that outputs come from: what only caches took is gone."""
    wanted = set(outputs)
    left = []
    for call in reversed(tuple(calls)):
        if not wanted.isdisjoint(call.outputs):
            wanted.update(call.inputs)
            left.append(call)
    return tuple(left[::-1])
