"""Where the published tables depart from what their own declarations imply.

Each slip changes derived rows, one by one; a row that it drops becomes None. The width of the
last dropout of variant B is a slip too; it is part of the declaration in `blocks`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from symbolic_cost.ledger import (
    BACKWARD,
    Collective,
    CollectiveKind,
    CostTable,
    Phase,
    Quantity,
    Row,
)
from symbolic_cost.symbols import Active, m1


@dataclass(frozen=True, slots=True)
class Slip:
    """One departure.

    Args:
        name: of the slip.
        meaning: what the tables do instead, and why it is taken for a slip.
        change: of a derived row; None drops it.
    """

    name: str
    meaning: str
    change: Callable[[Row], Row | None]


def with_slips(table: CostTable, variant: str) -> CostTable:
    """Return the rows that a variant counts."""
    rows = table.rows
    for slip in SLIPS[variant]:
        changed = map(slip.change, rows)
        rows = tuple(row for row in changed if row is not None)
    return replace(table, rows=rows)


_RESULTS = {
    "act": "a",
    "dpr1": "kept",
    "dpr2": "y",
    "dropout": "middle",
    "dropout_softmax": "dropped",
    "attend": "context",
}


def _drop_gradient_of_result(row: Row) -> Row | None:
    counted = row.quantity in {Quantity.ACTIVATION_GRADIENT, Quantity.READ}
    gradient = f"d{_RESULTS.get(_op(row))}"
    return None if counted and row.phase in BACKWARD and row.tensor == gradient else row


def _write_statistics_once(row: Row) -> Row | None:
    statistic = row.tensor.endswith(".statistics")
    return None if statistic and row.quantity is not Quantity.WRITE else row


def _drop_gathers_of_reduced(row: Row) -> Row | None:
    match row.collective:
        case Collective(kind=CollectiveKind.ALL_GATHER, meshes=("m1",)):
            return None
    return row


def _add_in_backward(row: Row) -> Row:
    addition = row.quantity is Quantity.FLOP and row.collective is not None
    return replace(row, phase=Phase.BACKWARD_INPUT) if addition and _op(row) == "v_proj" else row


def _book_on_fc2(row: Row) -> Row:
    lost = row.quantity is Quantity.COMMUNICATION and _op(row) == "branch.to_r"
    return replace(row, path="block.fc2", kind="einsum") if lost else row


def _group_of_tensors(row: Row) -> Row:
    if row.collective is None or _op(row) != "dropout":
        return row
    return replace(row, expr=row.expr * Active(m1), collective=replace(row.collective, ranks=m1))


def _op(row: Row) -> str:
    return row.path.removeprefix("block.")


_ONE_GRADIENT = Slip(
    "one gradient",
    "backward of the activation function, of dropouts and of attend counts the gradient of the "
    "result neither as a tensor nor as a read, though it is read as in every other op",
    _drop_gradient_of_result,
)

SLIPS: dict[str, tuple[Slip, ...]] = {
    "A": (_ONE_GRADIENT,),
    "B": (
        _ONE_GRADIENT,
        Slip(
            "missing gathers",
            "what is reduced is scattered over m1, and norms and dropouts split the same positions "
            "over s1; gathering from the one before splitting into the other is left out, which "
            "is right where both degrees are the same ranks",
            _drop_gathers_of_reduced,
        ),
        Slip(
            "additions in the wrong pass",
            "v_proj is reduced in forward; the additions are booked in backward",
            _add_in_backward,
        ),
        Slip(
            "gather on the previous row",
            "the backward all-gather of the last dropout is written into the record of fc2, whose "
            "one group size it overwrites, and with it the link of fc2's own reduce-scatter",
            _book_on_fc2,
        ),
        Slip(
            "gather over the wrong group",
            "the backward all-gather of the attention's last dropout is over s1; it is booked "
            "with the ranks of m1, and only if there is more than one of them",
            _group_of_tensors,
        ),
    ),
    "C": (
        Slip(
            "statistics written once",
            "statistics of norms are counted where forward writes them; they are neither kept nor "
            "read again",
            _write_statistics_once,
        ),
    ),
}
"""Slips by variant, in the order in which they apply."""
