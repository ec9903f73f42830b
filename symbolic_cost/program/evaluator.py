"""A program as one function: of numbers, of arrays, and of arrays that span a grid."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symbolic_cost.errors import InputError, refuse
from symbolic_cost.program import arrays, grids
from symbolic_cost.program.nest import Nest
from symbolic_cost.program.program import Program

if TYPE_CHECKING:
    from symbolic_cost.program.fast import NativeFlat

Floats = NDArray[np.float64]

_WORTH_COMPILING = 30_000_000
"""Steps times points from which compiling (about 60 ms) pays."""


class Evaluator:
    """A program in floats; machine code where much is asked and the extra "fast" is there.

    Args:
        program: to evaluate.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.outputs, self.inputs = tuple(program.outputs), program.inputs

    def __call__(self, values: Mapping[str, ArrayLike]) -> dict[str, Any]:
        """Evaluate.

        Arrays are broadcast against each other. Those that vary along one dimension alone span a
        grid, of which every sub-expression is evaluated over the dimensions that it depends on.

        Args:
            values: numbers or arrays by symbol name; others are left out.

        Returns:
            By output a float, or a float64 array of the broadcast shape.

        Raises:
            InputError: every symbol without a value, and shapes that do not go together.
        """
        columns = self._arrays(values)
        shape = common_shape({name: columns[name] for name in self.inputs})
        if not shape:
            return dict(self.program.floats({name: float(columns[name]) for name in self.inputs}))
        size = int(np.prod(shape))
        if not size:
            return {name: np.empty(shape) for name in self.outputs}
        grid = self._grid(columns, shape)
        if grid is not None:
            return self._over(grid, shape)
        flat = {
            name: array if array.ndim == 0 else np.broadcast_to(array, shape).reshape(-1)
            for name, array in columns.items()
        }
        results = self._flat(size)(flat, size)
        return {name: array.reshape(shape) for name, array in results.items()}

    def best(
        self, values: Mapping[str, ArrayLike], objective: str, where: str = "", most: int = 1
    ) -> grids.Top:
        """Return the points of least objective, where a bracket is not zero.

        Args:
            values: as of a call, spanning a grid: each array varies along one dimension.
            objective: name of an output.
            where: name of an output; all points count unless given.
            most: points to return.

        Raises:
            InputError: as of a call; and arrays that vary along several dimensions.
        """
        columns = self._arrays(values)
        shape = common_shape({name: columns[name] for name in self.inputs})
        wanted = self.program.chosen([name for name in (objective, where) if name])
        grid = Evaluator(wanted)._grid(columns, shape)  # noqa: SLF001 - of another program
        if grid is None:
            raise InputError("an array varies along several dimensions: one is accepted in a grid")
        if grid.size * len(grid.tape.steps) > _WORTH_COMPILING * 10 and find_spec("llvmlite"):
            from symbolic_cost.program.fast import NativeTop

            return NativeTop(grid, objective, where)(grid, most)
        top = grids.Top(objective, most, where)
        grids.reduced(grid, top)
        return top

    def _arrays(self, values: Mapping[str, ArrayLike]) -> dict[str, Floats]:
        refuse(f"no value for symbol {name!r}" for name in self.inputs if name not in values)
        return {name: np.asarray(values[name], dtype=np.float64) for name in self.inputs}

    def _grid(self, columns: Mapping[str, Floats], shape: tuple[int, ...]) -> Nest | None:
        """Return the grid that arrays span; none where one varies along several dimensions."""
        axes: list[dict[str, Floats]] = [{} for _ in shape]
        fixed: dict[str, float] = {}
        for name in self.inputs:
            array = columns[name]
            varying = [place for place, size in enumerate(array.shape) if size > 1]
            if len(varying) > 1:
                return None
            if varying:
                axes[varying[0] - array.ndim].update({name: array.reshape(-1)})
            else:
                fixed[name] = float(array.reshape(()))
        if sum(map(bool, axes)) < 2 and len(shape) < 2:  # noqa: PLR2004 - one is a flat array
            return None
        index = {f"#{place}": np.arange(size) for place, size in enumerate(shape)}
        held = [
            {name: np.ascontiguousarray(column) for name, column in axis.items()}
            or {f"#{place}": index[f"#{place}"].astype(np.float64)}
            for place, axis in enumerate(axes)
        ]
        return Nest(self.program.tape, tuple(held), fixed)

    def _over(self, grid: Nest, shape: tuple[int, ...]) -> dict[str, Floats]:
        """Return every output over a whole grid."""
        results = {name: np.empty(shape) for name in self.outputs}
        for block in grids.blocks(grid):
            ends = zip(block.starts, block.shape, strict=True)
            part = tuple(slice(start, start + size) for start, size in ends)
            for name, array in results.items():
                array.transpose(block.order)[part] = block.values[name]
        return results

    @cached_property
    def _native(self) -> NativeFlat:
        from symbolic_cost.program.fast import NativeFlat

        return NativeFlat(self.program.tape)

    def _flat(self, size: int) -> Callable[[Mapping[str, Floats], int], dict[str, Floats]]:
        tape = self.program.tape
        if size * len(tape.steps) > _WORTH_COMPILING and find_spec("llvmlite"):
            return self._native
        return lambda values, length: arrays.evaluated(tape, values, length)


def common_shape(columns: Mapping[str, Floats]) -> tuple[int, ...]:
    """Return the shape that arrays are broadcast to.

    Raises:
        InputError: there is none.
    """
    try:
        return np.broadcast_shapes(*(array.shape for array in columns.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in columns.items())
        raise InputError(f"shapes do not broadcast to one: {shapes}") from None
