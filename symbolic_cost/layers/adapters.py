"""Adapters: narrow trained products beside or behind frozen ones.

Axes: rank, the narrow width; others as in the products that they stand at.

LoRA adds to x W the product x A B over a narrow width, so that a target and its adapter share an
input and a result:

    y[b l f] = x[b l e] w[e f] + (x[b l e] a[e rank]) b[rank f]

Tensor-parallel ranks split A with a target that sums over what they split, and B with one whose
result they split. A stands before the positions of x are gathered and B behind where those of y are
scattered, so that narrow tensors move in place of wide ones, as in PEFT's Megatron layers.

A bottleneck stands behind its target and adds to the result: y' = y + gelu(y a + c) b + d.
"""

from collections.abc import Iterator, Mapping, Sequence

from sympy import Expr

from symbolic_cost.axes import At, Glossary, Role, axes
from symbolic_cost.ops.declare import Op, Operand, pointwise
from symbolic_cost.ops.einsum import Call, Einsum, einsum
from symbolic_cost.ops.pattern import is_tied
from symbolic_cost.ops.view import View, view
from symbolic_cost.records import dataclass, field

AXES = axes("rank latent")

FIRST = ".lora_a"
"""Ends the path of an adapter's first product, behind that of its target."""

_RESTING = At(Role.TOKEN, ("residual", "patch"))
"""Positions between layers."""


def is_target(op: Op) -> bool:
    """Whether an op is a linear layer: one tensor times one weight."""
    linear = isinstance(op, Einsum) and not op.frozen and op.call is not Call.BARE
    return linear and len(op.inputs) == 1 and len(op.pattern.inputs) == 2  # noqa: PLR2004 - x and w


@dataclass(frozen=True)
class Adapter:
    """LoRA at one product of a part.

    Source: hu-2021, section 4.1.

    Args:
        ops: of the part.
        target: the product.
        glossary: roles of the axes.
        rank: axis of the narrow width.
        sizes: of the axes.
    """

    ops: Sequence[Op]
    target: Op
    glossary: Glossary
    rank: str = "rank"
    sizes: Mapping[str, Expr] = field(default_factory=dict)

    @property
    def _weight(self) -> Operand:
        return next(operand for operand in self.target.pattern.inputs if operand.is_weight)

    @property
    def _is_one(self) -> bool:
        """Whether all uses of the part are one layer, as in ALBERT: the model shares every weight.

        A layer that shares some, as Zamba's, is made anew for each use, and only then tied.
        """
        return all(is_tied(weight) for op in self.ops for weight in op.weights)

    def _own(self, op: str, *names: str) -> str:
        """Write a weight of an op of the adapter: of the whole model where its target's is."""
        place = f"{self._weight.tensor}.{op}." if self._is_one else ""
        return f"*{place}{op[-1]}[{_text(*names)}]"

    def _rests(self, op: Op, outside: Operand) -> bool:
        """Whether an op does no more than to rename positions, outside those of the residual.

        One that takes fewer of them, as the first token of a pooler, does more.
        """
        if type(op) is not View or op.parts:
            return False
        pairs = list(zip(op.inputs[0].axes, op.outputs[0].axes, strict=True))
        if any(self.sizes.get(old) != self.sizes.get(new) for old, new in pairs):
            return False
        changed = {axis for pair in pairs if len({*pair}) > 1 for axis in pair}
        rest = [axis for axis in outside.axes if axis in changed]
        resting = all(axis in self.glossary and self.glossary[axis] in _RESTING for axis in rest)
        return resting and not changed & {*self._weight.axes}

    @property
    def _before(self) -> View | None:
        """The view that makes the target's input, before which the adapter's stands."""
        (x,) = self.target.inputs
        writers = (op for op in self.ops if x in op.outputs)
        return next((op for op in writers if self._rests(op, op.inputs[0])), None)  # type: ignore[return-value]

    @property
    def _behind(self) -> View | None:
        """The view of the target's result, behind which the adapter's is added."""
        (y,) = self.target.outputs
        users = [op for op in self.ops if y.tensor in {operand.tensor for operand in op.inputs}]
        alone = len(users) == 1 and self._rests(users[0], users[0].outputs[0])
        return users[0] if alone else None  # type: ignore[return-value]

    def attached(self) -> tuple[Op, ...]:
        """Return the ops of the part with the adapter."""
        last = self._behind or self.target
        (y,) = last.outputs
        base = y.renamed(f"{y.tensor}.base")
        return tuple(
            each
            for op in self.ops
            for each in (
                (op.mapped(lambda o: base if o == y else o), *self._declared(base, y))
                if op is last
                else (op,)
            )
        )

    def _declared(self, base: Operand, y: Operand) -> Iterator[Op]:
        path, (x,), weight = self.target.path, self.target.inputs, self._weight
        before = self._before
        taken = x if before is None else before.inputs[0]
        result = self.target.outputs[0].axes
        summed = tuple(axis for axis in weight.axes if axis not in result)
        every = tuple(axis for axis in weight.axes if axis in result and axis in x.axes)
        columns = tuple(axis for axis in weight.axes if axis in result and axis not in x.axes)
        low, wide = f"{path}.low", f"{path}.wide"
        rows = tuple(axis for axis in x.axes if axis not in summed)
        early = tuple(axis for axis in taken.axes if axis not in summed)
        late = tuple(axis for axis in y.axes if axis not in columns)
        first = self._own("lora_a", *every, *summed, self.rank)
        yield einsum(
            f"{path}{FIRST}",
            f"{_operand_text(taken)}, {first} -> {low}[{_text(*early, self.rank)}]",
        )
        if early != rows:
            yield view(f"{path}.lora_in", _renamed(low, early, f"{low}_in", rows, self.rank))
            low = f"{low}_in"
        if rows != late and {*rows} != {*late}:
            there = tuple(self._later(axis) for axis in rows)
            yield view(f"{path}.lora_out", _renamed(low, rows, f"{low}_out", there, self.rank))
            low, rows = f"{low}_out", there
        second = self._own("lora_b", *every, self.rank, *columns)
        yield einsum(
            f"{path}.lora_b", f"{low}[{_text(*rows, self.rank)}], {second} -> {_like(wide, y)}"
        )
        scaled = f"{path}.scaled"
        yield pointwise(f"{path}.lora_scale", f"{_like(wide, y)} -> {_like(scaled, y)}", "scale")
        yield pointwise(
            f"{path}.lora_add",
            f"{_operand_text(base)}, {_like(scaled, y)} -> {_operand_text(y)}",
            "add",
        )

    def _later(self, axis: str) -> str:
        """Return the name of an axis behind the view of the target's result."""
        behind = self._behind
        if behind is None:
            return axis
        names = dict(zip(behind.inputs[0].axes, behind.outputs[0].axes, strict=True))
        return names.get(axis, axis)


class Bottleneck(Adapter):
    """A narrow perceptron behind one product of a part.

    Source: houlsby-2019, section 2.1.
    """

    def _declared(self, base: Operand, y: Operand) -> Iterator[Op]:
        path, rank = self.target.path, self.rank
        columns = [axis for axis in self._weight.axes if axis in y.axes]
        rows = [axis for axis in y.axes if axis not in columns]
        low, bent, wide = (f"{path}.{name}" for name in ("low", "bent", "wide"))
        narrow = f"[{_text(*rows, rank)}]"
        down, up = self._own("down_a", *columns, rank), self._own("up_b", rank, *columns)
        yield einsum(
            f"{path}.adapter_down",
            f"{_operand_text(base)}, {down} + {self._own('down_c', rank)} -> {low}{narrow}",
        )
        yield pointwise(f"{path}.adapter_act", f"{low}{narrow} -> {bent}{narrow}", "gelu")
        yield einsum(
            f"{path}.adapter_up",
            f"{bent}{narrow}, {up} + {self._own('up_d', *columns)} -> {_like(wide, y)}",
        )
        yield pointwise(
            f"{path}.adapter_add",
            f"{_operand_text(base)}, {_like(wide, y)} -> {_operand_text(y)}",
            "add",
        )


def _renamed(
    tensor: str, old: tuple[str, ...], result: str, new: tuple[str, ...], rank: str
) -> str:
    return f"{tensor}[{_text(*old, rank)}] -> {result}[{_text(*new, rank)}]"


def _text(*names: str) -> str:
    return " ".join(names)


def _operand_text(operand: Operand) -> str:
    return _like(operand.tensor, operand)


def _like(name: str, operand: Operand) -> str:
    role = "" if operand.role == "value" else f":{operand.role.value}"
    return f"{name}[{_text(*operand.axes)}]{role}"
