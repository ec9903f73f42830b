"""What can be reproduced, and how a reproduction is printed."""

import json
from collections.abc import Mapping

from sympy import Expr

from symbolic_cost.emit.formulas import plain
from symbolic_cost.emit.sheet import Column, Sheet, headed
from symbolic_cost.published.contract import MODULES, Comparison, Reproduction, meaning


def reproduction_sheet(result: Reproduction, formulas: Mapping[str, Expr]) -> Sheet:
    """Tabulate published and computed numbers, with the formulas that are known by key."""
    notes = list(dict.fromkeys(row.note for row in result.rows if row.note))
    rows = tuple(
        (
            row.key,
            *((_formula(formulas, row.key),) if formulas else ()),
            row.published,
            row.computed,
            _verdict(row, notes),
        )
        for row in result.rows
    )
    columns = (
        Column("number"),
        *(headed("formula") if formulas else ()),
        Column("published", "right"),
        Column("computed", "right"),
        Column("match"),
    )
    explained = tuple(f"[{number}] {note}" for number, note in enumerate(notes, 1))
    return Sheet(f"{result.name}: {summary(result)}", columns, rows, explained)


def _verdict(row: Comparison, notes: list[str]) -> str:
    said = {True: "yes", False: "NO", None: "-"}[row.match]
    return f"{said} [{notes.index(row.note) + 1}]" if row.note else said


def summary(result: Reproduction) -> str:
    """Say how many numbers match, and how many are not compared.

    Six matches beside three measured numbers are not six of nine, nor six of six published ones.
    """
    if not result.total:
        return "nothing here was published to be compared"
    if not result.uncompared:
        return f"{result.matched} of {result.total} published numbers match"
    matched = f"{result.matched} of {result.total} compared numbers match"
    return f"{matched}; {result.uncompared} published numbers are not compared"


def reproduction_json(result: Reproduction, formulas: Mapping[str, Expr]) -> str:
    """Return the record that programs read, with the formulas that are known by key."""
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
                **({"formula": _formula(formulas, row.key)} if formulas else {}),
                **({"note": row.note} if row.note else {}),
            }
            for row in result.rows
        ],
    }
    return json.dumps(record, indent=1, ensure_ascii=False)


def _formula(formulas: Mapping[str, Expr], key: str) -> str | None:
    return plain(formulas[key]) if key in formulas else None


def publications_sheet() -> Sheet:
    """List every publication, with the first line of its module."""
    rows = tuple((name, meaning(name)) for name in MODULES)
    notes = ("symbolic-cost reproduce NAME prints published and computed numbers side by side",)
    return Sheet("Publications", headed("publication, content"), rows, notes)
