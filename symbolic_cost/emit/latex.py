r"""Sheets as LaTeX tables that fit their page, for documents with amsmath, array and booktabs.

A table stands in one column or across two; one that does not fit is divided, first by its columns,
then by its rows; where even one column is too wide, every cell becomes a line of its own. Symbols
are macros, defined once above the tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial

from sympy import Expr, Symbol

from symbolic_cost.emit.formulas import latex, latex_text, macros, symbols_of
from symbolic_cost.emit.measure import least, lines, shared, width
from symbolic_cost.emit.naming import definition
from symbolic_cost.emit.page import PAGES, Page
from symbolic_cost.emit.sheet import Cell, Sheet, formulas_of, is_heading
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import GLOSSARY

PACKAGES = r"\usepackage{amsmath,array,booktabs}"
_GAP = 6.0  # points between columns
_COMFORT = 58.0  # points below which a column of formulas is divided off
_LINE = 11.2  # points of one line of a row
_UNBROKEN = 26  # characters of a name that stays in one piece
_RUN = 14
_RECORD = (0.27, 0.7)
_SPARE = 110.0  # points of a page for caption and notes


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
    parts = [
        part for pack in _packs(_columns(sheet), place.page) for part in _pages(pack, place.page)
    ]
    lines_of: list[str] = []
    for number, part in enumerate(parts, 1):
        last = number == len(parts)
        own = replace(place, notes=place.notes if last else "none")
        lines_of += _float(sheet, part, own, number)
    return lines_of


# ---------------------------------------------------------------------- cells


@dataclass(frozen=True)
class _Col:
    """A column: its cells as TeX measures and as they are written."""

    head: str
    align: str
    measured: tuple[str, ...]
    written: tuple[str, ...]

    @cached_property
    def wide(self) -> float:
        return max(map(width, (self.head, *self.measured)))

    @cached_property
    def least(self) -> float:
        return max(map(least, (self.head, *self.measured)))

    @cached_property
    def holds_formulas(self) -> bool:
        return any("$" in cell for cell in self.measured)

    @property
    def is_text(self) -> bool:
        return self.align == "l" and not self.holds_formulas


@dataclass(frozen=True)
class _Table:
    """Columns with their widths; none where they have their natural one."""

    columns: tuple[_Col, ...]
    widths: tuple[float | None, ...]
    rows: tuple[int, ...]
    headings: frozenset[int]
    room: float


def _columns(sheet: Sheet) -> tuple[tuple[_Col, ...], frozenset[int]]:
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
        columns.append(_Col(text_of(column.title), column.align[0], tuple(shown), tuple(final)))
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


# ---------------------------------------------------------------------- arrangement


def _packs(content: tuple[tuple[_Col, ...], frozenset[int]], page: Page) -> list[_Table]:
    """Divide columns among tables, each of which fits; the first column stands in all of them."""
    columns, headings = content
    every = tuple(range(len(columns[0].measured)))
    cut = partial(_Table, rows=every, headings=headings)
    for room in dict.fromkeys((page.column, page.text)):
        widths = _widths(columns, room)
        if widths is not None and _is_easy(columns, widths):
            return [cut(columns, widths, room=room)]
    keys = _keys(columns)
    groups = _together(columns[len(keys) :])
    if len(groups) > 1 and _tell_apart(keys, headings):
        return [
            _told(table, len(keys))
            for some in _divided(keys, groups, page.text)
            for table in _packs(((*keys, *_joined(some)), headings), page)
        ]
    widths = _widths(columns, page.text)
    if widths is not None:
        return [cut(columns, widths, room=page.text)]
    return [_records(columns, page)]


def _keys(columns: tuple[_Col, ...]) -> tuple[_Col, ...]:
    """Return the columns that name a row: those before formulas and numbers."""
    count = 1
    while count < len(columns) - 1 and columns[count].is_text:
        count += 1
    return columns[:count]


def _tell_apart(keys: tuple[_Col, ...], headings: frozenset[int]) -> bool:
    """Tell whether no two rows below one heading have the same names."""
    seen: set[tuple[str, ...]] = set()
    above, name = -1, ""
    for n, cells in enumerate(zip(*(key.measured for key in keys), strict=True)):
        if n in headings:
            above = n
            continue
        name = cells[0].replace(r"\quad ", "") or name
        row = (str(above), name, *cells[1:])
        if row in seen:
            return False
        seen.add(row)
    return True


def _told(table: _Table, keys: int) -> _Table:
    """Leave out rows of which no column says anything, and headings of none."""
    rows: list[int] = []
    for row in reversed(table.rows):
        below = bool(rows) and rows[-1] not in table.headings
        if below if row in table.headings else any(c.written[row] for c in table.columns[keys:]):
            rows.append(row)
    return replace(table, rows=tuple(reversed(rows)))


_Groups = list[tuple[_Col, ...]]


def _divided(keys: tuple[_Col, ...], groups: _Groups, room: float) -> Iterator[_Groups]:
    """Divide groups of columns among as few tables as possible, alike in number."""
    number, rest = 0, groups
    while rest:
        number, rest = number + 1, rest[_fitting(keys, rest, room) :]
    rest = groups
    while rest:
        even = -(-len(rest) // max(1, number))
        count = min(even, _fitting(keys, rest, room))
        yield rest[:count]
        number, rest = number - 1, rest[count:]


def _joined(groups: Sequence[tuple[_Col, ...]]) -> list[_Col]:
    return [column for group in groups for column in group]


def _together(columns: tuple[_Col, ...]) -> list[tuple[_Col, ...]]:
    """Join a column of values to that of the formulas before it."""
    groups: list[tuple[_Col, ...]] = []
    for column in columns:
        if groups and column.head.startswith(f"{groups[-1][0].head.partition(' [')[0]} value"):
            groups[-1] = (*groups[-1], column)
        else:
            groups.append((column,))
    return groups


def _fitting(keys: tuple[_Col, ...], groups: list[tuple[_Col, ...]], room: float) -> int:
    """Return how many groups of columns fit beside the names, at least one and not all."""
    for count in range(len(groups) - 1, 1, -1):
        columns = (*keys, *_joined(groups[:count]))
        widths = _widths(columns, room)
        if widths is not None and _is_easy(columns, widths):
            return count
    return 1


def _widths(columns: Sequence[_Col], room: float) -> tuple[float | None, ...] | None:
    """Return the widths of columns that fit, None for those of their own width."""
    inner = room - _GAP * (len(columns) - 1)
    wide = [column.wide for column in columns]
    shares = shared(wide, [column.least for column in columns], inner)
    if shares is None:
        return None
    return tuple(None if own <= one + 0.01 else one for own, one in zip(wide, shares, strict=True))


def _is_easy(columns: Sequence[_Col], widths: Sequence[float | None]) -> bool:
    """Tell whether no column is so narrow that its cells become tall."""
    return all(
        wide is None or wide >= (_COMFORT if column.holds_formulas else _COMFORT / 2)
        for column, wide in zip(columns, widths, strict=True)
    )


def _records(columns: tuple[_Col, ...], page: Page) -> _Table:
    """Give every cell a line of its own, beside its heading."""
    heads: list[str] = []
    cells: dict[str, list[str]] = {"measured": [], "written": []}
    for n in range(len(columns[0].measured)):
        for column in columns:
            if column.written[n]:
                heads.append(column.head)
                cells["measured"].append(column.measured[n].replace(r"\mbox", ""))
                cells["written"].append(column.written[n].replace(r"\mbox", ""))
    sides = (
        _Col("", "l", tuple(heads), tuple(heads)),
        _Col("", "l", tuple(cells["measured"]), tuple(cells["written"])),
    )
    own = tuple(share * (page.text - _GAP) for share in _RECORD)
    return _Table(sides, own, tuple(range(len(heads))), frozenset(), page.text)


def _pages(table: _Table, page: Page) -> Iterator[_Table]:
    """Divide the rows of a table that is taller than a page, best before a heading."""
    rows: list[int] = []
    used, room = 0.0, page.height - _SPARE
    for row in table.rows:
        tall = _LINE * max(
            lines(column.measured[row], wide or column.wide)
            for column, wide in zip(table.columns, table.widths, strict=True)
        )
        if rows and used + tall > room:
            yield replace(table, rows=tuple(_whole(rows, table)))
            rows = rows[len(_whole(rows, table)) :]
            used = _LINE * len(rows)
        rows.append(row)
        used += tall
    yield replace(table, rows=tuple(rows))


def _whole(rows: list[int], table: _Table) -> list[int]:
    """Leave out a heading at the end, and what little follows it."""
    starts = [place for place, row in enumerate(rows) if row in table.headings and place]
    near = starts and len(rows) - starts[-1] <= max(2, len(rows) // 3)
    return rows[: starts[-1]] if near else rows


# ---------------------------------------------------------------------- output


def _float(sheet: Sheet, table: _Table, place: Float, number: int) -> list[str]:
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


def _tabular(table: _Table) -> list[str]:
    heads = [column.head for column in table.columns]
    return [
        rf"\begin{{tabular}}{{@{{}}{''.join(_specs(table))}@{{}}}}",
        r"\toprule",
        *([_row(heads), r"\midrule"] if any(heads) else []),
        *(_line(table, row, place) for place, row in enumerate(table.rows)),
        r"\bottomrule",
        r"\end{tabular}",
    ]


def _specs(table: _Table) -> Iterator[str]:
    for column, wide in zip(table.columns, table.widths, strict=True):
        if wide is None:
            yield column.align
        else:
            share = int(10**4 * wide / table.room) / 10**4
            side = "raggedright" if column.align == "l" else "raggedleft"
            yield rf">{{\{side}\arraybackslash}}p{{{share}\linewidth}}"


def _line(table: _Table, row: int, place: int) -> str:
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
