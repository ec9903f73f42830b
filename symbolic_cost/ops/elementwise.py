"""Elementwise ops: activations, sums, norms, softmax, dropout, losses.

A kind says what its backward pass needs; the conventions say what it costs.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any

from symbolic_cost.conventions.questions import Role
from symbolic_cost.errors import PatternError, looked_up, refuse
from symbolic_cost.ledger import Phase
from symbolic_cost.ops.einsum import own_weights
from symbolic_cost.ops.op import Kernel, Op, RowWork
from symbolic_cost.ops.pattern import Operand, parse
from symbolic_cost.reading import package_data
from symbolic_cost.records import dataclass, replace


class Keeps(StrEnum):
    """What the backward pass of a kind needs."""

    NOTHING = "nothing"
    INPUTS = "inputs"
    OUTPUTS = "outputs"
    MASK = "mask"
    SINGLE_OUTPUTS = "outputs in single precision"
    SINGLE_INPUTS = "inputs in single precision"
    CAST_OUTPUTS = "outputs in single precision, where values are not"
    INDICES = "outputs that are indices"
    TARGETS = "outputs in single precision, the targets and their number"
    LOGARITHMS = "outputs along the rows"
    LOGARITHMS_TARGETS = "outputs along the rows, the targets and their number"


_SINGLE = {Keeps.SINGLE_OUTPUTS, Keeps.SINGLE_INPUTS, Keeps.CAST_OUTPUTS, Keeps.TARGETS}


@dataclass(frozen=True, slots=True)
class Kind:
    """What an elementwise function needs besides its FLOP; elementwise.toml explains the fields."""

    keeps: Keeps
    statistics: int = 0
    forward_reductions: int = 0
    backward_reductions: int = 0
    between: int = 0
    moments: bool = False
    like: str = ""
    scale: Role | None = None
    precise: bool = False
    of_weights: int = 0
    held: int = 0

    @property
    def is_single(self) -> bool:
        """Whether it runs in single precision."""
        return self.keeps in _SINGLE


BETWEEN = ".between"
"""Ends names of what a function makes on its way, and keeps beside what it takes or makes."""

PLAIN = Kind(Keeps.NOTHING)
"""What is true of an op that is none of them."""


def _kind(record: Mapping[str, Any]) -> Kind:
    scale = Role(record["scale"]) if "scale" in record else None
    return Kind(**{**record, "keeps": Keeps(record["keeps"]), "scale": scale})


KINDS: Mapping[str, Kind] = {
    name: _kind(record) for name, record in package_data("ops/elementwise.toml").items()
}
"""Every elementwise kind by name."""


@dataclass(frozen=True)
class Elementwise(Op):
    """One kind of function on every element or row; see the functions below.

    Args:
        row: axes along which it normalises, or along which it finds the largest.
        sums: axes over which its result is a sum.
        laid: axes of inputs whose elements the result holds under other axes: parts that are
            joined, positions that are cut into chunks. They add nothing to the work.
    """

    function: str
    row: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()
    laid: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """Name of the function, as the conventions know it."""
        return KINDS[self.function].like or self.function

    axis_fields = ("row", "sums", "laid")

    @property
    def bulk(self) -> bool:
        """Whether it has weights."""
        return bool(self.weights)

    @property
    def repeats(self) -> bool:
        """Whether it copies one tensor along further axes; joining two is no repetition."""
        copies = self.function == "copy" and len(self.inputs) == 1
        return copies and set(self.inputs[0].axes) <= set(self.outputs[0].axes)

    @property
    def row_axes(self) -> tuple[str, ...]:
        """Axes of a row."""
        return self.row

    @property
    def forward_reductions(self) -> int:
        """Values per row reduced in forward."""
        return KINDS[self.function].forward_reductions

    @property
    def backward_reductions(self) -> int:
        """Values per row reduced in backward."""
        return KINDS[self.function].backward_reductions

    @property
    def whole_axes(self) -> tuple[str, ...]:
        """Axes laid out anew: a rank lacks what its neighbours hold of them."""
        return self.laid

    @property
    def work_axes(self) -> tuple[str, ...]:
        """Axes of the work: those of the results, of rows and of sums."""
        return tuple(axis for axis in self.axes if axis not in self.laid)

    def summing_space(self, operand: Operand) -> tuple[str, ...]:
        """Return the axes over which an operand is summed where it lacks them.

        All of them but for a result: a norm of x[b e] along rows e gives y[b e] of row statistics,
        which ranks that split e reduce on their own, so that y is no sum over e.
        """
        if operand not in self.outputs:
            return self.axes
        return tuple(axis for axis in self.axes if axis in operand.axes or axis not in self.row)

    def kernels(self) -> tuple[Kernel, ...]:
        """Return one forward and one backward pass, and the weights' gradients with it."""
        extra = tuple(o for o in self.saves() if o not in self.inputs and o not in self.outputs)
        forward = Kernel(
            Phase.FORWARD,
            self.inputs + self.weights,
            self.outputs + tuple(o for o in extra if o.role is not Role.SINGLE),
            (RowWork(self.kind, self.work_axes, self.row, backward=False),),
        )
        gradients = tuple(o.gradient() for o in self.inputs if o.needs_gradient)
        reads = tuple(o.gradient() for o in self.outputs) + self.saves()
        linear = KINDS[self.function].keeps is Keeps.NOTHING
        backward = Kernel(
            Phase.BACKWARD_INPUT,
            reads + (() if linear else self.weights[:1]),
            gradients,
            (RowWork(self.kind, self.work_axes, self.row, backward=True),),
        )
        weights = tuple(
            Kernel(Phase.BACKWARD_WEIGHT, (), (weight.gradient(),), ())
            for weight in self.weights
            if weight.needs_gradient
        )
        if weights and not gradients:  # one pass makes those of the weights alone
            weights = (replace(backward, phase=Phase.BACKWARD_WEIGHT, reads=reads), *weights)
        return (forward, *((backward,) if gradients else ()), *weights)

    def counted_as(self, others: Mapping[str, str]) -> Op:
        """Return the op with the function that conventions name in place of its own, if any."""
        other = others.get(self.function)
        return self if other is None else replace(self, function=other)

    def saves(self) -> tuple[Operand, ...]:
        """Return what the kind keeps, and its statistics per row.

        A factor is kept for the gradients of the others. What a kind keeps for its weights alone
        is not kept where these are frozen, nor the rest where only they learn: the normalised
        values of an RMSNorm that is written out meet the gradient of its scale.
        """
        return self._saved

    @cached_property
    def _saved(self) -> tuple[Operand, ...]:
        if not self.live:
            return ()
        needs = KINDS[self.function]
        flows = any(operand.needs_gradient for operand in self.inputs)
        learns = any(weight.needs_gradient for weight in self.weights) or not self.weights
        if needs.of_weights and not learns:
            needs = replace(needs, between=needs.between - needs.of_weights)
        if needs.of_weights and not flows:
            needs = replace(needs, keeps=Keeps.NOTHING, statistics=0, scale=None)
            needs = replace(needs, between=needs.of_weights)
        first, saved = self.outputs[0], list(self._saved_operands(needs.keeps))
        if needs.between:
            role, name = (Role.SINGLE if needs.precise else first.role), f"{first.tensor}{BETWEEN}"
            saved.append(replace(first, tensor=name, role=role, copies=needs.between))
        if needs.statistics:
            rows = tuple(axis for axis in self.inputs[0].axes if axis not in self.row)
            role, name = (Role.MOMENT if needs.moments else Role.STATISTIC), "statistics"
            saved.append(Operand(f"{first.tensor}.{name}", rows, role, copies=needs.statistics))
        if needs.scale and self.weights:
            saved.append(Operand(f"{first.tensor}.scale", self.weights[0].axes, needs.scale))
        return tuple(saved)

    def _met(self) -> tuple[Operand, ...]:
        """Return the inputs; of a product those that meet the gradient of another one."""
        factors = (*self.inputs, *self.weights)
        if self.function != "mul" or len(factors) == 1:
            return self.inputs
        learning = {factor for factor in factors if factor.needs_gradient}
        return tuple(factor for factor in self.inputs if learning - {factor})

    def _saved_operands(self, keeps: Keeps) -> tuple[Operand, ...]:
        axes = self.inputs[0].axes

        def own(name: str, role: Role = Role.VALUE, axes: tuple[str, ...] = axes) -> Operand:
            return Operand(f"{self.outputs[0].tensor}.{name}", axes, role)

        kept: dict[Keeps, Callable[[], tuple[Operand, ...]]] = {
            Keeps.NOTHING: tuple,
            Keeps.INPUTS: self._met,
            Keeps.OUTPUTS: lambda: self.outputs,
            Keeps.MASK: lambda: (own("mask", Role.MASK, self.outputs[0].axes),),
            Keeps.SINGLE_OUTPUTS: lambda: (own("single", Role.SINGLE),),
            Keeps.SINGLE_INPUTS: lambda: (own("single", Role.SINGLE),),
            Keeps.CAST_OUTPUTS: lambda: (own("single", Role.CAST),),
            Keeps.INDICES: lambda: tuple(o for o in self.outputs if o.role is Role.INDEX),
            Keeps.TARGETS: lambda: (
                own("single", Role.SINGLE),
                *self.inputs[1:],
                own("number", Role.STATISTIC, ()),
            ),
            Keeps.LOGARITHMS: lambda: (own("logarithms"),),
            Keeps.LOGARITHMS_TARGETS: lambda: (
                own("logarithms"),
                *self.inputs[1:],
                own("number", axes=()),
            ),
        }
        return kept[keeps]()


def pointwise(
    name: str, pattern: str, function: str, *, row: str = "", sums: str = "", laid: str = ""
) -> Elementwise:
    """Declare a function of single elements: `pointwise("act", "u[b l f] -> a[b l f]", "gelu")`.

    An axis that the result lacks is declared, since it would multiply the work: `sums="a"` of
    `"many[b a] -> one[b]"`, `laid="m n"` of `"left[b m], right[b n] -> joined[b d]"`.

    Args:
        name: of the op.
        pattern: its tensors.
        function: its kind.
        row: axes of which it takes the largest.
        sums: axes over which the result is a sum.
        laid: axes whose elements the result holds under other axes.

    Raises:
        UnknownNameError: no such function.
        PatternError: the pattern does not parse, takes no tensor, adds a bias, or has an axis that
            the result lacks and nothing declares.
    """
    return _elementwise(name, pattern, function, row, sums=sums, laid=laid)


def dropout(name: str, pattern: str) -> Elementwise:
    """Declare a dropout, which keeps its mask."""
    return _elementwise(name, pattern, "dropout")


def norm(name: str, pattern: str, function: str, row: str) -> Elementwise:
    """Declare a norm: `norm("norm", "x[b l e], *g[e], *c[e] -> y[b l e]", "layer_norm", "e")`.

    Args:
        name: of the op.
        pattern: its tensors; the first weight is the scale.
        function: "layer_norm", "rms_norm", "batch_norm", "group_norm" or "instance_norm".
        row: axes along which it normalises.
    """
    return _elementwise(name, pattern, function, row)


def softmax(name: str, pattern: str, row: str, *, single: bool = False) -> Elementwise:
    """Declare a softmax along `row`, which keeps its result; `single` if in single precision."""
    function = "softmax_single" if single else "softmax"
    return _elementwise(name, pattern, function, row)


def cross_entropy(name: str, pattern: str, row: str, *, single: bool = True) -> Elementwise:
    """Declare a softmax cross-entropy over classes `row`, kept in single precision or not."""
    function = "cross_entropy" if single else "cross_entropy_values"
    return _elementwise(name, pattern, function, row)


def _elementwise(
    name: str, pattern: str, function: str, row: str = "", *, sums: str = "", laid: str = ""
) -> Elementwise:
    looked_up("elementwise function", function, KINDS)
    parsed = own_weights(name, parse(pattern))
    op = Elementwise(
        name, parsed, function, tuple(row.split()), tuple(sums.split()), tuple(laid.split())
    )
    problems = [*_undeclared(op), *_misdeclared(op)]
    if not op.inputs:
        problems.append("an elementwise op takes a tensor besides weights")
    problems += [
        f"only contractions add a '+ *{bias.tensor}'; declare an 'add'"
        for bias in parse(pattern).biases
    ]
    refuse([f"pattern {pattern!r}: {problem}" for problem in problems], PatternError)
    return op


def _undeclared(op: Elementwise) -> list[str]:
    """Say which axes of inputs the results lack though no sum, row or layout explains them."""
    results = {axis for operand in op.outputs for axis in operand.axes}
    explained = results | {*op.row, *op.sums, *op.laid}
    return [
        f"the result lacks axis {axis!r} of an input, which multiplies the work: "
        "name it in row, sums or laid"
        for axis in op.axes
        if axis not in explained
    ]


def _misdeclared(op: Elementwise) -> list[str]:
    """Say which axes are declared as what they are not."""
    first = op.pattern.inputs[0].axes
    results = {axis for operand in op.outputs for axis in operand.axes}
    problems = [
        f"row axis {axis!r} is not an axis of the first input"
        for axis in op.row
        if axis not in first
    ]
    return problems + [
        f"axis {axis!r} of {what} must be one of an input that the result lacks"
        for what, axes in (("sums", op.sums), ("laid", op.laid))
        for axis in axes
        if axis in results or axis not in op.axes
    ]
