"""Sensitivities: derivatives branch by branch, and elasticities at a point from one program.

Of a Max the slope of each argument is told, with where that one is chosen. Nothing is decided: a
formula with one Max of two arguments has two branches, and the numbers will say which one holds.
Ceilings, floors and brackets are flat there between their jumps, which are named.

In elasticities ceilings and floors have the slope of what they round. At 128256/8 a ceiling jumps
on one side and is flat on the other, and neither says that twice as many ranks hold half of a table
each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from sympy import Basic, Expr, Integer, Piecewise, Symbol, ceiling, floor
from sympy import Max as _Max
from sympy import Min as _Min

from symbolic_cost.analysis.forms import factored
from symbolic_cost.errors import InputError
from symbolic_cost.extrema import AtLeast, Choice
from symbolic_cost.program.arithmetic import needed
from symbolic_cost.program.duals import slopes
from symbolic_cost.program.graph import JUMPS, Graph
from symbolic_cost.program.lowering import lowered
from symbolic_cost.program.program import Program, of_graph
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import Active, of_glossary
from symbolic_cost.symbols import symbol as glossary_symbol

MOST = 64
"""Branches beyond which numbers are needed."""

_JUMPS = (ceiling, floor, Active, AtLeast)


@dataclass(frozen=True)
class Branch:
    """One case of a formula.

    Args:
        where: inequalities between costs that hold in it, as text-free pairs (greater, less), or
            relations of a Piecewise.
        value: of the formula there, without Max, Min and Piecewise of the symbol.
        slope: its derivative.
        flat: ceilings, floors and brackets taken as constant, since they jump.
    """

    where: tuple[Basic, ...]
    value: Expr
    slope: Expr
    flat: tuple[Expr, ...]


def branches(expr: Expr, by: Symbol | str) -> tuple[Branch, ...]:
    """Return the derivative of a cost by a symbol, branch by branch.

    Args:
        expr: a cost.
        by: symbol of the glossary, or its name.

    Raises:
        InputError: more than MOST branches: numbers for other symbols leave fewer.

    >>> from symbolic_cost.extrema import Max
    >>> from symbolic_cost.symbols import b, e, l
    >>> [(str(one.slope), str(one.where[0])) for one in branches(Max(b*l, e), l)]
    [('b', '[b*l >= e]'), ('0', '[e >= b*l]')]
    """
    variable = by if isinstance(by, Symbol) else glossary_symbol(by)
    cases = []
    for where, value in _cases(of_glossary(expr), variable, ()):
        cases.append((where, value))
        if len(cases) > MOST:
            raise InputError(
                f"the derivative by {variable} has more than {MOST} branches: give numbers to "
                "other symbols, or ask for it at a point"
            )
    return tuple(_branch(where, value, variable) for where, value in cases)


def _branch(where: tuple[Basic, ...], value: Expr, by: Symbol) -> Branch:
    jumps = [node for node in value.atoms(*_JUMPS) if by in node.free_symbols]
    held = {node: Symbol(f"held_{place}", positive=True) for place, node in enumerate(jumps)}
    slope = value.xreplace(held).diff(by)
    back = {symbol: node for node, symbol in held.items()}
    flat = tuple(sorted((node for node in jumps), key=str))
    return Branch(where, value, factored(slope).xreplace(back), flat)


def _cases(
    expr: Expr, by: Symbol, where: tuple[Basic, ...]
) -> Iterator[tuple[tuple[Basic, ...], Expr]]:
    """Yield every choice of the arguments of extrema and cases that depend on a symbol."""
    # An innermost Max, Min, Choice or Piecewise that depends on a symbol.
    nodes = expr.atoms(_Max, _Min, Choice, Piecewise)
    moving = [node for node in nodes if by in node.free_symbols]
    inner = [n for n in moving if not any(o is not n and n.has(o) for o in moving)]
    node = min(inner, key=str) if inner else None
    if node is None:
        yield where, expr
        return
    for condition, value in _choices(node):
        if condition != 0:
            more = () if condition == 1 else (condition,)
            yield from _cases(expr.xreplace({node: value}), by, where + more)


def _choices(node: Expr) -> Iterator[tuple[Basic, Expr]]:
    """Yield condition and value of every argument; a condition that never holds is 0."""
    if isinstance(node, Choice):
        bracket, value, other = node.args
        yield bracket, value
        yield Integer(1) - bracket, other
    elif isinstance(node, Piecewise):
        for value, condition in node.args:
            yield condition, value
    else:
        for one in sorted(node.args, key=str):
            others = [other for other in node.args if other is not one]
            best = node.func(*others)
            greater = isinstance(node, _Max)
            yield (AtLeast(one, best) if greater else AtLeast(best, one)), one


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
