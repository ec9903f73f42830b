"""One number of a publication, formula and print, how the two are compared; slips.

Departures of a publication are named changes of derived rows, declared where their rule stands.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_DOWN, ROUND_HALF_UP
from fractions import Fraction
from typing import Any

from symbolic_cost.errors import InputError, quote
from symbolic_cost.ledger import Row
from symbolic_cost.published.contract import MODULES, Comparison, publication, rounded_like
from symbolic_cost.records import dataclass
from symbolic_cost.typed import Formula

SLIP, ROUNDED, NONE = "slip", "rounded", "none"
"""How a number is listed without being compared; see `cases`."""


@dataclass(frozen=True, slots=True)
class Erratum:
    """One slip: as printed, as it follows, and the proof."""

    publication: str
    place: str
    printed: str
    computed: str
    proof: str


@dataclass(frozen=True, slots=True)
class Result:
    """One number: formula, print, and how the two are compared."""

    name: str
    formula: Formula
    printed: str | None = None
    how: str = NONE
    note: str = ""

    def compared(self, key: str, value: float | Fraction) -> Comparison:
        """Compare a value with the print."""
        if self.printed is None or self.how == NONE:
            return Comparison(key, None, f"{float(value):.10g}", None, self.note)
        computed = _rounded(self.printed, value)
        if self.how in (SLIP, ROUNDED):
            said = f"{'a slip' if self.how == SLIP else 'rounded on the way'}: {self.note}"
            return Comparison(key, self.printed, computed, None, said)
        match, note = self._matches(value), self.note
        if self.how.startswith("rel:"):
            note = f"within {float(self.how[4:]):.2g} of the print; {self.note}".rstrip("; ")
        elif self.how == "trunc":
            computed = rounded_like(self.printed, value, ROUND_DOWN)
            note = f"cut; {self.note}".rstrip("; ")
        return Comparison(key, self.printed, computed, match, note)

    def _matches(self, value: float | Fraction) -> bool:
        printed, exact = Fraction(str(self.printed)), Fraction(value)
        match self.how.split(":"):
            case ["digits"]:
                return Fraction(_rounded(str(self.printed), value)) == printed
            case ["trunc"]:
                return Fraction(rounded_like(str(self.printed), value, ROUND_DOWN)) == printed
            case ["exact"]:
                return exact == printed
            case ["rel", share]:
                return abs(exact / printed - 1) <= Fraction(share)
        raise InputError(f"{self.name}: {quote(self.how)} is no way to compare")


def _rounded(printed: str, value: float | Fraction) -> str:
    """Round to the last printed digit; a half goes up, or to the even digit if that is printed."""
    even = rounded_like(printed, value)
    is_even = Fraction(even) == Fraction(printed)
    return even if is_even else rounded_like(printed, value, ROUND_HALF_UP)


def result_of(cells: Sequence[str], printed: Mapping[str, str]) -> Result:
    """Return the result of a row of data; what was printed elsewhere takes its print's place."""
    name, formula, text, how, note = [*cells, "", "", ""][:5]
    text = printed.get(name, text)
    return Result(name, Formula(formula), text or None, how or ("digits" if text else NONE), note)


def errata(*names: str) -> list[Erratum]:
    """Return the slips of publications, each with its place, print, value and proof.

    Args:
        names: of publications; all of them unless any is named.

    Raises:
        UnknownNameError: no such publication.
    """
    works = (publication(name) for name in names or MODULES)
    return [slip for work in works for slip in getattr(work, "errata", list)()]


Change = Callable[[Row, Any], tuple[Row, ...]]
"""What becomes of a derived row: several rows or none may come of one."""


@dataclass(frozen=True, slots=True)
class Departure:
    """One departure.

    Args:
        meaning: what the publication does instead.
        where: it does: names of strategies or variants.
        change: of a derived row, given how the model runs.
    """

    name: str
    meaning: str
    where: tuple[str, ...]
    change: Change


class Departures(list[Departure]):
    """Departures in the order in which they apply."""

    def of(self, *where: str) -> Callable[[Change], Change]:
        """Declare a departure: its rule's name and docstring are its name and meaning."""

        def declared(change: Change) -> Change:
            name = change.__name__.strip("_").replace("_", " ")
            self.append(Departure(name, change.__doc__ or "", where, change))
            return change

        return declared

    def errata(self, publication: str, shown_by: str) -> list[Erratum]:
        """Return the departures as slips."""
        said = [(one, inspect.cleandoc(one.meaning).partition("\n\n")) for one in self]
        return [
            Erratum(
                publication,
                f"{one.name}, {', '.join(one.where)}",
                what,
                "what the declared ops imply",
                f"{' '.join(why.split())} {shown_by}".strip(),
            )
            for one, (what, _, why) in said
        ]

    def applied(
        self, rows: Iterable[Row], where: str, run: object, repaired: frozenset[str] = frozenset()
    ) -> tuple[Row, ...]:
        """Return the rows that the publication counts.

        Args:
            rows: derived.
            where: the departures are those of this strategy or variant.
            run: what the rules are given beside a row.
            repaired: names of departures that are left out.
        """
        changed = tuple(rows)
        for departure in self:
            if where in departure.where and departure.name not in repaired:
                changed = tuple(new for row in changed for new in departure.change(row, run))
        return changed
