"""Machine code of a tape by llvmlite, compiled once for a machine and kept."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import llvmlite
import numpy as np
from llvmlite import binding as llvm
from numpy.typing import NDArray

from symbolic_cost.cache import read_bytes, write_bytes
from symbolic_cost.program.native_formulas import FEATURES
from symbolic_cost.program.native_text import Plan, Writer
from symbolic_cost.program.tape import Tape

Floats = NDArray[np.float64]


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
    machine = _machine()
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


def _machine() -> Any:  # noqa: ANN401 - llvmlite carries no types
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    features = FEATURES.flatten()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=1, reloc="pic", codemodel="jitdefault"
    )
