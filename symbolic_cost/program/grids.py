"""Grids: every sub-expression over the axes it depends on alone, and only what is asked is kept.

The outer axes are loops, the inner ones arrays of at most `BLOCK` points; a step whose axes are all
outside a loop is not repeated in it. Memory does not grow with the grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbolic_cost.program import scalars
from symbolic_cost.program.arrays import call_of
from symbolic_cost.program.nest import Floats, Nest
from symbolic_cost.records import dataclass

BLOCK = 1 << 18
"""Points evaluated at a time."""

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Block:
    """Results of a part of a grid.

    Args:
        values: array by output, of `shape` or broadcasting to it; overwritten by the next block.
        shape: of the axes in the order of `order`.
        order: places of the grid's axes.
        starts: first index of every axis, in that order.
    """

    values: Mapping[str, Floats]
    shape: tuple[int, ...]
    order: tuple[int, ...]
    starts: tuple[int, ...]

    def flat(self, name: str) -> Floats:
        """Return an output of every point, in one dimension."""
        return np.broadcast_to(self.values[name], self.shape).reshape(-1)

    def places(self, chosen: Places) -> Places:
        """Return the index on every axis of the grid, in its own order, of some flat points."""
        inside = np.unravel_index(chosen, self.shape)
        places = np.empty((len(chosen), len(self.order)), dtype=np.int64)
        for axis, start, index in zip(self.order, self.starts, inside, strict=True):
            places[:, axis] = index + start
        return places


def blocks(grid: Nest, most: int = BLOCK) -> Iterator[Block]:
    """Evaluate a grid part by part."""
    order, _ = grid.order(grid.sizes)
    outer = len(order)
    while outer and prod(grid.sizes[axis] for axis in order[outer - 1 :]) <= most:
        outer -= 1
    step = 1  # of the innermost loop: as many of its values at a time as fit
    if outer:
        inside = prod(grid.sizes[axis] for axis in order[outer:])
        step = max(1, most // inside)
    yield from _Loops(grid, order, outer, step).run()


class _Loops:
    """Loops over the outer axes; the last of them takes several of its values at a time."""

    def __init__(self, grid: Nest, order: tuple[int, ...], outer: int, step: int) -> None:
        self._grid, self._order, self._outer, self._step = grid, order, outer, step
        depth = {axis: place for place, axis in enumerate(order)}
        self._level = [
            max(
                (min(depth[a] + 1, outer) for a in order if mask >> a & 1 and depth[a] < outer),
                default=0,
            )
            for mask in grid.masks
        ]
        self._last = self._last_uses()
        self._registers: list[Any] = [None] * len(grid.masks)
        self._calls: dict[tuple[int, int], list[Callable[[], object]]] = {}
        for place, value in enumerate(grid.tape.constants, len(grid.tape.inputs)):
            self._registers[place] = np.float64(scalars.rounded(value))

    def _last_uses(self) -> list[tuple[int, int] | None]:
        """Return step and level of the last use of a step's result by its own level alone."""
        tape = self._grid.tape
        last: list[tuple[int, int] | None] = [None] * len(self._level)
        for place, (_, taken) in enumerate(tape.steps, tape.first):
            for one in taken:
                if one >= tape.first:
                    last[one] = (place, self._level[place])
        outer = {
            one
            for place, (_, taken) in enumerate(tape.steps, tape.first)
            for one in taken
            if self._level[one] != self._level[place]
        }
        lasting = outer | set(tape.outputs.values())
        return [None if place in lasting else own for place, own in enumerate(last)]

    def run(self) -> Iterator[Block]:
        with np.errstate(all="ignore"):  # cases that are not chosen
            for place, name in enumerate(self._grid.tape.inputs):
                axis = self._grid.place.get(name)
                if axis is None:
                    self._registers[place] = np.float64(self._grid.fixed[name])
                elif self._level[place] == 0:
                    self._registers[place] = self._shaped(self._grid.axes[axis][name], axis)
            self._compute(0, 1)
            yield from self._loop(1, ())

    def _loop(self, level: int, starts: tuple[int, ...]) -> Iterator[Block]:
        if level > self._outer:
            yield self._block(starts)
            return
        axis = self._order[level - 1]
        size = self._grid.sizes[axis]
        step = self._step if level == self._outer else 1
        for start in range(0, size, step):
            stop = min(start + step, size)
            for place, name in enumerate(self._grid.tape.inputs):
                if self._grid.place.get(name) == axis:
                    column = self._grid.axes[axis][name][start:stop]
                    self._load(place, self._shaped(column, axis), stop - start)
            self._compute(level, stop - start)
            yield from self._loop(level + 1, (*starts, start))

    def _load(self, place: int, column: Floats, length: int) -> None:
        """Put a column where the bound steps look for it."""
        held = self._registers[place]
        if held is not None and held.shape == column.shape:
            held[...] = column
        else:
            self._registers[place] = column.copy()
            calls = self._calls.items()  # what is bound to the columns that were there is not
            self._calls = {k: own for k, own in calls if k[0] < self._outer or k[1] == length}

    def _shaped(self, column: Floats, axis: int) -> Floats:
        """Return a column along its axis; loops that are outside are of length one."""
        inner = len(self._order) - max(self._outer - 1, 0)
        place = self._order.index(axis) - max(self._outer - 1, 0)
        shape = [1] * inner
        if place >= 0:
            shape[place] = len(column)
        return column.reshape(shape)

    def _compute(self, level: int, length: int) -> None:
        key = (level, length)
        if key not in self._calls:
            self._calls[key] = self._bound(level)
        for call in self._calls[key]:
            call()

    def _bound(self, level: int) -> list[Callable[[], object]]:
        """Bind the steps of a level to buffers of the shapes that they need."""
        tape, calls = self._grid.tape, []
        free: dict[tuple[int, ...], list[Floats]] = {}
        for place, (kind, taken) in enumerate(tape.steps, tape.first):
            if self._level[place] != level:
                continue
            operands = [self._registers[one] for one in taken]
            shape = np.broadcast_shapes(*(np.shape(one) for one in operands))
            spare = free.get(shape)
            out = self._registers[place] = spare.pop() if spare else np.empty(shape)
            calls.append(call_of(kind, operands, out))
            for one in set(taken):
                if self._last[one] == (place, level) == (place, self._level[one]):
                    free.setdefault(self._registers[one].shape, []).append(self._registers[one])
        return calls

    def _block(self, starts: tuple[int, ...]) -> Block:
        values = {n: np.asarray(self._registers[p]) for n, p in self._grid.tape.outputs.items()}
        first = max(self._outer - 1, 0)
        sizes = [self._grid.sizes[axis] for axis in self._order]
        shape = [1] * first + sizes[first:]
        if self._outer:
            shape[first] = min(self._step, sizes[first] - starts[first])
        return Block(values, tuple(shape), self._order, starts + (0,) * (len(sizes) - len(starts)))


# ---------------------------------------------------------------------- what is kept


def reduced(grid: Nest, top: Top) -> None:
    """Evaluate a grid and keep the points that are asked for."""
    for block in blocks(grid):
        top.add(block)


@dataclass
class Top:
    """The points of least objective, and how many there are.

    Args:
        objective: name of an output.
        most: points to keep.
        where: name of a bracket that is one where a point counts; all count unless given.

    Attributes:
        values: least objectives, in order; of equal ones the point that comes first on the axes.
        places: index on every axis, by point.
        count: points that count.
    """

    objective: str
    most: int = 1
    where: str = ""
    values: Floats = field(default_factory=lambda: np.empty(0))
    places: Places = field(default_factory=lambda: np.empty((0, 0), dtype=np.int64))
    count: int = 0

    def add(self, block: Block) -> None:
        """Take in a block."""
        values = block.flat(self.objective)
        if self.where:
            counted = block.flat(self.where) != 0
            self.count += int(np.count_nonzero(counted))
            values = np.where(counted, values, np.inf)
        else:
            self.count += len(values)
        self.take(values, block)

    def take(self, values: Floats, block: Block) -> None:
        """Take in the objective of a block's points."""
        worst = self.values[-1] if len(self.values) == self.most else np.inf
        near = np.flatnonzero(values <= worst)
        near = near[np.isfinite(values[near])]
        if len(near) > self.most:
            limit = np.partition(values[near], self.most - 1)[self.most - 1]
            near = near[values[near] <= limit]
        if not len(near):
            return
        places = block.places(near)
        all_values = np.concatenate([self.values, values[near]])
        all_places = np.concatenate([self.places.reshape(-1, places.shape[1]), places])
        order = np.lexsort((*all_places.T[::-1], all_values))[: self.most]
        self.values, self.places = all_values[order], all_places[order]
