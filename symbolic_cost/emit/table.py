"""Sheets as text for a terminal, a pipe or a file: 80 columns are enough.

A table that is wider has the formulas of a row on lines of their own below it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from itertools import zip_longest
from shutil import get_terminal_size
from textwrap import wrap

from symbolic_cost.emit.sheet import Cell, Column, Sheet, formulas, plain

_NARROWEST = 80
_LEAST = 12  # cells of a column with very long words that stay in one piece
_BETWEEN = 3  # blanks between columns
_KEPT = 40
"""Characters of the first column, the names, that others beside them do not squeeze."""

_NAME = 28
"""Characters of a name that stay together even where there is no room."""

_INSIDE = 4
"""Blanks before a row whose name stands above it."""

_LONG = 16
"""Characters up to which formulas stay in their column."""

_FEW, _SENTENCE = 2, 20
"""Columns beside which sentences have room, and how long these are at least in the mean."""


def write(sheet: Sheet) -> str:
    """Return a sheet as text without colours, as wide as the terminal but at least 80.

    Long cells go over several lines; nothing is cut off.
    """
    width = _NARROWEST
    if sys.stdout is not None and sys.stdout.isatty():
        width = max(_NARROWEST, get_terminal_size((_NARROWEST, 0)).columns)
    cells = _indented(sheet, sheet.printed(plain))
    shown = saying(cells, len(sheet.columns))
    below = _below(sheet, cells, shown, width)
    beside = [place for place in shown if place not in below]
    lines = [*folded(sheet.title, width), ""]
    lines += _table(sheet, cells, beside, below, width)
    lines += [""] if sheet.notes else []
    for note in sheet.notes:
        lines += folded(note, width)
    text = "\n".join(line.rstrip() for line in lines).rstrip("\n")
    return text.replace("\N{NO-BREAK SPACE}", " ") + "\n"


def saying(cells: Sequence[Sequence[str]], columns: int) -> list[int]:
    """Return the columns that say anything; the first always does, and all of an empty table."""
    return [
        place
        for place in range(columns)
        if place == 0 or not cells or any(row[place] for row in cells)
    ]


def _indented(sheet: Sheet, cells: list[list[str]]) -> list[list[str]]:
    """Set names below the phrases that head them."""
    if not any(isinstance(row[0], tuple) for row in sheet.rows):
        return cells
    return [
        texts if isinstance(row[0], tuple) or row[0] == "total" else [f"  {texts[0]}", *texts[1:]]
        for row, texts in zip(sheet.rows, cells, strict=True)
    ]


def _below(sheet: Sheet, cells: list[list[str]], shown: list[int], width: int) -> list[int]:
    """Return the columns of formulas and sentences that go below their rows: none if all fit."""
    told = {place: [sheet.columns[place].title, *(row[place] for row in cells)] for place in shown}
    wide = {place: max(map(_natural, texts)) for place, texts in told.items()}
    if sum(wide.values()) + _BETWEEN * len(wide) <= width:
        return []
    below = [
        place
        for place in shown[1:]
        if wide[place] > _LONG and _holds_formulas([row[place] for row in sheet.rows])
    ]
    for place in reversed(shown[1:]):
        beside = [one for one in shown if one not in below]
        if len(beside) <= _FEW or place in below or not _holds_sentences(told[place][1:]):
            continue
        widths = _widths(sheet, {one: told[one] for one in beside}, width)
        narrow = widths[beside.index(place)] < _NAME or _sum(widths) > width
        if narrow and sheet.columns[place].align == "left":
            below.append(place)
    return sorted(below)


def _holds_formulas(cells: list[Cell]) -> bool:
    """Tell whether a column is of formulas, though some of them may be said in words."""
    texts = sum(isinstance(cell, str) and bool(cell) for cell in cells)
    return 3 * sum(isinstance(cell, formulas()) for cell in cells) > texts


def _holds_sentences(texts: list[str]) -> bool:
    """Tell whether texts are long, and not one of them alone."""
    lengths = [len(text) for text in texts if text]
    return bool(lengths) and max(lengths) > _KEPT and sum(lengths) / len(lengths) > _SENTENCE


def _natural(text: str) -> int:
    return max(map(len, text.split("\n")))


def _table(
    sheet: Sheet, cells: list[list[str]], beside: list[int], below: list[int], width: int
) -> Iterator[str]:
    """Give the head, then each row with its formulas below it.

    Columns that do not fit beside each other have the names of the rows above them; columns that
    are too many stand in several tables, each with the names.
    """
    headed = [isinstance(row[0], tuple) for row in sheet.rows]
    told = {
        place: [
            sheet.columns[place].title,
            *(row[place] for row, head in zip(cells, headed, strict=True) if not head),
        ]
        for place in beside
    }
    for number, (above, shown) in enumerate(_panels(sheet, told, width)):
        yield from [""] * bool(number)
        widths = _widths(sheet, {n: told[n] for n in shown}, width - _INSIDE * above)
        panel = _Panel([sheet.columns[n] for n in shown], widths, above)
        columns = [sheet.columns[0], *panel.columns] if above else panel.columns
        yield from panel.line([column.title for column in columns])
        yield " " + "\N{BOX DRAWINGS LIGHT HORIZONTAL}" * panel.wide
        leads = _leads(sheet, below)
        name = ""
        for texts, head in zip(cells, headed, strict=True):
            if head:
                yield from folded(f" {texts[0]}", width)
                continue
            named = texts[0] if texts[0] != name else ""
            name = texts[0] if above else ""
            yield from panel.line([*[named] * above, *(texts[place] for place in shown)])
            for lead, place in zip(leads, below, strict=True):
                if texts[place] and not number:
                    yield from folded(f"{5 * ' '}{lead}{texts[place]}", width, 8)


def _leads(sheet: Sheet, below: list[int]) -> list[str]:
    """Return what stands before formulas and sentences below their row."""
    formulas = [n for n in below if _holds_formulas([row[n] for row in sheet.rows])]
    named = {n: sheet.columns[n].heading.removesuffix(" formula") for n in below}
    alone = len(formulas) == 1
    signs = {n: "= " if alone else f"{named[n]} = " for n in formulas}
    return [signs.get(n, f"{named[n]}: ") for n in below]


def _panels(
    sheet: Sheet, told: Mapping[int, list[str]], width: int
) -> list[tuple[bool, list[int]]]:
    """Return the columns of each table, and whether names stand above the rows."""
    places = list(told)

    def fits(chosen: list[int], room: int) -> bool:
        return _sum(_widths(sheet, {n: told[n] for n in chosen}, room)) <= room

    if fits(places, width) or len(places) < 3:  # noqa: PLR2004 - names and one column
        return [(False, places)]
    longest = max(map(len, told[places[0]]))
    if longest > _LONG and fits(places[1:], width - _INSIDE):
        return [(True, places[1:])]
    panels: list[list[int]] = [places[:1]]
    for place in places[1:]:
        if len(panels[-1]) > 1 and not fits([*panels[-1], place], width):
            panels.append(places[:1])
        panels[-1].append(place)
    return [(False, panel) for panel in panels]


class _Panel:
    """Columns beside each other.

    Args:
        columns: that share a line.
        above: whether the name of a row has a line of its own.
    """

    def __init__(self, columns: list[Column], widths: list[int], above: bool) -> None:  # noqa: FBT001 - one caller
        self.columns, self._widths, self._above = columns, widths, above

    @property
    def wide(self) -> int:
        """Characters of a line."""
        return _sum(self._widths) - _BETWEEN + _INSIDE * self._above

    def line(self, cells: list[str]) -> Iterator[str]:
        if self._above:
            yield from folded(f" {cells[0]}", self.wide + 1) if cells[0] else ()
            cells = cells[1:]
        lead = _INSIDE * self._above * " "
        yield from (lead + text for text in _line(self.columns, cells, self._widths))


def _sum(widths: list[int]) -> int:
    return sum(widths) + _BETWEEN * len(widths)


def folded(text: str, width: int = _NARROWEST, indent: int = 0) -> list[str]:
    """Break a text at blanks; one without any where the line ends."""
    lead = len(text) - len(text.lstrip(" "))
    lines = [
        line
        for part in text.split("\n")
        for line in wrap(
            part.lstrip(" "),
            width,
            initial_indent=lead * " ",
            subsequent_indent=max(lead, indent) * " ",
            break_on_hyphens=False,
        )
    ]
    return lines or [""]


def _line(columns: list[Column], cells: list[str], widths: list[int]) -> list[str]:
    """Return the lines of one row, as a terminal shows them."""
    texts = [_in_words(cell, wide) for cell, wide in zip(cells, widths, strict=True)]
    told = [_wrapped(text, wide) for text, wide in zip(texts, widths, strict=True)]
    plain = [lines for lines in told if lines is not None]
    if len(plain) < len(told):
        return _shown_by_rich(columns, texts, widths)
    sides = [str.rjust if column.align == "right" else str.ljust for column in columns]
    between = _BETWEEN * " "
    lines = zip_longest(*plain, fillvalue="")
    placed = ((s(t, w) for s, t, w in zip(sides, line, widths, strict=True)) for line in lines)
    return [f" {between.join(texts)}" for texts in placed]


_NARROW = re.compile(r"[!-~\xa1-\xac\xae-\u02ff]+( [!-~\xa1-\xac\xae-\u02ff]+)*|")
"""Words of characters that are one cell wide, with one blank between them."""


def _wrapped(text: str, wide: int) -> list[str] | None:
    """Return the lines of a cell; none where it takes more than words and blanks to break it."""
    lines: list[str] = []
    for piece in text.split("\n"):
        if not _NARROW.fullmatch(piece):
            return None
        line = ""
        for word in piece.split(" "):
            if len(word) > wide:
                return None
            longer = f"{line} {word}" if line else word
            if len(longer) > wide:
                lines.append(line)
                longer = word
            line = longer
        lines.append(line)
    return lines


def _shown_by_rich(columns: list[Column], texts: list[str], widths: list[int]) -> list[str]:
    """Return the lines of a row with characters of any width, and words of any length."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_header=False, show_edge=False)
    for column, wide in zip(columns, widths, strict=True):
        table.add_column(justify=column.align, overflow="fold", width=wide)
    # Cells are Text because rich takes [m1 > 1] in a str for markup.
    table.add_row(*map(Text, texts))
    file = StringIO()
    console = Console(file=file, width=_sum(widths), color_system=None, force_terminal=False)
    console.print(table)
    return [f" {line}" for line in file.getvalue().splitlines()]


def _in_words(text: str, wide: int) -> str:
    """Break words that are wider than their column behind a dot, as paths are read."""
    lead = (len(text) - len(text.lstrip(" "))) * " "
    if all(len(lead) + len(word) <= wide for word in text.split()):
        return text
    lines = [""]
    for piece in re.findall(r"[^.\s]*[.\s]?", text.strip()):
        if lines[-1] and len(lead) + len(lines[-1]) + len(piece.rstrip()) > wide:
            lines.append("")
        lines[-1] += piece
    return "\n".join(f"{lead}{line.rstrip()}" for line in lines)


def _least(cells: list[str], *, is_name: bool, folds: bool) -> int:
    """Return the widest of the pieces of cells that stay together."""
    most = 1
    for cell in cells:
        lead = len(cell) - len(cell.lstrip(" ")) if is_name else 0
        for word in (cell or "-").split():
            parts = re.findall(r"[^.]+\.?|\.", word) if folds else [word]
            most = max(most, lead + max(map(len, parts)))
    return most


def _widths(sheet: Sheet, told: Mapping[int, list[str]], width: int) -> list[int]:
    """Return the widths of columns that share a line: the widest give way first.

    Numbers, which stand on the right, stay in one piece, as words do where there is room.
    """
    columns = list(told.values())
    names = [place == 0 for place in told]
    texts = [sheet.columns[place].align == "left" for place in told]
    wide = [max(map(_natural, column)) for column in columns]
    for folds in (False, True):
        least = []
        for cells, is_name, is_text, natural in zip(columns, names, texts, wide, strict=True):
            whole = max((len(cell) for cell in cells[1:]), default=1)  # a number
            word = _least(cells, is_name=is_name, folds=folds)
            word = word if is_text else max(whole, _least(cells[:1], is_name=False, folds=False))
            unbroken = min(_NAME if folds else _KEPT, natural) if is_name else 0
            own = max(word, unbroken)
            least.append(min(own, _LEAST) if own > _KEPT else own)
        # The widest give way first, none below its least.
        room = width - _BETWEEN * len(columns)
        squeezed = list(wide)
        while sum(squeezed) > room:
            spare = [place for place, whole in enumerate(squeezed) if whole > least[place]]
            if not spare:
                break
            squeezed[max(spare, key=squeezed.__getitem__)] -= 1
        if _sum(squeezed) <= width:
            break
    return squeezed
