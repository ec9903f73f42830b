"""Sheets as comma-separated values: a heading with its unit per column, values unrounded."""

from __future__ import annotations

import csv
from io import StringIO

from symbolic_cost.emit.sheet import Sheet, exact


def write(sheet: Sheet) -> str:
    """Return columns and rows; title and notes are left out, since CSV has no place for them."""
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(column.full_title for column in sheet.columns)
    writer.writerows(map(exact, row) for row in sheet.rows)
    return file.getvalue()
