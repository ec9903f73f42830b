"""Conditions on inputs as nodes that are zero where they are met, with the condition in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sympy import Basic, Expr

from symbolic_cost.ledger import Condition, Split
from symbolic_cost.program.graph import Graph
from symbolic_cost.records import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """A condition on the inputs."""

    name: str
    message: str


def condition_nodes(
    node: Callable[[Expr], int], graph: Graph, conditions: Iterable[Condition]
) -> Iterator[tuple[str, int]]:
    """Yield conditions in words, with a node that is zero where they are met."""
    met = set()
    for one in conditions:
        size = node(one.size)
        if isinstance(one, Split):
            degree = graph.product([(node(d), 1) for _, d in one.degrees])
            if _is_whole(graph, graph.over(size, degree)):
                continue
            whole = graph.floor(graph.over(size, degree))
            rest = graph.sum([(size, 1), (graph.product([(whole, 1), (degree, 1)]), -1)])
            by = " ".join(_size_text(d) for _, d in one.degrees)
            what = f"is a multiple of {by}" if by else "is whole"
            said = f"{_size_text(one.size)} {what} ({one.path}, axis {one.axis})"
        else:
            least = node(one.least)
            rest = graph.extremum("max", [graph.number(0), graph.sum([(least, 1), (size, -1)])])
            said = f"{one.what}: {_size_text(one.size)} is at least {one.least}"
        if graph.value(rest) is None and rest not in met:
            met.add(rest)
            yield said, rest


def _size_text(expr: Expr) -> str:
    """Return a size in words; that of a term is read from its node."""
    return str(expr) if isinstance(expr, Basic) else expr.space.short_text(expr.node)


def _is_whole(graph: Graph, node: int) -> bool:
    """Tell whether a quotient is a product of what counts, as b dp/dp is."""
    powers: dict[int, int] = {}
    left = [(node, 1)]
    while left:
        one, by = left.pop()
        own = graph.nodes[one]
        if own[0] == "mul" and isinstance(own[1], int):
            left += [(inner, by * times) for inner, times in own[2]]
        else:
            powers[one] = powers.get(one, 0) + by
    return all(by >= 0 and graph.nodes[one][0] == "sym" for one, by in powers.items() if by)
