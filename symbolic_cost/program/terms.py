"""Terms: costs that are nodes of a graph from the start, derived as SymPy's expressions are.

>>> from symbolic_cost.program.graph import Graph
>>> from symbolic_cost.symbols import b, m1
>>> space = Terms(Graph({"b": True, "m1": True}), {"b": 8})
>>> space.term(b) * 3 / m1 == 24 / space.term(m1), space.term(b) / 2
(True, Term(4))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sympy import Basic, Symbol

from symbolic_cost.algebra import Term
from symbolic_cost.program.exact import Number
from symbolic_cost.program.graph import Graph
from symbolic_cost.program.lowering import CALLS, Lowering


class Terms:
    """The space of the terms of one graph.

    Args:
        graph: that holds them; with all symbols that are met.
        values: exact numbers of some symbols, put in at once.
    """

    def __init__(self, graph: Graph, values: Mapping[str, Number]) -> None:
        self.graph = graph
        self.lowering = Lowering(graph, values)
        self.once: dict[tuple[object, ...], tuple[object, Any]] = {}
        self._terms: list[Term | None] = []
        """By node, as the graph lists them."""
        self._made: dict[tuple[object, ...], int] = {}
        self._whole: dict[int, bool] = {}
        self._sums: dict[tuple[int, ...], Term] = {}
        self._products: dict[tuple[int, ...], Term] = {}
        self._differences: dict[tuple[int, int], Term] = {}
        self._quotients: dict[tuple[int, int], Term] = {}

    def term(self, value: object) -> Any:  # noqa: ANN401 - it stands for an expression
        """Return the term of an expression or a number."""
        return value if type(value) is Term else self._of(self.node(value))

    def symbol(self, name: str) -> Term:
        """Return the term of a symbol of the graph."""
        return self._of(self.graph.symbol(name))

    def node(self, value: object) -> int:
        """Return the node of a term, an expression or a number."""
        if type(value) is Term:
            return value.node
        return self.graph.number(value) if type(value) is int else self.lowering.node(value)

    def _of(self, node: int) -> Term:
        terms = self._terms
        if node >= len(terms):
            terms += [None] * (len(self.graph.nodes) - len(terms))
        term = terms[node]
        if term is None:
            term = self._terms[node] = Term(self, node)
        return term

    # ------------------------------------------------------------------ arithmetic
    # Structures ask for most of it again and again: what was made is known by its nodes.

    def sum(self, terms: Iterable[object]) -> Term:
        """Return a sum."""
        node = self.node
        nodes = tuple([one.node if type(one) is Term else node(one) for one in terms])
        term = self._sums.get(nodes)
        if term is None:
            made = self.graph.sum([(one, 1) for one in nodes])
            term = self._sums[nodes] = self._of(made)
        return term

    def product(self, factors: Iterable[object]) -> Term:
        """Return a product."""
        node = self.node
        nodes = tuple([one.node if type(one) is Term else node(one) for one in factors])
        term = self._products.get(nodes)
        if term is None:
            made = self.graph.product([(one, 1) for one in nodes])
            term = self._products[nodes] = self._of(made)
        return term

    def difference(self, one: object, other: object) -> Term:
        """Return a difference."""
        nodes = self.node(one), self.node(other)
        term = self._differences.get(nodes)
        if term is None:
            made = self.graph.sum(zip(nodes, (1, -1), strict=True))
            term = self._differences[nodes] = self._of(made)
        return term

    def quotient(self, one: object, other: object) -> Term:
        """Return a quotient."""
        nodes = self.node(one), self.node(other)
        term = self._quotients.get(nodes)
        if term is None:
            term = self._quotients[nodes] = self._of(self.graph.over(*nodes))
        return term

    def power(self, one: object, exponent: int) -> Term:
        """Return an integer power."""
        return self._of(self.graph.product([(self.node(one), exponent)]))

    def call(self, function: type[Basic], arguments: Sequence[object]) -> Term:
        """Return a function of SymPy's of some arguments."""
        return self._of(CALLS[function](self.graph, [self.node(one) for one in arguments]))

    def substituted(self, expr: Basic, values: Mapping[Basic, object]) -> Term:
        """Return an expression with terms for its symbols."""
        nodes = {symbol: self.node(value) for symbol, value in values.items()}
        key = (expr, *nodes.items())
        result = self._made.get(key)
        if result is None:
            result = self._made[key] = _Within(self.lowering, nodes).node(expr)
        return self._of(result)

    # ------------------------------------------------------------------ what terms are

    def number(self, node: int) -> Number | None:
        """Return the number that a node is, if it is one."""
        return self.graph.value(node)

    def is_integer(self, node: int) -> bool:
        """Tell whether a node is whole whatever its symbols count, as far as that is certain."""
        answer = self._whole.get(node)
        if answer is None:
            answer = self._whole[node] = self._is_whole(node)
        return answer

    def _is_whole(self, node: int) -> bool:
        own = self.graph.nodes[node]
        kind = own[0]
        if kind == "num":
            return type(own[1]) is int
        if kind == "sym":
            return bool(own[2])
        if kind == "add":
            parts = (type(by) is int and self.is_integer(one) for one, by in own[2])
            return type(own[1]) is int and all(parts)
        if kind == "mul":
            return type(own[1]) is int and all(
                by > 0 and self.is_integer(one) for one, by in own[2]
            )
        if kind in ("max", "min"):
            return all(map(self.is_integer, own[1]))
        return kind in ("ceil", "floor", "ge", "gt")


class _Within(Lowering):
    """Expressions of which some symbols stand for nodes.

    Args:
        whole: of the other symbols.
        nodes: by symbol.
    """

    def __init__(self, whole: Lowering, nodes: Mapping[Basic, int]) -> None:
        self.graph, self.refused, self.known = whole.graph, whole.refused, dict(nodes)
        self._whole = whole

    def node(self, expr: Basic) -> int:
        if expr not in self.known and (isinstance(expr, Symbol) or not expr.args):
            return self._whole.node(expr)
        return super().node(expr)
