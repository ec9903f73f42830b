"""Machine code of a tape by llvmlite: loops over axes, one of them in lanes of vectors.

Each step stands in the loop of the innermost axis that it depends on, as a vector where it depends
on the axis in lanes. Products are never fused with sums, so that every bit is that of Python's
floats. A flat array is a grid of one axis.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from typing import Any

import llvmlite
import numpy as np
from llvmlite import binding as llvm
from numpy.typing import NDArray

from symbolic_cost.cache import read_bytes, write_bytes
from symbolic_cost.program import scalars
from symbolic_cost.program.doubt import doubtful
from symbolic_cost.program.tape import Tape
from symbolic_cost.records import dataclass

Floats = NDArray[np.float64]
FEATURES = llvm.get_host_cpu_features()
LANES = 8 if FEATURES.get("avx512f") else 4
"""Elements of a vector: one register of AVX-512 or AVX2, several of narrower machines."""

_VECTOR = f"<{LANES} x double>"
_BITS = f"<{LANES} x i64>"


@dataclass(frozen=True, slots=True)
class Plan:
    """Loops of a kernel.

    Args:
        axes: place of an axis by input; inputs without one are one number for all.
        order: places of axes, outermost first.
        lanes: place of the axis in lanes.
        best: names of an objective and of a bracket, or "". The kernel then keeps the least
            objective where the bracket is not zero, and how often it is; else it stores every
            output.
        blocks: loops that are blocks: each has its own least objective.
    """

    axes: Mapping[str, int]
    order: tuple[int, ...]
    lanes: int
    best: tuple[str, str] | None = None
    blocks: int = 0

    def level(self, axis: int) -> int:
        """Return how deep the loop of an axis is; the outermost is 1."""
        return self.order.index(axis) + 1


class Kernel:
    """Compiled loops.

    Args:
        tape: of the outputs.
        plan: how to loop.
    """

    def __init__(self, tape: Tape, plan: Plan) -> None:
        self.tape, self.plan = tape, plan
        text = "\n".join(_Writer(tape, plan).lines())
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


# ---------------------------------------------------------------------- text


class _Writer:
    """LLVM's text of a kernel; names are made of numbers alone."""

    def __init__(self, tape: Tape, plan: Plan) -> None:
        self._tape, self._plan = tape, plan
        self._doubt = doubtful(tape)
        self._names: list[str] = []
        self._vector: list[bool] = []
        self._level: list[int] = []
        self._splats: dict[int, str] = {}
        self._brackets: dict[int, str] = {}
        self._bodies: list[list[str]] = [[] for _ in range(len(plan.order) + 1)]
        self._fresh = 0
        self._intrinsics: set[str] = set()
        self._counted = f"<{', '.join(['i1 true'] * LANES)}>"

    def lines(self) -> Iterator[str]:
        """Write the module."""
        self._load()
        for place, (kind, taken) in enumerate(self._tape.steps, self._tape.first):
            self._step(place, kind, taken)
        self._finish()
        body = list(self._loops())
        for name in sorted(self._intrinsics):
            kind = _VECTOR if name.endswith(f"v{LANES}f64") else "double"
            yield f"declare {kind} @{name}({kind})"
        yield "define void @kernel(ptr %sizes, ptr %inputs, ptr %outputs) {"
        yield "entry:"
        yield from body
        yield "}"

    # ---- values

    def _load(self) -> None:
        tape, plan = self._tape, self._plan
        for place, name in enumerate(tape.inputs):
            axis = plan.axes.get(name)
            level = 0 if axis is None else plan.level(axis)
            vector = axis is not None and axis == plan.lanes
            own = f"%v{place}"
            head, body = self._bodies[0], self._bodies[level]
            head += _pointer(f"%in{place}", "%inputs", place)
            kind = _VECTOR if vector else "double"
            if level:
                body.append(f"%at{place} = getelementptr {kind}, ptr %in{place}, i64 %i{level}")
            body.append(f"{own} = load {kind}, ptr %{'at' if level else 'in'}{place}, align 8")
            self._add(own, level, vector=vector)
        for value in tape.constants:
            self._add(_number(scalars.rounded(value)), 0, vector=False)

    def _add(self, name: str, level: int, *, vector: bool) -> None:
        self._names.append(name)
        self._level.append(level)
        self._vector.append(vector)

    def _step(self, place: int, kind: str, taken: tuple[int, ...]) -> None:
        level = max(self._level[one] for one in taken)
        vector = any(self._vector[one] for one in taken)
        operands = [self._operand(one, vector=vector) for one in taken]
        self._add(f"%v{place}", level, vector=vector)
        write = self._line(level)
        type_ = _VECTOR if vector else "double"
        own = f"%v{place}"
        if kind in _ARITHMETIC:
            write(f"{own} = {_ARITHMETIC[kind]} {type_} {operands[0]}, {operands[1]}")
        elif kind == "inv":
            one = _constant(1.0, vector=vector)
            write(f"{own} = fdiv {type_} {one}, {operands[0]}")
        elif kind in ("ge", "gt"):
            bit = f"%b{place}"
            write(f"{bit} = fcmp o{kind} {type_} {operands[0]}, {operands[1]}")
            self._brackets[place] = bit
            one, zero = (_constant(value, vector=vector) for value in (1.0, 0.0))
            write(f"{own} = select {_bits(vector)} {bit}, {type_} {one}, {type_} {zero}")
        elif kind in ("max", "min"):
            self._extremum(own, kind, operands, level, taken, vector=vector)
        elif kind == "select":
            bit = self._bit(taken[0], operands[0], level, vector=vector)
            write(
                f"{own} = select {_bits(vector)} {bit}, {type_} {operands[1]}, "
                f"{type_} {operands[2]}"
            )
        elif kind in ("log2", "exp2"):
            getattr(self, f"_{kind}")(own, operands[0], level, vector=vector)
        else:
            write(
                f"{own} = call {type_} @{self._intrinsic(kind, vector=vector)}"
                f"({type_} {operands[0]})"
            )

    def _extremum(
        self,
        own: str,
        kind: str,
        operands: list[str],
        level: int,
        taken: tuple[int, ...],
        *,
        vector: bool,
    ) -> None:
        """Write what is one machine instruction, and beside it what an undefined number needs."""
        type_, write, bits = _VECTOR if vector else "double", self._line(level), _bits(vector)
        one, other = operands
        doubt = self._doubt[taken[0]]
        compared, best = self._name(), self._name() if doubt else own
        write(f"{compared} = fcmp {'ogt' if kind == 'max' else 'olt'} {type_} {one}, {other}")
        write(f"{best} = select {bits} {compared}, {type_} {one}, {type_} {other}")
        if doubt:
            unknown = self._name()
            write(f"{unknown} = fcmp uno {type_} {one}, {one}")
            write(f"{own} = select {bits} {unknown}, {type_} {one}, {type_} {best}")

    def _bit(self, place: int, operand: str, level: int, *, vector: bool) -> str:
        """Return a bracket as truth values."""
        if place in self._brackets and self._vector[place] == vector:
            return self._brackets[place]
        bit = self._name()
        zero = _constant(0.0, vector=vector)
        type_ = _VECTOR if vector else "double"
        self._line(level)(f"{bit} = fcmp une {type_} {operand}, {zero}")
        return bit

    def _operand(self, place: int, *, vector: bool) -> str:
        """Return a value as operand of a scalar or vector step."""
        if self._vector[place] or not vector:
            return self._names[place]
        if len(self._tape.inputs) <= place < self._tape.first:
            value = scalars.rounded(self._tape.constants[place - len(self._tape.inputs)])
            return _constant(value, vector=True)
        if place not in self._splats:
            one, all_ = self._name(), self._name()
            write = self._line(self._level[place])
            write(f"{one} = insertelement {_VECTOR} poison, double {self._names[place]}, i64 0")
            zeros = f"<{LANES} x i32> zeroinitializer"
            write(f"{all_} = shufflevector {_VECTOR} {one}, {_VECTOR} poison, {zeros}")
            self._splats[place] = all_
        return self._splats[place]

    def _intrinsic(self, kind: str, *, vector: bool) -> str:
        name = f"llvm.{kind}.{f'v{LANES}f64' if vector else 'f64'}"
        self._intrinsics.add(name)
        return name

    def _line(self, level: int) -> Callable[[str], None]:
        return self._bodies[level].append

    def _name(self) -> str:
        self._fresh += 1
        return f"%t{self._fresh}"

    # ---- logarithm and power of two, by the steps of `scalars`

    def _log2(self, own: str, value: str, level: int, *, vector: bool) -> None:
        do = _Formula(self, level, vector=vector)
        bits = do("bitcast {d} {0} to {i}", value)
        biased = do("lshr {i} {0}, {1}", bits, do.integer(52))
        exponent = do("sitofp {i} {0} to {d}", do("sub {i} {0}, {1}", biased, do.integer(1022)))
        mantissa = do("and {i} {0}, {1}", bits, do.integer((1 << 52) - 1))
        part = do("bitcast {i} {0} to {d}", do("or {i} {0}, {1}", mantissa, do.integer(1022 << 52)))
        small = do("fcmp olt {d} {0}, {1}", part, do.real(scalars.HALF_ROOT))
        twice = do("fmul {d} {0}, {1}", part, do.real(2.0))
        part = do("select {b} {0}, {d} {1}, {d} {2}", small, twice, part)
        less = do("fsub {d} {0}, {1}", exponent, do.real(1.0))
        exponent = do("select {b} {0}, {d} {1}, {d} {2}", small, less, exponent)
        above = do("fsub {d} {0}, {1}", part, do.real(1.0))
        below = do("fadd {d} {0}, {1}", part, do.real(1.0))
        ratio = do("fdiv {d} {0}, {1}", above, below)
        series = do.series(scalars.LOG2_TERMS, do("fmul {d} {0}, {0}", ratio))
        result = do("fadd {d} {0}, {1}", exponent, do("fmul {d} {0}, {1}", ratio, series))
        positive = do("fcmp ogt {d} {0}, {1}", value, do.real(0.0))
        result = do("select {b} {0}, {d} {1}, {d} {2}", positive, result, do.real(math.nan))
        top = do("fcmp oeq {d} {0}, {1}", value, do.real(math.inf))
        do("select {b} {0}, {d} {1}, {d} {2}", top, do.real(math.inf), result, own=own)

    def _exp2(self, own: str, value: str, level: int, *, vector: bool) -> None:
        do = _Formula(self, level, vector=vector)
        high = do("fcmp olt {d} {0}, {1}", value, do.real(scalars.LARGEST_POWER))
        low = do("fcmp ogt {d} {0}, {1}", value, do.real(-scalars.LARGEST_POWER))
        bounded = do("select {b} {0}, {d} {1}, {d} {2}", high, value, do.real(0.0))
        bounded = do("select {b} {0}, {d} {1}, {d} {2}", low, bounded, do.real(0.0))
        half = do("fadd {d} {0}, {1}", bounded, do.real(0.5))
        floor = self._intrinsic("floor", vector=vector)
        exponent = do(f"call {{d}} @{floor}({{d}} {{0}})", half)
        series = do.series(scalars.EXP2_TERMS, do("fsub {d} {0}, {1}", bounded, exponent))
        shift = do("shl {i} {0}, {1}", do("fptosi {d} {0} to {i}", exponent), do.integer(52))
        raised = do("add {i} {0}, {1}", do("bitcast {d} {0} to {i}", series), shift)
        result = do("bitcast {i} {0} to {d}", raised)
        result = do("select {b} {0}, {d} {1}, {d} {2}", low, result, do.real(0.0))
        result = do("select {b} {0}, {d} {1}, {d} {2}", high, result, do.real(math.inf))
        unknown = do("fcmp uno {d} {0}, {0}", value)
        do("select {b} {0}, {d} {1}, {d} {2}", unknown, value, result, own=own)

    # ---- loops

    def _finish(self) -> None:
        """Write what the ends of the loops take, before the loops."""
        best, tape = self._plan.best, self._tape
        for place in tape.outputs.values():
            self._operand(place, vector=True)
        if best and best[1]:
            place, depth = tape.outputs[best[1]], len(self._plan.order)
            operand = self._operand(place, vector=True)
            self._counted = self._bit(place, operand, depth, vector=True)

    def _loops(self) -> Iterator[str]:
        """Write the nest: each body, the next loop, and at its end what is kept of it."""
        depth, best = len(self._plan.order), self._plan.best is not None
        blocks = self._plan.blocks
        inner = [depth if not best else blocks]  # the level at which something is stored
        for place in range(2 if best else len(self._tape.outputs)):
            self._bodies[0] += _pointer(f"%out{place}", "%outputs", place)
        for level in range(1, depth + 1):
            at = level - 1
            self._bodies[0].append(f"%p{level} = getelementptr i64, ptr %sizes, i64 {at}")
            self._bodies[0].append(f"%n{level} = load i64, ptr %p{level}")
        if best:
            weights = len(self._tape.inputs)
            self._bodies[0] += _pointer("%weights", "%inputs", weights)
        yield from self._bodies[0]
        for level in range(1, depth + 1):
            yield from self._head(level, inner[0])
        yield from self._kept() if best else self._stores()
        for level in range(depth, 0, -1):
            yield from self._tail(level, inner[0])
        if best and blocks == 0:
            yield from self._block(f"%least{1}.x", f"%count{1}.x", "0")
        yield "ret void"

    def _head(self, level: int, storing: int) -> Iterator[str]:
        above = f"body{level - 1}" if level > 1 else "entry"
        yield f"br label %body{level}"
        yield f"body{level}:"
        yield f"%i{level} = phi i64 [ 0, %{above} ], [ %j{level}, %end{level} ]"
        if level <= storing:
            first = f"%c{level - 1}" if level > 1 else "0"
            yield f"%c{level} = phi i64 [ {first}, %{above} ], [ %c{level}.x, %end{level} ]"
        if self._plan.best and level > storing:
            outside = level - 1 > storing
            infinite, zero = _constant(math.inf, vector=True), _constant(0.0, vector=True)
            for name, start in (("least", infinite), ("count", zero)):
                begin = f"%{name}{level - 1}" if outside else start
                yield (
                    f"%{name}{level} = phi {_VECTOR} [ {begin}, %{above} ], "
                    f"[ %{name}{level}.n, %end{level} ]"
                )
        yield from self._bodies[level]

    def _tail(self, level: int, storing: int) -> Iterator[str]:
        depth = len(self._plan.order)
        yield f"br label %end{level}"
        yield f"end{level}:"
        if self._plan.best and level == storing:
            yield from self._block(f"%least{level + 1}.n", f"%count{level + 1}.n", f"%c{level}")
        if self._plan.best and storing < level < depth:
            for name in ("least", "count"):
                yield f"%{name}{level}.n = freeze {_VECTOR} %{name}{level + 1}.n"
        if level == storing:
            yield f"%c{level}.x = add i64 %c{level}, 1"
        elif level < storing:
            yield f"%c{level}.x = freeze i64 %c{level + 1}.x"
        yield f"%j{level} = add i64 %i{level}, 1"
        yield f"%more{level} = icmp slt i64 %j{level}, %n{level}"
        yield f"br i1 %more{level}, label %body{level}, label %after{level}"
        yield f"after{level}:"
        if self._plan.best and level == 1 and storing == 0:
            for name in ("least", "count"):
                yield f"%{name}1.x = freeze {_VECTOR} %{name}1.n"

    def _stores(self) -> Iterator[str]:
        depth = len(self._plan.order)
        for number, place in enumerate(self._tape.outputs.values()):
            value = self._operand(place, vector=True)  # written before, so that it is known
            yield f"%s{number} = getelementptr {_VECTOR}, ptr %out{number}, i64 %c{depth}"
            yield f"store {_VECTOR} {value}, ptr %s{number}, align 8"

    def _kept(self) -> Iterator[str]:
        """Write the least objective where the bracket is one, and how often it is."""
        depth, bit = len(self._plan.order), self._counted
        value = self._operand(self._tape.outputs[(self._plan.best or ("", ""))[0]], vector=True)
        lane = f"%i{self._plan.level(self._plan.lanes)}"
        yield f"%w.p = getelementptr {_VECTOR}, ptr %weights, i64 {lane}"
        yield f"%w = load {_VECTOR}, ptr %w.p, align 8"
        infinite, zero = _constant(math.inf, vector=True), _constant(0.0, vector=True)
        bits = _bits(vector=True)
        yield f"%value = select {bits} {bit}, {_VECTOR} {value}, {_VECTOR} {infinite}"
        yield f"%lower = fcmp olt {_VECTOR} %value, %least{depth}"
        yield (f"%least{depth}.n = select {bits} %lower, {_VECTOR} %value, {_VECTOR} %least{depth}")
        yield f"%one = select {bits} {bit}, {_VECTOR} %w, {_VECTOR} {zero}"
        yield f"%count{depth}.n = fadd {_VECTOR} %count{depth}, %one"

    def _block(self, least: str, count: str, place: str) -> Iterator[str]:
        for number, value in enumerate((least, count)):
            yield f"%k{number} = getelementptr {_VECTOR}, ptr %out{number}, i64 {place}"
            yield f"store {_VECTOR} {value}, ptr %k{number}, align 8"


class _Formula:
    """Writes steps of one function on scalars or vectors."""

    def __init__(self, writer: _Writer, level: int, *, vector: bool) -> None:
        self._writer, self._write, self._vector = writer, writer._line(level), vector  # noqa: SLF001
        self._types = {
            "d": _VECTOR if vector else "double",
            "i": _BITS if vector else "i64",
            "b": _bits(vector),
        }

    def __call__(self, pattern: str, *operands: str, own: str = "") -> str:
        name = own or self._writer._name()  # noqa: SLF001 - two halves of one writer
        self._write(f"{name} = {pattern.format(*operands, **self._types)}")
        return name

    def real(self, value: float) -> str:
        """Return a constant."""
        return _constant(value, vector=self._vector)

    def integer(self, value: int) -> str:
        """Return a constant of bits."""
        return f"<{', '.join([f'i64 {value}'] * LANES)}>" if self._vector else str(value)

    def series(self, terms: Sequence[float], by: str) -> str:
        """Return a polynomial."""
        total = self.real(terms[-1])
        for term in terms[-2::-1]:
            product = self("fmul {d} {0}, {1}", total, by)
            total = self("fadd {d} {0}, {1}", product, self.real(term))
        return total


_ARITHMETIC = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}


def _pointer(own: str, base: str, place: int) -> list[str]:
    return [
        f"{own}.p = getelementptr ptr, ptr {base}, i64 {place}",
        f"{own} = load ptr, ptr {own}.p",
    ]


def _bits(vector: bool) -> str:  # noqa: FBT001 - as its siblings
    return f"<{LANES} x i1>" if vector else "i1"


@cache
def _number(value: float) -> str:
    """Write a float by its bits."""
    return f"0x{np.float64(value).view(np.uint64):016X}"


@cache
def _constant(value: float, *, vector: bool) -> str:
    return f"<{', '.join([f'double {_number(value)}'] * LANES)}>" if vector else _number(value)


# ---------------------------------------------------------------------- machine code


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
