"""Text of machine code of a tape: loops over axes, one of them in lanes of vectors.

Each step stands in the loop of the innermost axis that it depends on, as a vector where it depends
on the axis in lanes. Products are never fused with sums, so that every bit is that of Python's
floats. A flat array is a grid of one axis. Which steps may have no value follows from signs:
symbols are positive, and so is a sum of positive values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from symbolic_cost.program import scalars
from symbolic_cost.program.exact import undefined
from symbolic_cost.program.native_formulas import (
    LANES,
    VECTOR,
    Formula,
    bit_type,
    constant,
    exp2,
    float_text,
    log2,
)
from symbolic_cost.program.tape import Tape
from symbolic_cost.records import dataclass

_ANY, _NOT_NEGATIVE, _POSITIVE = range(3)


def doubtful(tape: Tape) -> list[bool]:
    """Tell of every register whether its value may be undefined."""
    signs = [_POSITIVE] * len(tape.inputs)
    signs += [_ANY if one < 0 else 1 + (one > 0) for one in tape.constants]
    doubts = [False] * len(tape.inputs) + [undefined(one) for one in tape.constants]
    for kind, taken in tape.steps:
        own = [signs[one] for one in taken]
        unsafe = kind in ("inv", "div", "log2", "sqrt") and own[-1] < _POSITIVE
        doubt = unsafe or any(doubts[one] for one in taken)
        doubts.append(doubt and kind not in ("ge", "gt"))
        signs.append(_sign(kind, own))
    return doubts


def _sign(kind: str, own: list[int]) -> int:
    if kind in ("add", "max"):
        return max(own) if min(own) > _ANY or kind == "max" else _ANY
    if kind in ("mul", "div", "min", "inv", "ceil", "sqrt"):
        return min(own)
    if kind in ("ge", "gt"):
        return _NOT_NEGATIVE
    if kind == "floor":
        return min(own[0], _NOT_NEGATIVE)
    if kind == "select":
        return min(own[1:])
    return _POSITIVE if kind == "exp2" else _ANY


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


class Writer:
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
            kind = VECTOR if name.endswith(f"v{LANES}f64") else "double"
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
            kind = VECTOR if vector else "double"
            if level:
                body.append(f"%at{place} = getelementptr {kind}, ptr %in{place}, i64 %i{level}")
            body.append(f"{own} = load {kind}, ptr %{'at' if level else 'in'}{place}, align 8")
            self._add(own, level, vector=vector)
        for value in tape.constants:
            self._add(float_text(scalars.rounded(value)), 0, vector=False)

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
        type_ = VECTOR if vector else "double"
        own = f"%v{place}"
        if kind in _ARITHMETIC:
            write(f"{own} = {_ARITHMETIC[kind]} {type_} {operands[0]}, {operands[1]}")
        elif kind == "inv":
            one = constant(1.0, vector=vector)
            write(f"{own} = fdiv {type_} {one}, {operands[0]}")
        elif kind in ("ge", "gt"):
            bit = f"%b{place}"
            write(f"{bit} = fcmp o{kind} {type_} {operands[0]}, {operands[1]}")
            self._brackets[place] = bit
            one, zero = (constant(value, vector=vector) for value in (1.0, 0.0))
            write(f"{own} = select {bit_type(vector)} {bit}, {type_} {one}, {type_} {zero}")
        elif kind in ("max", "min"):
            self._extremum(own, kind, operands, level, taken, vector=vector)
        elif kind == "select":
            bit, (_, one, zero) = self._bit(taken[0], operands[0], level, vector=vector), operands
            write(f"{own} = select {bit_type(vector)} {bit}, {type_} {one}, {type_} {zero}")
        elif kind in ("log2", "exp2"):
            do = Formula(write, self._name, vector=vector)
            if kind == "log2":
                log2(do, own, operands[0])
            else:
                exp2(do, own, operands[0], self._intrinsic("floor", vector=vector))
        else:
            called = self._intrinsic(kind, vector=vector)
            write(f"{own} = call {type_} @{called}({type_} {operands[0]})")

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
        type_, write, bits = VECTOR if vector else "double", self._line(level), bit_type(vector)
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
        zero = constant(0.0, vector=vector)
        type_ = VECTOR if vector else "double"
        self._line(level)(f"{bit} = fcmp une {type_} {operand}, {zero}")
        return bit

    def _operand(self, place: int, *, vector: bool) -> str:
        """Return a value as operand of a scalar or vector step."""
        if self._vector[place] or not vector:
            return self._names[place]
        if len(self._tape.inputs) <= place < self._tape.first:
            value = scalars.rounded(self._tape.constants[place - len(self._tape.inputs)])
            return constant(value, vector=True)
        if place not in self._splats:
            one, all_ = self._name(), self._name()
            write = self._line(self._level[place])
            write(f"{one} = insertelement {VECTOR} poison, double {self._names[place]}, i64 0")
            zeros = f"<{LANES} x i32> zeroinitializer"
            write(f"{all_} = shufflevector {VECTOR} {one}, {VECTOR} poison, {zeros}")
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
        yield from self._store_least() if best else self._stores()
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
            infinite, zero = constant(math.inf, vector=True), constant(0.0, vector=True)
            for name, start in (("least", infinite), ("count", zero)):
                begin = f"%{name}{level - 1}" if outside else start
                again = f"[ %{name}{level}.n, %end{level} ]"
                yield f"%{name}{level} = phi {VECTOR} [ {begin}, %{above} ], {again}"
        yield from self._bodies[level]

    def _tail(self, level: int, storing: int) -> Iterator[str]:
        depth = len(self._plan.order)
        yield f"br label %end{level}"
        yield f"end{level}:"
        if self._plan.best and level == storing:
            yield from self._block(f"%least{level + 1}.n", f"%count{level + 1}.n", f"%c{level}")
        if self._plan.best and storing < level < depth:
            for name in ("least", "count"):
                yield f"%{name}{level}.n = freeze {VECTOR} %{name}{level + 1}.n"
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
                yield f"%{name}1.x = freeze {VECTOR} %{name}1.n"

    def _stores(self) -> Iterator[str]:
        depth = len(self._plan.order)
        for number, place in enumerate(self._tape.outputs.values()):
            value = self._operand(place, vector=True)  # written before, so that it is known
            yield f"%s{number} = getelementptr {VECTOR}, ptr %out{number}, i64 %c{depth}"
            yield f"store {VECTOR} {value}, ptr %s{number}, align 8"

    def _store_least(self) -> Iterator[str]:
        """Write the least objective where the bracket is one, and how often it is."""
        depth, bit = len(self._plan.order), self._counted
        value = self._operand(self._tape.outputs[(self._plan.best or ("", ""))[0]], vector=True)
        lane = f"%i{self._plan.level(self._plan.lanes)}"
        yield f"%w.p = getelementptr {VECTOR}, ptr %weights, i64 {lane}"
        yield f"%w = load {VECTOR}, ptr %w.p, align 8"
        infinite, zero = constant(math.inf, vector=True), constant(0.0, vector=True)
        bits = bit_type(vector=True)
        yield f"%value = select {bits} {bit}, {VECTOR} {value}, {VECTOR} {infinite}"
        yield f"%lower = fcmp olt {VECTOR} %value, %least{depth}"
        yield (f"%least{depth}.n = select {bits} %lower, {VECTOR} %value, {VECTOR} %least{depth}")
        yield f"%one = select {bits} {bit}, {VECTOR} %w, {VECTOR} {zero}"
        yield f"%count{depth}.n = fadd {VECTOR} %count{depth}, %one"

    def _block(self, least: str, count: str, place: str) -> Iterator[str]:
        for number, value in enumerate((least, count)):
            yield f"%k{number} = getelementptr {VECTOR}, ptr %out{number}, i64 {place}"
            yield f"store {VECTOR} {value}, ptr %k{number}, align 8"


_ARITHMETIC = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}


def _pointer(own: str, base: str, place: int) -> list[str]:
    return [
        f"{own}.p = getelementptr ptr, ptr {base}, i64 {place}",
        f"{own} = load ptr, ptr {own}.p",
    ]
