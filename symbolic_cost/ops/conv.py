"""Convolutions and pooling: contractions and reductions over windows.

A convolution is a contraction whose input positions are not summed but scanned by a kernel. Which
axis is which follows from where it stands:

    x[b g i y x], *w[g i o s t] -> u[b g o p q]

i is summed, o made, g (in all three) groups; p q are output positions, y x the input positions
they are taken from, s t the kernel. A convolution that keeps its positions may write y x twice.
"""

from symbolic_cost.conventions.questions import Role
from symbolic_cost.errors import PatternError, UnknownNameError, unknown
from symbolic_cost.ledger import Phase, Units
from symbolic_cost.ops.einsum import own_weights
from symbolic_cost.ops.op import (
    Addition,
    Correlation,
    Kernel,
    Op,
    RowWork,
    Summation,
    Use,
)
from symbolic_cost.ops.pattern import Operand, parse
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Conv(Op):
    """A convolution; see `conv`."""

    among: tuple[str, ...] = ()

    use = Use.PRODUCT

    movable = False  # its axes are told apart by where they stand

    axis_fields = ("among",)

    units = Units.MATRIX  # it is a product of patches and kernels

    @property
    def kernel(self) -> Operand:
        """The kernel: the weight, or the last input where it is computed from one."""
        operands = self.pattern.inputs
        return next((operand for operand in operands if operand.is_weight), operands[-1])

    @property
    def space(self) -> tuple[str, ...]:
        """Axes of the products: those of the result and of the kernel."""
        axes = self.outputs[0].axes + self.kernel.axes
        return tuple(dict.fromkeys(axes))

    @property
    def groups(self) -> tuple[str, ...]:
        """Axes of the groups: they stand in input, kernel and result."""
        image, kernel, result = self.inputs[0], self.kernel, self.outputs[0]
        return tuple(a for a in kernel.axes if a in image.axes and a in result.axes)

    @property
    def whole_axes(self) -> tuple[str, ...]:
        """Positions: a rank would need its neighbours' borders."""
        kernel = self.kernel.axes
        positions = self.inputs[0].axes[1:] + self.outputs[0].axes[1:]
        return tuple(dict.fromkeys(axis for axis in positions if axis not in kernel))

    def summing_space(self, operand: Operand) -> tuple[str, ...]:
        """Return all axes; those of the result for a bias."""
        return self.outputs[0].axes if operand in self.pattern.biases else self.axes

    def kernels(self) -> tuple[Kernel, ...]:
        """Return the forward convolution, and one correlation per gradient."""
        image, weight, result = self.inputs[0], self.kernel, self.outputs[0]
        biases, gradient = self.pattern.biases, result.gradient()
        forward = Kernel(
            Phase.FORWARD,
            (image, weight, *biases),
            (result,),
            (Correlation(result.axes, self.space), *(Addition(result.axes) for _ in biases)),
        )
        back = Kernel(
            Phase.BACKWARD_INPUT,
            (gradient, weight),
            (image.gradient(),),
            (Correlation(image.axes, self.space),),
        )
        weights = Kernel(
            Phase.BACKWARD_WEIGHT if weight.is_weight else Phase.BACKWARD_INPUT,
            (gradient, image),
            (weight.gradient(),),
            (Correlation(weight.axes, self.space, self.among or self.groups),),
        )
        sums = (
            Kernel(
                Phase.BACKWARD_WEIGHT,
                (gradient,),
                (bias.gradient(),),
                (Summation(bias.axes, tuple(a for a in result.axes if a not in bias.axes)),),
            )
            for bias in biases
            if bias.needs_gradient
        )
        products = ((image, back), (weight, weights))
        return (forward, *(one for of, one in products if of.needs_gradient), *sums)

    def saves(self) -> tuple[Operand, ...]:
        """Return the input, which the weight gradient multiplies with; one call makes all."""
        return self.inputs if self.live else ()


@dataclass(frozen=True)
class TransposedConv(Conv):
    """A convolution that spreads every input over a window of the result; see `conv`."""

    kind = "conv"

    @property
    def space(self) -> tuple[str, ...]:
        """Axes of the products: those of the input and of the kernel."""
        return tuple(dict.fromkeys(self.inputs[0].axes + self.kernel.axes))


@dataclass(frozen=True)
class Pool(Op):
    """A reduction over windows; see `pool`."""

    function: str
    window: tuple[str, ...]

    @property
    def kind(self) -> str:
        """Name of the function."""
        return self.function

    movable = False  # it runs along positions

    axis_fields = ("window",)

    @property
    def axes(self) -> tuple[str, ...]:
        """The index space: input, result and window."""
        return tuple(dict.fromkeys((*super().axes, *self.window)))

    @property
    def whole_axes(self) -> tuple[str, ...]:
        """Positions: a rank would need its neighbours' borders."""
        return tuple(axis for axis in self.axes if axis not in self.kept)

    @property
    def kept(self) -> tuple[str, ...]:
        """Axes that are not positions."""
        return tuple(axis for axis in self.outputs[0].axes if axis in self.inputs[0].axes)

    def kernels(self) -> tuple[Kernel, ...]:
        """Return the reduction and the spreading of its gradient.

        The work of a window is counted per window ("max_pool"), what some tools count per input
        element ("pooled") stands beside it.
        """
        image, result = self.inputs[0], self.outputs[0]
        index = tuple(saved for saved in self.saves() if saved is not image)
        forward, backward = (
            (
                RowWork(self.function, (*result.axes, *self.window), self.window, back),
                RowWork("pooled", image.axes, (), back),
            )
            for back in (False, True)
        )
        reads = (result.gradient(), *index)
        back = Kernel(Phase.BACKWARD_INPUT, reads, (image.gradient(),), backward)
        gradients = (back,) if image.needs_gradient else ()
        return (Kernel(Phase.FORWARD, (image,), (result, *index), forward), *gradients)

    def saves(self) -> tuple[Operand, ...]:
        """Return the input, and for a maximum its place in each window."""
        result = self.outputs[0]
        index = Operand(f"{result.tensor}.index", result.axes, Role.INDEX)
        if not self.live:
            return ()
        return (*self.inputs, *((index,) if self.function == "max_pool" else ()))


POOLS = ("max_pool", "avg_pool")
"""Functions of a window."""


def conv(name: str, pattern: str, among: str = "") -> Conv:
    """Declare a convolution: `conv("conv1", "x[b i y x], *w[i o s t] -> u[b o p q]")`.

    Args:
        name: of the op.
        pattern: one input, its batch axis first, one kernel, perhaps biases, one result.
        among: axes of all groups, of a convolution that is declared in parts; tools that count
            how many groups there are count these.

    Raises:
        PatternError: not of that form, or a kernel axis that nothing explains.
    """
    op = Conv(name, own_weights(name, parse(pattern)), tuple(among.split()))
    kernels = [operand for operand in op.pattern.inputs if operand.is_weight]
    if len(op.inputs) != 1 or len(kernels) != 1 or len(op.outputs) != 1:
        raise PatternError(
            f"pattern {pattern!r}: a convolution takes one input and one kernel to one result"
        )
    summed = set(op.inputs[0].axes) & set(kernels[0].axes) - set(op.outputs[0].axes)
    if not summed and not op.groups:
        raise PatternError(
            f"pattern {pattern!r}: the kernel shares no axis with the input, so no channel meets it"
        )
    return op


def pool(name: str, pattern: str, function: str, window: str) -> Pool:
    """Declare pooling: `pool("pool", "x[b c y x] -> u[b c p q]", "max_pool", window="s t")`.

    Raises:
        UnknownNameError: no such function.
        PatternError: not one tensor to one tensor.
    """
    if function not in POOLS:
        raise UnknownNameError(unknown("pooling function", function, POOLS))
    parsed = parse(pattern)
    if len(parsed.inputs) != 1 or len(parsed.outputs) != 1:
        raise PatternError(f"pattern {pattern!r}: pooling takes one tensor to one tensor")
    return Pool(name, parsed, function, tuple(window.split()))
