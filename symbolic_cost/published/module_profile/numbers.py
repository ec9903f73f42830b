"""Numbers as the profiler prints them, and the spans of values that a printed number stands for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from symbolic_cost.errors import InputError
from symbolic_cost.units import SI

_PREFIXES = {"": Fraction(1), "K": Fraction(1000), "m": Fraction(1, 10**3), "u": Fraction(1, 10**6)}
_PREFIXES |= {prefix: Fraction(size) for prefix, size in SI.items()}
_PRINTED = re.compile(r"(?P<number>\d+(\.\d+)?)(%| ?(?P<prefix>[kKMGTmu]?)(MACs|FLOPS|s)?)")
_HALF = Fraction(1, 200)
"""Numbers are printed with two decimals."""


@dataclass(frozen=True, slots=True)
class Span:
    """A value and how far off it may be: a printed latency is known to its last digit.

    Args:
        low: smallest value.
        value: the one printed or given.
        high: largest value.
    """

    low: Fraction
    value: Fraction
    high: Fraction

    def __add__(self, other: Span) -> Span:
        """Add two values."""
        return Span(self.low + other.low, self.value + other.value, self.high + other.high)

    def divides(self, count: int) -> Span:
        """Return a count per this value: FLOP per second of a latency."""
        return Span(count / self.high, count / self.value, count / self.low)

    def share(self, whole: Span) -> Span:
        """Return the percentage that this value is of another."""
        if self == whole:
            return exactly(100)
        low, high = self.low / whole.high, self.high / whole.low
        return Span(100 * low, 100 * self.value / whole.value, 100 * high)

    def meets(self, other: Span) -> bool:
        """Whether the two may be the same value."""
        return self.low <= other.high and other.low <= self.high


def exactly(value: Fraction | int) -> Span:
    """Return the span of a value without doubt."""
    return Span(Fraction(value), Fraction(value), Fraction(value))


def printed(text: str) -> Span:
    """Read a printed number: "4.4 ms" is 4.395 to 4.405 thousandths.

    Raises:
        InputError: not a number with a unit that the profiler prints.
    """
    match = _PRINTED.fullmatch(text)
    if match is None:
        raise InputError(f"{text!r} is not a printed number: write for example '135.52 ms'")
    scale = _PREFIXES[match["prefix"] or ""]
    value = Fraction(match["number"])
    half = _HALF if "." in match["number"] or match["prefix"] else Fraction(0)
    return Span((value - half) * scale, value * scale, (value + half) * scale)


def latency(given: object, where: str) -> Span:
    """Read a latency: seconds, or text as the profiler prints it.

    Raises:
        InputError: neither, or not positive.
    """
    accepted = "positive seconds, or text like '4.4 ms', are accepted"
    if isinstance(given, str) and given.endswith("s") and _PRINTED.fullmatch(given):
        found = printed(given)
    elif isinstance(given, int | float) and not isinstance(given, bool) and 0 < given < SI["G"]:
        found = exactly(Fraction(str(given)))
    else:
        raise InputError(f"latency of {where} is {given!r}: {accepted}")
    if found.low <= 0:
        raise InputError(f"latency of {where} is {given!r}: {accepted}")
    return found


def _scaled(value: Fraction | int, prefixes: str, unit: str) -> str | None:
    """Print a value with the first prefix that it reaches, or return None."""
    for prefix in prefixes:
        if value >= _PREFIXES[prefix]:
            return f"{_rounded(value / _PREFIXES[prefix])} {prefix}{unit}".rstrip()
    return None


def _rounded(value: Fraction) -> str:
    return str(round(float(value), 2))


def params_text(count: int) -> str:
    """Print a number of parameters."""
    return _scaled(count, "Mk", "") or str(count)


def macs_text(count: int) -> str:
    """Print multiply-accumulates."""
    return _scaled(count, "GMK", "MACs") or f"{count} MACs"


def flop_text(count: int) -> str:
    """Print FLOP."""
    return _scaled(count, "GMK", "") or str(count)


def rate_text(rate: Fraction) -> str:
    """Print FLOP per second."""
    return _scaled(rate, "TGMK", "FLOPS") or f"{_rounded(rate)} FLOPS"


def latency_text(seconds: Fraction) -> str:
    """Print seconds."""
    if seconds >= 1:
        return f"{_rounded(seconds)} s"
    return _scaled(seconds, "mu", "s") or f"{_rounded(seconds * 10**6)} us"


def percent_text(percent: Fraction) -> str:
    """Print a percentage, always with two decimals."""
    return f"{float(percent):.2f}%"
