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

from collections.abc import Callable, Mapping
from functools import cached_property

from symbolic_cost.program.arithmetic import Arithmetic, Node
from symbolic_cost.program.rounding import over_one

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
