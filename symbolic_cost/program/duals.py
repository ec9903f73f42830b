"""Derivatives by forward duals: each node beside its slope, by the rules of its kind alone.

Nothing is compared and nothing decided: the slope of a Max selects by the bracket that the numbers
will decide. Ceilings, floors and brackets are flat.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from symbolic_cost.program.exact import LN2
from symbolic_cost.program.graph import Graph, Node
from symbolic_cost.program.rounding import needed


def slopes(graph: Graph, outputs: Iterable[int], by: int) -> dict[int, int]:
    """Return the slope of every node below the outputs that depends on a symbol.

    Args:
        graph: to which the slopes are added.
        outputs: nodes.
        by: node of the symbol.
    """
    found = {by: graph.number(1)}
    bit = graph.masks[by]
    for node in needed(graph, list(outputs)):
        if node not in found and graph.masks[node] & bit:
            slope = _slope(graph, node, graph.nodes[node], found)
            if graph.value(slope) != 0:
                found[node] = slope
    return found


def _slope(graph: Graph, node: int, own: Node, found: dict[int, int]) -> int:
    kind = own[0]
    if kind == "add":
        return graph.sum((found[term], factor) for term, factor in own[2] if term in found)
    if kind == "mul":
        return _of_product(graph, node, own, found)
    if kind in ("max", "min"):
        return _of_extremum(graph, kind, own[1], found)
    zero = graph.number(0)
    if kind == "select":
        _, bracket, one, other = own
        return graph.select(bracket, found.get(one, zero), found.get(other, zero))
    inner = found.get(own[1], zero)
    if kind == "sqrt":
        return graph.product([(inner, 1), (node, -1)], Fraction(1, 2))
    if kind == "log2":
        return graph.product([(inner, 1), (own[1], -1)], 1 / LN2)
    if kind == "exp2":
        return graph.product([(inner, 1), (node, 1)], LN2)
    return zero


def _of_product(graph: Graph, node: int, own: Node, found: dict[int, int]) -> int:
    """Sum exponent * product / factor * slope of the factor."""
    terms = []
    for base, exponent in own[2]:
        if base in found:
            rest = [(one, times - (one == base)) for one, times in own[2]]
            terms.append((graph.product([*rest, (found[base], 1)], own[1] * exponent), 1))
    return graph.sum(terms)


def _of_extremum(graph: Graph, kind: str, args: tuple[int, ...], found: dict[int, int]) -> int:
    """Select the slope of the first argument that none of the later ones beats."""
    zero = graph.number(0)
    slope, best = found.get(args[0], zero), args[0]
    for other in args[1:]:
        greater, less = (best, other) if kind == "max" else (other, best)
        slope = graph.select(graph.at_least(greater, less), slope, found.get(other, zero))
        best = graph.extremum(kind, (best, other))
    return slope
