"""A program: named costs as one graph of shared operations.

It is exact and decides nothing before numbers are there: whatever is bound first, and in whatever
order, the results are those of all numbers at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from fractions import Fraction
from functools import cached_property

from symbolic_cost.errors import InputError, refuse, unknown
from symbolic_cost.program import scalars
from symbolic_cost.program.arithmetic import Node, moved, needed
from symbolic_cost.program.duals import slopes
from symbolic_cost.program.exact import Number, undefined
from symbolic_cost.program.graph import JUMPS, Graph
from symbolic_cost.program.tape import Tape, recorded
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Program:
    """Outputs as nodes of one graph; made by `of_graph`, `lowering.lowered` or `stored.read`.

    Args:
        symbols: whether it counts something, by name, in the order of evaluation.
        nodes: as of Graph, arguments first.
        outputs: node by name.
    """

    symbols: Mapping[str, bool]
    nodes: tuple[Node, ...]
    outputs: Mapping[str, int]
    _made: tuple[Graph, Mapping[str, int]] | None = field(default=None, repr=False, compare=False)
    """The graph that it was made in, which spares making it again."""

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Names of the symbols that the outputs need, in the order of evaluation."""
        return self.tape.inputs

    @cached_property
    def tape(self) -> Tape:
        """The steps that every evaluator takes."""
        if self._made is not None:
            return recorded(*self._made)
        graph, places = self.graph()
        return recorded(graph, {name: places[node] for name, node in self.outputs.items()})

    def graph(self, values: Mapping[str, Number] | None = None) -> tuple[Graph, list[int]]:
        """Return a new graph that holds this program, and where its nodes are there.

        Args:
            values: exact number by name of a symbol that it shall stand for.
        """
        graph = Graph(self.symbols)
        numbers = {name: graph.number(value) for name, value in (values or {}).items()}
        return graph, included(graph, self, numbers)

    def bound(self, values: Mapping[str, Number]) -> Program:
        """Return the program with exact numbers for some symbols; the other names are left out.

        Raises:
            InputError: every value that is not an integer or a Fraction.
        """
        graph, places = self.graph(self._exact(values))
        return of_graph(graph, {name: places[node] for name, node in self.outputs.items()})

    def chosen(self, names: Iterable[str]) -> Program:
        """Return the program of some outputs alone.

        Raises:
            InputError: every name that is no output.
        """
        graph, places = self.graph()
        return of_graph(graph, {name: places[self._output(name)] for name in names})

    def derivative(self, by: str, names: Iterable[str] = ()) -> Program:
        """Return the program of the outputs' derivatives "d name/d by".

        What jumps is taken as flat (`jumps` lists it); a Max or Min has the slope of the argument
        that is chosen, which at a kink is that of one side.

        Args:
            by: name of a symbol.
            names: of outputs; all unless given.
        """
        graph, places = self.graph()
        wanted = {name: places[self._output(name)] for name in names or self.outputs}
        slope_of = slopes(graph, wanted.values(), graph.symbol(by)) if by in self.symbols else {}
        zero = graph.number(0)
        rates = {f"d {name}/d {by}": slope_of.get(node, zero) for name, node in wanted.items()}
        return of_graph(graph, rates)

    def jumps(self, by: str, names: Iterable[str] = ()) -> tuple[int, ...]:
        """Return the nodes that jump as a symbol moves, which `derivative` takes as flat."""
        graph, places = self.graph()
        wanted = [places[self._output(name)] for name in names or self.outputs]
        bit = graph.masks[graph.symbol(by)] if by in self.symbols else 0
        held = needed(graph, wanted)
        own = {place: node for node, place in enumerate(places)}
        return tuple(
            own[node] for node in held if graph.nodes[node][0] in JUMPS and graph.masks[node] & bit
        )

    def exact(self, values: Mapping[str, Number]) -> dict[str, Number]:
        """Return the exact number of every output; irrational ones to fifty digits.

        Args:
            values: integers and Fractions by symbol; symbols that are not needed are left out.

        Raises:
            InputError: every symbol without a value, every value that is not exact, and every
                output that divides by zero.
        """
        numbers = self._exact(values)
        results = scalars.exact_results(self.tape, [numbers[name] for name in self._all(numbers)])
        empty = [name for name, value in results.items() if undefined(value)]
        if empty:
            raise InputError([f"{name!r} divides by zero at these numbers" for name in empty])
        return results

    def floats(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return every output in floats; inf and nan where it divides by zero.

        Args:
            values: number by symbol; symbols that are not needed are left out.

        Raises:
            InputError: every symbol without a value.
        """
        numbers = [scalars.rounded(values[name]) for name in self._all(values)]
        return scalars.float_results(self.tape, numbers)

    @cached_property
    def function(self) -> scalars.Function:
        """Straight-line Python: floats in the order of `inputs`, results in that of `outputs`."""
        return scalars.function(self.tape)

    def _all(self, values: Mapping[str, object]) -> tuple[str, ...]:
        missing = [f"no value for symbol {name!r}" for name in self.inputs if name not in values]
        refuse(missing)
        return self.inputs

    def _output(self, name: str) -> int:
        if name not in self.outputs:
            raise InputError(unknown("output", name, self.outputs))
        return self.outputs[name]

    def _exact(self, values: Mapping[str, Number]) -> dict[str, Number]:
        wrong = [
            f"{name} = {value!r}: an integer or a Fraction is accepted"
            for name, value in values.items()
            if isinstance(value, bool) or not isinstance(value, int | Fraction)
        ]
        refuse(wrong)
        return {name: value for name, value in values.items() if name in self.symbols}


def of_graph(graph: Graph, outputs: Mapping[str, int]) -> Program:
    """Return the program of some nodes, without those that they do not need."""
    reached = needed(graph, outputs.values())
    places = {node: place for place, node in enumerate(reached)}
    nodes = tuple(moved(graph.nodes[node], places) for node in reached)
    used = {node[1] for node in nodes if node[0] == "sym"}
    symbols = {name: counts for name, counts in graph.symbols.items() if name in used}
    moved_outputs = {name: places[node] for name, node in outputs.items()}
    return Program(symbols, nodes, moved_outputs, (graph, dict(outputs)))


def included(graph: Graph, program: Program, values: Mapping[str, int]) -> list[int]:
    """Put a program into a graph; programs that share symbols share what they have in common.

    Args:
        graph: with the program's symbols, but for those in `values`.
        program: to include.
        values: node of the graph that stands for a symbol of the program.

    Returns:
        Node of the graph by node of the program.
    """
    places: list[int] = []
    for node in program.nodes:
        stands = values.get(node[1]) if node[0] == "sym" else None
        places.append(graph.make(moved(node, places)) if stands is None else stands)
    return places
