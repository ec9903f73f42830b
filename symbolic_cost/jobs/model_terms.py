"""Steps of several structures as terms of one graph, so that what is alike in them is one node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sympy import Expr, Symbol

from symbolic_cost.ops.graph import Model
from symbolic_cost.program.exact import Number
from symbolic_cost.program.graph import Graph
from symbolic_cost.program.terms import Terms
from symbolic_cost.symbols import GLOSSARY
from symbolic_cost.systems.definitions import Reckoned


class ModelTerms(Terms):
    """Terms of models: a model is put into terms once."""

    def __init__(self, graph: Graph, values: Mapping[str, Number]) -> None:
        super().__init__(graph, values)
        self._models: dict[tuple[object, ...], tuple[Model, Model]] = {}

    def model(self, model: Model) -> Model:
        """Return a model with terms for its sizes."""
        key = (id(model.parts), *model.sizes.items())
        if key not in self._models:
            sizes = {axis: self.term(size) for axis, size in model.sizes.items()}
            self._models[key] = model, replace(model, sizes=sizes)
        return self._models[key][1]


class Shared(ModelTerms):
    """The space of several structures; what is alike in them is derived once.

    Attributes:
        names: of the nodes that are steps; the first that a node was given.
    """

    def __init__(self, figures: Mapping[str, Symbol]) -> None:
        super().__init__(open_graph(figures), {})
        self.lowering.known |= {one: self.graph.symbol(name) for name, one in figures.items()}
        self.names: dict[int, str] = {}

    def called(self, name: str, expr: Expr) -> Expr:
        """Return the term of an expression, and keep its name."""
        term: Expr = self.term(expr)
        if self.graph.nodes[term.node][0] not in ("num", "sym"):
            self.names.setdefault(term.node, name)
        return term

    def short_text(self, node: int) -> str:
        """Return a short product or quotient as text."""
        own = self.graph.nodes[node]
        if own[0] in ("num", "sym"):
            return str(own[1])
        if own[0] == "mul":
            above = [self.short_text(one) for one, by in own[2] if by > 0]
            below = [self.short_text(one) for one, by in own[2] if by < 0]
            text = " ".join(([str(own[1])] if own[1] != 1 else []) + above) or "1"
            return "/".join([text, *below])
        return self.names.get(node, "a size")


class NamedTerms(Reckoned):
    """Definitions that are terms at once, and keep their names."""

    def __init__(self, space: Shared) -> None:
        super().__init__(space)
        self._names = space

    def add(self, name: str, expr: Expr) -> Expr:
        """Return the term of an expression."""
        return self._names.called(name, expr)

    def keep(self, name: str, expr: Expr) -> Expr:
        """Define a name, and return the term that it stands for."""
        self.definitions[name] = self._names.called(name, expr)
        return self.definitions[name]


def open_graph(figures: Mapping[str, Symbol]) -> Graph:
    """Return a graph for the glossary's symbols and those of a machine."""
    order = {name: entry.integer for name, entry in GLOSSARY.items()}
    return Graph(order | {name: bool(one.is_integer) for name, one in figures.items()})
