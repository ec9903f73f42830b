"""What a weight has beside its gradient, in shards where ZeRO says so, and what updates it."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from functools import cached_property

from sympy import Expr, Integer

from symbolic_cost.algebra import mul
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.extrema import Min
from symbolic_cost.ledger import Collective, CollectiveKind, Phase, Quantity, Row, Units
from symbolic_cost.ops.counting import Counter
from symbolic_cost.ops.graph import Model, Weights
from symbolic_cost.ops.matrices import is_hidden_matrix
from symbolic_cost.ops.op import Op, Use
from symbolic_cost.ops.pattern import Operand
from symbolic_cost.ops.placement import Placement
from symbolic_cost.ops.update import StateTensor, Update, Work
from symbolic_cost.parallel.states import Optimizer, Precision
from symbolic_cost.records import dataclass, replace
from symbolic_cost.units import Unit

NORM, OPTIMIZER = "gradient_norm", "optimizer"
"""Names of ops that run once per step on every weight."""

_SQUARES = Integer(4)
"""A sum of squares in single precision [byte]."""


@dataclass(frozen=True)
class PartUpdate:
    """What the end of a step costs a part once.

    Args:
        rows: of clipping and of the optimizer.
        split: mesh axes over which its weights or their states are split.
    """

    rows: tuple[Row, ...]
    split: frozenset[str]

    @cached_property
    def clipping(self) -> Work:
        """What clipping takes."""
        return Work.of(row for row in self.rows if row.kind != OPTIMIZER)

    @cached_property
    def optimizer(self) -> Work:
        """What the optimizer takes."""
        return Work.of(row for row in self.rows if row.kind == OPTIMIZER)


@dataclass(frozen=True)
class States:
    """States of the weights of one rank.

    Args:
        optimizer: its moments and what it computes.
        mesh: ranks by mesh axis, the stages of a pipeline among them, innermost first.
    """

    model: Model
    placement: Placement
    conventions: Conventions
    precision: Precision
    optimizer: Optimizer
    mesh: Mapping[str, Expr] = field(default_factory=dict)

    def rows(self) -> Iterator[Row]:
        """Yield master weights and moments of every weight [byte]."""
        for part, weights in self.model.learned:
            for row in self.state_rows(part.path, weights):
                yield replace(row, count=part.repeat)

    def state_rows(self, path: str, weights: Weights) -> Iterator[Row]:
        """Yield master weights and moments of a part, once [byte]; see `update`."""
        for op, weight in weights:
            row = Row(
                path=f"{path}.{op.path}",
                kind=op.kind,
                phase=Phase.STATE,
                quantity=Quantity.MASTER_WEIGHT,
                unit=Unit.BYTE,
                expr=self._sharded(weight, self._master(op, weight)),
                tensor=weight.tensor,
                source=self.precision.source,
                part=path,
            )
            if row.expr != 0:
                yield row
            moments = self._sharded(weight, self._moment_bytes(op, weight))
            if moments != 0:
                source = self.optimizer.source
                yield replace(row, quantity=Quantity.OPTIMIZER, expr=moments, source=source)

    def update(self, path: str, weights: Weights) -> PartUpdate:
        """Return what the end of a step costs a part once."""
        rows: list[Row] = []
        split: set[str] = set()
        for op, weight in weights:
            shards = self.placement.stored_over("optimizer", weight.axes)
            split |= {
                *shards,
                *(mesh for axis in weight.axes for mesh in self.placement.meshes(axis)),
            }
            place, ranks = f"{path}.{op.path}", self.placement.degree(shards)
            for update in (*self._clipping(weight), *self._updates(op, weight)):
                rows += [replace(row, part=path) for row in update.rows(place, Integer(1), ranks)]
        return PartUpdate(tuple(rows), frozenset(split))

    def _clipping(self, weight: Operand) -> tuple[Update, ...]:
        """Declare the sum of squares of a gradient, and its scaling."""
        gradient = self._gradient(weight)
        elements = self._elements(weight.axes)
        return (
            Update(NORM, (gradient,), (), 2 * elements),
            Update("gradient_scale", (gradient,), (gradient,), elements),
        )

    def norm(self, split: Collection[str]) -> Row | None:
        """Return the sum of the squares over the ranks that hold other gradients, if any do.

        Args:
            split: mesh axes that split weights.
        """
        meshes = tuple(mesh for mesh in self.mesh if mesh in split or mesh == "pp")
        if not meshes:
            return None
        ranks = mul(*(self.mesh[mesh] for mesh in meshes))
        kind = CollectiveKind.ALL_REDUCE
        return Row(
            path=NORM,
            kind=NORM,
            phase=Phase.STEP,
            quantity=Quantity.COMMUNICATION,
            unit=Unit.BYTE,
            expr=self.conventions.charge(kind, _SQUARES, ranks),
            tensor=NORM,
            collective=Collective(kind, meshes, ranks, _SQUARES),
            per_step=True,
        )

    def _updates(self, op: Op, weight: Operand) -> Iterator[Update]:
        """Declare the optimizer on one weight: of gradients, states and weights it makes new ones.

        It updates the master weight and casts it, or the weight itself where there is none.
        """
        elements = self._elements(weight.axes)
        used = StateTensor(weight.tensor, self._counter.bytes(weight))
        master = StateTensor(f"{weight.tensor}.master", self._master(op, weight))
        weights = (master,) if self.precision.master else (used,)
        moments = self._moment_bytes(op, weight)
        states = (
            *weights,
            *((StateTensor(f"{weight.tensor}.moments", moments),) if moments != 0 else ()),
        )
        chosen = self.optimizer
        yield Update(
            OPTIMIZER,
            (self._gradient(weight), *states),
            (*states, *((used,) if self.precision.master else ())),
            mul(chosen.flop, elements),
            source=chosen.source,
        )
        if chosen.products and self._is_matrix(op, weight):
            flop = self._orthogonalised(op, weight)
            yield Update(OPTIMIZER, (), (), flop, Units.MATRIX, chosen.source)

    def _orthogonalised(self, op: Op, weight: Operand) -> Expr:
        """Return the FLOP of A = X X^T, B = b A + c A^2 and a X + B X, n being the shorter side.

        Each expert has a matrix X of its own.
        """
        rows, columns, matrices = map(self._elements, _sides(op, weight))
        n = Min(rows, columns)
        return mul(self.optimizer.products, matrices, 4 * n * rows * columns + 2 * n**3)

    def _gradient(self, weight: Operand) -> StateTensor:
        gradient = weight.gradient()
        return StateTensor(gradient.tensor, self._counter.bytes(gradient))

    @cached_property
    def _counter(self) -> Counter:
        model = self.model
        return Counter(model.sizes, self.placement, self.conventions, model.padded, model.means)

    def _moment_bytes(self, op: Op, weight: Operand) -> Expr:
        """Return the moments of a weight on all ranks that keep shards of them together [byte]."""
        chosen = self.optimizer
        size = self.precision.moment if chosen.moment is None else chosen.moment
        matrix = self._is_matrix(op, weight)
        rows, columns, matrices = _sides(op, weight)
        table = op.use in {Use.PRODUCT, Use.ROWS} and weight in op.pattern.inputs
        if chosen.factored and table and rows and columns:
            sums = self._elements(rows) + self._elements(columns)
            return mul(size, self._elements(matrices), sums)
        moments = chosen.matrix if matrix else chosen.moments
        return mul(moments, size, self._elements(weight.axes))

    def _is_matrix(self, op: Op, weight: Operand) -> bool:
        return is_hidden_matrix(self.model.axes, op, weight)

    def _master(self, op: Op, weight: Operand) -> Expr:
        """Return the bytes of a master copy on all ranks that keep shards of it together."""
        matrix = self._is_matrix(op, weight)
        held = self.precision if matrix else self.precision.of_others
        return mul(held.master, self._elements(weight.axes))

    def _elements(self, axes: tuple[str, ...]) -> Expr:
        return self._counter.elements(axes)

    def _sharded(self, weight: Operand, size: Expr) -> Expr:
        return size / self.placement.degree(self.placement.stored_over("optimizer", weight.axes))


def _sides(op: Op, weight: Operand) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the axes of a matrix that its product sums over, those it makes, and all others.

    For example *w[x e f] makes u[z x f] of sent[z x e]: it sums over e and makes f, for each x.
    """
    result = {axis for output in op.outputs for axis in output.axes}
    taken = {axis for operand in op.inputs for axis in operand.axes if not operand.is_weight}
    rows = tuple(axis for axis in weight.axes if axis not in result)
    columns = tuple(axis for axis in weight.axes if axis in result - taken)
    return rows, columns, tuple(axis for axis in weight.axes if axis in result & taken)
