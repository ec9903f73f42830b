"""The numbers of the log, as printed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from symbolic_cost.published.contract import Comparison
from symbolic_cost.published.printed import printed_data
from symbolic_cost.published.rounding import nearest

ROUNDINGS = Fraction(1, 2**50)
"""Relative error that a few roundings to double precision make."""


@dataclass(frozen=True, slots=True)
class Printed:
    """One number of the log.

    Args:
        key: its place.
        text: as printed.
        form: "int", a number of decimals as "%.2f", or "repr" for all digits of a float.
    """

    key: str
    text: str
    form: str


def printed() -> list[Printed]:
    """Return the numbers of the log in its order."""
    return [Printed(*row) for row in printed_data("lstm_roofline")]


def comparison(row: Printed, exact: int | Fraction) -> Comparison:
    """Compare a number with its exact value, in the format of the log."""
    if row.form == "int":
        computed = f"{int(exact):,}" if "," in row.text else str(int(exact))
        return Comparison(row.key, row.text, computed, computed == row.text)
    value = Fraction(exact)
    rounded = nearest(value)
    if row.form != "repr":
        computed = row.form % rounded
        return Comparison(row.key, row.text, computed, computed == row.text)
    computed = repr(rounded)
    match = abs(Fraction(row.text) - value) <= ROUNDINGS * abs(value)
    note = "equal inside the roundings of double precision"
    return Comparison(row.key, row.text, computed, match, "" if computed == row.text else note)
