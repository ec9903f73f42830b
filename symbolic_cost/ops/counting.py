"""Work to FLOP and operands to bytes, for the local part of one rank under named conventions."""

from collections.abc import Collection, Mapping
from functools import singledispatchmethod

from sympy import Expr, Integer, ceiling

from symbolic_cost.algebra import add, applied, mul, on_terms
from symbolic_cost.conditions import Split
from symbolic_cost.conventions.questions import FULL_SQUARE, Conventions
from symbolic_cost.errors import InputError
from symbolic_cost.ops.op import Addition, Contraction, Correlation, RowWork, Summation
from symbolic_cost.ops.pattern import Operand
from symbolic_cost.ops.placement import Placement
from symbolic_cost.ops.stored import Scale


class Counter:
    """Counts what one rank does.

    Args:
        padded: axes that are padded to a multiple of the degree that splits them.
        means: axes whose size is a mean, which need not be whole.
        slots: those of them that are tokens as experts see them, beside which some stay empty.
    """

    def __init__(
        self,
        sizes: Mapping[str, Expr],
        placement: Placement,
        conventions: Conventions,
        padded: Collection[str] = (),
        means: Collection[str] = (),
        *,
        slots: Collection[str] = (),
    ) -> None:
        self._sizes = sizes
        self._padded = padded
        self._means = means
        self.slots = slots
        self._placement = placement
        self._conventions = conventions
        self._local: dict[str, Expr] = {}
        self._products: dict[frozenset[str], Expr] = {}
        self._bytes: dict[tuple[object, ...], Expr] = {}
        self.splits: dict[str, Split] = {}

    def local(self, axis: str, where: str = "") -> Expr:
        """Return the size of an axis on one rank.

        Raises:
            InputError: the model gives the axis no size.
        """
        if axis not in self._local:
            if axis not in self._sizes:
                raise InputError(f"{where}: axis {axis!r} has no size")
            size, meshes = self._sizes[axis], self._placement.meshes(axis)
            padded = bool(meshes) and axis in self._padded
            whole = padded or axis in self._means
            if (meshes or not size.is_integer) and not whole:
                degrees = self._placement.degrees
                self.splits[axis] = Split(axis, size, tuple((m, degrees[m]) for m in meshes), where)
            if meshes:
                size = size / self._placement.degree(meshes)
                if padded:
                    size = on_terms(ceiling)(size)
            self._local[axis] = size
        return self._local[axis]

    def elements(self, axes: tuple[str, ...], where: str = "") -> Expr:
        """Return how many elements of a tensor one rank holds."""
        key = frozenset(axes)
        if key not in self._products:
            self._products[key] = mul(*(self.local(axis, where) for axis in axes))
        return self._products[key]

    def bytes(self, operand: Operand, where: str = "") -> Expr:
        """Return the bytes of an operand on one rank."""
        key = (operand.copies, operand.role, operand.stored, operand.axes)
        if key not in self._bytes:
            self._bytes[key] = self._bytes_of(operand, where)
        return self._bytes[key]

    def _bytes_of(self, operand: Operand, where: str) -> Expr:
        form = operand.stored
        size = self._conventions.sizes.of(operand.role) if form is None else form.size
        each = mul(operand.copies, size, self.elements(operand.axes, where))
        scales = () if form is None else form.scales
        return add(each, *(self._scales(operand.axes, scale) for scale in scales))

    def _scales(self, axes: tuple[str, ...], scale: Scale) -> Expr:
        """Return the bytes of what blocks of a weight share, on one rank."""
        named = {place for places, _ in scale.blocks for place in places}
        counts = [self.elements(tuple(a for i, a in enumerate(axes) if i not in named))]
        for places, length in scale.blocks:
            if length is not None:
                blocks = self.elements(tuple(axes[place] for place in places)) / length
                counts.append(on_terms(ceiling)(blocks))
        return mul(scale.size, *counts)

    def moved(self, operand: Operand) -> Expr:
        """Return the bytes of one element between ranks, of its scales its share."""
        if operand.stored is None:
            return self._conventions.sizes.moved(operand.role)
        return self.bytes(operand) / self.elements(operand.axes)

    @singledispatchmethod
    def flop(self, work: object, kind: str) -> Expr:  # noqa: ARG002 - the kinds of work use it
        """Return the FLOP of a piece of work of an op kind on one rank."""
        raise TypeError(work)

    @flop.register
    def _(self, work: Contraction, kind: str) -> Expr:
        results, summed = self.elements(work.result), self.elements(work.summed)
        if set(work.pairs) <= set(work.result):
            results = results * self._computed(work)
        else:
            summed = summed * self._computed(work)
        more_factors = mul(work.factors - 2, summed)
        return mul(results, applied(self._conventions.contraction_of(kind), summed) + more_factors)

    def _computed(self, work: Contraction | RowWork) -> Expr:
        """Return the share of its pairs of positions that is computed, of the whole mask.

        Ranks that split the positions share the pairs evenly.
        """
        rules = self._conventions
        rule = rules.attention_pairs if work.masked else rules.unmasked_pairs
        axes = work.pairs
        if work.window and rules.window_pairs is not None:
            rule, axes = rules.window_pairs, (*work.pairs, work.window)
        if not work.pairs or rule == FULL_SQUARE:
            return Integer(1)
        sizes = [self._sizes[axis] for axis in axes]
        return applied(rule, *sizes) / (sizes[0] * sizes[1])

    @flop.register
    def _(self, work: Correlation, kind: str) -> Expr:
        results = self.elements(work.result)
        # What both have cancels, of a batch without images too.
        products = self.elements(tuple(a for a in work.space if a not in work.result))
        positions = self.elements(tuple(a for a in work.result if a not in work.space))
        counted = applied(self._conventions.contraction_of(kind), products / positions)
        groups = applied(self._conventions.grouped_gradient, self.elements(work.groups))
        return mul(groups, results, counted)

    @flop.register
    def _(self, work: Summation, kind: str) -> Expr:  # noqa: ARG002 - kinds are alike
        return mul(
            self.elements(work.result),
            applied(self._conventions.summation, self.elements(work.summed)),
        )

    @flop.register
    def _(self, work: Addition, kind: str) -> Expr:
        counted = mul(self._conventions.addition_of(kind), self.elements(work.result))
        if work.added is None:
            return counted
        return counted + mul(self._conventions.called_addition, self.elements(work.added))

    @flop.register
    def _(self, work: RowWork, kind: str) -> Expr:  # noqa: ARG002 - kinds are alike
        answer = self._conventions.elementwise.of(work.kind, self._conventions.name)
        rows = tuple(axis for axis in work.axes if axis not in work.row)
        rule = answer.backward if work.backward else answer.forward
        length = self.elements(work.row) if work.row else Integer(1)
        results = self.elements(rows)
        if set(work.pairs) <= set(rows):
            results = results * self._computed(work)
        else:
            length = length * self._computed(work)
        return mul(results, applied(rule, length))
