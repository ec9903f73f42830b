"""Elementwise ops: activations, sums, norms, softmax, dropout, losses.

A kind says what its backward pass needs; the conventions say what it costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from symbolic_cost.conventions.questions import Role
from symbolic_cost.errors import PatternError, UnknownNameError, unknown
from symbolic_cost.ledger import Phase
from symbolic_cost.ops.einsum import own_weights
from symbolic_cost.ops.op import Kernel, Op, RowWork
from symbolic_cost.ops.pattern import Operand, parse


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


@dataclass(frozen=True, slots=True)
class Kind:
    """What an elementwise function needs besides its FLOP.

    Args:
        keeps: what is saved for backward.
        statistics: values saved per row.
        forward_reductions: values per row that ranks sharing a row reduce in forward.
        backward_reductions: the same in backward.
        between: intermediate results of the result's shape that are saved besides.
        moments: whether the statistics are moments, kept as values by some kernels.
        like: the kind that it is counted as, if not its own.
    """

    keeps: Keeps
    statistics: int = 0
    forward_reductions: int = 0
    backward_reductions: int = 0
    between: int = 0
    moments: bool = False
    like: str = ""


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "activation": Kind(Keeps.INPUTS),
        "gelu": Kind(Keeps.INPUTS),
        "gelu_tanh": Kind(Keeps.INPUTS),
        # written out: half the input, the tanh, and one more
        "gelu_new": Kind(Keeps.INPUTS, between=3, like="gelu_tanh"),
        "silu": Kind(Keeps.INPUTS),
        "relu": Kind(Keeps.OUTPUTS),
        "tanh": Kind(Keeps.OUTPUTS),
        "relu6": Kind(Keeps.INPUTS),
        "sigmoid": Kind(Keeps.OUTPUTS),
        "softplus": Kind(Keeps.INPUTS),
        "exp": Kind(Keeps.OUTPUTS),
        "rnn_cell": Kind(Keeps.OUTPUTS),
        "gru_cell": Kind(Keeps.INPUTS),
        "lstm_cell": Kind(Keeps.INPUTS),
        "add": Kind(Keeps.NOTHING),
        "copy": Kind(Keeps.NOTHING),
        "mul": Kind(Keeps.INPUTS),
        "scale": Kind(Keeps.NOTHING),
        "sum": Kind(Keeps.NOTHING),
        "rotary": Kind(Keeps.NOTHING),
        "angles": Kind(Keeps.OUTPUTS),
        "choice": Kind(Keeps.INDICES),
        # the expert and the place of every copy
        "order": Kind(Keeps.OUTPUTS, between=1),
        # the sum of a row
        "ratio": Kind(Keeps.INPUTS, statistics=1),
        "gathered_sum": Kind(Keeps.INPUTS, like="sum"),
        "softcap": Kind(Keeps.OUTPUTS),
        "dropout": Kind(Keeps.MASK),
        # the factors themselves, in single precision
        "dropout_noise": Kind(Keeps.SINGLE_OUTPUTS, like="dropout"),
        # maximum and sum of exponentials | sum of y dy
        "softmax": Kind(Keeps.OUTPUTS, forward_reductions=2, backward_reductions=1),
        # mean and mean square | the two row sums of the gradient
        "layer_norm": Kind(
            Keeps.INPUTS, statistics=2, forward_reductions=2, backward_reductions=2, moments=True
        ),
        "rms_norm": Kind(Keeps.INPUTS, statistics=1, forward_reductions=1, backward_reductions=1),
        # on a copy in single precision, normalised before it is cast back and scaled
        "rms_norm_single": Kind(
            Keeps.SINGLE_INPUTS,
            statistics=1,
            forward_reductions=1,
            backward_reductions=1,
            between=1,
            like="rms_norm",
        ),
        "softmax_single": Kind(
            Keeps.CAST_OUTPUTS, forward_reductions=2, backward_reductions=1, like="softmax"
        ),
        # each rank normalises over its own samples
        "batch_norm": Kind(Keeps.INPUTS, statistics=2),
        # maximum, sum of exponentials and the target's logit; backward is local
        "cross_entropy": Kind(Keeps.SINGLE_OUTPUTS, forward_reductions=3),
        "cross_entropy_targets": Kind(Keeps.TARGETS, forward_reductions=3, like="cross_entropy"),
        # logits that are not copied to single precision
        "cross_entropy_values": Kind(Keeps.LOGARITHMS, forward_reductions=3, like="cross_entropy"),
        "cross_entropy_values_targets": Kind(
            Keeps.LOGARITHMS_TARGETS, forward_reductions=3, like="cross_entropy"
        ),
    }
)
"""Every elementwise kind by name."""


@dataclass(frozen=True)
class Elementwise(Op):
    """One kind of function on every element or row; see the functions below."""

    function: str
    row: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """Name of the function, as the conventions know it."""
        return KINDS[self.function].like or self.function

    @property
    def bulk(self) -> bool:
        """Whether it has weights."""
        return bool(self.weights)

    @property
    def repeats(self) -> bool:
        """Whether it copies."""
        return self.function == "copy"

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

    def summing_space(self, operand: Operand) -> tuple[str, ...]:
        """Return all axes; those outside the rows for a result, whose row sums are reduced."""
        if operand not in self.outputs:
            return self.axes
        return tuple(axis for axis in self.axes if axis in operand.axes or axis not in self.row)

    def kernels(self) -> tuple[Kernel, ...]:
        """Return one forward and one backward pass, and the weights' gradients with it."""
        made = tuple(o for o in self.saves() if o not in self.inputs and o not in self.outputs)
        forward = Kernel(
            Phase.FORWARD,
            self.inputs + self.weights,
            self.outputs + tuple(o for o in made if o.role is not Role.SINGLE),
            (RowWork(self.kind, self.axes, self.row, backward=False),),
        )
        gradients = tuple(o.gradient() for o in self.inputs if o.needs_gradient)
        backward = Kernel(
            Phase.BACKWARD_INPUT,
            tuple(o.gradient() for o in self.outputs) + self.saves() + self._factors(),
            gradients,
            (RowWork(self.kind, self.axes, self.row, backward=True),),
        )
        weights = tuple(
            Kernel(Phase.BACKWARD_WEIGHT, (), (weight.gradient(),), ()) for weight in self.weights
        )
        return (forward, *((backward,) if gradients else ()), *weights)

    def saves(self) -> tuple[Operand, ...]:
        """Return what the kind keeps, and its statistics per row."""
        needs = KINDS[self.function]
        first = self.outputs[0]
        rows = tuple(axis for axis in self.inputs[0].axes if axis not in self.row)
        role = Role.MOMENT if needs.moments else Role.STATISTIC
        besides = (
            replace(first, tensor=f"{first.tensor}.between", copies=needs.between),
            Operand(f"{first.tensor}.statistics", rows, role, copies=needs.statistics),
        )
        return self._kept(needs.keeps) + tuple(operand for operand in besides if operand.copies)

    def _factors(self) -> tuple[Operand, ...]:
        """Return the weight that gradients are multiplied by: none where the function is linear."""
        linear = KINDS[self.function].keeps is Keeps.NOTHING
        return () if linear else self.weights[:1]

    def _kept(self, keeps: Keeps) -> tuple[Operand, ...]:
        first, result = self.inputs[0], self.outputs[0]
        single = Operand(f"{result.tensor}.single", first.axes, Role.SINGLE)
        logarithms = Operand(f"{result.tensor}.logarithms", first.axes)
        number = Operand(f"{result.tensor}.number", ())
        kept: dict[Keeps, tuple[Operand, ...]] = {
            Keeps.NOTHING: (),
            Keeps.INPUTS: self.inputs,
            Keeps.OUTPUTS: self.outputs,
            Keeps.MASK: (Operand(f"{result.tensor}.mask", result.axes, Role.MASK),),
            Keeps.SINGLE_OUTPUTS: (single,),
            Keeps.SINGLE_INPUTS: (single,),
            Keeps.CAST_OUTPUTS: (replace(single, role=Role.CAST),),
            Keeps.INDICES: tuple(o for o in self.outputs if o.role is Role.INDEX),
            Keeps.TARGETS: (single, *self.inputs[1:], replace(number, role=Role.STATISTIC)),
            Keeps.LOGARITHMS: (logarithms,),
            Keeps.LOGARITHMS_TARGETS: (logarithms, *self.inputs[1:], number),
        }
        return kept[keeps]


def pointwise(name: str, pattern: str, function: str) -> Elementwise:
    """Declare a function of single elements: `pointwise("act", "u[b l f] -> a[b l f]", "gelu")`.

    Raises:
        UnknownNameError: no such function.
        PatternError: the pattern does not parse, takes no tensor or adds a bias.
    """
    return _elementwise(name, pattern, function, ())


def dropout(name: str, pattern: str) -> Elementwise:
    """Declare a dropout, which keeps its mask."""
    return _elementwise(name, pattern, "dropout", ())


def norm(name: str, pattern: str, function: str, row: str) -> Elementwise:
    """Declare a norm: `norm("norm", "x[b l e], *g[e], *c[e] -> y[b l e]", "layer_norm", "e")`.

    Args:
        name: of the op.
        pattern: its tensors; the first weight is the scale.
        function: "layer_norm" or "rms_norm".
        row: axes along which it normalises.
    """
    return _elementwise(name, pattern, function, tuple(row.split()))


def softmax(name: str, pattern: str, row: str, *, single: bool = False) -> Elementwise:
    """Declare a softmax along `row`, which keeps its result; `single` if in single precision."""
    function = "softmax_single" if single else "softmax"
    return _elementwise(name, pattern, function, tuple(row.split()))


def cross_entropy(name: str, pattern: str, row: str, *, single: bool = True) -> Elementwise:
    """Declare a softmax cross-entropy over classes `row`, kept in single precision or not."""
    function = "cross_entropy" if single else "cross_entropy_values"
    return _elementwise(name, pattern, function, tuple(row.split()))


def _elementwise(name: str, pattern: str, function: str, row: tuple[str, ...]) -> Elementwise:
    if function not in KINDS:
        raise UnknownNameError(unknown("elementwise function", function, KINDS))
    parsed = own_weights(name, parse(pattern))
    values = [operand for operand in parsed.inputs if not operand.is_weight]
    problems = [
        f"pattern {pattern!r}: row axis {axis!r} is not an axis of the first input"
        for axis in row
        if axis not in parsed.inputs[0].axes
    ]
    if not values:
        problems.append(f"pattern {pattern!r}: an elementwise op takes a tensor besides weights")
    problems += [
        f"pattern {pattern!r}: only contractions add a '+ *{bias.tensor}'; declare an 'add'"
        for bias in parse(pattern).biases
    ]
    if problems:
        raise PatternError(problems)
    return Elementwise(name, parsed, function, row)
