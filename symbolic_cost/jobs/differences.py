"""What the second of two has more than the first, term by term: as values and as a table."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from sympy import Expr

from symbolic_cost.analysis.forms import factored
from symbolic_cost.analysis.verdict import NOTHING, Differing, total
from symbolic_cost.display import NotebookTable
from symbolic_cost.emit.formulas import plain
from symbolic_cost.emit.sheet import Cell, Column, Sheet, headed
from symbolic_cost.jobs.tables.totals import number
from symbolic_cost.numeric.binding import value
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact, symbol
from symbolic_cost.units import Unit, human

Pair = tuple[str, str]


@dataclass(frozen=True)
class Section:
    """The terms of one cost.

    Args:
        values: numbers of the symbols that the two share, by name.
        totals: both totals, for shares.
    """

    cost: str
    unit: Unit
    differing: tuple[Differing, ...]
    alike: tuple[str, ...]
    totals: tuple[Expr, Expr]
    values: Mapping[str, int | Fraction]

    def number(self, expr: Expr) -> Expr:
        """Return an expression with every shared number in place."""
        return expr.xreplace({symbol(name): exact(n) for name, n in self.values.items()})

    @property
    def total(self) -> Expr:
        """What the second has more."""
        return total(self.differing)

    def sentence(self, names: Pair) -> str:
        """Say in one sentence what differs, and where most of it is."""
        first, second = names
        if not self.differing:
            return f"{self.cost}: {second} and {first} are the same"
        more, base = self.number(self.total), self.number(self.totals[0])
        parts = {one.name: self.number(one.expr) for one in self.differing}
        if more.free_symbols or base.free_symbols:
            own = factored(self.total)
            less = own.could_extract_minus_sign()
            text = f"{plain(-own if less else own)} {'less' if less else 'more'}"
            return f"{self.cost}: {second} has {text} than {first}, in {len(parts)} terms"
        word = "more" if more >= 0 else "less"
        share = f" ({_percent(abs(more / base))})" if base != 0 else ""
        largest = max(parts, key=lambda name: abs(parts[name]))
        return (
            f"{self.cost}: {second} has {_in_unit(abs(more), self.unit)}{share} {word} than "
            f"{first}, "
            f"most of it in {largest} ({_in_unit(parts[largest], self.unit)})"
        )


@dataclass(frozen=True)
class Diff(NotebookTable):
    """What the second of two has more than the first."""

    names: Pair
    sections: tuple[Section, ...]
    notes: tuple[str, ...] = ()

    __repr__ = NotebookTable.__str__

    @property
    def summary(self) -> str:
        """One sentence per cost."""
        return "; ".join(section.sentence(self.names) for section in self.sections)

    def sheet(self) -> Sheet:
        """Tabulate the terms that differ, each with its source on both sides."""
        rows: list[tuple[Cell, ...]] = []
        for section in self.sections:
            rows += [(section.cost, one.name, *_cells(section, one)) for one in section.differing]
            end = None if section.total.is_number else factored(section.total)
            value = number(section.number(section.total))
            rows.append((section.cost, "total", None, None, end, value, section.unit, ""))
        first, second = self.names if self.names[0] != self.names[1] else ("first", "second")
        columns = (
            *headed("cost, term"),
            *(Column(first), Column(second)),
            *headed("difference formula, difference>, unit, source"),
        )
        alike = sum(len(section.alike) for section in self.sections)
        notes = (self.summary, f"{alike} terms are the same in both", *self.notes)
        return Sheet(f"{second} less {first}", columns, tuple(rows), notes)


def _cells(section: Section, one: Differing) -> tuple[Cell, ...]:
    own = [side.source for side in (one.first, one.second) if side is not NOTHING]
    source = " | ".join(dict.fromkeys(own))
    exprs = (one.first.expr, one.second.expr, one.expr)
    value = number(section.number(one.expr))
    shown_exprs = (*exprs[:2], None if one.expr.is_number else one.expr)
    formulas = (None if expr is None else factored(expr) for expr in shown_exprs)
    return (*formulas, value, section.unit, source)


def _percent(share: Expr) -> str:
    """Return a share for people.

    >>> from sympy import Rational
    >>> _percent(Rational(1, 3)), _percent(Rational(201, 20))
    ('33.3 %', '1,005 %')
    """
    number = 100 * float(share)
    return f"{number:.3g} %" if number < _WHOLE else f"{number:,.0f} %"


_WHOLE = 999.5
"""Per cent from which on three digits are none behind the point."""


def _in_unit(expr: Expr, unit: Unit) -> str:
    return human(value(expr), unit) if expr.is_Rational else str(expr)
