"""Contractions: the forward product and, over the same index space, every gradient product."""

from collections import Counter
from enum import StrEnum

from symbolic_cost.errors import PatternError, refuse
from symbolic_cost.ledger import Phase, Units
from symbolic_cost.ops.op import (
    Addition,
    Contraction,
    Kernel,
    Op,
    Summation,
    Use,
    Work,
)
from symbolic_cost.ops.pattern import Operand, Pattern, parse
from symbolic_cost.records import dataclass, replace


class Call(StrEnum):
    """How a product and its bias are called, which some tools count otherwise."""

    SEPARATE = "a linear layer, its bias apart"
    ADDMM = "one sum of bias and product"
    BARE = "a sum over a parameter that is no linear layer, beside which adapters find nothing"


@dataclass(frozen=True)
class Einsum(Op):
    """A sum of products of its operands, biases added; see `einsum`."""

    pairs: tuple[str, ...] = ()
    masked: bool = True
    window: str = ""
    call: Call = Call.SEPARATE
    frozen: bool = False

    units = Units.MATRIX

    @property
    def use(self) -> Use:
        """It multiplies by its weights."""
        return Use.PRODUCT if self.weights else Use.NONE

    axis_fields = ("pairs", "window")

    @property
    def result(self) -> Operand:
        """The one result."""
        return self.outputs[0]

    def summing_space(self, operand: Operand) -> tuple[str, ...]:
        """Return all axes; those of the result for a bias, whose gradient is a sum of the result's.

        A partial result gets its bias on one rank; the gradient is whole on all of them.
        """
        return self.result.axes if operand in self.pattern.biases else self.axes

    def kernels(self) -> tuple[Kernel, ...]:
        """Return the forward product and one product per operand that needs a gradient."""
        backward = () if self.frozen else (*self._input_gradients(), *self._weight_gradients())
        return (self._forward(), *backward)

    def saves(self) -> tuple[Operand, ...]:
        """Return the inputs that another operand's gradient multiplies with."""
        if self.frozen:
            return ()
        products = self.pattern.inputs
        return tuple(
            operand
            for place, operand in enumerate(products)
            if not operand.is_weight
            and any(other.needs_gradient for j, other in enumerate(products) if j != place)
        )

    def _contraction(self, result: Operand, factors: tuple[Operand, ...]) -> Contraction:
        union = tuple(dict.fromkeys(axis for factor in factors for axis in factor.axes))
        summed = _without(union, result.axes)
        return Contraction(result.axes, summed, len(factors), self.pairs, self.masked, self.window)

    def _forward(self) -> Kernel:
        work: tuple[Work, ...] = (
            self._contraction(self.result, self.pattern.inputs),
            *(
                Addition(self.result.axes, bias.axes if self.call is Call.ADDMM else None)
                for bias in self.pattern.biases
            ),
        )
        reads = self.pattern.inputs + self.pattern.biases
        return Kernel(Phase.FORWARD, reads, (self.result,), work)

    def _gradient(self, place: int, phase: Phase) -> Kernel:
        operand = self.pattern.inputs[place]
        others = tuple(other for j, other in enumerate(self.pattern.inputs) if j != place)
        reads = (self.result.gradient(), *others)
        return Kernel(phase, reads, (operand.gradient(),), (self._contraction(operand, reads),))

    def _input_gradients(self) -> tuple[Kernel, ...]:
        return tuple(
            self._gradient(place, Phase.BACKWARD_INPUT)
            for place, operand in enumerate(self.pattern.inputs)
            if operand.needs_gradient and not operand.is_weight
        )

    def _weight_gradients(self) -> tuple[Kernel, ...]:
        products = tuple(
            self._gradient(place, Phase.BACKWARD_WEIGHT)
            for place, operand in enumerate(self.pattern.inputs)
            if operand.is_weight and operand.needs_gradient
        )
        sums = tuple(
            Kernel(
                Phase.BACKWARD_WEIGHT,
                (self.result.gradient(),),
                (bias.gradient(),),
                (Summation(bias.axes, _without(self.result.axes, bias.axes)),),
            )
            for bias in self.pattern.biases
            if bias.needs_gradient
        )
        return products + sums


def einsum(
    name: str,
    pattern: str,
    pairs: str = "",
    *,
    masked: bool = True,
    window: str = "",
    call: Call = Call.SEPARATE,
    frozen: bool = False,
) -> Einsum:
    """Declare a contraction: `einsum("fc1", "x[b l e], *w[e f] + *bias[f] -> u[b l f]")`.

    Args:
        name: of the op; its weights are called "name.weight".
        pattern: two or more tensors to one result; every axis in at least two tensors.
        pairs: query and key positions ("l t") that attend to each other.
        masked: whether a causal mask keeps a part of the pairs.
        window: axis whose size is how many keys a query sees at most, if any.
        call: how product and bias are called.
        frozen: whether nothing is learned through it: there is no backward.

    Raises:
        PatternError: the pattern does not parse, or an axis stands alone.
    """
    parsed = parse(pattern)
    problems = []
    if len(parsed.outputs) != 1:
        problems.append(f"pattern {pattern!r}: a contraction has one result")
    if len(parsed.inputs) == 1:
        problems.append(f"pattern {pattern!r}: a contraction multiplies two or more tensors")
    counted = Counter(axis for operand in parsed.inputs + parsed.outputs for axis in operand.axes)
    problems += [
        f"pattern {pattern!r}: axis {axis!r} stands in one tensor only; "
        "an axis of a contraction is summed or kept, so it stands in two or more"
        for axis, times in counted.items()
        if times == 1
    ]
    problems += [
        f"pattern {pattern!r}: bias {bias.tensor!r} has axes that the result has not"
        for bias in parsed.biases
        for result in parsed.outputs
        if not set(bias.axes) <= set(result.axes)
    ]
    positions = tuple(pairs.split())
    if len(positions) not in (0, 2) or not set(positions) <= set(counted):
        problems.append(f"pattern {pattern!r}: pairs {pairs!r} are not two of its axes")
    refuse(problems, PatternError)
    return Einsum(name, own_weights(name, parsed), positions, masked, window, call, frozen)


def own_weights(name: str, pattern: Pattern) -> Pattern:
    """Name the weights of a pattern after their op: "w" of op "fc1" becomes "fc1.w".

    A name that starts with "@" is shared by all ops of the model that use it (tied weights).
    """

    def owned(operand: Operand) -> Operand:
        own = operand.is_weight and not operand.tensor.startswith("@")
        return operand.renamed(f"{name}.{operand.tensor}") if own else operand

    return replace(
        pattern, inputs=tuple(map(owned, pattern.inputs)), biases=tuple(map(owned, pattern.biases))
    )


def _without(axes: tuple[str, ...], removed: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(axis for axis in axes if axis not in removed)
