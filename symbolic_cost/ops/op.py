"""What every op tells the derivation: its kernels, what it saves, and its index space.

A kernel is one pass over memory: what it reads, what it writes, and the work between.
The kinds of work are all that the counting conventions need to know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar, Self

from symbolic_cost.ledger import Phase, Units
from symbolic_cost.ops.pattern import Operand, Pattern
from symbolic_cost.ops.placement import Placement
from symbolic_cost.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class Contraction:
    """Every element of `result` is a sum over `summed` of products of `factors` factors.

    `pairs` names the two axes of positions that attend to each other, if any; `masked` says whether
    a causal mask keeps a part of them, and `window` names the axis of the keys seen at most.
    """

    result: tuple[str, ...]
    summed: tuple[str, ...]
    factors: int
    pairs: tuple[str, ...] = ()
    masked: bool = True
    window: str = ""

    @property
    def space(self) -> tuple[str, ...]:
        """Axes over which the work runs."""
        return self.result + self.summed


@dataclass(frozen=True, slots=True)
class Correlation:
    """Every element of `result` sums the products of `space` that reach it, padding included.

    They are |space| / |result| on average. `groups` names the axes whose mixed products are zero
    and which some tools count nevertheless.
    """

    result: tuple[str, ...]
    space: tuple[str, ...]
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Summation:
    """Every element of `result` is a sum over `summed` (a bias gradient)."""

    result: tuple[str, ...]
    summed: tuple[str, ...]

    @property
    def space(self) -> tuple[str, ...]:
        """Axes over which the work runs."""
        return self.result + self.summed


@dataclass(frozen=True, slots=True)
class Addition:
    """One addition to every element of `result` (a bias).

    `added` are the axes of the bias where it and the product are one call.
    """

    result: tuple[str, ...]
    added: tuple[str, ...] | None = None

    @property
    def space(self) -> tuple[str, ...]:
        """Axes over which the work runs."""
        return self.result


@dataclass(frozen=True, slots=True)
class RowWork:
    """Elementwise work of one kind on rows along `row`, forward or backward.

    Inside of a kernel it is done for the `pairs` that the kernel computes, as a `Contraction` is.
    """

    kind: str
    axes: tuple[str, ...]
    row: tuple[str, ...]
    backward: bool
    pairs: tuple[str, ...] = ()
    masked: bool = True
    window: str = ""

    @property
    def space(self) -> tuple[str, ...]:
        """Axes over which the work runs."""
        return self.axes


Work = Contraction | Correlation | Summation | Addition | RowWork


@dataclass(frozen=True, slots=True)
class Kernel:
    """One pass over memory."""

    phase: Phase
    reads: tuple[Operand, ...]
    writes: tuple[Operand, ...]
    work: tuple[Work, ...]


OperandMap = Callable[[Operand], Operand]
AxesMap = Callable[[tuple[str, ...]], tuple[str, ...]]


def unchanged(axes: tuple[str, ...]) -> tuple[str, ...]:
    """Return axes as they are."""
    return axes


class Use(StrEnum):
    """What an op does with its weights."""

    NONE = "it has none"
    PRODUCT = "it sums products with them"
    ROWS = "it looks rows up"
    ELEMENTS = "it applies them element by element"


@dataclass(frozen=True)
class Op:
    """One declared operation.

    Args:
        path: dotted name inside its part of the model.
        pattern: the parsed declaration, tensor names as in the part.
        core: dotted name of the attention core that it belongs to; empty for most ops.
    """

    path: str
    pattern: Pattern
    core: str = field(default="", kw_only=True)

    @property
    def kind(self) -> str:
        """Name of the op's kind, as the conventions know it."""
        return type(self).__name__.lower()

    @property
    def units(self) -> Units:
        """What of a device computes it."""
        return Units.VECTOR

    @cached_property
    def inputs(self) -> tuple[Operand, ...]:
        """Operands that are not weights."""
        return tuple(operand for operand in self.pattern.inputs if not operand.is_weight)

    @cached_property
    def weights(self) -> tuple[Operand, ...]:
        """Weights and biases."""
        products = tuple(operand for operand in self.pattern.inputs if operand.is_weight)
        return products + self.pattern.biases

    @property
    def outputs(self) -> tuple[Operand, ...]:
        """Results."""
        return self.pattern.outputs

    @cached_property
    def axes(self) -> tuple[str, ...]:
        """The index space: every axis of the pattern once."""
        operands = self.pattern.inputs + self.pattern.biases + self.pattern.outputs
        return tuple(dict.fromkeys(axis for operand in operands for axis in operand.axes))

    @property
    def live(self) -> bool:
        """Whether gradients flow back through it; nothing declared says otherwise."""
        return not self.outputs or any(operand.needs_gradient for operand in self.outputs)

    @property
    def stages(self) -> tuple[Op, ...]:
        """The declared ops that it runs: itself, or those of a fused group."""
        return (self,)

    @property
    def use(self) -> Use:
        """What it does with its weights."""
        return Use.ELEMENTS if self.weights else Use.NONE

    @property
    def pairs(self) -> tuple[str, ...]:
        """Axes of the query and key positions that it brings together; empty for most ops."""
        return ()

    @property
    def movable(self) -> bool:
        """Whether it may run under other axes than declared; what scans positions may not."""
        return True

    @property
    def bulk(self) -> bool:
        """Whether it is work that a strategy divides or names: weights, products, scans."""
        return True

    @property
    def repeats(self) -> bool:
        """Whether the result is the input, some of it several times."""
        return False

    @property
    def row_axes(self) -> tuple[str, ...]:
        """Axes along which rows are normalised; splitting one reduces statistics."""
        return ()

    @property
    def whole_axes(self) -> tuple[str, ...]:
        """Axes that no mesh axis may split: a convolution along them needs its neighbours'."""
        return ()

    @property
    def index_spaces(self) -> tuple[tuple[str, ...], ...]:
        """Spaces of which a mesh axis may split one axis each.

        One for a product of b, e and f, of which tp splits e or f; two for a view of r as l, where
        tp splits r on one side and something else on the other.
        """
        return (self.axes,)

    def misplaced(self, placement: Placement) -> list[str]:
        """Say why a placement does not suit the op, whatever the spaces that it splits."""
        return [
            f"axis {axis!r} cannot be split: the {self.kind} runs along it"
            for axis in self.whole_axes
            if placement.meshes(axis)
        ]

    def summing_space(self, operand: Operand) -> tuple[str, ...]:  # noqa: ARG002 - ops override
        """Return the index space over which an operand (as result or gradient) is a sum.

        A mesh axis that splits an axis of this space which the operand lacks leaves it partial.
        """
        return self.axes

    @property
    def forward_reductions(self) -> int:
        """Values per row that ranks sharing a row reduce in forward."""
        return 0

    @property
    def backward_reductions(self) -> int:
        """Values per row that ranks sharing a row reduce in backward."""
        return 0

    def kernels(self) -> tuple[Kernel, ...]:
        """Return the passes over memory, forward and backward."""
        raise NotImplementedError

    def saves(self) -> tuple[Operand, ...]:
        """Return what the backward pass needs of the forward pass, weights aside."""
        raise NotImplementedError

    def counted_as(self, others: Mapping[str, str]) -> Op:  # noqa: ARG002 - few ops heed it
        """Return the op with the function that conventions name in place of its own, if any."""
        return self

    def caches(self) -> tuple[Operand, ...]:
        """Return what generation keeps for its next step."""
        return ()

    def mapped(self, operand: OperandMap, axes: AxesMap = unchanged) -> Self:
        """Return the op on other operands; the one pass over all that a class declares.

        A class whose fields name axes lists them in `axis_fields`; one that holds operands maps
        them in `mapped_fields`.

        Args:
            operand: the operand that stands for one of its own: other axes, another tensor.
            axes: the axes that stand for axes named by fields.
        """
        pattern = replace(
            self.pattern,
            inputs=tuple(map(operand, self.pattern.inputs)),
            biases=tuple(map(operand, self.pattern.biases)),
            outputs=tuple(map(operand, self.pattern.outputs)),
        )
        return replace(self, pattern=pattern, **self.mapped_fields(operand, axes))

    axis_fields: ClassVar[tuple[str, ...]] = ()
    """Fields of a class that name an axis, or several."""

    def mapped_fields(self, operand: OperandMap, axes: AxesMap) -> dict[str, Any]:  # noqa: ARG002
        """Return the fields of a class that `mapped` changes besides the pattern."""
        named = {name: getattr(self, name) for name in self.axis_fields}
        return {
            name: "".join(axes((own,))) if isinstance(own, str) else axes(own)
            for name, own in named.items()
        }

    def retaken(self, sources: Mapping[str, Operand]) -> Self:
        """Return the op on other tensors in the place of some, by name."""
        if not sources:
            return self
        return self.mapped(lambda operand: sources.get(operand.tensor, operand))

    def regathering(self) -> Self:
        """Return the op saving shards of what it gathers; itself if it gathers nothing."""
        return self

    def renamed(self, prefix: str, names: Mapping[str, str]) -> Self:
        """Return the op below `prefix` if any, tensors renamed by `names`, or put below it as well.

        Shared tensors ("@") keep their names; weights follow the path.
        """
        above = f"{prefix}." if prefix else ""

        def scoped(operand: Operand) -> Operand:
            if operand.tensor.startswith("@"):
                return operand
            return operand.renamed(names.get(operand.tensor, f"{above}{operand.tensor}"))

        core = self.core and f"{above}{self.core}"
        return replace(self.mapped(scoped), path=f"{above}{self.path}", core=core)
