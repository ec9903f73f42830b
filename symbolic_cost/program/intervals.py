"""Bounds of a program over boxes of inputs, rounded outward: no point of a box lies outside.

They enclose the exact numbers and the floats alike; see `spans` for the steps. From them follows
which inputs may make a register larger or smaller as they grow (`directions`).

For example x * (10 - x) for x from 4 to 6 lies in [16, 36] (and not beyond [24, 25], which
narrower boxes tell).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbolic_cost.program.exact import Number
from symbolic_cost.program.spans import (
    CERTAIN,
    ROUNDED,
    RegisterSpan,
    Span,
    enclosed,
    span_of,
    widened,
)
from symbolic_cost.program.tape import Step, Tape
from symbolic_cost.records import dataclass


class Intervals:
    """A tape on boxes.

    Args:
        tape: to bound.
        low: smallest value by input, over all boxes that will be asked for; numbers or arrays.
        high: largest value by input.
    """

    def __init__(self, tape: Tape, low: Mapping[str, Any], high: Mapping[str, Any]) -> None:
        self.tape = tape
        self._constants = [enclosed(one) for one in tape.constants]
        self._integral = _integral(tape)
        self._ended = _ended(tape)
        self.known: list[RegisterSpan] = []
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
        registers: list[Any] = [span_of(low[name], high[name]) for name in self.tape.inputs]
        registers += self._constants
        learning = len(self.known) < len(self._integral)
        if learning:
            self.known = [
                RegisterSpan(span, whole=whole)
                for span, whole in zip(registers, self._integral, strict=False)
            ]
        known, tape = self.known, self.tape
        with np.errstate(all="ignore"):  # cases that are not chosen
            for place, (kind, taken) in enumerate(tape.steps, tape.first):
                spans = [registers[one] for one in taken]
                if kind in CERTAIN:
                    span = CERTAIN[kind](*spans)
                else:
                    of = [known[one] for one in taken]
                    span = ROUNDED[kind](spans, of)
                    if learning:
                        known.append(RegisterSpan(span, whole=self._integral[place]))
                    if not known[place].whole:
                        span = widened(kind, span, spans, [*of, known[place]])
                    if kind == "mul" and taken[0] == taken[1]:
                        span = (np.maximum(span[0], 0.0), span[1])  # no square is negative
                if learning:
                    known[place:] = [RegisterSpan(span, whole=self._integral[place])]
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


_KEEP_WHOLE = frozenset({"add", "sub", "mul", "max", "min", "select"})
_MAKE_WHOLE = frozenset({"ceil", "floor", "ge", "gt"})


def _integral(tape: Tape) -> list[bool]:
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
    return span_of(value, value) if isinstance(value, float) else enclosed(value)


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
    step: Step, rising: Sequence[int], falling: Sequence[int], known: Sequence[RegisterSpan]
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
