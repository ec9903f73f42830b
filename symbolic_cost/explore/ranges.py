"""Values of a sweep as typed: 1:16:x2, 1:8, 1:8:2, lists of these, and lists of words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sized
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import TypeAlias

from symbolic_cost.errors import InputError, Problems, quote, refuse

Value: TypeAlias = int | Fraction | str
Given: TypeAlias = "str | int | Fraction | Iterable[str | int | Fraction]"

MOST_VALUES = 1_000_000
"""Values of one name; more of them are taken for a mistake."""

_MOST_POWERS = 2_000
"""Values by a factor that is no integer: each has more digits than the one before."""

ACCEPTED = "accepted are numbers 1,2,4, ranges 1:8 and 1:8:2, powers 1:16:x2, and words a,b"

_NUMBER = r"[0-9](?:_?[0-9])*(?:\.[0-9]+)?(?:e[+-]?[0-9]{1,2})?"
_RANGE = re.compile(rf"({_NUMBER}):({_NUMBER})(?::(x?)({_NUMBER}))?", re.ASCII)
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+/=-]{0,59}", re.ASCII)


def values(name: str, listed: Given) -> tuple[Value, ...]:
    """Return the values of a name, each once.

    >>> values("tp", "1:16:x2,3"), values("b", range(1, 4)), values("zero", "0,1")
    ((1, 2, 4, 8, 16, 3), (1, 2, 3), (0, 1))

    Raises:
        InputError: every item that is no value, and ranges that are empty, reversed or enormous.
    """
    items = listed.split(",") if isinstance(listed, str) else listed
    items = items if isinstance(items, Iterable) else [items]
    if not isinstance(items, Sized):
        items = list(islice(items, MOST_VALUES + 1))  # it may have no end
    if len(items) > MOST_VALUES:
        raise InputError(f"{name}: more than {MOST_VALUES:,} values")
    taken: dict[Value, None] = {}
    problems: list[str] = []
    for item in items:
        try:
            for value in _item(item):
                taken[value] = None
                if len(taken) > MOST_VALUES:
                    break
        except InputError as error:
            problems += [f"{name}={quote(item)}: {text}" for text in error.problems]
        if len(taken) > MOST_VALUES:
            problems.append(f"{name}={quote(item)}: more than {MOST_VALUES:,} values")
            break
    if not problems and not taken:
        problems.append(f"{name}: no value is given; {ACCEPTED}")
    if len({isinstance(value, str) for value in taken}) > 1:
        problems.append(f"{name}={quote(listed)}: numbers or words, not both")
    refuse(problems)
    return tuple(taken)


def named(texts: Iterable[str], problems: Problems, example: str = "l=1024,2048") -> dict[str, str]:
    """Return values as typed by name, of "l=1024:8192:x2" or several of these with blanks between.

    Args:
        texts: of the option --vary.
        problems: to add to.
        example: of what is accepted.
    """
    ranges: dict[str, str] = {}
    for text in (piece for whole in texts for piece in whole.split()):
        name, equals, listed = text.partition("=")
        if not equals or not name:
            accepted = f"NAME=VALUES is accepted, as in {example}"
            problems.texts.append(f"--vary {quote(text)}: {accepted}")
        elif name in ranges:
            problems.texts.append(f"--vary {name} is given twice")
        ranges[name] = listed
    return ranges


def _item(item: object) -> Iterator[Value]:
    if isinstance(item, int | Fraction) and not isinstance(item, bool):
        yield item
        return
    if not isinstance(item, str):
        raise InputError(ACCEPTED)
    text = item.strip()
    if re.fullmatch(_NUMBER, text, re.ASCII):
        yield _number(text)
    elif ":" in text:
        yield from _range(text)
    elif _WORD.fullmatch(text):
        yield text
    else:
        raise InputError(ACCEPTED)


def _range(text: str) -> Iterator[Value]:
    """Yield the numbers from one to another, both included."""
    read = _RANGE.fullmatch(text)
    if read is None:
        raise InputError(ACCEPTED)
    first, last, step = _number(read[1]), _number(read[2]), _number(read[4] or "1")
    if last < first:
        raise InputError(f"runs backwards: write {read[2]}:{read[1]}")
    if step <= 0 or first == 0 or (read[3] and step == 1):
        raise InputError("would never end: steps above 0, factors above 1 and a start above 0")
    if read[3] and step < 1:
        raise InputError(f"the factor {read[4]} is below 1: a factor above 1 is accepted")
    number, made = first, 0
    while number <= last:
        if read[3] and step.denominator > 1 and made == _MOST_POWERS:
            raise InputError(f"the factor {read[4]} makes more than {_MOST_POWERS:,} values")
        yield number
        number, made = number * step if read[3] else number + step, made + 1


def _number(text: str) -> int | Fraction:
    number = Fraction(Decimal(text))
    return int(number) if number.denominator == 1 else number
