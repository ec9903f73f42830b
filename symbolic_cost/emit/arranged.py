"""Columns of a table divided among tables that fit a page: widths in points, no LaTeX.

A table that does not fit in one column of the page, nor across two, is divided by its columns, then
by its rows; where even one column is too wide, every cell becomes a line of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial

from symbolic_cost.emit.measure import least, lines, shared, width
from symbolic_cost.emit.page import Page
from symbolic_cost.records import dataclass

_GAP = 6.0  # points between columns
_COMFORT = 58.0  # points below which a column of formulas is divided off
_LINE = 11.2  # points of one line of a row
_RECORD = (0.27, 0.7)
_SPARE = 110.0  # points of a page for caption and notes


@dataclass(frozen=True)
class Col:
    """A column: its cells as TeX measures and as they are written."""

    head: str
    align: str
    measured: tuple[str, ...]
    written: tuple[str, ...]

    @cached_property
    def wide(self) -> float:
        """Width in one line."""
        return max(map(width, (self.head, *self.measured)))

    @cached_property
    def least(self) -> float:
        """Width of the widest piece that stays on one line."""
        return max(map(least, (self.head, *self.measured)))

    @cached_property
    def holds_formulas(self) -> bool:
        """Whether a cell is a formula."""
        return any("$" in cell for cell in self.measured)

    @property
    def is_text(self) -> bool:
        """Whether its cells are words."""
        return self.align == "left" and not self.holds_formulas


@dataclass(frozen=True)
class Table:
    """Columns with their widths; none where they have their natural one."""

    columns: tuple[Col, ...]
    widths: tuple[float | None, ...]
    rows: tuple[int, ...]
    headings: frozenset[int]
    room: float


def arranged(columns: tuple[Col, ...], headings: frozenset[int], page: Page) -> list[Table]:
    """Return the tables of columns, each of which fits; rows that are headings head those below."""
    packs = _packs(columns, headings, page)
    return [part for pack in packs for part in _pages(pack, page)]


def _packs(columns: tuple[Col, ...], headings: frozenset[int], page: Page) -> list[Table]:
    """Divide columns among tables, each of which fits; the first column stands in all of them."""
    every = tuple(range(len(columns[0].measured)))
    cut = partial(Table, rows=every, headings=headings)
    for room in dict.fromkeys((page.column, page.text)):
        widths = _widths(columns, room)
        if widths is not None and _is_easy(columns, widths):
            return [cut(columns, widths, room=room)]
    # The columns that name a row: those before formulas and numbers.
    count = 1
    while count < len(columns) - 1 and columns[count].is_text:
        count += 1
    keys = columns[:count]
    groups = _together(columns[len(keys) :])
    if len(groups) > 1 and _tell_apart(keys, headings):
        return [
            _without_empty(table, len(keys))
            for some in _divided(keys, groups, page.text)
            for table in _packs((*keys, *_joined(some)), headings, page)
        ]
    widths = _widths(columns, page.text)
    if widths is not None:
        return [cut(columns, widths, room=page.text)]
    return [_records(columns, page)]


def _tell_apart(keys: tuple[Col, ...], headings: frozenset[int]) -> bool:
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


def _without_empty(table: Table, keys: int) -> Table:
    """Leave out rows of which no column says anything, and headings of none."""
    rows: list[int] = []
    for row in reversed(table.rows):
        below = bool(rows) and rows[-1] not in table.headings
        if below if row in table.headings else any(c.written[row] for c in table.columns[keys:]):
            rows.append(row)
    return replace(table, rows=tuple(reversed(rows)))


_Groups = list[tuple[Col, ...]]


def _divided(keys: tuple[Col, ...], groups: _Groups, room: float) -> Iterator[_Groups]:
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


def _joined(groups: Sequence[tuple[Col, ...]]) -> list[Col]:
    return [column for group in groups for column in group]


def _together(columns: tuple[Col, ...]) -> list[tuple[Col, ...]]:
    """Join a column of values to that of the formulas before it."""
    groups: list[tuple[Col, ...]] = []
    for column in columns:
        if groups and column.head.startswith(f"{groups[-1][0].head.partition(' [')[0]} value"):
            groups[-1] = (*groups[-1], column)
        else:
            groups.append((column,))
    return groups


def _fitting(keys: tuple[Col, ...], groups: list[tuple[Col, ...]], room: float) -> int:
    """Return how many groups of columns fit beside the names, at least one and not all."""
    for count in range(len(groups) - 1, 1, -1):
        columns = (*keys, *_joined(groups[:count]))
        widths = _widths(columns, room)
        if widths is not None and _is_easy(columns, widths):
            return count
    return 1


def _widths(columns: Sequence[Col], room: float) -> tuple[float | None, ...] | None:
    """Return the widths of columns that fit, None for those of their own width."""
    inner = room - _GAP * (len(columns) - 1)
    wide = [column.wide for column in columns]
    shares = shared(wide, [column.least for column in columns], inner)
    if shares is None:
        return None
    return tuple(None if own <= one + 0.01 else one for own, one in zip(wide, shares, strict=True))


def _is_easy(columns: Sequence[Col], widths: Sequence[float | None]) -> bool:
    """Tell whether no column is so narrow that its cells become tall."""
    return all(
        wide is None or wide >= (_COMFORT if column.holds_formulas else _COMFORT / 2)
        for column, wide in zip(columns, widths, strict=True)
    )


def _records(columns: tuple[Col, ...], page: Page) -> Table:
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
        Col("", "left", tuple(heads), tuple(heads)),
        Col("", "left", tuple(cells["measured"]), tuple(cells["written"])),
    )
    own = tuple(share * (page.text - _GAP) for share in _RECORD)
    return Table(sides, own, tuple(range(len(heads))), frozenset(), page.text)


def _pages(table: Table, page: Page) -> Iterator[Table]:
    """Divide the rows of a table that is taller than a page, best before a heading."""
    rows: list[int] = []
    used, room = 0.0, page.height - _SPARE
    for row in table.rows:
        tall = _LINE * max(
            lines(column.measured[row], wide or column.wide)
            for column, wide in zip(table.columns, table.widths, strict=True)
        )
        if rows and used + tall > room:
            yield replace(table, rows=tuple(_without_cut_heading(rows, table)))
            rows = rows[len(_without_cut_heading(rows, table)) :]
            used = _LINE * len(rows)
        rows.append(row)
        used += tall
    yield replace(table, rows=tuple(rows))


def _without_cut_heading(rows: list[int], table: Table) -> list[int]:
    """Leave out a heading at the end, and what little follows it."""
    starts = [place for place, row in enumerate(rows) if row in table.headings and place]
    near = starts and len(rows) - starts[-1] <= max(2, len(rows) // 3)
    return rows[: starts[-1]] if near else rows
