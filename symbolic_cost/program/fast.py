"""Machine code of a tape by llvmlite, for flat arrays and grids.

The results are those of `arrays` and `grids`; code is compiled once for a machine and kept.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from math import prod
from typing import Any

import llvmlite
import numpy as np
from llvmlite import binding as llvm

from symbolic_cost.cache import read_bytes, write_bytes
from symbolic_cost.program.grids import Block, Top, blocks
from symbolic_cost.program.native_formulas import FEATURES, LANES
from symbolic_cost.program.native_text import Plan, Writer
from symbolic_cost.program.nest import Floats, Nest
from symbolic_cost.program.tape import Tape


class Kernel:
    """Compiled loops.

    Args:
        tape: of the outputs.
        plan: how to loop.
    """

    def __init__(self, tape: Tape, plan: Plan) -> None:
        self.tape, self.plan = tape, plan
        text = "\n".join(Writer(tape, plan).lines())
        self._keep, self._function = _compiled(text)

    def __call__(
        self, sizes: Sequence[int], inputs: Mapping[str, Floats], outputs: Sequence[Floats]
    ) -> None:
        """Run.

        Args:
            sizes: of the axes in the order of the loops; of the one in lanes, vectors.
            inputs: contiguous array by name; of the axis in lanes a multiple of LANES long. The
                best needs "" too: one for an element of that axis, zero for one that fills up.
            outputs: arrays to fill: by output, in the order of the loops and LANES last; for the
                best, least objective and count of every block, LANES last.
        """
        taken = [inputs[name] for name in self.tape.inputs]
        if self.plan.best:
            taken.append(inputs[""])
        counts = (ctypes.c_int64 * len(sizes))(*sizes)
        self._function(counts, _pointers(taken), _pointers(outputs))


def _pointers(arrays: Sequence[Floats]) -> Any:  # noqa: ANN401 - ctypes makes a type by length
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))


def _compiled(text: str) -> tuple[Any, Callable[..., None]]:
    """Return an engine, to be held as long as its function is used, and the function."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    features = FEATURES.flatten()
    machine = target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=1, reloc="pic", codemodel="jitdefault"
    )
    about = (llvmlite.__version__, llvm.get_host_cpu_name(), FEATURES.flatten(), text)
    key = blake2b("\n".join(about).encode(), digest_size=16).hexdigest()
    code = read_bytes(f"{key}.o")
    if code is None:
        module = llvm.parse_assembly(text)
        code = machine.emit_object(module)
        write_bytes(f"{key}.o", code)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address = engine.get_function_address("kernel")
    return engine, ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(address)


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
