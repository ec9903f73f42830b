"""How a reproduction is printed."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sympy import Expr

from symbolic_cost.emit.formulas import plain
from symbolic_cost.emit.sheet import Column, Sheet
from symbolic_cost.published.contract import Reproduction


def reproduction_sheet(result: Reproduction, formulas: Mapping[str, Expr]) -> Sheet:
    """Tabulate published and computed numbers, with the formulas that are known by key."""
    rows = tuple(
        (
            row.key,
            *((_formula(formulas, row.key),) if formulas else ()),
            row.published,
            row.computed,
            {True: "yes", False: "NO", None: ""}[row.match],
        )
        for row in result.rows
    )
    columns = (
        Column("number"),
        *((Column("formula"),) if formulas else ()),
        Column("published", "right"),
        Column("computed", "right"),
        Column("match"),
    )
    return Sheet(f"{result.name}: {summary(result)}", columns, rows)


def summary(result: Reproduction) -> str:
    """Say how many numbers match."""
    if not result.total:
        return "evaluated for other inputs; nothing was published for them"
    return f"{result.matched} of {result.total} published numbers match"


def reproduction_json(result: Reproduction) -> str:
    """Return the record that programs read."""
    record = {
        "name": result.name,
        "matched": result.matched,
        "total": result.total,
        "rows": [
            {
                "key": row.key,
                "published": row.published,
                "computed": row.computed,
                "match": row.match,
            }
            for row in result.rows
        ],
    }
    return json.dumps(record, indent=1, ensure_ascii=False)


def _formula(formulas: Mapping[str, Expr], key: str) -> str | None:
    return plain(formulas[key]) if key in formulas else None
