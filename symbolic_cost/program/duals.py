"""Derivatives by forward duals: each node beside its slope, by the rules of its kind alone.

Nothing is compared and nothing decided: the slope of a Max selects by the bracket that the numbers
will decide. Ceilings, floors and brackets are flat.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from symbolic_cost.program.arithmetic import Node, needed
from symbolic_cost.program.exact import LN2
from symbolic_cost.program.graph import Graph


def slopes(
    graph: Graph, outputs: Iterable[int], by: int, *, smooth: frozenset[str] = frozenset()
) -> dict[int, int]:
    """Return the slope of every node below the outputs that depends on a symbol.

    Args:
        graph: to which the slopes are added.
        outputs: nodes.
        by: node of the symbol.
        smooth: kinds of what rounds that have the slope of what they round; the others are flat.
    """
    slope_of = {by: graph.number(1)}
    bit = graph.masks[by]
    for node in needed(graph, list(outputs)):
        if node not in slope_of and graph.masks[node] & bit:
            own = graph.nodes[node]
            rounds = own[0] in smooth
            slope = slope_of.get(own[1]) if rounds else _slope(graph, node, own, slope_of)
            if slope is None:
                continue
            if graph.value(slope) != 0:
                slope_of[node] = slope
    return slope_of


def _slope(graph: Graph, node: int, own: Node, slope_of: dict[int, int]) -> int:
    kind, zero = own[0], graph.number(0)
    if kind in _RULES:
        return _RULES[kind](graph, own, slope_of)
    if kind not in _FACTORS:
        return zero
    power, number = _FACTORS[kind]
    factor = (node, power) if kind != "log2" else (own[1], power)
    return graph.product([(slope_of.get(own[1], zero), 1), factor], number)


_FACTORS = {"sqrt": (-1, Fraction(1, 2)), "log2": (-1, 1 / LN2), "exp2": (1, LN2)}
"""Power of the result, and number, that the slope of the argument is multiplied by.

Of a logarithm it is the power of the argument.
"""


def _of_sum(graph: Graph, own: Node, slope_of: dict[int, int]) -> int:
    return graph.sum((slope_of[term], factor) for term, factor in own[2] if term in slope_of)


def _of_choice(graph: Graph, own: Node, slope_of: dict[int, int]) -> int:
    zero = graph.number(0)
    return graph.select(own[1], slope_of.get(own[2], zero), slope_of.get(own[3], zero))


def _of_product(graph: Graph, own: Node, slope_of: dict[int, int]) -> int:
    """Sum exponent * product / factor * slope of the factor."""
    terms = []
    for base, exponent in own[2]:
        if base in slope_of:
            rest = [(one, times - (one == base)) for one, times in own[2]]
            terms.append((graph.product([*rest, (slope_of[base], 1)], own[1] * exponent), 1))
    return graph.sum(terms)


def _of_quotient(graph: Graph, own: Node, slope_of: dict[int, int]) -> int:
    """Return (slope of x - x/y slope of y)/y of x/y, which stands in what rounds or compares."""
    _, above, below = own
    terms = []
    if above in slope_of:
        terms.append((graph.product([(slope_of[above], 1), (below, -1)]), 1))
    if below in slope_of:
        terms.append((graph.product([(above, 1), (below, -2), (slope_of[below], 1)]), -1))
    return graph.sum(terms)


def _of_extremum(graph: Graph, own: Node, slope_of: dict[int, int]) -> int:
    """Select the slope of the first argument that none of the later ones beats."""
    (kind, args), zero = own, graph.number(0)
    slope, best = slope_of.get(args[0], zero), args[0]
    for other in args[1:]:
        greater, less = (best, other) if kind == "max" else (other, best)
        slope = graph.select(graph.at_least(greater, less), slope, slope_of.get(other, zero))
        best = graph.extremum(kind, (best, other))
    return slope


_RULES = {
    "add": _of_sum,
    "div": _of_quotient,
    "mul": _of_product,
    "max": _of_extremum,
    "min": _of_extremum,
    "select": _of_choice,
}
