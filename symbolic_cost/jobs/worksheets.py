"""Sheets of a workbook: texts that stay texts, formulas with their numbers, heads and styles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from symbolic_cost.errors import visible

FIRST = 4
"""Row of the first line of a table, from 0."""

_LONGEST = 32_000
"""Characters that a spreadsheet takes in a cell."""


class Worksheets:
    """The sheets of a book, and what is written in their cells."""

    def __init__(self, book: Any, names: Iterable[str]) -> None:  # noqa: ANN401 - XlsxWriter's is untyped
        self.book = book
        self.sheets = {name: book.add_worksheet(name) for name in names}
        self._formats: dict[str, Any] = {}

    def style(self, name: str) -> Any:  # noqa: ANN401 - XlsxWriter's is untyped
        """Return a style by name."""
        if name not in self._formats:
            self._formats[name] = self.book.add_format(_STYLES[name])
        return self._formats[name]

    def text(self, sheet: str, row: int, column: int, text: str, style: str = "text") -> None:
        """Write a text, whatever it begins with."""
        shown = visible(text)
        self.sheets[sheet].write_string(row, column, shown[:_LONGEST], self.style(style))

    def formula(self, place: tuple[str, int, int], text: str, value: object, style: str) -> None:
        """Write a formula and the number that it has now, at a place of a sheet."""
        sheet, row, column = place
        self.sheets[sheet].write_formula(row, column, text, self.style(style), value)

    def widths(self, sheet: str, widths: Iterable[int]) -> None:
        """Set the widths of columns [characters]."""
        for column, width in enumerate(widths):
            self.sheets[sheet].set_column(column, column, width)

    def head(self, sheet: str, title: str, said: str, heads: Iterable[str]) -> None:
        """Write what stands above a table."""
        self.text(sheet, 0, 0, title, "title")
        self.text(sheet, 1, 0, said, "note")
        for column, head in enumerate(heads):
            self.text(sheet, FIRST - 1, column, head, "head")
        self.sheets[sheet].freeze_panes(FIRST, 1)
        self.sheets[sheet].hide_gridlines(2)


_STYLES: Mapping[str, Mapping[str, object]] = {
    "text": {"valign": "top"},
    "note": {"font_color": "#555555"},
    "name": {"bold": True, "valign": "top"},
    "title": {"bold": True, "font_size": 16},
    "head": {"bold": True, "bottom": 1, "bg_color": "#EEEEEE"},
    "formula": {"font_name": "DejaVu Sans Mono", "font_size": 8, "valign": "top"},
    "number": {"num_format": "0.00000E+00", "valign": "top"},
    "shown": {"num_format": "#,##0.000", "valign": "top"},
    "ratio": {"num_format": "#,##0.0000", "valign": "top"},
    "check": {"bold": True, "align": "left"},
    "bad": {"bg_color": "#FFC7CE", "font_color": "#9C0006"},
    "whole": {"num_format": "#,##0", "font_color": "#0000CC", "bg_color": "#EAF2FF", "border": 1},
    "real": {
        "num_format": "0.####E+00",
        "font_color": "#0000CC",
        "bg_color": "#EAF2FF",
        "border": 1,
    },
    "fixed": {"num_format": "#,##0", "bg_color": "#EEEEEE", "border": 1},
}
