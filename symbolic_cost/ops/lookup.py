"""Embedding lookup: a contraction with a one-hot matrix that nobody multiplies out."""

from symbolic_cost.errors import PatternError
from symbolic_cost.ledger import Phase
from symbolic_cost.ops.einsum import own_weights
from symbolic_cost.ops.op import Kernel, Op, RowWork, Use
from symbolic_cost.ops.pattern import Operand, parse
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Lookup(Op):
    """Rows of a table, chosen by ids; see `lookup`."""

    kind = "embedding"

    use = Use.ROWS

    def summing_space(self, operand: Operand) -> tuple[str, ...]:
        """Return all axes; for the result, rows of ids that it lacks are no sum.

        Ids of a whole batch that give one result make the table's gradient a sum over the batch.
        """
        if operand not in self.outputs:
            return self.axes
        result = (*self.outputs[0].axes, *self.weights[0].axes)
        return tuple(axis for axis in self.axes if axis in result)

    def kernels(self) -> tuple[Kernel, ...]:
        """Return the gather of rows and the scatter-add of their gradients."""
        ids, table, result = self.inputs, self.weights[0], self.outputs[0]
        rows = Operand(table.tensor, result.axes, table.role)
        work = RowWork(self.kind, result.axes, (), backward=False)
        back = RowWork(self.kind, result.axes, (), backward=True)
        reads = (*ids, result.gradient())
        scatter = Kernel(Phase.BACKWARD_WEIGHT, reads, (table.gradient(),), (back,))
        return (
            Kernel(Phase.FORWARD, (*ids, rows), (result,), (work,)),
            *((scatter,) if table.needs_gradient else ()),
        )

    def saves(self) -> tuple[Operand, ...]:
        """Return the ids."""
        return self.inputs if self.weights[0].needs_gradient else ()


def lookup(name: str, pattern: str) -> Lookup:
    """Declare a lookup: `lookup("word", "!ids[b l]:index, *table[v e] -> x[b l e]")`.

    Raises:
        PatternError: not ids and one table to one result.
    """
    parsed = own_weights(name, parse(pattern))
    op = Lookup(name, parsed)
    if (
        len(op.weights) != 1
        or len(op.outputs) != 1
        or not op.inputs
        or not all(operand.constant for operand in op.inputs)
    ):
        raise PatternError(
            f"pattern {pattern!r}: a lookup takes constant ids and one table to one result: write "
            "for example '!ids[b l]:index, *table[v e] -> x[b l e]'"
        )
    return op


def is_of_positions(op: Op) -> bool:
    """Tell whether an op looks learned positions up, a row for each position of a sequence."""
    return isinstance(op, Lookup) and op.path.rpartition(".")[2] == "position"
