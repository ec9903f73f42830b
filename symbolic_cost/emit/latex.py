r"""Sheets as LaTeX tables that fit their page, for documents with amsmath, array and booktabs.

What does not fit is divided (see `arranged`); symbols are macros, defined once above the tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sympy import Expr, Symbol

from symbolic_cost.emit.arranged import Col, Table, arranged
from symbolic_cost.emit.formulas import latex, latex_text, macros, symbols_of
from symbolic_cost.emit.naming import definition
from symbolic_cost.emit.page import PAGES, Page
from symbolic_cost.emit.sheet import Cell, Sheet, formulas_of, is_heading
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import GLOSSARY

PACKAGES = r"\usepackage{amsmath,array,booktabs}"
_UNBROKEN = 26  # characters of a name that stays in one piece
_RUN = 14


@dataclass(frozen=True)
class Float:
    """Where a table stands, and what it is called.

    Args:
        caption: the title of the sheet unless given.
        label: for references; a table that is divided has label, label-2, ...
        cited: keys of publications that the caption cites.
        notes: whether those of the sheet follow the last table: "below" or "none".
    """

    page: Page = PAGES["article"]
    caption: str = ""
    label: str = ""
    cited: tuple[str, ...] = ()
    notes: str = "below"


def write(sheet: Sheet, place: Float | None = None) -> str:
    """Return tables, above them the packages that they need and the macros of their symbols."""
    lines_of = [f"% {PACKAGES}", *definitions(symbols_of(formulas_of(sheet)))]
    return "\n".join([*lines_of, *tables(sheet, place or Float())]) + "\n"


def definitions(symbols: Sequence[Symbol]) -> list[str]:
    """Return a line of LaTeX for each symbol: a name is changed there alone."""
    return [definition(one.name) for one in symbols if one.name in GLOSSARY]


def tables(sheet: Sheet, place: Float) -> list[str]:
    """Return the lines of the tables of a sheet."""
    parts = arranged(*_columns(sheet), place.page)
    lines_of: list[str] = []
    for number, part in enumerate(parts, 1):
        last = number == len(parts)
        own = replace(place, notes=place.notes if last else "none")
        lines_of += _float(sheet, part, own, number)
    return lines_of


# ---------------------------------------------------------------------- cells


def _columns(sheet: Sheet) -> tuple[tuple[Col, ...], frozenset[int]]:
    """Return the columns that hold anything, and the rows that are headings."""
    headings = frozenset(n for n, row in enumerate(sheet.rows) if is_heading(row))
    measured = sheet.printed(_math, text_of, _number)
    written = sheet.printed(_macros, text_of, _number)
    columns = []
    for place, column in enumerate(sheet.columns):
        texts = [row[place] for row in measured]
        indent = r"\quad " * (place == 0 and bool(headings))
        if place and sheet.rows and not any(texts):
            continue
        shown = [
            "" if n in headings else indent + _boxed(text, sheet.rows[n][place])
            for n, text in enumerate(texts)
        ]
        final = [
            row[place] if n in headings else indent + _boxed(row[place], sheet.rows[n][place])
            for n, row in enumerate(written)
        ]
        columns.append(Col(text_of(column.title), column.align, tuple(shown), tuple(final)))
    return tuple(columns), headings


def _boxed(text: str, cell: Cell) -> str:
    """Keep a name in one piece."""
    short = isinstance(cell, str) and " " not in cell and len(cell) <= _UNBROKEN
    return rf"\mbox{{{latex_text(str(cell))}}}" if short and text else text


def text_of(text: str) -> str:
    """Return a text for LaTeX, in which a line may end inside of very long words."""
    return " ".join(map(_word, text.split(" "))).replace("--", "-{}-")


def _word(word: str) -> str:
    if len(word) <= _RUN:
        return latex_text(word)
    runs = re.findall(rf"[^./,_=\-]{{1,{_RUN}}}[./,_=\-]?|[./,_=\-]", word)
    return r"\allowbreak{}".join(map(latex_text, runs))


def _math(expr: Expr) -> str:
    return f"${latex(expr, breakable=True)}$"


def _macros(expr: Expr) -> str:
    return f"${macros(expr)}$"


def _number(text: str) -> str:
    """Set a minus sign as one, not as a hyphen."""
    return f"$-${text[1:]}" if text.startswith("-") else text


# ---------------------------------------------------------------------- output


def _float(sheet: Sheet, table: Table, place: Float, number: int) -> list[str]:
    star = "*" * (place.page.is_divided and table.room > place.page.column)
    again = " (continued)" if number > 1 else ""
    cite = rf"~\cite{{{','.join(place.cited)}}}" if place.cited and not again else ""
    label = f"{place.label}-{number}" if place.label and number > 1 else place.label
    return [
        rf"\begin{{table{star}}}[!htbp]",
        r"\centering",
        *([r"\addtocounter{table}{-1}"] * bool(again)),
        rf"\caption{{{text_of(place.caption or sheet.title)}{again}{cite}}}",
        *([rf"\label{{{label}}}"] if label else []),
        r"\footnotesize\setlength{\tabcolsep}{3pt}\renewcommand{\arraystretch}{1.1}",
        *_tabular(table),
        *_notes(sheet, place),
        rf"\end{{table{star}}}",
    ]


def _tabular(table: Table) -> list[str]:
    heads = [column.head for column in table.columns]
    return [
        rf"\begin{{tabular}}{{@{{}}{''.join(_specs(table))}@{{}}}}",
        r"\toprule",
        *([_row(heads), r"\midrule"] if any(heads) else []),
        *(_line(table, row, place) for place, row in enumerate(table.rows)),
        r"\bottomrule",
        r"\end{tabular}",
    ]


def _specs(table: Table) -> Iterator[str]:
    for column, wide in zip(table.columns, table.widths, strict=True):
        if wide is None:
            yield column.align[0]
        else:
            share = int(10**4 * wide / table.room) / 10**4
            side = "raggedright" if column.align == "left" else "raggedleft"
            yield rf">{{\{side}\arraybackslash}}p{{{share}\linewidth}}"


def _line(table: Table, row: int, place: int) -> str:
    cells = [column.written[row] for column in table.columns]
    if row not in table.headings:
        return _row(cells)
    space = r"\addlinespace[3pt]" * bool(place)
    return rf"{space}\multicolumn{{{len(cells)}}}{{@{{}}l@{{}}}}{{\itshape {cells[0]}}} \\"


def _row(cells: list[str]) -> str:
    # The empty group keeps a cell that starts with a bracket from the options of the row before.
    return "{}" + " & ".join(cells) + r" \\"


def _notes(sheet: Sheet, place: Float) -> list[str]:
    if place.notes == "none" or not sheet.notes:
        return []
    text = ". ".join(text_of(note) for note in sheet.notes)
    return [rf"\par\smallskip\parbox{{\linewidth}}{{\scriptsize\raggedright {text}.}}"]
