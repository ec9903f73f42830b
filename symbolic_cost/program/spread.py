"""A tape over a product of columns: every step over the axes that it depends on, in bound buffers.

For example with 6 orders of ranks, 6 overlaps and 500 degrees what overlap does not change is
computed 3,000 times and not 18,000 times. Every bit is that of the steps one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbolic_cost.program import scalars
from symbolic_cost.program.arrays import OWN_BUFFER, call_of, last_use
from symbolic_cost.program.tape import Tape

Floats = NDArray[np.float64]


class Spread:
    """A tape bound to buffers; a call fills them and returns views that the next call overwrites.

    Args:
        tape: to run.
        axes: names of the inputs that vary along each axis.
        sizes: length of each axis.
        pool: buffers of whole size that others use as well, whose results are then overwritten.
    """

    def __init__(
        self,
        tape: Tape,
        axes: Sequence[Sequence[str]],
        sizes: Sequence[int],
        pool: list[Floats],
    ) -> None:
        self._tape, self._sizes, self._pool, self._taken = tape, tuple(sizes), pool, 0
        self._axis = {name: axis for axis, names in enumerate(axes) for name in names}
        self._registers: list[Any] = []
        self._calls: list[Callable[[], object]] = []
        self._bind()

    def __call__(self, columns: Sequence[Mapping[str, Floats]]) -> dict[str, Any]:
        """Return outputs, which broadcast to the axes.

        Args:
            columns: numbers by input, of each axis; of the last one fewer than there is room for.
        """
        count = self._sizes[-1]
        for place, name in enumerate(self._tape.inputs):
            axis = self._axis[name]
            column = columns[axis][name]
            self._registers[place].reshape(-1)[: len(column)] = column
            count = len(column) if axis == len(self._sizes) - 1 else count
        with np.errstate(all="ignore"):  # cases that are not chosen
            for call in self._calls:
                call()
        results = ((name, self._registers[place]) for name, place in self._tape.outputs.items())
        return {n: one[..., :count] if isinstance(one, np.ndarray) else one for n, one in results}

    def _bind(self) -> None:
        """Bind steps to buffers of the shapes that they need; a buffer serves again when it may."""
        tape, last = self._tape, last_use(self._tape)
        over_axes = [1 << self._axis[name] for name in tape.inputs] + [0] * len(tape.constants)
        shapes = [self._shape(mask) for mask in range(1 << len(self._sizes))]
        own = self._registers
        own += [np.ones(shapes[mask]) for mask in over_axes[: len(tape.inputs)]]
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
            self._pool.append(np.empty(size))
        elif len(self._pool[place]) < size:
            self._pool[place] = np.empty(size)
        return self._pool[place][:size].reshape(shape)
