"""A neutral table of texts, numbers and formulas, and the formats that it is written in.

Formats for people (table, markdown, latex, html) print numbers to six digits, percentages to two
places, and those of a unit with its prefixes; formats for programs (json, csv) print them exactly.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Literal, TypeAlias

from symbolic_cost.emit import FORMATS
from symbolic_cost.errors import InputError, UnknownNameError, refuse, unknown, visible
from symbolic_cost.records import dataclass
from symbolic_cost.units import Unit, human

if TYPE_CHECKING:
    from sympy import Basic, Expr, Symbol


def formulas() -> tuple[type[Expr], ...]:
    """Return the type of formulas; none while nothing has loaded SymPy, and no cell can be one."""
    if "sympy" not in sys.modules:
        return ()
    from sympy import Expr

    return (Expr,)


def plain(formula: Basic) -> str:
    """Return a formula as text."""
    from symbolic_cost.emit.formulas import plain as written

    return written(formula)


@dataclass(frozen=True, slots=True)
class Nested:
    """A name in a tree: indented for people, the whole path for programs."""

    path: str
    label: str
    level: int


@dataclass(frozen=True, slots=True)
class Measured:
    """A number of its own unit: with a prefix for people; number and unit apart for programs."""

    number: int | Fraction | float
    unit: Unit


Phrase: TypeAlias = "tuple[str | Basic, ...]"
"""A text with formulas in it."""

Cell: TypeAlias = "str | Nested | Measured | Phrase | int | Fraction | float | Expr | None"
"""What a table holds; None is an empty cell. A phrase alone in its row heads the rows below it."""

Formula: TypeAlias = "Callable[[Basic], str]"
Text: TypeAlias = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Args:
        heading: unique within the sheet.
        unit: of its numbers; those of a `Unit` are printed for people with a prefix.
    """

    heading: str
    align: Literal["left", "right"] = "left"
    unit: Unit | str | None = None

    @property
    def title(self) -> str:
        """The heading, with the unit in brackets if it is not printed in every cell."""
        return self.heading if isinstance(self.unit, Unit) else self.full_title

    @property
    def full_title(self) -> str:
        """The heading with the unit in brackets."""
        bare = not self.unit or self.unit is Unit.RATIO
        return self.heading if bare else f"{self.heading} [{self.unit}]"


def headed(headings: str) -> tuple[Column, ...]:
    """Return columns by their headings; > sets to the right, a unit stands in brackets.

    >>> headed("op, moves> [byte]")[1]
    Column(heading='moves', align='right', unit=<Unit.BYTE: 'byte'>)
    """
    return tuple(map(_column, headings.split(", ")))


def _column(text: str) -> Column:
    heading, _, unit = text.removesuffix("]").partition(" [")
    known = {str(one): one for one in Unit}
    align: Literal["left", "right"] = "right" if heading.endswith(">") else "left"
    return Column(heading.removesuffix(">"), align, known.get(unit, unit) if unit else None)


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table.

    Args:
        names: what letters in its formulas stand for, as {n_first: ceiling(n_layers/pp) - 1}.

    Raises:
        InputError: a row of another length than the columns, or a heading that occurs twice.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    names: Mapping[Symbol, Expr] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the shape; SymPy's numbers become Python's."""
        width = len(self.columns)
        counted = Counter(column.heading for column in self.columns)
        problems = [f"heading {name!r} occurs twice" for name, n in counted.items() if n > 1]
        problems += [
            f"row {number} has {len(row)} cells for {width} columns"
            for number, row in enumerate(self.rows, 1)
            if len(row) != width
        ]
        refuse(f"sheet {self.title!r}: {problem}" for problem in problems)
        object.__setattr__(self, "rows", tuple(tuple(map(_native, row)) for row in self.rows))

    @property
    def visible(self) -> Sheet:
        """The same for people: with names in formulas, and what a terminal would obey escaped."""
        columns = tuple(replace(one, heading=visible(one.heading)) for one in self.columns)
        rows = self.rows
        for letter, part in self.names.items():
            rows = tuple(tuple(_summed(cell, letter, part) for cell in row) for row in rows)
        names, shorter = _abbreviated(rows)
        rows = tuple(tuple(_visible(_replaced(cell, shorter)) for cell in row) for row in rows)
        sheet = Sheet(visible(self._titled), columns, rows, tuple(map(visible, self.notes)))
        if not names and not self.names:
            return sheet
        from symbolic_cost.emit.shorter import brief
        from symbolic_cost.symbols import GLOSSARY

        used = set().union(*(one.free_symbols for one in (*formulas_of(sheet), *names.values())))
        meant = [f"{name} = {brief(part)}" for name, part in names.items()]
        meant += [
            f"{name} = {plain(part)}, the {GLOSSARY[name.name].meaning}"
            for name, part in self.names.items()
            if name in used
        ]
        return replace(sheet, notes=(*sheet.notes, *meant))

    @property
    def _titled(self) -> str:
        """The title, with the unit of its formulas where no number beside them shows it."""
        units = {
            str(column.unit)
            for place, column in enumerate(self.columns)
            if isinstance(column.unit, Unit) and all(row[place] is None for row in self.rows)
        }
        words = (rf"(?<![\w/]){re.escape(unit)}s?(?![\w/])" for unit in units)
        is_new = len(units) == 1 and not any(re.search(word, self.title) for word in words)
        return f"{self.title} [{units.pop()}]" if is_new and any(formulas_of(self)) else self.title

    @property
    def split(self) -> Sheet:
        """The same for programs: whole formulas, and columns for units of single numbers."""
        whole = dict(reversed(tuple(self.names.items())))
        columns: list[Column] = []
        cells: list[list[Cell]] = []
        for place, column in enumerate(self.columns):
            own = [row[place] for row in self.rows]
            for letter, part in whole.items():
                own = [_replaced(cell, {letter: part}) for cell in own]
            columns.append(column)
            cells.append([one.number if isinstance(one, Measured) else one for one in own])
            if any(isinstance(one, Measured) for one in own):
                columns.append(Column(f"{column.heading} unit"))
                cells.append([one.unit if isinstance(one, Measured) else None for one in own])
        rows = tuple(zip(*cells, strict=True)) if self.rows else ()
        return replace(self, columns=tuple(columns), rows=rows)

    def printed(self, formula: Formula, text: Text = str, number: Text = str) -> list[list[str]]:
        """Return the rows as texts for people."""

        def cell_text(cell: Cell, column: Column) -> str:
            if cell is None or isinstance(cell, str):
                return text(cell or "")
            if isinstance(cell, Nested):
                return text(cell.level * _INDENT + cell.label)
            if isinstance(cell, Measured):
                return number(human(cell.number, cell.unit))
            if isinstance(cell, tuple):
                return "".join(text(p) if isinstance(p, str) else formula(p) for p in cell)
            if isinstance(cell, formulas()):
                return formula(cell)
            return number(rounded(cell, column.unit))

        return [list(map(cell_text, row, self.columns)) for row in self.rows]


def stacked(heading: str, sheets: Mapping[str, Sheet]) -> Sheet:
    """Return sheets one below another; a first column says which is which.

    A column that some lack is empty there: of fronts, what does not vary within one.

    Raises:
        InputError: no sheet.
    """
    if not sheets:
        raise InputError("one or more sheets are needed")
    columns = tuple(dict.fromkeys(column for sheet in sheets.values() for column in sheet.columns))
    rows: list[tuple[Cell, ...]] = []
    for name, sheet in sheets.items():
        cells = (dict(zip(sheet.columns, row, strict=True)) for row in sheet.rows)
        rows += [(name, *map(own.get, columns)) for own in cells]
    notes = dict.fromkeys(note for sheet in sheets.values() for note in sheet.notes)
    names = {name: part for sheet in sheets.values() for name, part in sheet.names.items()}
    title = next(iter(sheets.values())).title
    return Sheet(title, (Column(heading), *columns), tuple(rows), tuple(notes), names)


_INDENT = 2 * "\N{NO-BREAK SPACE}"  # Markdown, HTML and LaTeX swallow ordinary spaces


def _native(cell: Cell) -> Cell:
    if not isinstance(cell, formulas()) or not cell.is_Rational:
        return cell
    from symbolic_cost.numeric.binding import value

    return value(cell)


def rounded(number: float | Fraction, unit: Unit | str | None = None) -> str:
    """Print a number for people: integers whole, others to six digits or as its unit asks, truth.

    >>> rounded(Fraction(1, 3)), rounded(10**12), rounded(3 * 2**29, Unit.BYTE)
    ('0.333333', '1000000000000', '1.5 GiB')
    """
    if isinstance(unit, Unit):
        return human(number, unit)
    if isinstance(number, bool):
        return "yes" if number else "no"
    if unit == "%":
        return f"{float(number):.2f}"
    if isinstance(number, Fraction):
        return f"{Decimal(number.numerator) / Decimal(number.denominator):.6g}"
    return str(number) if isinstance(number, int) else f"{number:.6g}"


def exact(cell: Cell) -> str | int | float | None:
    """Return a cell for programs: formulas as code, fractions as decimals or as "p/q", yes as 1.

    >>> exact(Fraction(1, 10)), exact(Fraction(1, 3)), exact(Fraction(8, 4))
    (0.1, '1/3', 2)
    """
    if isinstance(cell, formulas()):
        from symbolic_cost.emit.formulas import code

        return code(cell)
    if isinstance(cell, Nested | tuple):
        return cell.path if isinstance(cell, Nested) else worded(cell)
    number = cell.number if isinstance(cell, Measured) else cell
    if not isinstance(number, Fraction):
        return int(number) if isinstance(number, bool) else number
    if number.denominator == 1:
        return number.numerator
    try:
        decimal = float(number)
    except OverflowError:
        return str(number)
    return decimal if Fraction(repr(decimal)) == number else str(number)


def worded(phrase: Phrase) -> str:
    """Return a phrase as text."""
    return "".join(part if isinstance(part, str) else plain(part) for part in phrase)


def render(sheet: Sheet, format: str) -> str:  # noqa: A002 - the command line's word
    """Return a sheet in a format, as text that ends in a newline.

    Raises:
        UnknownNameError: no such format; the closest are offered.
        InputError: the format's optional package is not installed.
    """
    if format not in FORMATS:
        raise UnknownNameError(unknown("format", format, FORMATS))
    shown = sheet.split if format in ("csv", "json") else sheet.visible
    return str(import_module(f"symbolic_cost.emit.{format}").write(shown))


def _replaced(cell: Cell, parts: Mapping[Expr, Expr]) -> Cell:
    """Return a cell with other formulas in place of some, or of parts of them."""
    if not parts:
        return cell
    if isinstance(cell, tuple):
        return tuple(p if isinstance(p, str) else p.xreplace(parts) for p in cell)
    return cell.xreplace(parts) if isinstance(cell, formulas()) else cell


def _summed(cell: Cell, letter: Symbol, part: Expr) -> Cell:
    if not isinstance(cell, formulas()):
        return cell
    from symbolic_cost.emit.shorter import summed

    return summed(cell, letter, part)


def _abbreviated(rows: Iterable[tuple[Cell, ...]]) -> tuple[dict[Symbol, Expr], dict[Expr, Expr]]:
    listed = [cell for row in rows for cell in row if isinstance(cell, formulas())]
    if not listed:
        return {}, {}
    from symbolic_cost.emit.shorter import abbreviated

    return abbreviated(listed)


def _visible(cell: Cell) -> Cell:
    if isinstance(cell, Nested):
        return replace(cell, label=visible(cell.label))
    if isinstance(cell, tuple):
        return tuple(visible(part) if isinstance(part, str) else part for part in cell)
    return visible(cell) if isinstance(cell, str) else cell


def is_heading(row: Sequence[Cell]) -> bool:
    """Tell whether a row heads those below it."""
    return isinstance(row[0], tuple) and all(cell is None for cell in row[1:])


def formulas_of(sheet: Sheet) -> Iterator[Expr]:
    """Give every formula of a sheet."""
    for cell in (cell for row in sheet.rows for cell in row):
        parts = cell if isinstance(cell, tuple) else (cell,)
        yield from (part for part in parts if isinstance(part, formulas()))
