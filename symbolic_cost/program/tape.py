"""The order in which a program is evaluated: steps on two values each.

Floats, arrays and native code run the same steps, so that their results agree in every bit; exact
numbers run them too. A step is left out where another does the same, a reciprocal is taken once,
and what varies least is combined first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from symbolic_cost.program.exact import Number
from symbolic_cost.program.graph import Graph, Node
from symbolic_cost.program.rounding import divided_once, needed

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


def recorded(graph: Graph, outputs: Mapping[str, int]) -> Tape:
    """Return the steps of some nodes."""
    results = divided_once(graph, outputs.values())
    recorder = _Recorder()
    for node in needed(graph, results):
        recorder.places[node] = recorder.recorded(graph.nodes[node])
    wanted = {name: recorder.places[node] for name, node in zip(outputs, results, strict=True)}
    return recorder.tape(graph.symbols, wanted)


class _Recorder:
    """Steps while they are recorded; leaves are steps without registers."""

    def __init__(self) -> None:
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
            found, *rest = (self.places[one] for one in node[1])
            for other in rest:
                found = self._step(kind, found, other)
            return found
        return self._step(kind, *(self.places[one] for one in node[1:]))

    def _sum(self, node: Node) -> int:
        _, constant, terms = node
        rest = list(terms)
        if constant != 0:
            found = self._constant(constant)
        else:
            first = next((item for item in rest if item[1] > 0), None)
            found = self._constant(0) if first is None else self._times(*first)
            if first is not None:
                rest.remove(first)
        for term, factor in rest:
            kind = "add" if factor > 0 else "sub"  # so that nothing less nothing is +0
            found = self._step(kind, found, self._times(term, abs(factor)))
        return found

    def _times(self, term: int, factor: Number) -> int:
        place = self.places[term]
        return place if factor == 1 else self._step("mul", place, self._constant(factor))

    def _product(self, node: Node) -> int:
        _, number, factors = node
        found = -1
        for base, exponent in factors:
            one = self.places[base] if exponent > 0 else self._step("inv", self.places[base])
            powered = self._power(one, abs(exponent))
            found = powered if found < 0 else self._step("mul", found, powered)
        if abs(number) != 1:
            found = self._step("mul", found, self._constant(abs(number)))
        return found if number > 0 else self._step("sub", self._constant(0), found)

    def _power(self, base: int, exponent: int) -> int:
        if exponent == 1:
            return base
        half = self._power(base, exponent // 2)
        square = self._step("mul", half, half)
        return self._step("mul", square, base) if exponent % 2 else square

    def _constant(self, value: Number) -> int:
        return self._step(("constant", value))

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
        kept = self._needed(outputs.values())
        leaves = [one for one in kept if isinstance(self._steps[one][0], tuple)]
        order = list(symbols)
        inputs = sorted(
            (one for one in leaves if self._leaf(one)[0] == "input"),
            key=lambda one: order.index(self._leaf(one)[1]),
        )
        constants = [one for one in leaves if self._leaf(one)[0] == "constant"]
        steps = [one for one in kept if not isinstance(self._steps[one][0], tuple)]
        places = {one: place for place, one in enumerate((*inputs, *constants, *steps))}
        masks = [1 << place for place in range(len(inputs))] + [0] * len(constants)
        listed: list[Step] = []
        for one in steps:
            kind, registers = self._steps[one]
            moved = tuple(places[register] for register in registers)
            listed.append((str(kind), moved))
            mask = 0
            for register in moved:
                mask |= masks[register]
            masks.append(mask)
        names = tuple(self._leaf(one)[1] for one in inputs)
        return Tape(
            inputs=names,
            counts=tuple(symbols[name] for name in names),
            constants=tuple(self._leaf(one)[1] for one in constants),
            steps=tuple(listed),
            outputs={name: places[one] for name, one in outputs.items()},
            masks=tuple(masks),
        )

    def _leaf(self, place: int) -> tuple[str, Any]:
        kind = self._steps[place][0]
        return kind if isinstance(kind, tuple) else ("", None)

    def _needed(self, outputs: Iterable[int]) -> list[int]:
        kept, left = set(outputs), list(set(outputs))
        while left:
            for one in self._steps[left.pop()][1]:
                if one not in kept:
                    kept.add(one)
                    left.append(one)
        return sorted(kept)


_EITHER_WAY = frozenset({"add", "mul", "max", "min"})
