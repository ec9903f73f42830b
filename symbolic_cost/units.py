"""Unit tags of rows, and the prefixes used when a value is printed.

Rows hold base units only (FLOP, byte, element, second); a prefix is chosen by the printer.
"""

from enum import StrEnum
from fractions import Fraction


class Unit(StrEnum):
    """What a row's expression counts."""

    FLOP = "FLOP"
    BYTE = "byte"
    ELEMENT = "element"
    SECOND = "s"
    FLOP_PER_SECOND = "FLOP/s"
    RANK = "rank"
    RATIO = "1"


SI = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
"""Decimal prefixes as exact integers."""

IEC = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
"""Binary prefixes as exact integers; printed for bytes."""

_PARTS = {"n": Fraction(1, 10**9), "µ": Fraction(1, 10**6), "m": Fraction(1, 10**3)}
_ABBREVIATION = {Unit.BYTE: "B", Unit.ELEMENT: "", Unit.RANK: ""}


def human(value: float | Fraction, unit: Unit, digits: int = 4) -> str:
    """Print a value with a prefix: IEC for bytes, parts for seconds, SI otherwise; shares in %.

    Args:
        value: in the base unit.
        unit: decides the prefixes and the printed abbreviation.
        digits: significant digits of values that take a prefix.

    >>> human(2 * 10**12, Unit.FLOP), human(3 * 2**29, Unit.BYTE), human(96, Unit.ELEMENT)
    ('2 TFLOP', '1.5 GiB', '96')
    >>> human(Fraction(1, 3), Unit.RATIO)
    '33.33 %'
    """
    if unit is Unit.RATIO:
        return f"{float(100 * value):.{digits}g} %"
    exact, chosen, scale = Fraction(value), "", Fraction(1)
    for prefix, size in _prefixes(unit).items():
        if abs(exact) >= size:
            chosen, scale = prefix, size
    number = f"{float(exact / scale):.{digits}g}"
    if "e" in number and not chosen and exact.denominator == 1:
        number = str(exact)
    return f"{number} {chosen}{_ABBREVIATION.get(unit, unit.value)}".strip()


def _prefixes(unit: Unit) -> dict[str, Fraction]:
    """Return the prefixes of a unit, ascending."""
    if unit is Unit.SECOND:
        return {**_PARTS, "": Fraction(1)}
    larger = IEC if unit is Unit.BYTE else SI
    return {prefix: Fraction(size) for prefix, size in larger.items()}


def gpu_count(number: int) -> str:
    """Say how many GPUs there are.

    >>> gpu_count(1), gpu_count(8)
    ('1 GPU', '8 GPUs')
    """
    return f"{number} GPU{'' if number == 1 else 's'}"
