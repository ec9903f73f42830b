"""What is kept per parameter beside weights and gradients, in shards where ZeRO says so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from sympy import Add, Expr, Mul

from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.ledger import Phase, Quantity, Row
from symbolic_cost.ops.counting import Counter
from symbolic_cost.ops.einsum import Einsum
from symbolic_cost.ops.graph import Model, Part
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.pattern import Operand
from symbolic_cost.ops.placement import Placement
from symbolic_cost.parallel.catalogue import DATA_AXES
from symbolic_cost.parallel.states import Optimizer, Precision
from symbolic_cost.parallel.workspace import greatest, workspace_row
from symbolic_cost.units import Unit


@dataclass(frozen=True)
class States:
    """States of the weights of one rank.

    Args:
        model: the parts that the rank holds.
        placement: which axes are split, and what is kept in shards.
        conventions: sizes of weights.
        precision: bytes of the states.
        optimizer: its moments.
    """

    model: Model
    placement: Placement
    conventions: Conventions
    precision: Precision
    optimizer: Optimizer

    def rows(self) -> Iterator[Row]:
        """Yield master weights and moments of every weight [byte]."""
        for part, op, weight in self._weights():
            row = Row(
                path=f"{part.path}.{op.path}",
                kind=op.kind,
                phase=Phase.STATE,
                quantity=Quantity.MASTER_WEIGHT,
                unit=Unit.BYTE,
                expr=self._master(weight),
                count=part.repeat,
                tensor=weight.tensor,
                source=self.precision.source,
            )
            if row.expr != 0:
                yield row
            moments = self._moments(op, weight)
            if moments != 0:
                source = self.optimizer.source
                yield replace(row, quantity=Quantity.OPTIMIZER, expr=moments, source=source)

    def workspace(self) -> tuple[Row, ...]:
        """Return what gathering weights and updating them take for a while [byte].

        The weights of one part are whole at a time, as far as data-parallel ranks keep shards;
        those of a tensor grid arrive product by product (see `step_buffers`). The optimizer
        converts gradients that are smaller than the master weights.
        """
        whole: dict[str, list[Expr]] = {}
        copies: list[Expr] = []
        for part, _, weight in self._weights():
            shards = self.placement.stored_over("weight", weight.axes)
            grid = self.placement.degree(mesh for mesh in shards if mesh not in DATA_AXES)
            size = self._counter.bytes(weight) / grid
            held = self._counter.bytes(weight) / self.placement.degree(shards)
            whole.setdefault(part.path, []).append(size - held)
            if self.precision.master > self.precision.gradient:
                copies.append(Mul(part.repeat, self._master(weight)))
        gathered = greatest(Add(*sizes) for sizes in whole.values())
        return (
            workspace_row("gathered_weights", Phase.BACKWARD_INPUT, gathered),
            workspace_row("converted_gradients", Phase.STEP, Add(*copies)),
        )

    @cached_property
    def _counter(self) -> Counter:
        model = self.model
        return Counter(model.sizes, self.placement, self.conventions, model.padded, model.means)

    def _weights(self) -> Iterator[tuple[Part, Op, Operand]]:
        """Yield every weight once."""
        tied: set[str] = set()
        for part in self.model.parts:
            for op in part.ops:
                for weight in op.weights:
                    if weight.tensor in tied:
                        continue
                    if weight.tensor.startswith("@"):
                        tied.add(weight.tensor)
                    yield part, op, weight

    def _master(self, weight: Operand) -> Expr:
        return self._sharded(weight, Mul(self.precision.master, self._elements(weight.axes)))

    def _moments(self, op: Op, weight: Operand) -> Expr:
        chosen = self.optimizer
        size = self.precision.moment if chosen.moment is None else chosen.moment
        matrix = _is_matrix(op, weight)
        if matrix and chosen.factored:
            kept = {axis for result in op.outputs for axis in result.axes}
            columns = tuple(axis for axis in weight.axes if axis in kept)
            rows = tuple(axis for axis in weight.axes if axis not in kept)
            return self._sharded(weight, size * (self._elements(rows) + self._elements(columns)))
        moments = chosen.matrix if matrix else chosen.moments
        return self._sharded(weight, Mul(moments, size, self._elements(weight.axes)))

    def _elements(self, axes: tuple[str, ...]) -> Expr:
        return self._counter.elements(axes)

    def _sharded(self, weight: Operand, size: Expr) -> Expr:
        return size / self.placement.degree(self.placement.stored_over("optimizer", weight.axes))


def _is_matrix(op: Op, weight: Operand) -> bool:
    """Tell whether a weight is a hidden matrix: not a bias, a norm, a table or an output head."""
    return isinstance(op, Einsum) and weight in op.pattern.inputs and "v" not in weight.axes
