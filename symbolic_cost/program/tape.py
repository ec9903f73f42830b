"""The order in which a program is evaluated: steps on two values each.

Floats, arrays and native code run the same steps, so that their results agree in every bit; exact
numbers run them too. A step is left out where another does the same, a reciprocal is taken once,
and what varies least is combined first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from symbolic_cost.program import exact
from symbolic_cost.program.arithmetic import Node, needed
from symbolic_cost.program.exact import Number
from symbolic_cost.program.graph import Graph
from symbolic_cost.records import dataclass

Step: TypeAlias = tuple[str, tuple[int, ...]]
"""An operation and the registers that it takes.

Of two: add, sub, mul, div, max, min, ge, gt. Of one: inv, ceil, floor, sqrt, log2, exp2. Of three:
select.
"""


@dataclass(frozen=True, slots=True)
class Tape:
    """Steps; the register of the n-th follows those of inputs and constants.

    Args:
        inputs: names of the symbols that are needed, in the first registers.
        counts: whether each counts something.
        constants: exact numbers in the registers after them; floats round each once.
        steps: operations.
        outputs: register by name of the result.
        masks: by register, bit i for the i-th input that it depends on.
    """

    inputs: tuple[str, ...]
    counts: tuple[bool, ...]
    constants: tuple[Number, ...]
    steps: tuple[Step, ...]
    outputs: Mapping[str, int]
    masks: tuple[int, ...]

    @property
    def first(self) -> int:
        """Register of the first step."""
        return len(self.inputs) + len(self.constants)

    def only(self, names: Iterable[str]) -> Tape:
        """Return the tape of some outputs alone, with the steps that these need."""
        outputs = {name: self.outputs[name] for name in names}
        needed, first = bytearray(len(self.masks)), self.first
        for one in outputs.values():
            needed[one] = 1
        for place in range(len(self.masks) - 1, first - 1, -1):
            if needed[place]:
                for one in self.steps[place - first][1]:
                    needed[one] = 1
        used_places = [place for place, used in enumerate(needed) if used]
        places = {one: place for place, one in enumerate(used_places)}
        count = len(self.inputs)
        own = [place for place in used_places if place < count]
        moved: dict[int, int] = {}
        for mask in {self.masks[place] for place in used_places}:
            moved[mask] = sum(1 << bit for bit, place in enumerate(own) if mask >> place & 1)
        steps = [self.steps[place - first] for place in used_places if place >= first]
        return Tape(
            inputs=tuple(self.inputs[place] for place in own),
            counts=tuple(self.counts[place] for place in own),
            constants=tuple(self.constants[p - count] for p in used_places if count <= p < first),
            steps=tuple([(kind, tuple([places[one] for one in taken])) for kind, taken in steps]),
            outputs={name: places[one] for name, one in outputs.items()},
            masks=tuple([moved[self.masks[place]] for place in used_places]),
        )


def recorded(graph: Graph, outputs: Mapping[str, int]) -> Tape:
    """Return the steps of some nodes."""
    recorder = _Recorder(graph.masks)
    for node in needed(graph, outputs.values()):
        recorder.places[node] = recorder.recorded(graph.nodes[node])
    wanted = {name: recorder.places[node] for name, node in outputs.items()}
    return recorder.tape(graph.symbols, wanted)


class _Recorder:
    """Steps while they are recorded; leaves are steps without registers."""

    def __init__(self, masks: Sequence[int]) -> None:
        self._masks = masks
        self.places: dict[int, int] = {}
        self._steps: list[tuple[object, tuple[int, ...]]] = []
        self._known: dict[tuple[object, ...], int] = {}

    def recorded(self, node: Node) -> int:
        """Record a node whose arguments are recorded."""
        kind = node[0]
        if kind == "num":
            return self._constant(node[1])
        if kind == "sym":
            return self._step(("input", node[1]))
        if kind == "add":
            return self._sum(node)
        if kind == "mul":
            return self._product(node)
        if kind in ("max", "min"):
            result, *rest = (self.places[one] for one in node[1])
            for other in rest:
                result = self._step(kind, result, other)
            return result
        return self._step(kind, *(self.places[one] for one in node[1:]))

    def _sum(self, node: Node) -> int:
        """Record a sum: terms of the same symbols first, then those that have most in common."""
        parts: list[_Part] = []
        if node[1] != 0:
            parts.append((0, node[1] > 0, self._constant(abs(node[1]))))
        for term, factor in node[2]:
            place = self.places[term]
            if abs(factor) != 1:
                place = self._step("mul", place, self._constant(abs(factor)))
            part = (self._masks[term], factor > 0, place)
            if parts and parts[-1][0] == part[0]:
                part = self._joined(parts.pop(), part)
            parts.append(part)
        while len(parts) > 1:
            one, other = _nearest(parts)
            parts[one] = self._joined(parts[one], parts.pop(other))
        _, positive, result = parts[0]
        return result if positive else self._step("sub", self._constant(0), result)

    def _joined(self, one: _Part, other: _Part) -> _Part:
        """Record the sum of two parts, of which each may be taken off."""
        mask = one[0] | other[0]
        if one[1] == other[1]:
            return mask, one[1], self._step("add", one[2], other[2])
        plus, minus = (one, other) if one[1] else (other, one)
        return mask, True, self._step("sub", plus[2], minus[2])  # nothing less nothing is +0

    def _product(self, node: Node) -> int:
        _, number, factors = node
        result = -1
        for base, exponent in factors:
            one = self.places[base] if exponent > 0 else self._step("inv", self.places[base])
            powered = self._power(one, abs(exponent))
            result = powered if result < 0 else self._step("mul", result, powered)
        if abs(number) != 1:
            result = self._step("mul", result, self._constant(abs(number)))
        return result if number > 0 else self._step("sub", self._constant(0), result)

    def _power(self, base: int, exponent: int) -> int:
        if exponent == 1:
            return base
        half = self._power(base, exponent // 2)
        square = self._step("mul", half, half)
        return self._step("mul", square, base) if exponent % 2 else square

    def _constant(self, value: Number) -> int:
        return self._step(("constant", *exact.ratio(value)))

    def _step(self, kind: object, *registers: int) -> int:
        if kind in _EITHER_WAY and registers[0] > registers[1]:
            registers = registers[::-1]
        key = (kind, *registers)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = len(self._steps)
            self._steps.append((kind, registers))
        return known

    def tape(self, symbols: Mapping[str, bool], outputs: Mapping[str, int]) -> Tape:
        """Return what the outputs need, in registers without gaps."""
        leaves: dict[str, list[int]] = {"input": [], "constant": []}
        steps: list[int] = []
        for one in self._ancestors(outputs.values()):
            kind = self._steps[one][0]
            (leaves[kind[0]] if type(kind) is tuple else steps).append(one)
        order = {name: place for place, name in enumerate(symbols)}
        leaves["input"].sort(key=lambda one: order[self._leaf(one)])
        registers = (*leaves["input"], *leaves["constant"], *steps)
        places = {one: place for place, one in enumerate(registers)}
        listed, masks = [], [1 << place for place in range(len(leaves["input"]))]
        masks += [0] * len(leaves["constant"])
        for one in steps:
            kind, taken = self._steps[one]
            own = tuple([places[register] for register in taken])
            listed.append((str(kind), own))
            mask = 0
            for register in own:
                mask |= masks[register]
            masks.append(mask)
        names = tuple(self._leaf(one) for one in leaves["input"])
        return Tape(
            inputs=names,
            counts=tuple(symbols[name] for name in names),
            constants=tuple(self._leaf(one) for one in leaves["constant"]),
            steps=tuple(listed),
            outputs={name: places[one] for name, one in outputs.items()},
            masks=tuple(masks),
        )

    def _leaf(self, place: int) -> Any:  # noqa: ANN401 - a name or a number
        kind = self._steps[place][0]
        if not isinstance(kind, tuple):
            return None
        return kind[1] if kind[0] == "input" else exact.of_ratio(*kind[1:])

    def _ancestors(self, outputs: Iterable[int]) -> list[int]:
        reached, left = set(outputs), list(set(outputs))
        while left:
            for one in self._steps[left.pop()][1]:
                if one not in reached:
                    reached.add(one)
                    left.append(one)
        return sorted(reached)


_Part: TypeAlias = tuple[int, bool, int]
"""Mask of a part of a sum, whether it is added, and its register."""
_MOST_PARTS = 24
"""Parts of a sum of which the nearest two are looked for."""


def _nearest(parts: list[_Part]) -> tuple[int, int]:
    """Return the places of two parts that depend together on the fewest symbols."""
    best, pair = 1 << 30, (0, 1)
    if len(parts) > _MOST_PARTS:
        return pair
    for other in range(1, len(parts)):
        mask = parts[other][0]
        for one in range(other):
            bits = (parts[one][0] | mask).bit_count()
            if bits < best:
                best, pair = bits, (one, other)
    return pair


_EITHER_WAY = frozenset({"add", "mul", "max", "min"})
