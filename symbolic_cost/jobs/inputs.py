"""What the numbers of a job rest on: sizes, degrees and the figures of the machine, to be changed.

A degree keeps to its class: another one has other steps. A machine is opened by symbols in place of
its figures, so that each of them can be changed. Conditions on inputs are nodes that are zero where
they are met, with the condition in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from sympy import Basic, Expr, Symbol

from symbolic_cost.conditions import Condition, Split
from symbolic_cost.jobs.provenance import figures
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.numeric.binding import value
from symbolic_cost.parallel.catalogue import STRATEGIES
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.program.exact import Number
from symbolic_cost.program.graph import Graph
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import GLOSSARY
from symbolic_cost.systems.machines import Figure, Machine


def opened_machine(machine: Machine) -> tuple[Machine, Mapping[str, Symbol]]:
    """Return a machine with symbols for its figures, and the symbols by name.

    What is neglected or nominal stays a number, and so do efficiencies by size, which are a table,
    and the shares of the peaks that kernels reach.
    """
    symbols: dict[str, Symbol] = {}

    def figure(place: str, own: Figure) -> Figure:
        if own.source == "definition" or not own.value.is_Rational or own.value == 0:
            return own
        name, counts = f"machine.{place}", place.endswith(".ranks")
        symbols[name] = Symbol(name, positive=True, **({"integer": True} if counts else {}))
        return replace(own, value=symbols[name])

    return replace(machine.mapped(figure), record=machine.record or machine), symbols


def figure_unit(name: str) -> str:
    """Return the unit of a figure by its name, in brackets."""
    last = name.rpartition(".")[2]
    if ".matrix." in name or ".vector." in name:
        return "[FLOP/s]" if ".efficiencies." not in name else "[1]"
    if ".efficiencies." in name:
        units = dict.fromkeys(("launch", "host"), "[s]") | dict.fromkeys(("half", "flop"), "[FLOP]")
        return units.get(last, "[1]")
    units = {"bandwidth": "[byte/s]", "latency": "[s]", "ranks": "[rank]"}
    units |= dict.fromkeys(("usable", "capacity"), "[byte]")
    return units.get(last, "[1]")


DEGREES = {
    symbol.name: mesh for entry in STRATEGIES.values() for mesh, symbol in entry.meshes.items()
}
"""Mesh axis by the symbol of its degree; a strategy may have another one by that symbol."""

_STARTS = {"b": 1, "M": 1}
"""Numbers of a run from which the reader starts where the job gives none."""


@dataclass(frozen=True, slots=True)
class Input:
    """A number that the reader may change.

    Args:
        group: "size", "degree" or "machine".
        value: of the job; None where it has none.
        meaning: with its unit in brackets.
        source: of the number.
        counts: "whole" for a positive integer, "real" for a positive number.
        least: that keeps the structure.
        most: that keeps it; None where it is not bounded.
    """

    name: str
    group: str
    value: Number | None
    meaning: str
    source: str
    counts: str
    least: int = 1
    most: int | None = None


def inputs_of(
    job: Setup, placed: Strategy, machine: Machine, symbols: Iterable[str]
) -> Iterator[Input]:
    """Yield what stands for some symbols; sizes without a number have none.

    Args:
        job: whose numbers these are.
        placed: its strategy, with symbols for degrees.
        machine: whose figures are among the symbols.
        symbols: by name.
    """
    sources = {f"machine.{one.name}": one for one in figures(machine)}
    classes = degree_classes(placed, job.counted_values)
    for name in symbols:
        if name in sources:
            own = sources[name]
            text = f"{own.source} ({own.status})"
            said = f"{name.partition('.')[2]} {figure_unit(name)}"
            kind = "whole" if name.endswith(".ranks") else "real"
            yield Input(name, "machine", value(own.value), said, text, kind)
        else:
            yield _input(job, name, *classes.get(name, (1, None)))


def _input(job: Setup, name: str, least: int, most: int | None) -> Input:
    entry, value = GLOSSARY[name], job.counted_values.get(name)
    is_own = name in job.numbers or name in DEGREES or (name in {"M", "v"} and value is not None)
    source = "the job" if is_own else "the model"
    if value is None and name in _STARTS:
        value, source = _STARTS[name], "a start: the job gives no number"
    group = "degree" if name in DEGREES else "size"
    kind = "whole" if entry.integer else "real"
    return Input(name, group, value, entry.meaning, source, kind, least, most)


def degree_classes(
    placed: Strategy, values: Mapping[str, Number]
) -> dict[str, tuple[int, int | None]]:
    """Return the least and the most of a degree that keep the structure, by its symbol."""
    bounds: dict[str, tuple[int, int | None]] = {}
    for mesh, degree in placed.mesh.items():
        if degree.is_Symbol:
            bounds[degree.name] = (3 if mesh == "pp" else 2, None)
    if placed.copies != 1:  # ranks share key/value heads, as many as there are now
        for name in {"m1", "h", "k"} & values.keys():
            bounds[name] = (int(values[name]), int(values[name]))
    if "v" in values:
        bounds["v"] = (2, None)
    return bounds


def lacking(one: Input) -> str:
    """Say how a number that is missing is given."""
    how = f"{DEGREES[one.name]}=2 in the strategy" if one.group == "degree" else "--set l=2048"
    return f"no number for {one.name} ({one.meaning}): give it, as in {how}"


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
