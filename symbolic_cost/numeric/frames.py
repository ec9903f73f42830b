"""Tables of costs as pandas frames, of formulas or of exact numbers.

Numbers are Python integers and Fractions in columns of objects: int64 would overflow silently.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from symbolic_cost.ledger import CostTable, Phase, Quantity, Row
from symbolic_cost.numeric.binding import bind, value

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Column:
    """What one column of a pivot sums.

    Args:
        quantity: of the rows.
        phases: of the rows; all unless given.
    """

    quantity: Quantity
    phases: tuple[Phase, ...] | None = None


def frame(table: CostTable, values: Mapping[str, object] | None = None) -> pd.DataFrame:
    """Return one line per row: its place, its formula in the row's unit, and its exact number.

    Args:
        table: rows of costs.
        values: number by symbol name; with it, and only then, there is a column `value`.

    Returns:
        Columns path, kind, phase, quantity, unit, tensor, count, formula (one occurrence),
        total (formula times count) and value (of the total).

    Raises:
        InputError: values are refused or missing.
        DivisibilityError: an axis is not divisible by its mesh axes.
    """
    import pandas as pd

    columns: dict[str, list[object]] = {
        name: [str(getattr(row, name)) for row in table]
        for name in ("path", "kind", "phase", "quantity", "unit", "tensor")
    }
    columns["count"] = [row.count for row in table]
    columns["formula"] = [row.expr for row in table]
    columns["total"] = [row.total for row in table]
    if values is not None:
        columns["value"] = [value(row.total) for row in bind(table, values)]
    return pd.DataFrame(columns, dtype=object)


def pivot(
    table: CostTable,
    columns: Mapping[str, Column],
    values: Mapping[str, object] | None = None,
) -> pd.DataFrame:
    """Return one line per op and one column per cost, in the unit of the column's quantity.

    Args:
        table: rows of costs.
        columns: what is summed, by heading.
        values: number by symbol name; with it cells are exact numbers, without it formulas.

    Raises:
        InputError: values are refused or missing.
        DivisibilityError: an axis is not divisible by its mesh axes.
    """
    import pandas as pd

    bound = table if values is None else bind(table, values)
    ops = _by_op(bound)
    cells = {
        heading: [op.total(column.quantity, phase=column.phases) for op in ops.values()]
        for heading, column in columns.items()
    }
    if values is not None:
        cells = {heading: [value(cell) for cell in column] for heading, column in cells.items()}
    index = pd.Index(list(ops), name="op")
    return pd.DataFrame(cells, index=index, columns=list(columns), dtype=object)


def _by_op(table: CostTable) -> dict[str, CostTable]:
    rows: dict[str, list[Row]] = {}
    for row in table:
        rows.setdefault(row.path, []).append(row)
    return {path: replace(table, rows=tuple(found)) for path, found in rows.items()}
