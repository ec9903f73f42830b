"""Numbers as typed on the command line, read without evaluating anything: m1=4, and 1:64."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from decimal import Decimal
from fractions import Fraction

from symbolic_cost.errors import InputError, quote, refuse
from symbolic_cost.numeric.binding import check_values
from symbolic_cost.symbols import GLOSSARY

_ASSIGNMENT = re.compile(
    r"\s*(?P<name>[A-Za-z]\w*)\s*=\s*"
    r"(?P<number>[+-]?[0-9](?:_?[0-9])*(?P<rate>\.[0-9]+)?(?P<power>e-?[0-9]{1,2})?)\s*",
    re.ASCII,
)
_LONGEST = 60
_ACCEPTED = "NAME=INTEGER is accepted, as in m1=4 or l=1_000_000; rates may be 3e14 or 2.5e-6"


def parse_assignments(
    texts: Iterable[str], others: Collection[str] = ()
) -> dict[str, int | Fraction]:
    """Return the number by symbol name of texts like "m1=4" or "b=2,l=1_000".

    Raises:
        InputError: every malformed text, symbol named twice, unknown name and number that the
            symbol does not accept.
    """
    values: dict[str, int | Fraction] = {}
    problems: list[str] = []
    for text in (piece for whole in texts for piece in whole.split(",")):
        match = _ASSIGNMENT.fullmatch(text) if len(text) <= _LONGEST else None
        if match is None or ((match["rate"] or match["power"]) and _counts(match["name"])):
            problems.append(f"{_quoted(text)} is not an assignment: {_ACCEPTED}{_meant(text)}")
        elif match["name"] in values:
            problems.append(
                f"{text.strip()!r} gives {match['name']} a second number: one is accepted"
            )
        else:
            number = Fraction(Decimal(match["number"]))
            values[match["name"]] = int(number) if number.denominator == 1 else number
    try:
        check_values({name: number for name, number in values.items() if name not in others})
    except InputError as error:
        problems += error.problems
    refuse(problems)
    return values


def _counts(name: str) -> bool:
    """Tell whether a symbol counts something; rates alone may be written as 3e14 or 0.5."""
    return name not in GLOSSARY or GLOSSARY[name].integer


_JOINED = re.compile(r"\s*([A-Za-z]\w*)\s*=\s*([0-9]{1,9})([A-Za-z]\w*)\s*", re.ASCII)


def _meant(text: str) -> str:
    """Say how a product of sizes is written, where one is meant: f=4e."""
    read = _JOINED.fullmatch(text[:_LONGEST])
    if read is None or not {read[1], read[3]} <= GLOSSARY.keys():
        return ""
    return f"; a product names its sign: {read[1]}={read[2]}*{read[3]}"


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}...")


_SPAN = re.compile(r"\s*([0-9]{1,12})\s*:\s*([0-9]{1,12})\s*", re.ASCII)


def integers(text: str) -> range:
    """Return the integers of "1:64", both ends among them.

    Raises:
        InputError: not two positive integers, the lesser one first.

    >>> integers("2:5")
    range(2, 6)
    """
    read = _SPAN.fullmatch(text) if len(text) <= _LONGEST_SPAN else None
    least, most = (int(read[1]), int(read[2])) if read else (0, 0)
    if not 0 < least <= most:
        raise InputError(f"range {quote(text)}: LEAST:MOST is accepted, as in 1:64")
    return range(least, most + 1)


_LONGEST_SPAN = 40
