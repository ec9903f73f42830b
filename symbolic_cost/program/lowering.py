"""Programs of SymPy's expressions: what SymPy wrote, and nothing that it decided.

>>> from symbolic_cost.symbols import V, m1
>>> program = lowered({"rows": ceiling(V / m1)})
>>> program.inputs, program.exact({"V": 525, "m1": 75})
(('V', 'm1'), {'rows': 7})
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

import sympy
from sympy import Basic, Expr, ceiling

from symbolic_cost import extrema
from symbolic_cost.errors import refuse
from symbolic_cost.program.exact import LN2, UNDEFINED, Number
from symbolic_cost.program.graph import Graph
from symbolic_cost.program.program import Program, of_graph
from symbolic_cost.symbols import GLOSSARY, Active, named

COMPILED = (
    "symbols of the glossary, arithmetic, powers, log, Max, Min, ceiling and Piecewise are compiled"
)


def lowered(
    definitions: Mapping[str, Expr],
    outputs: Iterable[str] | None = None,
    values: Mapping[str, Number] | None = None,
    free: Iterable[str] = (),
) -> Program:
    """Return the program of expressions, each in symbols and in `named` earlier ones.

    Args:
        definitions: expression by name.
        outputs: names of those that are results; all unless given.
        values: exact numbers of some symbols, put in at once; cheaper than binding later.
        free: `named` symbols that are none of the definitions, and inputs like those of the
            glossary.

    Raises:
        InputError: everything that an expression holds and a program cannot.
    """
    order = {name: entry.integer for name, entry in GLOSSARY.items()}
    order |= dict.fromkeys(free, False)
    lowering = Lowering(Graph(order), values or {})
    nodes: dict[str, int] = {}
    problems: list[str] = []
    for name, expr in definitions.items():
        nodes[name] = lowering.node(expr)
        lowering.known[named(name)] = nodes[name]
        problems += [f"{name!r} holds {text}: {COMPILED}" for text in lowering.refused]
        lowering.refused.clear()
    refuse(problems)
    wanted = definitions if outputs is None else outputs
    return of_graph(lowering.graph, {name: nodes[name] for name in wanted})


class Lowering:
    """Expressions put into a graph.

    Args:
        graph: to add to; with all symbols that are met.
        values: exact number by name of a symbol.

    Attributes:
        known: node by expression; `named` symbols of intermediate results are put here.
        refused: what was met and cannot be lowered.
    """

    def __init__(self, graph: Graph, values: Mapping[str, Number]) -> None:
        self.graph = graph
        self.known: dict[Basic, int] = {}
        self.refused: dict[str, None] = {}
        for name in graph.symbols:
            number = values.get(name)
            node = graph.symbol(name) if number is None else graph.number(number)
            self.known[GLOSSARY[name].symbol if name in GLOSSARY else named(name)] = node

    def node(self, expr: Basic) -> int:
        """Return the node of an expression; note what is not understood."""
        node = self.known.get(expr)
        if node is None:
            lower = _RULES.get(type(expr))
            if lower is None:
                self.refused[str(expr)] = None
                return self.graph.number(0)
            node = self.known[expr] = lower(self, expr)
        return node

    def nodes(self, exprs: Iterable[Basic]) -> list[int]:
        """Return the nodes of expressions."""
        return [self.node(expr) for expr in exprs]


def _number(value: Expr) -> Number:
    above, below = int(value.p), int(value.q)
    return above if below == 1 else Fraction(above, below)


def _add(low: Lowering, expr: Expr) -> int:
    terms: list[tuple[int, Number]] = []
    constant: Number = 0
    for term in expr.args:
        if term.is_Rational:
            constant = constant + _number(term)
        else:
            terms.append((low.node(term), 1))
    return low.graph.sum(terms, constant)


def _mul(low: Lowering, expr: Expr) -> int:
    args = list(expr.args)
    number: Number = 1
    factors: list[tuple[int, int]] = []
    if _PER_LN2 in args:
        logarithm = next((one for one in args if type(one) is sympy.log), None)
        if logarithm is not None:
            args.remove(_PER_LN2)
            args.remove(logarithm)
            factors.append((low.graph.log2(low.node(logarithm.args[0])), 1))
    for factor in args:
        if factor.is_Rational:
            number = number * _number(factor)
        elif factor.is_Pow and factor.exp.is_Integer:
            factors.append((low.node(factor.base), int(factor.exp)))
        else:
            factors.append((low.node(factor), 1))
    return low.graph.product(factors, number)


def _pow(low: Lowering, expr: Expr) -> int:
    graph, base = low.graph, low.node(expr.base)
    if expr.exp.is_Integer:
        return graph.product([(base, int(expr.exp))])
    if expr.exp.is_Rational and expr.exp.q == 2:  # noqa: PLR2004 - a root
        return graph.product([(graph.square_root(base), int(expr.exp.p))])
    return graph.exp2(graph.product([(low.node(expr.exp), 1), (graph.log2(base), 1)]))


def _log(low: Lowering, expr: Expr) -> int:
    return low.graph.product([(low.graph.log2(low.node(expr.args[0])), 1)], LN2)


def _exp(low: Lowering, expr: Expr) -> int:
    return low.graph.exp2(low.graph.product([(low.node(expr.args[0]), 1)], 1 / LN2))


def _piecewise(low: Lowering, expr: Expr) -> int:
    chosen = low.graph.number(UNDEFINED)
    for value, condition in reversed(expr.args):
        chosen = low.graph.select(low.node(condition), low.node(value), chosen)
    return chosen


def _not(graph: Graph, bracket: int) -> int:
    return graph.sum([(bracket, -1)], 1)


def _equal(graph: Graph, one: int, other: int) -> int:
    return graph.product([(graph.at_least(one, other), 1), (graph.at_least(other, one), 1)])


def _rational(low: Lowering, expr: Expr) -> int:
    return low.graph.number(_number(expr))


Call = Callable[[Graph, list[int]], int]
"""The node of a function of nodes."""

CALLS: dict[type[Any], Call] = {
    ceiling: lambda graph, nodes: graph.ceiling(*nodes),
    sympy.floor: lambda graph, nodes: graph.floor(*nodes),
    Active: lambda graph, nodes: graph.active(*nodes),
    extrema.AtLeast: lambda graph, nodes: graph.at_least(*nodes),
    extrema.Choice: lambda graph, nodes: graph.select(*nodes),
    sympy.Ge: lambda graph, nodes: graph.at_least(*nodes),
    sympy.Le: lambda graph, nodes: graph.at_least(*nodes[::-1]),
    sympy.Gt: lambda graph, nodes: graph.more(*nodes),
    sympy.Lt: lambda graph, nodes: graph.more(*nodes[::-1]),
    sympy.Eq: lambda graph, nodes: _equal(graph, *nodes),
    sympy.Ne: lambda graph, nodes: _not(graph, _equal(graph, *nodes)),
    sympy.Not: lambda graph, nodes: _not(graph, *nodes),
    **dict.fromkeys((extrema.Max, sympy.Max, sympy.Or), lambda g, nodes: g.extremum("max", nodes)),
    **dict.fromkeys((extrema.Min, sympy.Min, sympy.And), lambda g, nodes: g.extremum("min", nodes)),
}
"""Functions of SymPy and of the library."""


def _function_call(low: Lowering, expr: Basic) -> int:
    return CALLS[type(expr)](low.graph, low.nodes(expr.args))


_RULES: dict[type[Any], Callable[[Lowering, Any], int]] = {
    sympy.Add: _add,
    sympy.Mul: _mul,
    sympy.Pow: _pow,
    sympy.log: _log,
    sympy.exp: _exp,
    sympy.Piecewise: _piecewise,
    **dict.fromkeys(CALLS, _function_call),
    type(sympy.true): lambda low, _: low.graph.number(1),
    type(sympy.false): lambda low, _: low.graph.number(0),
    **dict.fromkeys(
        (sympy.Integer, sympy.Rational, *map(type, (sympy.S.Zero, sympy.S.One))), _rational
    ),
    **dict.fromkeys(map(type, (sympy.S.NegativeOne, sympy.S.Half)), _rational),
}
_PER_LN2 = 1 / sympy.log(2)
