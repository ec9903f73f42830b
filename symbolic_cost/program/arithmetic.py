"""Nodes of a graph of operations: equal nodes are one node, and numbers are folded, exactly."""

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


_KEY_BITS = 64
_KEYS, _HALF = (1 << _KEY_BITS) - 1, 1 << _KEY_BITS - 1


class Arithmetic:
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
        self._masks: dict[int, int] = {}
        self._places: list[int] = []
        """What orders nodes: how many symbols they depend on, which, and a key, in one number."""
        self._numbers: dict[Node, int] = {}
        self._ratios: dict[tuple[int, int], Ratio] = {}
        self._items: dict[tuple[int, Number], tuple[int, Number]] = {}
        """Terms and factors, one object where equal: of 40,000 a search has 12,000 that differ."""
        self._bases: dict[int, int] = {}
        self.quotients: dict[int, tuple[int, tuple[int, tuple[tuple[int, int], ...]]]] = {}
        """Numerator and denominator by node, as `rounding` finds them."""
        self._bits = {name: 1 << place for place, name in enumerate(self.symbols)}

    # ------------------------------------------------------------------ leaves

    def number(self, value: Number) -> int:
        """Return the node of an exact number."""
        return self.node(("num", UNDEFINED if undefined(value) else self._interned(value)))

    def symbol(self, name: str) -> int:
        """Return the node of a symbol."""
        return self.node(("sym", name, self.symbols[name]))

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
                factor, term = factor * own[1], self._base(term)  # noqa: PLW2901 - a like term
            factors[term] = factors.get(term, 0) + factor
        if undefined(constant):
            return self.number(constant)
        one = self._items.setdefault
        items = [(term, self._interned(factor)) for term, factor in factors.items() if factor]
        open_ = [one(item, item) for item in items]
        if not open_:
            return self.number(constant)
        if len(open_) == 1 and constant == 0:
            return self.product([(open_[0][0], 1)], open_[0][1])
        places = self._places
        open_.sort(key=lambda item: places[item[0]])
        return self.node(("add", self._interned(constant), tuple(open_)))

    def product(self, factors: Iterable[tuple[int, int]], number: Number = 1) -> int:
        """Return the product of nodes, each to an integer power, and of a number."""
        exponents: dict[int, int] = {}
        for factor, exponent in factors:
            own = self.nodes[factor]
            if own[0] == "num":
                number = number * power(own[1], exponent)
                continue
            if own[0] == "mul" and (own[1] != 1 or len(own[2]) == 1):
                if own[1] != 1:
                    number = number * power(own[1], exponent)
                if len(own[2]) == 1:
                    factor, exponent = own[2][0][0], own[2][0][1] * exponent  # noqa: PLW2901
                else:
                    factor = self._base(factor)  # noqa: PLW2901 - the number is taken out
            exponents[factor] = exponents.get(factor, 0) + exponent
        if number == 0 or undefined(number):
            return self.number(number)
        one = self._items.setdefault
        open_ = [one(item, item) for item in exponents.items() if item[1]]
        if not open_:
            return self.number(number)
        if number == 1 and len(open_) == 1 and open_[0][1] == 1:
            return open_[0][0]
        if len(open_) > 1:
            places = self._places
            open_.sort(key=lambda item: places[item[0]])
        return self.node(("mul", self._interned(number), tuple(open_)))

    def over(self, above: int, below: int) -> int:
        """Return a quotient."""
        return self.product([(above, 1), (below, -1)])

    def divided(self, above: int, below: int) -> int:
        """Return a quotient that is rounded once; for what is rounded up or compared."""
        return self.of_two("div", above, below)

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
        ordered = tuple(sorted(open_, key=self._places.__getitem__))
        return ordered[0] if len(ordered) == 1 else self.node((kind, ordered))

    def select(self, bracket: int, one: int, other: int) -> int:
        """Return one node where a bracket is not zero, else the other; that may be undefined."""
        decided = self.value(bracket)
        if decided is not None:
            return one if decided else other
        if one == other:
            return one
        return self.node(("select", bracket, one, other))

    # ------------------------------------------------------------------ powers and logarithms

    def square_root(self, argument: int) -> int:
        """Return a square root."""
        return self.of_one("sqrt", argument)

    def log2(self, argument: int) -> int:
        """Return a logarithm to base 2."""
        return self.of_one("log2", argument)

    def exp2(self, argument: int) -> int:
        """Return a power of 2."""
        return self.of_one("exp2", argument)

    def counts(self, node: int) -> bool:
        """Tell whether a node is made of symbols that count, so of whole numbers."""
        mask = self.masks[node]
        return not any(bit & mask for name, bit in self._bits.items() if not self.symbols[name])

    def of_one(self, kind: str, argument: int) -> int:
        """Return a node of a kind with one argument."""
        value = self.value(argument)
        if value is not None:
            return self.number(value if undefined(value) else FOLDED_ONE[kind](value))
        return self.node((kind, argument))

    def of_two(self, kind: str, one: int, two: int) -> int:
        """Return a node of a kind with two arguments."""
        first, second = self.value(one), self.value(two)
        if first is not None and second is not None:
            if undefined(first) or undefined(second):
                return self.number(UNDEFINED)
            return self.number(FOLDED_TWO[kind](first, second))
        if one == two and kind != "div":
            return self.number(1 if kind == "ge" else 0)
        return self.node((kind, one, two))

    def _base(self, product: int) -> int:
        """Return a product without its number."""
        base = self._bases.get(product)
        if base is None:
            base = self._bases[product] = self.product(self.nodes[product][2])
        return base

    def _interned(self, value: Number) -> Number:
        """Return an integer for a fraction that is one, and one object for equal fractions."""
        if type(value) is int:
            return value
        above, below = value.as_integer_ratio()
        if below == 1:
            return above
        ratio = self._ratios.get((above, below))
        if ratio is None:
            ratio = self._ratios[above, below] = Ratio(above, below)
            ratio._hash = hash((above, below))  # noqa: SLF001 - made nowhere else
        return ratio

    def node(self, node: Node) -> int:
        """Return the number of a node that cannot be folded."""
        known = self._numbers.get(node)
        if known is None:
            known = self._numbers[node] = len(self.nodes)
            mask = self._bits[node[1]] if node[0] == "sym" else 0
            keys = []
            for argument in arguments(node):
                mask |= self.masks[argument]
                keys.append((self._places[argument] & _KEYS) - _HALF)
            mask = self._masks.setdefault(mask, mask)  # of thousands of nodes a few hundred differ
            self.nodes.append(node)
            self.masks.append(mask)
            # What varies least stands first in sums and products.
            varies = mask.bit_count() << len(self.symbols) | mask
            self._places.append(varies << _KEY_BITS | _key(node, keys) + _HALF)
        return known


class Ratio(Fraction):
    """A fraction whose hash is computed once: Fraction's own takes longer than a sum.

    It differs from Fraction's, so that no Ratio leaves the graph's nodes for a caller.
    """

    __slots__ = ("_hash",)
    _hash: int
    __eq__ = Fraction.__eq__

    def __hash__(self) -> int:  # type: ignore[override]
        """Return what `_interned` computed."""
        return self._hash


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


def needed(graph: Arithmetic, outputs: Iterable[int]) -> list[int]:
    """Return the nodes that some nodes rest on, arguments first."""
    reached, left = set(outputs), sorted(set(outputs))
    while left:
        for one in arguments(graph.nodes[left.pop()]):
            if one not in reached:
                reached.add(one)
                left.append(one)
    return sorted(reached)


def _key(node: Node, keys: list[int]) -> int:
    """Return a number that depends on what a node says alone, the same in every process."""
    kind = node[0]
    if kind == "sym":
        return crc32(node[1].encode())
    if kind == "num":
        return 0 if undefined(node[1]) else hash(node[1].as_integer_ratio())
    if kind == "add":
        keys += [part for _, by in node[2] for part in by.as_integer_ratio()]
    if kind == "mul":
        keys += [by for _, by in node[2]]
    number = node[1].as_integer_ratio() if kind in ("add", "mul") else ()
    return hash((KINDS.index(kind), number, tuple(keys)))


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
