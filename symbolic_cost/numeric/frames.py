"""Tables of costs as pandas frames, of formulas or of exact numbers.

Numbers are Python integers and Fractions in columns of objects: int64 would overflow silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from symbolic_cost.costs import NamedCost
from symbolic_cost.grouping import grouped
from symbolic_cost.ledger import CostTable
from symbolic_cost.numeric.binding import bind, value

if TYPE_CHECKING:
    import pandas as pd


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
    table: CostTable, costs: Iterable[NamedCost], values: Mapping[str, object] | None = None
) -> pd.DataFrame:
    """Return one line per op and one column per cost, in the cost's unit.

    Args:
        table: rows of costs.
        costs: what is summed, each under its name.
        values: number by symbol name; with it cells are exact numbers, without it formulas.

    Raises:
        InputError: values are refused or missing.
        DivisibilityError: an axis is not divisible by its mesh axes.
    """
    import pandas as pd

    rows = table if values is None else bind(table, values)
    by_path = grouped((row.path, row) for row in rows)
    ops = {path: replace(rows, rows=tuple(own)) for path, own in by_path.items()}
    cells = {cost.name: [cost.total(rows) for rows in ops.values()] for cost in costs}
    if values is not None:
        cells = {name: [value(cell) for cell in column] for name, column in cells.items()}
    return pd.DataFrame(cells, index=pd.Index(list(ops), name="op"), dtype=object)
