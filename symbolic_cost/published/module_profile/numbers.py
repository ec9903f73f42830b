"""Numbers as the profiler prints them, and the spans of values that a printed number stands for."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from symbolic_cost.errors import InputError
from symbolic_cost.units import SI

_PREFIXES = {"": Fraction(1), "K": Fraction(1000), "m": Fraction(1, 10**3), "u": Fraction(1, 10**6)}
_PREFIXES |= {prefix: Fraction(size) for prefix, size in SI.items()}
_PRINTED = re.compile(r"(?P<number>\d+(\.\d+)?)(%| ?(?P<prefix>[kKMGTmu]?)(MACs|FLOPS|s)?)")
_HALF = Fraction(1, 200)
"""Numbers are printed with two decimals."""


class Span(NamedTuple):
    """A value and how far off it may be: a printed latency is known to its last digit."""

    low: Fraction
    value: Fraction
    high: Fraction

    def plus(self, other: Span) -> Span:
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


def latency(measured: object, where: str) -> Span:
    """Read a latency: seconds, or text as the profiler prints it.

    Raises:
        InputError: neither, or not positive.
    """
    span = exactly(0)
    if isinstance(measured, str) and measured.endswith("s") and _PRINTED.fullmatch(measured):
        span = printed(measured)
    elif (
        isinstance(measured, int | float)
        and not isinstance(measured, bool)
        and 0 < measured < SI["G"]
    ):
        span = exactly(Fraction(str(measured)))
    if span.low <= 0:
        accepted = "positive seconds, or text like '4.4 ms', are accepted"
        raise InputError(f"latency of {where} is {measured!r}: {accepted}")
    return span


_UNITS = {
    "params": (("M", "k"), ""),
    "macs": (("G", "M", "K"), "MACs"),
    "flop": (("G", "M", "K"), ""),
    "rate": (("T", "G", "M", "K"), "FLOPS"),
    "latency": (("", "m", "u"), "s"),
    "number": ((), ""),
}
"""Prefixes from the largest, and unit."""


def text_of(kind: str, value: Fraction | int) -> str:
    """Print a value with the first prefix that it reaches, else with none; seconds at least in us.

    Args:
        kind: "params", "macs", "flop", "rate" [FLOP/s], "latency" [s], "percent" or "number".
        value: to print.

    >>> text_of("params", 1536), text_of("rate", Fraction(0)), text_of("latency", Fraction(1, 80))
    ('1.54 k', '0.0 FLOPS', '12.5 ms')
    """
    if kind == "percent":
        return f"{float(value):.2f}%"
    prefixes, unit = _UNITS[kind]
    smallest = prefixes[-1] if kind == "latency" else None
    prefix = next((one for one in prefixes if value >= _PREFIXES[one]), smallest)
    if prefix is None:
        return f"{value if isinstance(value, int) else round(float(value), 2)} {unit}".rstrip()
    return f"{round(float(value / _PREFIXES[prefix]), 2)} {prefix}{unit}".rstrip()
