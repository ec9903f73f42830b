"""Which values of a graph share memory, so that what is written into one is in the others."""

from collections.abc import Mapping
from functools import cached_property

from symbolic_cost.models.traced.acts import names_in
from symbolic_cost.models.traced.graph import Graph, Name, Node

_NAMES = (
    "slice narrow select chunk split split_with_sizes tensor_split unbind view reshape "
    "_unsafe_view flatten unflatten view_as reshape_as transpose swapaxes swapdims t numpy_T "
    "mT permute movedim squeeze unsqueeze expand expand_as diagonal alias"
)
_VIEWS = frozenset(f"aten.{name}" for name in _NAMES.split())
"""Operators whose results are memory of what they take first."""

Step = tuple[int, int]
"""A node, and which of its results."""


class Aliases:
    """The values of a graph by the memory that they are in.

    Args:
        graph: whose values they are.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.makers: dict[str, Node] = {}
        self._places: dict[str, int] = {}
        for node in graph.nodes:
            for place, name in enumerate(node.outputs):
                self.makers[name], self._places[name] = node, place

    @cached_property
    def _reads(self) -> Mapping[str, int]:
        """The last node that takes a value; one behind all nodes for results of the graph."""
        last = {
            name.text: node.index
            for node in self._graph.nodes
            for arg in node.args.values()
            for name in names_in(arg)
        }
        return last | dict.fromkeys(self._graph.outputs, len(self._graph.nodes))

    def source(self, name: str) -> str:
        """Return what a value is a view of, or what was changed in place to it; "" if neither."""
        node = self.makers.get(name)
        if node is None:
            return ""
        return node.changes or (_first(node) if node.target in _VIEWS else "")

    def _steps(self, name: str) -> tuple[str, tuple[Step, ...]]:
        """Return the value whose memory a value is in, and the views between, outermost first."""
        steps: list[Step] = []
        source = self.source(name)
        while source:
            if not self.makers[name].changes:
                steps.append((self.makers[name].index, self._places[name]))
            name, source = source, self.source(source)
        return name, tuple(reversed(steps))

    def written(self, name: str, at: Node) -> tuple[str, list[str]]:
        """Return whose memory a node writes into, and other values there that are read after it.

        Parts that one node makes side by side do not overlap.
        """
        root, steps = self._steps(name)
        others: list[str] = []
        for other, last in self._reads.items():
            if last <= at.index or other == name or other in at.outputs:
                continue
            made = self.makers.get(other)
            if other != root and (made is None or made.index > at.index):
                continue
            whose, own = self._steps(other)
            if whose == root and not _apart(steps, own):
                others.append(other)
        return root, others

    def same(self, one: str, other: str) -> bool:
        """Tell whether two values are the same part of the same memory."""
        return self._steps(one) == self._steps(other)


def _first(node: Node) -> str:
    own = node.args.get("self") or node.args.get("0")
    return own.text if isinstance(own, Name) else ""


def _apart(one: tuple[Step, ...], other: tuple[Step, ...]) -> bool:
    """Tell whether two values are side by side: different results of one node."""
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            return mine[0] == theirs[0]
    return False
