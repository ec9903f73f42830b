"""Bounds of a program over boxes of inputs, rounded outward: no point of a box lies outside.

They enclose the exact numbers and the floats alike. A float operation is monotone in each of its
operands, so that its result lies between those at the ends; one unit in the last place more on each
side encloses the exact result. Whole numbers below 2**53 and quotients that come out even are not
widened: there a ceiling or a comparison is certain.

For example x * (10 - x) for x from 4 to 6 lies in [16, 36] (and not beyond [24, 25], which
narrower boxes tell).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from symbolic_cost.program import exact, scalars
from symbolic_cost.program.exact import Number
from symbolic_cost.program.tape import Step, Tape
from symbolic_cost.records import dataclass

Floats = NDArray[np.float64]
Span: TypeAlias = tuple[Floats, Floats]
"""Lower and upper bounds of many boxes."""

_UNIT = 2.0**-52
_SERIES = 2.0**-48
"""Share by which logarithms and powers may be off, on the safe side of four units."""
_WHOLE, _SMALL, _LARGE = 2.0**53, 1e-290, 1e300
_TINY = 5e-324
_MAX = float(np.finfo(np.float64).max)


class _Known:
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


class Intervals:
    """A tape on boxes.

    Args:
        tape: to bound.
        low: smallest value by input, over all boxes that will be asked for; numbers or arrays.
        high: largest value by input.
    """

    def __init__(self, tape: Tape, low: Mapping[str, Any], high: Mapping[str, Any]) -> None:
        self.tape = tape
        self._constants = [_constant(one) for one in tape.constants]
        self._whole = _whole(tape)
        self._ended = _ended(tape)
        self.known: list[_Known] = []
        self._doubtful: list[NDArray[np.bool_] | None] | None = None
        self._run(low, high)

    def __call__(self, low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Span]:
        """Return lower and upper bounds by output, of as many boxes as the arrays are long.

        Args:
            low: by input, of each box; an array of length one holds for all.
            high: by input.
        """
        registers = self._run(low, high)
        return {name: registers[place] for name, place in self.tape.outputs.items()}

    def doubtful(self, low: Mapping[str, Any], high: Mapping[str, Any]) -> list[int]:
        """Return the registers that round up or down, or compare, and are not certain in a box."""
        self._doubtful = []
        self._run(low, high)
        marks, self._doubtful = self._doubtful, None
        return [self.tape.first + place for place, one in enumerate(marks) if one is not None]

    def _run(self, low: Mapping[str, Any], high: Mapping[str, Any]) -> list[Span]:
        registers: list[Any] = [_span(low[name], high[name]) for name in self.tape.inputs]
        registers += self._constants
        learning = len(self.known) < len(self._whole)
        if learning:
            self.known = [
                _Known(span, whole=whole)
                for span, whole in zip(registers, self._whole, strict=False)
            ]
        known, tape = self.known, self.tape
        with np.errstate(all="ignore"):  # cases that are not chosen
            for place, (kind, taken) in enumerate(tape.steps, tape.first):
                spans = [registers[one] for one in taken]
                if kind in _CERTAIN:
                    span = _CERTAIN[kind](*spans)
                else:
                    of = [known[one] for one in taken]
                    span = _ROUNDED[kind](spans, of)
                    if learning:
                        known.append(_Known(span, whole=self._whole[place]))
                    if not known[place].whole:
                        span = _widened(kind, span, spans, [*of, known[place]])
                    if kind == "mul" and taken[0] == taken[1]:
                        span = (np.maximum(span[0], 0.0), span[1])  # no square is negative
                if learning:
                    known[place:] = [_Known(span, whole=self._whole[place])]
                if self._doubtful is not None:
                    self._doubtful.append(_doubt(kind, span))
                registers.append(span)
                for one in self._ended[place - tape.first]:
                    registers[one] = None
        return registers


def _doubt(kind: str, span: Span) -> NDArray[np.bool_] | None:
    if kind not in ("ceil", "floor", "ge", "gt"):
        return None
    apart = np.asarray(span[0] != span[1])
    return apart if bool(apart.any()) else None


def _span(low: Any, high: Any) -> Span:  # noqa: ANN401 - numbers or arrays
    return np.atleast_1d(np.asarray(low, dtype=np.float64)), np.atleast_1d(
        np.asarray(high, dtype=np.float64)
    )


def _constant(value: Number) -> Span:
    """Return the floats that enclose an exact number; everything, of what is undefined."""
    if exact.undefined(value):
        return _span(-np.inf, np.inf)
    near = scalars.rounded(value)
    if np.isfinite(near) and Fraction(near) == value:
        return _span(near, near)
    return _span(np.nextafter(near, -np.inf), np.nextafter(near, np.inf))


_KEEP_WHOLE = frozenset({"add", "sub", "mul", "max", "min", "select"})
_MAKE_WHOLE = frozenset({"ceil", "floor", "ge", "gt"})


def _whole(tape: Tape) -> list[bool]:
    """Tell of every register whether it holds whole numbers, where its inputs that count do."""
    whole = [*tape.counts, *(isinstance(one, int) for one in tape.constants)]
    for kind, taken in tape.steps:
        own = taken[1:] if kind == "select" else taken
        integral = kind in _KEEP_WHOLE and all(whole[one] for one in own)
        whole.append(integral or kind in _MAKE_WHOLE)
    return whole


def _ended(tape: Tape) -> list[list[int]]:
    """Return by step the registers that nothing reads afterwards."""
    ended: list[list[int]] = [[] for _ in tape.steps]
    last = {one: place for place, (_, taken) in enumerate(tape.steps) for one in taken}
    for one, place in last.items():
        if one >= tape.first and one not in tape.outputs.values():
            ended[place].append(one)
    return ended


# ---------------------------------------------------------------------- steps that do not round


def _choice(bracket: Span, one: Span, other: Span) -> Span:
    yes = (bracket[0] > 0) | (bracket[1] < 0)
    no = (bracket[0] == 0) & (bracket[1] == 0)
    low, high = np.minimum(one[0], other[0]), np.maximum(one[1], other[1])
    return (
        np.where(yes, one[0], np.where(no, other[0], low)),
        np.where(yes, one[1], np.where(no, other[1], high)),
    )


_CERTAIN: Mapping[str, Callable[..., Span]] = {
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


def _sum(spans: Sequence[Span], _: Sequence[_Known]) -> Span:
    one, other = spans
    return one[0] + other[0], one[1] + other[1]


def _difference(spans: Sequence[Span], _: Sequence[_Known]) -> Span:
    one, other = spans
    return one[0] - other[1], one[1] - other[0]


def _product(spans: Sequence[Span], known: Sequence[_Known]) -> Span:
    one, other = spans
    if all(own.positive and own.bounded for own in known):
        return one[0] * other[0], one[1] * other[1]
    return _extremes(*(a * b for a in one for b in other), empty=0.0)


def _quotient(spans: Sequence[Span], known: Sequence[_Known]) -> Span:
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


def _reciprocal(spans: Sequence[Span], known: Sequence[_Known]) -> Span:
    return _quotient([_ONE, spans[0]], [_KNOWN_ONE, known[0]])


_ONE: Span = (np.ones(1), np.ones(1))
_KNOWN_ONE = _Known(_ONE, whole=True)


def _root(spans: Sequence[Span], _: Sequence[_Known]) -> Span:
    low, high = spans[0]
    return np.sqrt(np.maximum(low, 0.0)), np.sqrt(np.maximum(high, 0.0))


def _logarithm(spans: Sequence[Span], _: Sequence[_Known]) -> Span:
    return tuple(  # type: ignore[return-value]  # two
        np.where(end > 0, np.log2(np.where(end > 0, end, 1.0)), -np.inf) for end in spans[0]
    )


def _power(spans: Sequence[Span], _: Sequence[_Known]) -> Span:
    return np.exp2(spans[0][0]), np.exp2(spans[0][1])


_ROUNDED: Mapping[str, Callable[[Sequence[Span], Sequence[_Known]], Span]] = {
    "add": _sum,
    "sub": _difference,
    "mul": _product,
    "div": _quotient,
    "inv": _reciprocal,
    "sqrt": _root,
    "log2": _logarithm,
    "exp2": _power,
}


def _widened(kind: str, span: Span, spans: Sequence[Span], known: Sequence[_Known]) -> Span:
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
        return below, above
    return _anyhow(kind, span, spans)


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


# ---------------------------------------------------------------------- directions


@dataclass(frozen=True, slots=True)
class Directions:
    """Which inputs may make a register larger or smaller as they grow: bit i for the i-th input."""

    rising: tuple[int, ...]
    falling: tuple[int, ...]


def directions(bounds: Intervals) -> Directions:
    """Return how every register follows the inputs, by the signs that hold in all boxes.

    It is true of floats as well, whose operations are monotone; but for logarithms and powers.
    """
    tape, known = bounds.tape, bounds.known
    count = len(tape.constants)
    rising = [1 << place for place in range(len(tape.inputs))] + [0] * count
    falling = [0] * len(rising)
    for kind, taken in tape.steps:
        up, down = _direction((kind, taken), rising, falling, known)
        rising.append(up)
        falling.append(down)
    return Directions(tuple(rising), tuple(falling))


_FOLLOWS = frozenset({"add", "max", "min", "ceil", "floor", "sqrt"})
_TURNS = frozenset({"sub", "ge", "gt"})


def _direction(
    step: Step, rising: Sequence[int], falling: Sequence[int], known: Sequence[_Known]
) -> tuple[int, int]:
    kind, taken = step
    ups, downs = [rising[one] for one in taken], [falling[one] for one in taken]
    both = 0
    for bits in (*ups, *downs):
        both |= bits
    if kind in _FOLLOWS or (kind == "mul" and all(known[one].positive for one in taken)):
        return ups[0] | ups[-1], downs[0] | downs[-1]
    if kind in _TURNS or (kind == "div" and known[taken[0]].positive and known[taken[1]].nonzero):
        return ups[0] | downs[1], downs[0] | ups[1]
    if kind == "inv" and known[taken[0]].nonzero:
        return downs[0], ups[0]
    if kind == "select":
        own = ups[0] | downs[0]
        return own | ups[1] | ups[2], own | downs[1] | downs[2]
    return both, both


# ---------------------------------------------------------------------- one point


@dataclass(frozen=True, slots=True)
class Certified:
    """Bounds of the outputs at one point, and what rounding might decide.

    Args:
        bounds: lower and upper bound by output; the exact number and the float lie within.
        doubtful: kinds of steps (ceil, floor, ge, gt) whose argument lies so near a jump that
            floats may decide otherwise than exact numbers, in the order of evaluation.
    """

    bounds: Mapping[str, tuple[float, float]]
    doubtful: tuple[str, ...]

    def __bool__(self) -> bool:
        """Tell whether every ceiling and comparison is certain."""
        return not self.doubtful


def certified(tape: Tape, values: Mapping[str, Number | float]) -> Certified:
    """Return bounds of a tape's outputs at one point.

    Args:
        tape: to run.
        values: by input; exact numbers that no float is are enclosed by two.
    """
    spans = {name: _enclosing(values[name]) for name in tape.inputs}
    low = {name: span[0] for name, span in spans.items()}
    high = {name: span[1] for name, span in spans.items()}
    bounds = Intervals(tape, low, high)
    certain = {
        name: (float(ends[0][0]), float(ends[1][0])) for name, ends in bounds(low, high).items()
    }
    doubtful = [tape.steps[one - tape.first][0] for one in bounds.doubtful(low, high)]
    return Certified(certain, tuple(doubtful))


def _enclosing(value: Number | float) -> Span:
    return _span(value, value) if isinstance(value, float) else _constant(value)


__all__ = ["Certified", "Directions", "Intervals", "certified", "directions"]
