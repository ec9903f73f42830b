"""Sheets as LaTeX tables for documents with the packages amsmath, booktabs and longtable."""

from sympy import Expr

from symbolic_cost.emit.formulas import latex, latex_text
from symbolic_cost.emit.sheet import Sheet


def write(sheet: Sheet) -> str:
    """Return a table over as many pages as it takes, its title as the caption."""
    columns = "".join(column.align[0] for column in sheet.columns)
    lines = [
        r"% \usepackage{amsmath,booktabs,longtable}",
        rf"\begin{{longtable}}{{{columns}}}",
        rf"\caption{{{latex_text(sheet.title)}}} \\",
        r"\toprule",
        _row([latex_text(column.title) for column in sheet.columns]),
        r"\midrule",
        r"\endhead",
        r"\bottomrule",
        r"\endfoot",
        *map(_row, sheet.printed(_math, latex_text, _number)),
        r"\end{longtable}",
        *(rf"\noindent {latex_text(note)}\par" for note in sheet.notes),
    ]
    return "\n".join(lines) + "\n"


def _row(cells: list[str]) -> str:
    # The empty group keeps a cell that starts with a bracket from the options of the row before.
    return "{}" + " & ".join(cells) + r" \\"


def _math(expr: Expr) -> str:
    return f"${latex(expr)}$"


def _number(text: str) -> str:
    """Set a minus sign as one, not as a hyphen."""
    return f"$-${text[1:]}" if text.startswith("-") else text
