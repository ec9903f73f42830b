"""Sheets as text for a terminal, a pipe or a file."""

import sys
from io import StringIO
from shutil import get_terminal_size

from symbolic_cost.emit.formulas import plain
from symbolic_cost.emit.sheet import Sheet

_NARROWEST = 100
_WIDTH_OF_FILES = 120
_LEAST = 12  # cells of every other column that stay in one piece
_BETWEEN = 3  # blanks between columns
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
    width = _WIDTH_OF_FILES
    if sys.stdout is not None and sys.stdout.isatty():
        width = max(_NARROWEST, get_terminal_size((_WIDTH_OF_FILES, 0)).columns)
    cells = [
        [column.title, *(row[place].plain for row in rows)]
        for place, column in enumerate(sheet.columns)
    ]
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    widths = _widths(cells, width)
    for column, wide in zip(sheet.columns, widths, strict=True):
        table.add_column(Text(column.title), justify=column.align, overflow="fold", width=wide)
    for row in rows:
        table.add_row(*row)
    file = StringIO()
    console = Console(
        file=file,
        width=max(width, sum(widths) + _BETWEEN * len(widths)),
        color_system=None,
        force_terminal=False,
    )
    console.print(Text(sheet.title))
    console.print(table)
    for note in sheet.notes:
        console.print(Text(note))
    text = file.getvalue().replace("\N{NO-BREAK SPACE}", " ")
    lines = [line.rstrip() for line in text.splitlines()]
    return "\n".join(lines) + "\n"


def _widths(columns: list[list[str]], width: int) -> list[int]:
    """Return the widths of columns that share a line: the widest give way first."""
    wide = [max(len(line) for cell in column for line in cell.split("\n")) for column in columns]
    least = [min(_KEPT if place == 0 else _LEAST, whole) for place, whole in enumerate(wide)]
    room = width - _BETWEEN * len(columns)
    while sum(wide) > room:
        spare = [place for place, whole in enumerate(wide) if whole > least[place]]
        if not spare:
            break
        wide[max(spare, key=wide.__getitem__)] -= 1
    return wide
