"""What exporters write out of several operators and this library knows as one.

Layer norms, GELU, SiLU, products with a bias, reciprocal roots, and the zeros that softmax is given
where all of a row is masked. Something in the middle that is used elsewhere stays as it is.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from symbolic_cost.models.traced.onnx.file import Call, OnnxFile, Stored
from symbolic_cost.models.traced.onnx.weights import FLOATS

_TWO = 2
_CLOSE = 200


def folded(file: OnnxFile) -> OnnxFile:
    """Return a file with nodes that stand for several, and matrices of nodes beside the others."""
    own = {call.outputs[0]: call for call in file.calls if _is_matrix(call)}
    held = {name: replace(call.attributes["value"], name=name) for name, call in own.items()}
    calls = tuple(call for call in file.calls if own.get(call.outputs[0]) is not call)
    file = replace(file, calls=calls, stored={**file.stored, **held})
    return replace(file, calls=_Folds(file).calls())


def _is_matrix(call: Call) -> bool:
    """Tell whether a node holds numbers that may be a weight: some exporters write them so."""
    told = call.attributes.get("value") if call.op == "Constant" else None
    return isinstance(told, Stored) and told.dtype in FLOATS and len(told.dims) > 1


class _Folds:
    def __init__(self, file: OnnxFile) -> None:
        self._file = file
        self._makers = {name: call for call in file.calls for name in call.outputs if name}
        self._users: Counter[str] = Counter(name for call in file.calls for name in call.inputs)
        self._users.update(file.outputs)
        self._only: dict[str, Call] = {
            name: call for call in file.calls for name in call.inputs if self._users[name] == 1
        }
        self._gone: set[int] = set()
        self._instead: dict[int, Call] = {}
        self._constants: Mapping[str, Stored] = dict(file.stored) | {
            call.outputs[0]: call.attributes["value"]
            for call in file.calls
            if call.op == "Constant" and isinstance(call.attributes.get("value"), Stored)
        }

    def calls(self) -> tuple[Call, ...]:
        finders = {"Div": (self._layer_norm, self._rsqrt), "Reciprocal": (self._rsqrt,),
                   "Erf": (self._gelu,), "Sigmoid": (self._silu,), "Where": (self._safe,),
                   "MatMul": (self._linear, self._scaled)}  # fmt: skip
        for call in self._file.calls:
            for finder in finders.get(call.op, ()):
                if id(call) not in self._gone and finder(call):
                    break
        return tuple(
            self._instead.get(id(call), call)
            for call in self._file.calls
            if id(call) not in self._gone
        )

    # What stands around a node.

    def _by(self, name: str, *ops: str, alone: bool = True) -> Call | None:
        """Return what makes a value that nothing else takes, if it is one of some operators."""
        call = self._makers.get(name)
        right = call is not None and call.op in ops and id(call) not in self._gone
        return call if right and (not alone or self._users[name] == 1) else None

    def _next(self, name: str, *ops: str) -> Call | None:
        """Return the one node that takes a value, if it is one of some operators."""
        call = self._only.get(name)
        return call if call is not None and call.op in ops else None

    def _other(self, call: Call, name: str) -> str:
        return call.inputs[1] if call.inputs[0] == name else call.inputs[0]

    def _is(self, name: str, value: int, parts: int = 1) -> bool:
        """Tell whether a number is value / parts, in the precision of the file."""
        stored = self._constants.get(name)
        numbers = () if stored is None or stored.numbers is None else stored.numbers
        return len(numbers) == 1 and abs(numbers[0] * parts - value) * _CLOSE <= value

    def _row(self, name: str) -> int:
        stored = self._constants.get(name)
        return stored.dims[0] if stored is not None and len(stored.dims) == 1 else 0

    def _fold(self, last: Call, inner: Sequence[Call | None], op: str, inputs: Sequence[str],
              **attributes: object) -> bool:  # fmt: skip
        self._gone |= {id(call) for call in inner if call is not None}
        self._instead[id(last)] = replace(
            last, op=op, domain="", inputs=tuple(inputs), attributes=attributes
        )
        return True

    # What is found.

    def _layer_norm(self, div: Call) -> bool:
        """(x - mean(x)) / sqrt(mean((x - mean(x))**2) + eps), a scale, a shift."""
        less, root = self._makers.get(div.inputs[0]), self._by(div.inputs[1], "Sqrt")
        if less is None or less.op != "Sub" or root is None:
            return False
        added = self._by(root.inputs[0], "Add")
        variance = added and (
            self._by(added.inputs[0], "ReduceMean") or self._by(added.inputs[1], "ReduceMean")
        )
        power = variance and self._by(variance.inputs[0], "Pow", "Mul")
        again = power and self._centred(power, less)
        mean = self._by(less.inputs[1], "ReduceMean", alone=False)
        if not again or mean is None or mean.inputs[0] != less.inputs[0]:
            return False
        if self._users[mean.outputs[0]] > 1:
            return False
        scale = self._next(div.outputs[0], "Mul")
        weight = self._other(scale, div.outputs[0]) if scale else ""
        if scale is None or not self._row(weight):
            return False
        shift = self._next(scale.outputs[0], "Add")
        bias = self._other(shift, scale.outputs[0]) if shift else ""
        shifted = shift is not None and self._row(bias)
        last = shift if shifted and shift is not None else scale
        inner = [mean, less, power, variance, added, root, div, scale if shifted else None]
        inputs = [less.inputs[0], weight, *([bias] if shifted else [])]
        return self._fold(last, inner, "LayerNormalization", inputs, axis=-1)

    def _centred(self, power: Call, less: Call) -> Call | None:
        """Return what is squared, if it is what is divided, and nothing else takes it."""
        names = set(power.inputs) if power.op == "Mul" else {power.inputs[0]}
        square = power.op == "Mul" or self._is(power.inputs[1], 2)
        uses = len(power.inputs) if power.op == "Mul" else 1
        alone = self._users[less.outputs[0]] == uses + 1
        return less if square and alone and names == {less.outputs[0]} else None

    def _rsqrt(self, call: Call) -> bool:
        if call.op == "Div" and not self._is(call.inputs[0], 1):
            return False
        root = self._by(call.inputs[-1], "Sqrt")
        return root is not None and self._fold(call, [root], "Rsqrt", root.inputs)

    def _gelu(self, erf: Call) -> bool:
        """X * (1 + erf(x / sqrt(2))) / 2, in any order of its products."""
        scaled = self._by(erf.inputs[0], "Div", "Mul")
        plus = self._next(erf.outputs[0], "Add")
        if scaled is None or plus is None or not self._is(self._other(plus, erf.outputs[0]), 1):
            return False
        x = next((name for name in scaled.inputs if name not in self._constants), "")
        first = self._next(plus.outputs[0], "Mul")
        if first is None:
            return False
        factor = self._other(first, plus.outputs[0])
        half = self._by(factor, "Mul")
        if half is not None and x in half.inputs and self._is(self._other(half, x), 1, 2):
            return self._fold(first, [scaled, erf, plus, half], "Gelu", [x])
        second = self._next(first.outputs[0], "Mul")
        if second is None:
            return False
        factors = [factor, self._other(second, first.outputs[0])]
        if x not in factors or not any(self._is(one, 1, 2) for one in factors):
            return False
        return self._fold(second, [scaled, erf, plus, first], "Gelu", [x])

    def _silu(self, sigmoid: Call) -> bool:
        times = self._next(sigmoid.outputs[0], "Mul")
        if times is None or self._other(times, sigmoid.outputs[0]) != sigmoid.inputs[0]:
            return False
        return self._fold(times, [sigmoid], "Swish", sigmoid.inputs)

    def _safe(self, where: Call) -> bool:
        """Zeros where a softmax is no number."""
        test = self._by(where.inputs[0], "IsNaN")
        if test is None or where.inputs[2] != test.inputs[0] or not self._is(where.inputs[1], 0):
            return False
        return self._fold(where, [test], "Identity", test.inputs)

    def _scaled(self, scores: Call) -> bool:
        """Queries and keys, each times the root of the scale of their product."""
        sides = [self._by(name, "Mul") for name in scores.inputs]
        plain = [
            next((name for name in side.inputs if not self._alone(name)), "") if side else ""
            for side in sides
        ]
        if not all(plain) or any(side and len(set(side.inputs)) < _TWO for side in sides):
            return False
        factors = {self._other(side, name) for side, name in zip(sides, plain, strict=True) if side}
        if not all(map(self._alone, factors)):
            return False
        return self._fold(scores, sides, "MatMul", plain)

    def _alone(self, name: str) -> bool:
        stored = self._constants.get(name)
        return stored is not None and stored.count == 1

    def _linear(self, times: Call) -> bool:
        """A product with a matrix of the file, and a bias."""
        matrix = self._constants.get(times.inputs[1])
        plus = self._next(times.outputs[0], "Add")
        if matrix is None or plus is None or len(matrix.dims) != _TWO:
            return False
        bias = self._other(plus, times.outputs[0])
        if self._row(bias) != matrix.dims[1]:
            return False
        return self._fold(plus, [times], "Linear", (*times.inputs, bias))
