"""Native evaluation of flat arrays and grids; the results are those of `arrays` and `grids`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np

from symbolic_cost.program.grids import Block, Top, blocks
from symbolic_cost.program.native import Kernel
from symbolic_cost.program.native_formulas import LANES
from symbolic_cost.program.native_text import Plan
from symbolic_cost.program.nest import Floats, Nest
from symbolic_cost.program.tape import Tape

_BLOCK = 1 << 16
"""Points of a grid of which the least objective is remembered."""


class NativeFlat:
    """A tape as machine code for flat arrays, compiled when first needed.

    Args:
        tape: to run.
    """

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._kernels: dict[frozenset[str], Kernel] = {}

    def __call__(self, values: Mapping[str, Floats], size: int) -> dict[str, Floats]:
        """Return the outputs of many configurations; arguments as of `arrays.evaluated`."""
        varying = frozenset(name for name in self._tape.inputs if values[name].ndim)
        kernel = self._kernels.get(varying)
        if kernel is None:
            plan = Plan(dict.fromkeys(varying, 0), (0,), 0)
            kernel = self._kernels[varying] = Kernel(self._tape, plan)
        results = {name: np.empty(size) for name in self._tape.outputs}
        whole = size // LANES * LANES
        arrays = {
            name: np.ascontiguousarray(values[name], dtype=np.float64) for name in self._tape.inputs
        }
        if whole:
            kernel([whole // LANES], arrays, list(results.values()))
        if whole < size:
            rest = {n: _filled(arrays[n][whole:]) if n in varying else arrays[n] for n in arrays}
            ends = {name: np.empty(LANES) for name in results}
            kernel([1], rest, list(ends.values()))
            for name, array in results.items():
                array[whole:] = ends[name][: size - whole]
        return results


def _filled(column: Floats) -> Floats:
    """Return a column whose last element is repeated to whole vectors."""
    return np.pad(column, (0, -len(column) % LANES), mode="edge")


class NativeTop:
    """The points of least objective of grids of one shape, by compiled loops.

    Args:
        grid: that is evaluated first; others may have other numbers, not other axes.
        objective: name of an output.
        where: name of a bracket that is not zero where a point counts; all count unless given.
    """

    def __init__(self, grid: Nest, objective: str, where: str = "") -> None:
        wanted = {name: grid.tape.outputs[name] for name in (objective, where) if name}
        self._tape = replace(grid.tape, outputs=wanted)
        self._names = (objective, where)
        self._lanes, order = _lanes(grid)
        self._order = order
        sizes = [grid.sizes[axis] for axis in order]
        inner = len(order) - 1
        while inner and prod(sizes[inner - 1 :]) <= _BLOCK:
            inner -= 1
        self._inner = inner
        plan = Plan(grid.place, order, self._lanes, self._names, inner)
        self._kernel = Kernel(self._tape, plan)

    def __call__(self, grid: Nest, most: int = 1) -> Top:
        """Return the best points, as `grids.reduced` finds them."""
        least, counts = self.minima(grid)
        top = Top(self._names[0], most, self._names[1])
        shape = self._vectors(grid)[: self._inner]
        for block in np.argsort(least, kind="stable"):
            full = len(top.values) == most
            if least[block] == np.inf or (full and least[block] > top.values[-1]):
                break
            starts, stops = [0] * len(grid.sizes), list(grid.sizes)
            for axis, index in zip(self._order, np.unravel_index(block, shape), strict=False):
                width = LANES if axis == self._lanes else 1
                starts[axis] = int(index) * width
                stops[axis] = min(starts[axis] + width, grid.sizes[axis])
            part = replace(grid.part(starts, stops), tape=self._tape)
            for one in blocks(part):
                inside = tuple(
                    a + starts[axis] for axis, a in zip(one.order, one.starts, strict=True)
                )
                top.add(Block(one.values, one.shape, one.order, inside))
        top.count = int(counts.sum())
        return top

    def minima(self, grid: Nest) -> tuple[Floats, Floats]:
        """Return the least objective and the count of every block, in the order of the loops."""
        lanes, vectors = grid.sizes[self._lanes], self._vectors(grid)
        inputs: dict[str, Floats] = {"": np.zeros(-(-lanes // LANES) * LANES)}
        inputs[""][:lanes] = 1.0
        for name in self._tape.inputs:
            axis = grid.place.get(name)
            if axis is None:
                inputs[name] = np.array([grid.fixed[name]])
            else:
                column = np.ascontiguousarray(grid.axes[axis][name])
                inputs[name] = _filled(column) if axis == self._lanes else column
        number = prod(vectors[: self._inner])
        least, counts = np.empty((number, LANES)), np.empty((number, LANES))
        self._kernel(vectors, inputs, [least, counts])
        return least.min(axis=1), counts.sum(axis=1)

    def _vectors(self, grid: Nest) -> list[int]:
        """Return the iterations of every loop."""
        return [
            -(-grid.sizes[axis] // LANES) if axis == self._lanes else grid.sizes[axis]
            for axis in self._order
        ]


def _lanes(grid: Nest) -> tuple[int, tuple[int, ...]]:
    """Return the axis in lanes with which the fewest steps are needed, and the order of loops."""
    trials = []
    for lanes in range(len(grid.sizes)):
        vectors = list(grid.sizes)
        vectors[lanes] = -(-vectors[lanes] // LANES)
        order, steps = grid.order(vectors)
        trials.append((steps, lanes, order))
    _, lanes, order = min(trials)
    return lanes, order
