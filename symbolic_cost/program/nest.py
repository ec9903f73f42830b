"""Grids as nests of loops: which axis each step depends on, and the order that computes least."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symbolic_cost.errors import InputError
from symbolic_cost.program.tape import Tape
from symbolic_cost.records import dataclass

Floats = NDArray[np.float64]

_WEIGHTS = {"inv": 6, "div": 6, "log2": 40, "exp2": 40}
"""Steps that a sum takes the time of one of."""
_MOST_ORDERED = 14
"""Axes of which the best order is looked for."""


@dataclass(frozen=True)
class Nest:
    """A tape over a grid.

    Args:
        tape: to evaluate.
        axes: columns by input; those of one axis have one length and vary together.
        fixed: number of every other input.

    Raises:
        InputError: inputs without a value or with two, columns of unequal length, empty axes.
    """

    tape: Tape
    axes: tuple[Mapping[str, Floats], ...]
    fixed: Mapping[str, float]

    def __post_init__(self) -> None:
        """Check that every input has one value."""
        named = [name for axis in self.axes for name in axis] + list(self.fixed)
        problems = [f"{name} has two values" for name in set(named) if named.count(name) > 1]
        problems += [f"no value for symbol {n!r}" for n in self.tape.inputs if n not in named]
        for axis in self.axes:
            lengths = {name: len(column) for name, column in axis.items()}
            if len(set(lengths.values())) != 1 or 0 in lengths.values():
                problems.append(f"columns of one axis are equally long and not empty: {lengths}")
        if problems:
            raise InputError(sorted(problems))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Length of every axis."""
        return tuple(len(next(iter(axis.values()))) for axis in self.axes)

    @cached_property
    def size(self) -> int:
        """Points of the grid."""
        return prod(self.sizes)

    @cached_property
    def place(self) -> dict[str, int]:
        """Axis by input; those with one number are left out."""
        needed = set(self.tape.inputs)
        return {
            name: place for place, axis in enumerate(self.axes) for name in axis if name in needed
        }

    @cached_property
    def masks(self) -> tuple[int, ...]:
        """By register, bit i for the i-th axis that it depends on."""
        bits = [1 << self.place[n] if n in self.place else 0 for n in self.tape.inputs]
        masks = bits + [0] * len(self.tape.constants)
        for _, taken in self.tape.steps:
            mask = 0
            for one in taken:
                mask |= masks[one]
            masks.append(mask)
        return tuple(masks)

    def order(self, sizes: Sequence[int]) -> tuple[tuple[int, ...], float]:
        """Return the axes, outermost first, that need the fewest steps, and how many these are.

        A step stands in the loop of its innermost axis, so that with the axes S outside it runs
        as often as their sizes' product. The least is found for every set of outer axes from
        those of one axis less.

        Args:
            sizes: iterations by axis.
        """
        axes = len(sizes)
        if axes > _MOST_ORDERED:
            return tuple(sorted(range(axes), key=sizes.__getitem__)), float("inf")
        below = self._steps_below(axes)
        volume = [1] * (1 << axes)
        best: list[tuple[float, int]] = [(below[0], -1)] + [(0.0, -1)] * ((1 << axes) - 1)
        for outer in range(1, 1 << axes):
            low = (outer & -outer).bit_length() - 1
            volume[outer] = volume[outer & (outer - 1)] * sizes[low]
            best[outer] = min(
                (best[rest][0] + volume[outer] * (below[outer] - below[rest]), axis)
                for axis in range(axes)
                if outer >> axis & 1
                for rest in (outer & ~(1 << axis),)
            )
        order, left = [], (1 << axes) - 1
        while left:
            order.append(best[left][1])
            left &= ~(1 << best[left][1])
        return tuple(reversed(order)), best[-1][0]

    def _steps_below(self, axes: int) -> list[float]:
        """Return the weight of the steps that depend on no other axes, by set of axes."""
        below = [0.0] * (1 << axes)
        for (kind, _), mask in zip(self.tape.steps, self.masks[self.tape.first :], strict=True):
            below[mask] += _WEIGHTS.get(kind, 1)
        for axis in range(axes):
            for mask in range(1 << axes):
                if mask >> axis & 1:
                    below[mask] += below[mask & ~(1 << axis)]
        return below

    def part(self, starts: Sequence[int], stops: Sequence[int]) -> Nest:
        """Return the grid of a part of every axis."""
        cut = [
            {name: column[start:stop] for name, column in axis.items()}
            for axis, start, stop in zip(self.axes, starts, stops, strict=True)
        ]
        return Nest(self.tape, tuple(cut), self.fixed)


def gridded(
    tape: Tape, axes: Sequence[Mapping[str, ArrayLike]], fixed: Mapping[str, float]
) -> Nest:
    """Return a grid of any columns of numbers; symbols that the tape does not need may be there."""
    columns = [
        {name: np.ascontiguousarray(column, dtype=np.float64) for name, column in axis.items()}
        for axis in axes
    ]
    return Nest(tape, tuple(columns), {name: float(value) for name, value in fixed.items()})
