"""Many configurations at once: the steps of a tape on float64 arrays, in buffers bound beforehand.

Over a product of columns every step is evaluated over the axes that it depends on: with 6 orders of
ranks, 6 overlaps and 500 degrees what overlap does not change is computed 3,000 times and not
18,000 times. Never int64, in which 12288**6 is silently 0. Every bit is that of the steps on Python
floats, one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
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
    varying = [name for name in tape.inputs if values[name].ndim]
    fixed = {name: float(values[name]) for name in tape.inputs if name not in varying}
    run = Spread(tape, [varying], [min(size, CHUNK)], [], fixed)
    for start in range(0, size, CHUNK):
        part = slice(start, min(start + CHUNK, size))
        for name, array in run([{one: values[one][part] for one in varying}]).items():
            results[name][part] = array
    return results


class Spread:
    """A tape bound to buffers; a call fills them and returns views that the next call overwrites.

    Args:
        tape: to run.
        axes: names of the inputs that vary along each axis.
        sizes: length of each axis.
        pool: buffers of whole size that others use as well, whose results are then overwritten.
        fixed: inputs that are one number for all.
    """

    def __init__(
        self,
        tape: Tape,
        axes: Sequence[Sequence[str]],
        sizes: Sequence[int],
        pool: list[Floats],
        fixed: Mapping[str, float] | None = None,
    ) -> None:
        self._tape, self._sizes, self._pool, self._taken = tape, tuple(sizes), pool, 0
        self._axis = {name: axis for axis, names in enumerate(axes) for name in names}
        self._registers: list[Any] = []
        self._calls: list[Callable[[], object]] = []
        self._bind(fixed or {})

    def __call__(self, columns: Sequence[Mapping[str, Floats]]) -> dict[str, Any]:
        """Return outputs, which broadcast to the axes.

        Args:
            columns: numbers by input, of each axis; of the last one fewer than there is room for.
        """
        count = self._sizes[-1]
        for place, name in enumerate(self._tape.inputs):
            axis = self._axis.get(name)
            if axis is None:
                continue
            column = columns[axis][name]
            self._registers[place].reshape(-1)[: len(column)] = column
            count = len(column) if axis == len(self._sizes) - 1 else count
        with np.errstate(all="ignore"):  # cases that are not chosen
            for call in self._calls:
                call()
        results = ((name, self._registers[place]) for name, place in self._tape.outputs.items())
        return {n: one[..., :count] if isinstance(one, np.ndarray) else one for n, one in results}

    def _bind(self, fixed: Mapping[str, float]) -> None:
        tape, last = self._tape, last_use(self._tape)
        masks = [0 if name in fixed else 1 << self._axis[name] for name in tape.inputs]
        over_axes = masks + [0] * len(tape.constants)
        shapes = [self._shape(mask) for mask in range(1 << len(self._sizes))]
        own = self._registers
        pairs = zip(tape.inputs, masks, strict=True)
        own += [np.ones(shapes[mask]) if mask else fixed[name] for name, mask in pairs]
        own += [scalars.rounded(one) for one in tape.constants]
        free: dict[tuple[int, ...], list[Floats]] = {}
        for place, (kind, taken) in enumerate(tape.steps, tape.first):
            operands = [own[one] for one in taken]
            mask = 0
            for one in taken:
                mask |= over_axes[one]
            over_axes.append(mask)
            if not mask:
                own.append(scalars.FLOAT[kind](*operands))
                continue
            over = [n for n in dict.fromkeys(taken) if last[n] == place and n >= tape.first]
            ended = [own[one] for one in over if over_axes[one]]
            shape = shapes[mask]
            spare = free.setdefault(shape, [])
            early = () if kind in OWN_BUFFER else [one for one in ended if one.shape == shape]
            spare += early
            out = spare.pop() if spare else self._buffer(shape)
            for one in ended:
                if not any(one is other for other in early):
                    free.setdefault(one.shape, []).append(one)
            self._calls.append(call_of(kind, operands, out))
            own.append(out)

    def _shape(self, mask: int) -> tuple[int, ...]:
        return tuple(size if mask >> axis & 1 else 1 for axis, size in enumerate(self._sizes))

    def _buffer(self, shape: tuple[int, ...]) -> Floats:
        """Return a buffer that this tape does not use yet; whole ones are those of all tapes."""
        size = prod(shape)
        if size < prod(self._sizes):
            return np.empty(shape)
        place, self._taken = self._taken, self._taken + 1
        if place == len(self._pool):
            self._pool.append(np.empty(max(size, _WIDE)))
        elif len(self._pool[place]) < size:
            self._pool[place] = np.empty(size)
        return self._pool[place][:size].reshape(shape)


_WIDE = 9000
"""Numbers of a shared buffer: what of it is not written takes no memory, and none is replaced."""


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
