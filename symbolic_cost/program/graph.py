"""The graph of operations that a program is made in: equal nodes are one node.

Numbers are folded against numbers, exactly; nothing else is ever compared, so that no bound value
comes too late. Neither SymPy nor NumPy is needed.

>>> graph = Graph({"V": True, "m1": True})
>>> V, m1 = graph.symbol("V"), graph.symbol("m1")
>>> graph.ceiling(graph.product([(V, 1), (m1, -1)])) == graph.ceiling(graph.over(V, m1))
True
>>> graph.nodes[graph.ceiling(graph.over(graph.number(525), graph.number(75)))]
('num', 7)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias
from zlib import crc32

from symbolic_cost.program.exact import UNDEFINED, Number, exp2, log2, root, undefined

Node: TypeAlias = tuple[Any, ...]
"""Kind and arguments: numbers of earlier nodes, and exact numbers.

    ("num", value)                        ("sym", name, counts)
    ("add", value, ((node, factor), ...)) ("mul", factor, ((node, integer exponent), ...))
    ("max", (node, ...))                  ("min", (node, ...))
    ("ceil", x) ("floor", x)              ("ge", x, y) ("gt", x, y): one or zero
    ("select", bracket, x, y)             ("sqrt", x) ("log2", x) ("exp2", x)
    ("div", x, y): rounded once, for what is rounded up or compared
"""

KINDS = (
    *("num", "sym", "add", "mul", "max", "min", "ceil", "floor", "ge", "gt", "select"),
    *("sqrt", "log2", "exp2", "div"),
)
JUMPS = frozenset({"ceil", "floor", "ge", "gt"})
"""What is flat but for its jumps."""


class Graph:
    """Nodes by number; a node's arguments have smaller numbers.

    Args:
        symbols: whether it counts something (a positive integer; else a positive number), by
            name. Their order is that of evaluation: what depends on the first is combined first.
    """

    def __init__(self, symbols: Mapping[str, bool]) -> None:
        self.symbols = dict(symbols)
        self.nodes: list[Node] = []
        self.masks: list[int] = []
        """Bit i is set where a node depends on the i-th symbol."""
        self._keys: list[int] = []
        self._numbers: dict[Node, int] = {}
        self._bits = {name: 1 << place for place, name in enumerate(self.symbols)}

    # ------------------------------------------------------------------ leaves

    def number(self, value: Number) -> int:
        """Return the node of an exact number."""
        if undefined(value):
            return self._node(("num", UNDEFINED), 0, ())
        if isinstance(value, Fraction) and value.denominator == 1:
            value = value.numerator
        return self._node(("num", value), 0, ())

    def symbol(self, name: str) -> int:
        """Return the node of a symbol."""
        return self._node(("sym", name, self.symbols[name]), self._bits[name], ())

    def value(self, node: int) -> Number | None:
        """Return the number that a node is, if it is one."""
        own = self.nodes[node]
        return own[1] if own[0] == "num" else None

    # ------------------------------------------------------------------ arithmetic

    def sum(self, terms: Iterable[tuple[int, Number]], constant: Number = 0) -> int:
        """Return the sum of nodes, each times a number, and of a number."""
        factors: dict[int, Number] = {}
        for term, factor in terms:
            own = self.nodes[term]
            if own[0] == "num":
                constant = constant + factor * own[1]
                continue
            if own[0] == "mul" and own[1] != 1:
                factor, term = factor * own[1], self.product(own[2])  # noqa: PLW2901 - a like term
            factors[term] = factors.get(term, 0) + factor
        if undefined(constant):
            return self.number(constant)
        kept = [(term, whole(factor)) for term, factor in factors.items() if factor != 0]
        if not kept:
            return self.number(constant)
        if len(kept) == 1 and constant == 0:
            return self.product([(kept[0][0], 1)], kept[0][1])
        kept.sort(key=lambda item: self._place(item[0]))
        return self._node(("add", whole(constant), tuple(kept)), *self._of(t for t, _ in kept))

    def product(self, factors: Iterable[tuple[int, int]], number: Number = 1) -> int:
        """Return the product of nodes, each to an integer power, and of a number."""
        exponents: dict[int, int] = {}
        for factor, exponent in factors:
            own = self.nodes[factor]
            if own[0] == "num":
                number = number * power(own[1], exponent)
                continue
            if own[0] == "mul" and (own[1] != 1 or len(own[2]) == 1):
                number = number * power(own[1], exponent)
                inner = own[2] if len(own[2]) == 1 else ((self.product(own[2]), 1),)
            else:
                inner = ((factor, 1),)
            for base, times in inner:
                exponents[base] = exponents.get(base, 0) + times * exponent
        if number == 0 or undefined(number):
            return self.number(number)
        kept = [item for item in exponents.items() if item[1]]
        if not kept:
            return self.number(number)
        if number == 1 and len(kept) == 1 and kept[0][1] == 1:
            return kept[0][0]
        kept.sort(key=lambda item: self._place(item[0]))
        return self._node(("mul", whole(number), tuple(kept)), *self._of(f for f, _ in kept))

    def over(self, above: int, below: int) -> int:
        """Return a quotient."""
        return self.product([(above, 1), (below, -1)])

    def divided(self, above: int, below: int) -> int:
        """Return a quotient that is rounded once; for what is rounded up or compared."""
        return self._of_two("div", above, below)

    # ------------------------------------------------------------------ kinks and jumps

    def extremum(self, kind: str, arguments: Iterable[int]) -> int:
        """Return the "max" or "min" of nodes."""
        open_: dict[int, None] = {}
        numbers: list[Number] = []
        for argument in arguments:
            own = self.nodes[argument]
            inner = own[1] if own[0] == kind else (argument,)
            for one in inner:
                value = self.value(one)
                if value is None:
                    open_[one] = None
                else:
                    numbers.append(value)
        if any(map(undefined, numbers)):
            return self.number(UNDEFINED)
        if numbers:
            open_[self.number(max(numbers) if kind == "max" else min(numbers))] = None
        kept = tuple(sorted(open_, key=self._place))
        return kept[0] if len(kept) == 1 else self._node((kind, kept), *self._of(kept))

    def ceiling(self, argument: int) -> int:
        """Return the least integer that is not below a node."""
        return self._of_one("ceil", argument)

    def floor(self, argument: int) -> int:
        """Return the greatest integer that is not above a node."""
        return self._of_one("floor", argument)

    def at_least(self, greater: int, less: int) -> int:
        """Return one where a node is at least another, else zero."""
        return self._of_two("ge", greater, less)

    def more(self, greater: int, less: int) -> int:
        """Return one where a node is more than another, else zero."""
        return self._of_two("gt", greater, less)

    def active(self, ranks: int) -> int:
        """Return one where a collective has more than one rank, else zero."""
        return self.more(ranks, self.number(1))

    def select(self, bracket: int, one: int, other: int) -> int:
        """Return one node where a bracket is not zero, else the other; that may be undefined."""
        decided = self.value(bracket)
        if decided is not None:
            return one if decided else other
        if one == other:
            return one
        return self._node(("select", bracket, one, other), *self._of((bracket, one, other)))

    # ------------------------------------------------------------------ powers and logarithms

    def square_root(self, argument: int) -> int:
        """Return a square root."""
        return self._of_one("sqrt", argument)

    def log2(self, argument: int) -> int:
        """Return a logarithm to base 2."""
        return self._of_one("log2", argument)

    def exp2(self, argument: int) -> int:
        """Return a power of 2."""
        return self._of_one("exp2", argument)

    # ------------------------------------------------------------------ any node

    def make(self, node: Node) -> int:
        """Return a node of any kind, its arguments numbers of this graph's nodes; folded."""
        kind = node[0]
        if kind in ("add", "mul"):
            return (self.sum if kind == "add" else self.product)(node[2], node[1])
        if kind in ("max", "min"):
            return self.extremum(kind, node[1])
        if kind in ("num", "sym"):
            return self.number(node[1]) if kind == "num" else self.symbol(node[1])
        if kind == "select":
            return self.select(*node[1:])
        return (self._of_one if len(node) == 2 else self._of_two)(*node)  # noqa: PLR2004 - kind, x

    def counts(self, node: int) -> bool:
        """Tell whether a node is made of symbols that count, so of whole numbers."""
        mask = self.masks[node]
        return not any(bit & mask for name, bit in self._bits.items() if not self.symbols[name])

    def _of_one(self, kind: str, argument: int) -> int:
        value = self.value(argument)
        if value is not None:
            return self.number(value if undefined(value) else FOLDED_ONE[kind](value))
        return self._node((kind, argument), *self._of((argument,)))

    def _of_two(self, kind: str, one: int, two: int) -> int:
        first, second = self.value(one), self.value(two)
        if first is not None and second is not None:
            if undefined(first) or undefined(second):
                return self.number(UNDEFINED)
            return self.number(FOLDED_TWO[kind](first, second))
        if one == two and kind != "div":
            return self.number(1 if kind == "ge" else 0)
        return self._node((kind, one, two), *self._of((one, two)))

    def _node(self, node: Node, mask: int, keys: tuple[int, ...]) -> int:
        known = self._numbers.get(node)
        if known is None:
            known = self._numbers[node] = len(self.nodes)
            self.nodes.append(node)
            self.masks.append(mask)
            self._keys.append(_key(node, keys))
        return known

    def _of(self, arguments: Iterable[int]) -> tuple[int, tuple[int, ...]]:
        """Return what nodes depend on, and their keys."""
        mask, keys = 0, []
        for argument in arguments:
            mask |= self.masks[argument]
            keys.append(self._keys[argument])
        return mask, tuple(keys)

    def _place(self, node: int) -> tuple[int, int, int]:
        """Say where a node stands in sums and products: what varies least comes first."""
        mask = self.masks[node]
        return mask.bit_count(), mask, self._keys[node]


def whole(value: Number) -> Number:
    """Return an integer for a fraction that is one."""
    if isinstance(value, Fraction) and value.denominator == 1:
        return value.numerator
    return value


def power(base: Number, exponent: int) -> Number:
    """Return an integer power; a division by zero is undefined."""
    if exponent >= 0:
        return base**exponent
    return UNDEFINED if base == 0 else Fraction(base) ** exponent


def arguments(node: Node) -> tuple[int, ...]:
    """Return the nodes that a node is made of."""
    kind = node[0]
    if kind in ("num", "sym"):
        return ()
    if kind in ("add", "mul"):
        return tuple(item[0] for item in node[2])
    return node[1] if kind in ("max", "min") else node[1:]


def moved(node: Node, places: Mapping[int, int] | list[int]) -> Node:
    """Return a node with other numbers for its arguments."""
    kind = node[0]
    if kind in ("num", "sym"):
        return node
    if kind in ("add", "mul"):
        return (kind, node[1], tuple((places[one], factor) for one, factor in node[2]))
    if kind in ("max", "min"):
        return (kind, tuple(places[one] for one in node[1]))
    return (kind, *(places[one] for one in node[1:]))


def _key(node: Node, keys: tuple[int, ...]) -> int:
    """Return a number that depends on what a node says alone, the same in every process."""
    kind = node[0]
    if kind == "sym":
        return crc32(node[1].encode())
    if kind == "num":
        return 0 if undefined(node[1]) else hash(node[1])
    own = (node[1], *(item[1] for item in node[2])) if kind in ("add", "mul") else ()
    return hash((KINDS.index(kind), own, keys))


FOLDED_ONE: dict[str, Callable[[Any], Number]] = {
    "ceil": math.ceil,
    "floor": math.floor,
    "sqrt": root,
    "log2": log2,
    "exp2": exp2,
}
FOLDED_TWO: dict[str, Callable[[Any, Any], Number]] = {
    "ge": lambda one, two: int(one >= two),
    "gt": lambda one, two: int(one > two),
    "div": lambda one, two: UNDEFINED if two == 0 else Fraction(one) / two,
}
