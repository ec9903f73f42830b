"""Sheets as Markdown tables with formulas in dollars, as GitHub renders them."""

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

from sympy import Basic, Expr

from symbolic_cost.emit.formulas import latex
from symbolic_cost.emit.sheet import Cell, Column, Measured, Nested, Sheet, is_heading

CellInput: TypeAlias = (
    str | Nested | Measured | tuple[str | Basic, ...] | int | Fraction | float | Expr | None
)
"""A cell as types that arguments are checked against; that of `Sheet` loads no SymPy."""

_RULE = {"left": ":---", "right": "---:"}


def write(sheet: Sheet) -> str:
    """Return a heading, a table and the notes as a list."""
    lines = [
        f"### {escaped(sheet.title)}",
        "",
        _row([escaped(column.title) for column in sheet.columns]),
        _row([_RULE[column.align] for column in sheet.columns]),
        *map(_line, sheet.rows, sheet.printed(_formula, escaped)),
    ]
    if sheet.notes:
        lines += ["", *(f"- {escaped(note)}" for note in sheet.notes)]
    return "\n".join(lines) + "\n"


def markdown(headings: Sequence[str], rows: Sequence[Sequence[CellInput]]) -> str:
    """Return rows as a Markdown table; formulas stand in dollars, None is an empty cell.

    >>> print(markdown(["model", "parameters"], [["gpt2", 124439808]]), end="")
    | model | parameters |
    | :--- | :--- |
    | gpt2 | 124439808 |

    Raises:
        InputError: a row of another length than the headings, or a heading that occurs twice.
    """
    table = Sheet("", tuple(map(Column, headings)), tuple(map(tuple, rows))).visible
    return write(table).partition("\n\n")[2]


def _line(row: Sequence[Cell], cells: list[str]) -> str:
    """Set what heads other rows in italics."""
    return _row([f"*{cells[0]}*", *cells[1:]] if is_heading(row) else cells)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _formula(expr: Expr) -> str:
    # A bar in a formula would end the cell.
    return f"${latex(expr)}$".replace("|", r"\vert ")


def escaped(text: str) -> str:
    """Return a text in which nothing is Markdown."""
    return re.sub(r"([\\`*_$<>|\[\]])", r"\\\1", text).replace("\n", "<br>")
