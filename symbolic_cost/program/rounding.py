"""Quotients that are rounded once, below what is rounded up, rounded down or compared.

A ceiling jumps at integers, where a product with a rounded reciprocal may lie on the wrong side:
ceil(525 * (1/75)) is 8 in floats. So its argument is brought over one denominator, and divided by
it last: numerator and denominator are whole numbers, and exact below 2**53.
"""

from __future__ import annotations

from math import lcm

from symbolic_cost.program.arithmetic import Arithmetic
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
