"""Steps of a program on bounds, rounded outward.

A float operation is monotone in each of its operands, so that its result lies between those at the
ends; one unit in the last place more on each side encloses the exact result. Whole numbers below
2**53 and quotients that come out even are not widened: there a ceiling or a comparison is certain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from symbolic_cost.program import exact, scalars
from symbolic_cost.program.exact import Number

Floats = NDArray[np.float64]
Span: TypeAlias = tuple[Floats, Floats]
"""Lower and upper bounds of many boxes."""

_UNIT = 2.0**-52
_SERIES = 2.0**-48
"""Share by which logarithms and powers may be off, on the safe side of four units."""
_WHOLE, _SMALL, _LARGE = 2.0**53, 1e-290, 1e300
_TINY = 5e-324
_MAX = float(np.finfo(np.float64).max)


class RegisterSpan:
    """What holds of one register in all boxes.

    Args:
        span: its bounds.
        whole: whether it counts.
    """

    __slots__ = ("bounded", "nonzero", "positive", "whole")

    def __init__(self, span: Span, *, whole: bool) -> None:
        least, most = float(np.min(span[0])), float(np.max(span[1]))
        self.positive = least >= 0
        self.nonzero = least > _SMALL  # nor tiny
        self.bounded = least > -_LARGE and most < _LARGE
        self.whole = whole and least > -_WHOLE and most < _WHOLE


def span_of(low: Any, high: Any) -> Span:  # noqa: ANN401 - numbers or arrays
    """Return bounds as arrays."""
    return np.atleast_1d(np.asarray(low, dtype=np.float64)), np.atleast_1d(
        np.asarray(high, dtype=np.float64)
    )


def enclosed(value: Number) -> Span:
    """Return the floats that enclose an exact number; everything, of what is undefined."""
    if exact.undefined(value):
        return span_of(-np.inf, np.inf)
    near = scalars.rounded(value)
    if np.isfinite(near) and Fraction(near) == value:
        return span_of(near, near)
    return span_of(np.nextafter(near, -np.inf), np.nextafter(near, np.inf))


# ---------------------------------------------------------------------- steps that do not round


def _choice(bracket: Span, one: Span, other: Span) -> Span:
    yes = (bracket[0] > 0) | (bracket[1] < 0)
    no = (bracket[0] == 0) & (bracket[1] == 0)
    low, high = np.minimum(one[0], other[0]), np.maximum(one[1], other[1])
    return (
        np.where(yes, one[0], np.where(no, other[0], low)),
        np.where(yes, one[1], np.where(no, other[1], high)),
    )


CERTAIN: Mapping[str, Callable[..., Span]] = {
    "max": lambda one, other: (np.maximum(one[0], other[0]), np.maximum(one[1], other[1])),
    "min": lambda one, other: (np.minimum(one[0], other[0]), np.minimum(one[1], other[1])),
    "ceil": lambda one: (np.ceil(one[0]), np.ceil(one[1])),
    "floor": lambda one: (np.floor(one[0]), np.floor(one[1])),
    "ge": lambda one, other: (
        (one[0] >= other[1]).astype(np.float64),
        (one[1] >= other[0]).astype(np.float64),
    ),
    "gt": lambda one, other: (
        (one[0] > other[1]).astype(np.float64),
        (one[1] > other[0]).astype(np.float64),
    ),
    "select": _choice,
}


# ---------------------------------------------------------------------- steps that round


def _sum(spans: Sequence[Span], _: Sequence[RegisterSpan]) -> Span:
    one, other = spans
    return one[0] + other[0], one[1] + other[1]


def _difference(spans: Sequence[Span], _: Sequence[RegisterSpan]) -> Span:
    one, other = spans
    return one[0] - other[1], one[1] - other[0]


def _product(spans: Sequence[Span], known: Sequence[RegisterSpan]) -> Span:
    one, other = spans
    if all(own.positive and own.bounded for own in known):
        return one[0] * other[0], one[1] * other[1]
    return _extremes(*(a * b for a in one for b in other), empty=0.0)


def _quotient(spans: Sequence[Span], known: Sequence[RegisterSpan]) -> Span:
    one, other = spans
    if known[0].positive and known[1].nonzero:
        return one[0] / other[1], one[1] / other[0]
    ends = _extremes(*(a / b for a in one for b in other), empty=0.0)
    through = (other[0] <= 0) & (other[1] >= 0)
    above = known[0].positive and known[1].positive
    low = np.where(above & (other[1] > 0), one[0] / other[1], -np.inf)
    return np.where(through, low, ends[0]), np.where(through, np.inf, ends[1])


def _extremes(*values: Floats, empty: float) -> Span:
    """Return the least and the greatest; nothing times an unbounded end is nothing."""
    fixed = [np.where(np.isnan(one), empty, one) for one in values]
    return np.minimum.reduce(fixed), np.maximum.reduce(fixed)


def _reciprocal(spans: Sequence[Span], known: Sequence[RegisterSpan]) -> Span:
    return _quotient([_ONE, spans[0]], [_KNOWN_ONE, known[0]])


_ONE: Span = (np.ones(1), np.ones(1))
_KNOWN_ONE = RegisterSpan(_ONE, whole=True)


def _root(spans: Sequence[Span], _: Sequence[RegisterSpan]) -> Span:
    low, high = spans[0]
    return np.sqrt(np.maximum(low, 0.0)), np.sqrt(np.maximum(high, 0.0))


def _logarithm(spans: Sequence[Span], _: Sequence[RegisterSpan]) -> Span:
    return tuple(  # type: ignore[return-value]  # two
        np.where(end > 0, np.log2(np.where(end > 0, end, 1.0)), -np.inf) for end in spans[0]
    )


def _power(spans: Sequence[Span], _: Sequence[RegisterSpan]) -> Span:
    return np.exp2(spans[0][0]), np.exp2(spans[0][1])


ROUNDED: Mapping[str, Callable[[Sequence[Span], Sequence[RegisterSpan]], Span]] = {
    "add": _sum,
    "sub": _difference,
    "mul": _product,
    "div": _quotient,
    "inv": _reciprocal,
    "sqrt": _root,
    "log2": _logarithm,
    "exp2": _power,
}


def widened(kind: str, span: Span, spans: Sequence[Span], known: Sequence[RegisterSpan]) -> Span:
    """Return bounds beyond those that were rounded to the nearest.

    x (1 - 2**-52) is at most the float below x, as x 2**-52 is at least one unit in the last
    place. Sums below the least normal float are exact; products and quotients there may be lost.

    Args:
        kind: of the step.
        span: rounded.
        spans: of the operands.
        known: of the operands, and of the result.
    """
    low, high = span
    if kind in ("log2", "exp2"):
        return _series(kind, span, spans[0])
    *of, own = known
    if not own.bounded or not all(one.bounded for one in of):
        return _anyhow(kind, span, spans)
    if kind in ("add", "sub"):
        if own.positive:
            return low * (1.0 - _UNIT), high * (1.0 + _UNIT)
        return low - np.abs(low) * _UNIT, high + np.abs(high) * _UNIT
    if kind in ("mul", "inv", "div") and all(one.positive for one in of):
        return _of_positive(kind, span, spans, known)
    return _anyhow(kind, span, spans)


def _of_positive(
    kind: str, span: Span, spans: Sequence[Span], known: Sequence[RegisterSpan]
) -> Span:
    """Return bounds of a product or a quotient of what is not negative."""
    low, high = span
    *of, own = known
    below = np.maximum(low * (1.0 - _UNIT) - _TINY, 0.0)
    above = high * (1.0 + _UNIT)
    if not own.nonzero:
        above = np.where(high == 0, high, np.maximum(above, _SMALL))
        if kind == "mul":
            lost = (high == 0) & (spans[0][1] != 0) & (spans[1][1] != 0)
            above = np.where(lost, _SMALL, above)
        elif kind == "div":
            above = np.where((high == 0) & (spans[0][1] != 0), _SMALL, above)
    if kind == "div" and of[0].whole and of[1].whole:
        below = np.where(_even(low, spans[0][0], spans[1][1]), low, below)
        above = np.where(_even(high, spans[0][1], spans[1][0]), high, above)
    if own.nonzero:
        exact = _scaled(kind, spans)
        below, above = np.where(exact[0], low, below), np.where(exact[1], high, above)
    return below, above


def _anyhow(kind: str, span: Span, spans: Sequence[Span]) -> Span:
    """Return bounds one float further out, whatever they are."""
    low, high = span
    below = np.minimum(np.nextafter(low, -np.inf), _MAX)
    above = np.maximum(np.nextafter(high, np.inf), -_MAX)
    if kind == "div":
        one, other = spans
        point = (one[0] == one[1]) & (other[0] == other[1])
        even = point & _even(low, one[0], other[0])
        return np.where(even, low, below), np.where(even, high, above)
    if kind == "sqrt":
        below = np.where(_even(low, spans[0][0], low), low, np.maximum(below, 0.0))
        return below, np.where(_even(high, spans[0][1], high), high, above)
    if kind in ("add", "sub"):  # sums so small that a float is missing come out even
        return np.where(low == 0, 0.0, below), np.where(high == 0, 0.0, above)
    if kind == "mul":
        (a, b), (c, d) = spans
        nothing = ((a == 0) & (b == 0)) | ((c == 0) & (d == 0))
        bottom = np.where(((a >= 0) & (c >= 0)) | ((b <= 0) & (d <= 0)), 0.0, -np.inf)
        top = np.where(((a >= 0) & (d <= 0)) | ((b <= 0) & (c >= 0)), 0.0, np.inf)
        below = np.where(nothing, 0.0, np.maximum(below, bottom))
        above = np.where(nothing, 0.0, np.minimum(above, top))
    return below, above


def _scaled(kind: str, spans: Sequence[Span]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell which ends are one end times or over a power of two, which takes no rounding."""
    *_, (low, high) = spans
    if kind != "mul":
        return _is_power_of_two(high), _is_power_of_two(low)
    other = spans[0]
    return (
        _is_power_of_two(low) | _is_power_of_two(other[0]),
        _is_power_of_two(high) | _is_power_of_two(other[1]),
    )


def _is_power_of_two(value: Floats) -> NDArray[np.bool_]:
    return (value.view(np.int64) & _FRACTION) == 0


_FRACTION = np.int64(2**52 - 1)
"""Digits of a float, of which a power of two has none."""


def _even(quotient: Floats, above: Floats, below: Floats) -> NDArray[np.bool_]:
    """Tell where a quotient of whole numbers is one: the product of both is then exact."""
    ends = (np.floor(quotient) == quotient) & (np.abs(above) < _WHOLE) & (quotient != 0)
    return ends & (np.floor(below) == below) & (quotient * below == above)


def _series(kind: str, span: Span, of: Span) -> Span:
    """Widen logarithms and powers, which are exact for powers of two and for integers."""
    ends = []
    for end, value, sign in zip(span, of, (-1, 1), strict=True):
        if kind == "log2":
            sure = (np.frexp(value)[0] == 0.5) & (value > 0)  # noqa: PLR2004 - a power of two
            end = np.where(value > 0, end, sign * np.inf)  # noqa: PLW2901 - nothing is known
        else:
            sure = np.floor(value) == value
        wide = end + sign * np.abs(end) * _SERIES
        far = np.abs(value) >= scalars.LARGEST_POWER if kind == "exp2" else np.isinf(value)
        wide = np.where(far, (0.0 if kind == "exp2" else -np.inf) if sign < 0 else np.inf, wide)
        ends.append(np.where(sure & ~far, end, wide))
    return ends[0], ends[1]
