"""What the numbers of a job rest on: sizes, degrees and the figures of the machine, to be changed.

A degree keeps to its class: another one has other steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from symbolic_cost.jobs.open_machine import figure_unit
from symbolic_cost.jobs.provenance import figures
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.numeric.binding import value
from symbolic_cost.parallel.catalogue import STRATEGIES
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.program.exact import Number
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import GLOSSARY
from symbolic_cost.systems.machines import Machine

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
    given = name in job.numbers or name in DEGREES or (name in {"M", "v"} and value is not None)
    source = "the job" if given else "the model"
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
