"""The graph of operations that a program is made in: equal nodes are one node.

Numbers are folded against numbers, exactly; nothing else is ever compared, so that no bound value
comes too late. Neither SymPy nor NumPy is needed.

A ceiling jumps at integers, where a product with a rounded reciprocal may lie on the wrong side:
ceil(525 * (1/75)) is 8 in floats. So what is rounded up, rounded down or compared is brought over
one denominator, and divided by it last: both are whole numbers, and exact below 2**53.

>>> graph = Graph({"V": True, "m1": True})
>>> V, m1 = graph.symbol("V"), graph.symbol("m1")
>>> graph.ceiling(graph.product([(V, 1), (m1, -1)])) == graph.ceiling(graph.over(V, m1))
True
>>> graph.nodes[graph.ceiling(graph.over(graph.number(525), graph.number(75)))]
('num', 7)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from math import lcm

from symbolic_cost.program.arithmetic import Arithmetic, Node
from symbolic_cost.program.exact import Number, undefined

_MOST_TERMS = 12
"""Terms of a sum with rates that are brought over one denominator; counts always are."""

Below = tuple[int, tuple[tuple[int, int], ...]]
"""A denominator: a whole number and a product of powers of nodes."""


def over_one(graph: Arithmetic, node: int) -> int:
    """Return a node as one quotient, if it is one."""
    above, (number, powers) = _quotient(graph, node)
    if number == 1 and not powers:
        return above
    return graph.divided(above, graph.product(powers, number))


def _quotient(graph: Arithmetic, node: int) -> tuple[int, Below]:
    """Return a numerator and a denominator of a node."""
    known = graph.quotients.get(node)
    if known is None:
        known = graph.quotients[node] = _split(graph, node)
    return known


def _split(graph: Arithmetic, node: int) -> tuple[int, Below]:
    own = graph.nodes[node]
    if own[0] == "num" and not undefined(own[1]):
        above, below = own[1].as_integer_ratio()
        return graph.number(above), (below, ())
    if own[0] == "mul":
        return _of_product(graph, own[1], own[2])
    if own[0] == "div":
        return _of_product(graph, 1, ((own[1], 1), (own[2], -1)))
    if own[0] == "add" and (graph.counts(node) or len(own[2]) <= _MOST_TERMS):
        return _of_sum(graph, own[1], own[2])
    return node, (1, ())


def _of_product(
    graph: Arithmetic, factor: Number, factors: tuple[tuple[int, int], ...]
) -> tuple[int, Below]:
    above: list[tuple[int, int]] = []
    below: list[tuple[int, int]] = []
    number, divisor = factor.as_integer_ratio()
    for base, exponent in factors:
        numerator, (bottom, powers) = _quotient(graph, base)
        (above if exponent > 0 else below).append((numerator, abs(exponent)))
        other = below if exponent > 0 else above
        other += [(one, times * abs(exponent)) for one, times in powers]
        other.append((graph.number(bottom), abs(exponent)))
    bottom_node = graph.nodes[graph.product(below, divisor)]
    if bottom_node[0] == "num":
        return graph.product(above, number), (bottom_node[1], ())
    if bottom_node[0] == "mul":
        return graph.product(above, number), (bottom_node[1], bottom_node[2])
    return graph.product(above, number), (1, ((graph.product(below, divisor), 1),))


def _of_sum(
    graph: Arithmetic, constant: Number, terms: tuple[tuple[int, Number], ...]
) -> tuple[int, Below]:
    parts = [_quotient(graph, graph.product([(term, 1)], factor)) for term, factor in terms]
    parts.append(_quotient(graph, graph.number(constant)))
    common: dict[int, int] = {}
    for _, (_, powers) in parts:
        for base, times in powers:
            common[base] = max(common.get(base, 0), times)
    number = lcm(*(bottom for _, (bottom, _) in parts))
    raised = []
    for above, (bottom, powers) in parts:
        own = dict(powers)
        missing = [(base, times - own.get(base, 0)) for base, times in common.items()]
        raised.append((graph.product([(above, 1), *missing], number // bottom), 1))
    return graph.sum(raised), (number, tuple(common.items()))


JUMPS = frozenset({"ceil", "floor", "ge", "gt"})
"""What is flat but for its jumps."""


class Graph(Arithmetic):
    """Nodes by number; a node's arguments have smaller numbers.

    Args:
        symbols: whether it counts something (a positive integer; else a positive number), by
            name. Their order is that of evaluation: what depends on the first is combined first.
    """

    def ceiling(self, argument: int) -> int:
        """Return the least integer that is not below a node."""
        return self.of_one("ceil", over_one(self, argument))

    def floor(self, argument: int) -> int:
        """Return the greatest integer that is not above a node."""
        return self.of_one("floor", over_one(self, argument))

    def at_least(self, greater: int, less: int) -> int:
        """Return one where a node is at least another, else zero."""
        return self._compared("ge", greater, less)

    def more(self, greater: int, less: int) -> int:
        """Return one where a node is more than another, else zero."""
        return self._compared("gt", greater, less)

    def active(self, ranks: int) -> int:
        """Return one where a collective has more than one rank, else zero."""
        return self.more(ranks, self.number(1))

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
        jump = self._jumps.get(kind)
        if jump:
            return jump(*node[1:])
        return (self.of_one if len(node) == 2 else self.of_two)(*node)  # noqa: PLR2004 - kind, x

    @cached_property
    def _jumps(self) -> Mapping[str, Callable[..., int]]:
        return {"ceil": self.ceiling, "floor": self.floor, "ge": self.at_least, "gt": self.more}

    def _compared(self, kind: str, one: int, other: int) -> int:
        return self.of_two(kind, over_one(self, one), over_one(self, other))
