"""Sheets as text for a terminal, a pipe or a file."""

from __future__ import annotations

from io import StringIO
from shutil import get_terminal_size

from symbolic_cost.emit.formulas import plain
from symbolic_cost.emit.sheet import Sheet

_NARROWEST = 100
_WIDTH_OF_FILES = 120
_LEAST = 8  # cells of a column that is never squeezed away
_KEPT = 40
"""Characters of the first column, the names, that formulas beside them do not squeeze."""


def write(sheet: Sheet) -> str:
    """Return a sheet as text without colours, as wide as the terminal but at least 100.

    Long cells go over several lines; nothing is cut off.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # Cells are Text because rich takes [m1 > 1] in a str for markup.
    rows = [list(map(Text, row)) for row in sheet.printed(plain)]
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in sheet.columns:
        table.add_column(Text(column.title), justify=column.align, overflow="fold")
    for row in rows:
        table.add_row(*row)
    for place, column in enumerate(table.columns):
        lines = [line for row in rows for line in row[place].split()]
        longest = max((line.cell_len for line in lines), default=0)
        column.min_width = min(longest, _KEPT if place == 0 else _LEAST)
    width = max(_NARROWEST, get_terminal_size((_WIDTH_OF_FILES, 0)).columns)
    file = StringIO()
    console = Console(file=file, width=width, color_system=None, force_terminal=False)
    console.print(Text(sheet.title))
    console.print(table)
    for note in sheet.notes:
        console.print(Text(note))
    text = file.getvalue().replace("\N{NO-BREAK SPACE}", " ")
    lines = [line.rstrip() for line in text.splitlines()]
    return "\n".join(lines) + "\n"
