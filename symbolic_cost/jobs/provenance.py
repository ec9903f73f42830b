"""Where the seconds of a step come from: its chain, and the machine's figures with their status.

A number of a machine is of a datasheet or publication, calibrated, or assumed. What is assumed of a
rate is a share of it, or a latency: with every such share one and every such latency zero the step
is the shortest that the known figures allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sympy import Expr, Integer, Symbol

from symbolic_cost.emit.sheet import Cell, Column, Sheet, headed
from symbolic_cost.jobs.header import header
from symbolic_cost.jobs.job import Job
from symbolic_cost.jobs.setup import Setup, needed_machine
from symbolic_cost.jobs.tables.seconds import figure_text
from symbolic_cost.jobs.timed import Timed, ends_of
from symbolic_cost.numeric.binding import value
from symbolic_cost.records import dataclass
from symbolic_cost.references import REFERENCES
from symbolic_cost.symbols import GLOSSARY, in_glossary_order
from symbolic_cost.systems.machines import Figure, Machine
from symbolic_cost.systems.step import STEP_PARTS
from symbolic_cost.units import Unit, human

_STATUS = {"assumed": "assumed", "calibration": "calibrated", "definition": "nominal"}


@dataclass(frozen=True, slots=True)
class MachineFigure:
    """A figure of a machine.

    Args:
        status: datasheet, published, calibrated, assumed or nominal.
        source: its title, as the machine's record gives it.
    """

    name: str
    value: Expr
    status: str
    source: str


def figures(machine: Machine) -> tuple[MachineFigure, ...]:
    """Return the figures of a machine with their status."""
    return tuple(
        MachineFigure(name, figure.value, _status(machine, figure), _title(machine, figure))
        for name, figure in machine.figures()
    )


def _status(machine: Machine, figure: Figure) -> str:
    own = "datasheet" if figure.source in machine.sources else "published"
    return _STATUS.get(figure.source, own)


def _title(machine: Machine, figure: Figure) -> str:
    if figure.source in machine.sources:
        return machine.sources[figure.source]
    return REFERENCES[figure.source].title if figure.source in REFERENCES else figure.source


def best_case(machine: Machine) -> Machine:
    """Return the machine with every assumed share one, and every assumed latency zero."""

    def best(place: str, figure: Figure) -> Figure:
        of, _, name = place.rpartition(".")
        is_share = name == "efficiency" or place in _SHARES
        is_other = name == "latency" or of == "efficiencies"
        if figure.source != "assumed" or not (is_share or is_other):
            return figure
        return replace(figure, value=Integer(1) if is_share else Integer(0))

    return machine.mapped(best)


_SHARES = ("efficiencies.matrix", "efficiencies.vector", "efficiencies.memory")
"""Figures that are shares of rates; so are the efficiencies of links."""


_COLUMNS = headed("number, formula, value>, status")


def step_sheet(run: Job) -> Sheet:
    """Tabulate the step as its parts and what these name, then the figures of the machine."""
    machine = needed_machine(run, "a step")
    timed = Timed(replace(run, precise=True))
    chain = timed.step.chain.definitions
    parts = [name for name in STEP_PARTS if name in chain]
    named = [s.name for part in parts for s in chain[part].free_symbols if s.name in chain]
    rows = [
        (*_defined(timed, name), "this job's rows and the machine")
        for name in dict.fromkeys(("step", *parts, *sorted(named)))
    ]
    rows += _machine_rows(machine)
    title = f"Where the step of {run.model.name} on {machine.name} comes from"
    notes = (_interval(run, timed), *header(run, "step"))
    return Sheet(title, (*_COLUMNS, Column("source")), tuple(rows), notes)


def chain_sheet(timed: Timed, names: Iterable[str]) -> Sheet:
    """Tabulate numbers of a step down to the inputs, each with its formula, status and source.

    A number stands above all that it is made of: its definitions, then sizes, then figures of the
    machine, which stand in the formulas as numbers.
    """
    chain, work = timed.step.chain, timed.setup
    wanted = [name for name in names if name in chain.definitions]
    needed = chain.dependencies(wanted)
    rows: list[tuple[Cell, ...]] = [
        (*_defined(timed, name), ", ".join(in_order(needed.definitions[name].free_symbols)))
        for name in dict.fromkeys((*wanted, *reversed(tuple(needed.definitions))))
    ]
    for one in in_glossary_order(set(needed.symbols)):
        meaning = GLOSSARY[one.name].meaning if one.name in GLOSSARY else one.name
        number = str(timed.numbers[one.name])
        rows.append((one.name, None, number, f"given: {source_of(work, one.name)}", meaning))
    rows += [] if work.machine is None else _machine_rows(work.machine)
    title = "Every number of the step, with its formula and source"
    return Sheet(title, (*_COLUMNS, Column("rests on")), tuple(rows))


def in_order(symbols: Iterable[Symbol]) -> list[str]:
    """Return the names of symbols: those of the glossary in its order, then the others."""
    known = {one.name for one in symbols}
    listed = [name for name in GLOSSARY if name in known]
    return listed + sorted(known - set(listed))


def source_of(work: Setup, name: str) -> str:
    """Say who gave a number."""
    sources: Mapping[str, Mapping[str, object]] = {
        "given": work.numbers,
        f"strategy {work.strategy}": work.strategy.bindings(),
        f"model {work.model.name}": work.model.bindings,
    }
    return next((text for text, names in sources.items() if name in names), "no number: a symbol")


def _defined(timed: Timed, name: str) -> tuple[Cell, ...]:
    return (name, timed.step.chain.definitions[name], figure_text(timed, name), "derived")


def _machine_rows(machine: Machine) -> list[tuple[Cell, ...]]:
    return [
        (one.name, None, f"{float(one.value):.6g}", one.status, one.source)
        for one in figures(machine)
        if one.status != "nominal"
    ]


def _interval(run: Job, timed: Timed) -> str:
    """Say how much of the step rests on assumed figures, or on what is known of the stack."""
    if timed.interval is not None:
        return f"four of five such steps take {ends_of(timed.interval)}"
    if run.machine is None or not any(one.status == "assumed" for one in figures(run.machine)):
        return "no figure of the machine is assumed"
    best = Timed(replace(run, precise=True, machine=best_case(run.machine)))
    least, step = (value(number) for number in (best.numbers["step"], timed.numbers["step"]))
    return (
        f"from {human(least, Unit.SECOND)} to {human(step, Unit.SECOND)}: with every assumed share "
        "one and every assumed latency zero, and as assumed"
    )
