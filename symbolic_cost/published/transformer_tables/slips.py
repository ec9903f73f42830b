"""Where the published tables depart from what their own declarations imply, by variant.

The width of the last dropout of variant B is a slip too; it is part of the declaration in `blocks`.
"""

from dataclasses import replace

from symbolic_cost.ledger import (
    BACKWARD,
    Collective,
    CollectiveKind,
    CostTable,
    Phase,
    Quantity,
    Row,
)
from symbolic_cost.published.results import Departures
from symbolic_cost.symbols import Active, m1

SLIPS = Departures()
"""Slips in the order in which they apply."""

_RESULTS = {
    "act": "a",
    "dpr1": "kept",
    "dpr2": "y",
    "dropout": "middle",
    "dropout_softmax": "dropped",
    "attend": "context",
}


def with_slips(table: CostTable, variant: str) -> CostTable:
    """Return the rows that a variant counts."""
    return replace(table, rows=SLIPS.applied(table.rows, variant, variant))


@SLIPS.of("A", "B")
def _one_gradient(row: Row, _: str) -> tuple[Row, ...]:
    """Backward leaves out the gradient of the result, as a tensor and as a read.

    So do the activation function, dropouts and attend, though it is read as in every other op.
    """
    counted = row.quantity in {Quantity.ACTIVATION_GRADIENT, Quantity.READ}
    gradient = f"d{_RESULTS.get(_op(row))}"
    return () if counted and row.phase in BACKWARD and row.tensor == gradient else (row,)


@SLIPS.of("B")
def _missing_gathers(row: Row, _: str) -> tuple[Row, ...]:
    """What is reduced over m1 is split over s1 without being gathered.

    Norms and dropouts split the same positions over s1; leaving out the gather is right where both
    degrees are the same ranks.
    """
    match row.collective:
        case Collective(kind=CollectiveKind.ALL_GATHER, meshes=("m1",)):
            return ()
    return (row,)


@SLIPS.of("B")
def _additions_in_the_wrong_pass(row: Row, _: str) -> tuple[Row, ...]:
    """The projection v_proj is reduced in forward; the additions are booked in backward."""
    addition = row.quantity is Quantity.FLOP and row.collective is not None
    wrong = addition and _op(row) == "v_proj"
    return (replace(row, phase=Phase.BACKWARD_INPUT) if wrong else row,)


@SLIPS.of("B")
def _gather_on_the_previous_row(row: Row, _: str) -> tuple[Row, ...]:
    """The backward all-gather of the last dropout is written into the record of fc2.

    It overwrites the one group size of that record, and with it the link of fc2's reduce-scatter.
    """
    lost = row.quantity is Quantity.COMMUNICATION and _op(row) == "branch.to_r"
    return (replace(row, path="block.fc2", kind="einsum") if lost else row,)


@SLIPS.of("B")
def _gather_over_the_wrong_group(row: Row, _: str) -> tuple[Row, ...]:
    """The backward all-gather of the attention's last dropout is booked with the ranks of m1.

    It is over s1, and is booked only if m1 has more than one rank.
    """
    move = row.collective
    if move is None or _op(row) != "dropout":
        return (row,)
    return (replace(row, expr=row.expr * Active(m1), collective=replace(move, ranks=m1)),)


@SLIPS.of("C")
def _statistics_written_once(row: Row, _: str) -> tuple[Row, ...]:
    """Statistics of norms count where forward writes them, neither kept nor read again."""
    again = row.tensor.endswith(".statistics") and row.quantity is not Quantity.WRITE
    return () if again else (row,)


def _op(row: Row) -> str:
    return row.path.removeprefix("block.")
