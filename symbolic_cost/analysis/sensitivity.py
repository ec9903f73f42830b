"""Sensitivities at a point: the elasticity of every total in every symbol, from one program.

Ceilings and floors have the slope of what they round. At 128256/8 a ceiling jumps on one side and
is flat on the other, and neither says that twice as many ranks hold half of a table each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from sympy import Expr

from symbolic_cost.errors import InputError
from symbolic_cost.program.arithmetic import needed
from symbolic_cost.program.duals import slopes
from symbolic_cost.program.graph import JUMPS, Graph
from symbolic_cost.program.lowering import lowered
from symbolic_cost.program.program import Program, of_graph
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Sensitivity:
    """Totals and their elasticities at a point.

    Args:
        elasticities: by total, by symbol: per cent of the total per per cent of the symbol.
        jumping: symbols by total in which it jumps.
    """

    totals: Mapping[str, float]
    elasticities: Mapping[str, Mapping[str, float]]
    jumping: Mapping[str, tuple[str, ...]]

    @property
    def symbols(self) -> tuple[str, ...]:
        """Symbols in which some total moves."""
        rows = self.elasticities.values()
        names = dict.fromkeys(name for row in rows for name in row)
        return tuple(name for name in names if any(row[name] for row in rows))


_ROUND = frozenset({"ceil", "floor"})


class Slopes:
    """Totals beside all their derivatives, as one program.

    Args:
        by: names of symbols; all that they need unless given.
    """

    def __init__(self, program: Program, by: Iterable[str] | None = None) -> None:
        self.by = tuple(program.inputs if by is None else by)
        self.names = tuple(program.outputs)
        graph, places = program.graph()
        nodes = {name: places[node] for name, node in program.outputs.items()}
        outputs = dict(nodes)
        zero = graph.number(0)
        for symbol in self.by:
            own = symbol in program.symbols
            rates = (
                slopes(graph, nodes.values(), graph.symbol(symbol), smooth=_ROUND) if own else {}
            )
            outputs |= {f"{name}|{symbol}": rates.get(n, zero) for name, n in nodes.items()}
        self.program = of_graph(graph, outputs)
        self._jumps = {name: self._jumping(graph, node) for name, node in nodes.items()}

    def _jumping(self, graph: Graph, node: int) -> tuple[str, ...]:
        """Return the symbols that move what jumps below a node."""
        moved = 0
        for one in needed(graph, [node]):
            if graph.nodes[one][0] in JUMPS:
                moved |= graph.masks[one]
        known = (name for name in self.by if name in graph.symbols)
        return tuple(name for name in known if graph.masks[graph.symbol(name)] & moved)

    def at(self, values: Mapping[str, int | Fraction]) -> Sensitivity:
        """Return totals and elasticities at a point.

        Raises:
            InputError: every symbol without a value.
        """
        point = {name: float(number) for name, number in values.items()}
        results = self.program.floats(point)
        totals = {name: results[name] for name in self.names}
        rows = {
            name: {
                by: results[f"{name}|{by}"] * point.get(by, 0.0) / total if total else 0.0
                for by in self.by
            }
            for name, total in totals.items()
        }
        return Sensitivity(totals, rows, self._jumps)


def sensitivity(totals: Mapping[str, Expr], values: Mapping[str, int | Fraction]) -> Sensitivity:
    """Return the elasticity of every total in every symbol at a point.

    Args:
        totals: formulas by name.
        values: number by symbol name.

    Raises:
        InputError: no totals, or symbols without a number.

    >>> from symbolic_cost.symbols import b, l
    >>> found = sensitivity({"scores": b * l**2}, {"b": 2, "l": 8})
    >>> found.elasticities["scores"]
    {'b': 1.0, 'l': 2.0}
    """
    if not totals:
        raise InputError("no total is named: one or more are accepted")
    return Slopes(lowered(dict(totals))).at(values)
