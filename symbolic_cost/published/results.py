"""One number of a publication, formula and print, how the two are compared; and all slips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction

from symbolic_cost.errors import InputError, quote
from symbolic_cost.published.contract import (
    MODULES,
    Comparison,
    last_digit,
    publication,
    rounded_like,
)
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
            computed, note = str(_cut(self.printed, value)), f"cut; {self.note}".rstrip("; ")
        return Comparison(key, self.printed, computed, match, note)

    def _matches(self, value: float | Fraction) -> bool:
        printed, exact = Fraction(str(self.printed)), Fraction(value)
        match self.how.split(":"):
            case ["digits"]:
                return Fraction(_rounded(str(self.printed), value)) == printed
            case ["trunc"]:
                return Fraction(_cut(str(self.printed), value)) == printed
            case ["exact"]:
                return exact == printed
            case ["rel", share]:
                return abs(exact / printed - 1) <= Fraction(share)
        raise InputError(f"{self.name}: {quote(self.how)} is no way to compare")


def _rounded(printed: str, value: float | Fraction) -> str:
    """Round to the last printed digit; a half goes up, or to the even digit if that is printed."""
    even = rounded_like(printed, value)
    return even if Fraction(even) == Fraction(printed) else str(_to(ROUND_HALF_UP, printed, value))


def _cut(printed: str, value: float | Fraction) -> Decimal:
    return _to(ROUND_DOWN, printed, value)


def _to(rounding: str, printed: str, value: float | Fraction) -> Decimal:
    exact = Fraction(value)
    with localcontext() as context:
        context.prec = 60
        quotient = Decimal(exact.numerator) / Decimal(exact.denominator)
        return quotient.quantize(last_digit(printed), rounding=rounding)


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
