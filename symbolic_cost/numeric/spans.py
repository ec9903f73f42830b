"""Ranges of integers as typed: "1:64"."""

import re

from symbolic_cost.errors import InputError, quote

_SPAN = re.compile(r"\s*([0-9]{1,12})\s*:\s*([0-9]{1,12})\s*", re.ASCII)


def integers(text: str) -> range:
    """Return the integers of "1:64", both ends among them.

    Raises:
        InputError: not two positive integers, the lesser one first.

    >>> integers("2:5")
    range(2, 6)
    """
    read = _SPAN.fullmatch(text) if len(text) <= _LONGEST else None
    least, most = (int(read[1]), int(read[2])) if read else (0, 0)
    if not 0 < least <= most:
        raise InputError(f"range {quote(text)}: LEAST:MOST is accepted, as in 1:64")
    return range(least, most + 1)


_LONGEST = 40
