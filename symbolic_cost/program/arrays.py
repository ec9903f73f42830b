"""Many configurations at once: the steps of a tape on float64 arrays, in buffers bound beforehand.

Never int64, in which 12288**6 is silently 0. Every bit is that of the steps on Python floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbolic_cost.program import scalars
from symbolic_cost.program.tape import Tape

Floats = NDArray[np.float64]

CHUNK = 8192
"""Configurations evaluated at a time, so that the buffers stay in the cache."""


def evaluated(tape: Tape, values: Mapping[str, Floats], size: int) -> dict[str, Floats]:
    """Return the outputs of many configurations.

    Args:
        tape: to run.
        values: by input, an array of one dimension, or of none where it is one number for all.
        size: length of the arrays.
    """
    results = {name: np.empty(size) for name in tape.outputs}
    run = Flat(tape, frozenset(n for n in tape.inputs if values[n].ndim), min(size, CHUNK))
    for start in range(0, size, CHUNK):
        stop = min(start + CHUNK, size)
        chunk = run(
            {
                name: values[name][start:stop] if values[name].ndim else values[name]
                for name in tape.inputs
            }
        )
        for name, array in results.items():
            array[start:stop] = chunk[name]
    return results


class Flat:
    """A tape bound to buffers; a call fills them and returns views that the next call overwrites.

    Args:
        tape: to run.
        varying: inputs that are arrays; the others are one number for all.
        size: most elements of an array.
        pool: buffers that others use as well, whose results are then overwritten; own ones unless
            given.
    """

    def __init__(
        self,
        tape: Tape,
        varying: frozenset[str],
        size: int,
        pool: list[Floats] | None = None,
    ) -> None:
        self._pool: list[Floats] = [] if pool is None else pool
        self._taken = 0
        self._tape, self._varying, self._size = tape, varying, size
        mask = sum(1 << place for place, name in enumerate(tape.inputs) if name in varying)
        self._moves = [bool(own & mask) for own in tape.masks]
        self._fixed: tuple[float, ...] | None = None
        self._calls: list[Callable[[], object]] = []
        self._registers: list[Any] = []

    def __call__(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return an array, or a number where no array matters, by output.

        Args:
            values: by input; arrays of one length, at most the size.
        """
        fixed = tuple(float(values[n]) for n in self._tape.inputs if n not in self._varying)
        if self._fixed != fixed:
            self._bind(fixed)
        length = self._size
        for place, name in enumerate(self._tape.inputs):
            if name in self._varying:
                length = len(values[name])
                self._registers[place][:length] = values[name]
        with np.errstate(all="ignore"):  # cases that are not chosen
            for call in self._calls:
                call()
        return {
            name: self._registers[place][:length] if self._moves[place] else self._registers[place]
            for name, place in self._tape.outputs.items()
        }

    def _bind(self, fixed: tuple[float, ...]) -> None:
        """Compute what no array moves, and bind the rest to buffers."""
        tape, numbers = self._tape, iter(fixed)
        registers: list[Any] = [
            np.ones(self._size) if name in self._varying else next(numbers) for name in tape.inputs
        ]
        registers += [scalars.rounded(one) for one in tape.constants]
        last, moves, own = last_use(tape), self._moves, len(tape.inputs)
        free: list[Floats] = []
        self._calls, self._taken = [], 0
        for place, (kind, taken) in enumerate(tape.steps, tape.first):
            operands = [registers[one] for one in taken]
            if not moves[place]:
                registers.append(scalars.FLOAT[kind](*operands))
                continue
            over = [one for one in taken if last[one] == place and one >= own and moves[one]]
            ended = [registers[one] for one in dict.fromkeys(over)]
            early = [] if kind in OWN_BUFFER else ended
            free += early
            out = free.pop() if free else self._buffer()
            free += [] if early else ended
            self._calls.append(call_of(kind, operands, out))
            registers.append(out)
        self._fixed, self._registers = fixed, registers

    def _buffer(self) -> Floats:
        """Return a buffer that this tape does not use yet."""
        place, self._taken = self._taken, self._taken + 1
        if place == len(self._pool):
            self._pool.append(np.empty(self._size))
        elif len(self._pool[place]) < self._size:
            self._pool[place] = np.empty(self._size)
        return self._pool[place][: self._size]


def call_of(kind: str, operands: list[Any], out: Floats) -> Callable[[], object]:
    """Return one step, bound to its operands and its result."""
    operands = [one if type(one) is np.ndarray else np.float64(one) for one in operands]
    if kind == "inv":
        return partial(np.divide, 1.0, operands[0], out)
    if kind in _EXTREMA:  # of which NumPy takes the result by its name alone
        return partial(_EXTREMA[kind], *operands, out=out)
    return partial(_CALLS[kind], *operands, out)


def run_of(kind: str, operands: list[Floats], out: Floats) -> None:
    """Run one kind of step on arrays."""
    if kind == "inv":
        np.divide(1.0, operands[0], out)
    elif kind in _EXTREMA:
        _EXTREMA[kind](*operands, out=out)
    else:
        _CALLS[kind](*operands, out)


def last_use(tape: Tape) -> list[float]:
    """Return the place of the last step that takes each register; outputs are taken after all."""
    last: list[float] = [-1] * len(tape.masks)
    for place, (_, taken) in enumerate(tape.steps, tape.first):
        for one in taken:
            last[one] = place
    for one in tape.outputs.values():
        last[one] = math.inf
    return last


def _select(bracket: Floats, one: Floats, other: Floats, out: Floats) -> None:
    np.copyto(out, other)
    np.copyto(out, one, where=bracket != 0)


def _log2(value: Floats, out: Floats) -> None:
    """Take the steps of `scalars` on arrays."""
    part, exponent = np.frexp(value)
    small = part < scalars.HALF_ROOT
    part = np.where(small, 2 * part, part)
    ratio = (part - 1.0) / (part + 1.0)
    square = ratio * ratio
    series = np.full_like(square, scalars.LOG2_TERMS[-1])
    for term in scalars.LOG2_TERMS[-2::-1]:
        series = series * square + term
    series = (exponent - small) + ratio * series
    inside = (value > 0) & (value < math.inf)
    np.copyto(out, np.where(inside, series, np.where(value == math.inf, math.inf, math.nan)))


def _exp2(value: Floats, out: Floats) -> None:
    inside = np.abs(value) < scalars.LARGEST_POWER
    bounded = np.where(inside, value, 0.0)
    exponent = np.floor(bounded + 0.5)
    rest = bounded - exponent
    series = np.full_like(rest, scalars.EXP2_TERMS[-1])
    for term in scalars.EXP2_TERMS[-2::-1]:
        series = series * rest + term
    series = np.ldexp(series, exponent.astype(np.int32))
    beyond = np.where(value > 0, math.inf, np.where(np.isnan(value), math.nan, 0.0))
    np.copyto(out, np.where(inside, series, beyond))


_OWN: dict[str, Callable[..., None]] = {"select": _select, "log2": _log2, "exp2": _exp2}
_EXTREMA: dict[str, Callable[..., object]] = {"max": np.maximum, "min": np.minimum}
_CALLS: dict[str, Callable[..., object]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "ge": np.greater_equal,
    "gt": np.greater,
    "ceil": np.ceil,
    "floor": np.floor,
    "sqrt": np.sqrt,
    **_OWN,
}
OWN_BUFFER = frozenset(_OWN)
"""Kinds whose result may not lie where their operands do."""
