"""A machine with symbols in place of its figures, so that each of them can be changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from sympy import Symbol

from symbolic_cost.systems.machines import Figure, Machine


def opened_machine(machine: Machine) -> tuple[Machine, Mapping[str, Symbol]]:
    """Return a machine with symbols for its figures, and the symbols by name.

    What is neglected or nominal stays a number, and so do efficiencies by size, which are a table,
    and the shares of the peaks that kernels reach.
    """
    symbols: dict[str, Symbol] = {}

    def figure(name: str, own: Figure) -> Figure:
        if own.source == "definition" or not own.value.is_Rational or own.value == 0:
            return own
        counts = name.endswith(".ranks")
        symbols[name] = Symbol(name, positive=True, **({"integer": True} if counts else {}))
        return replace(own, value=symbols[name])

    def record(place: str, own: Any) -> Any:  # noqa: ANN401 - a link or the efficiencies
        parts = {one.name: getattr(own, one.name) for one in fields(own)}
        held = {name: part for name, part in parts.items() if isinstance(part, Figure)}
        return replace(own, **{name: figure(f"{place}.{name}", p) for name, p in held.items()})

    def rates(place: str, own: Mapping[str, Figure]) -> dict[str, Figure]:
        return {name: figure(f"machine.{place}.{name}", one) for name, one in own.items()}

    opened = replace(
        machine,
        matrix=rates("matrix", machine.matrix),
        vector=rates("vector", machine.vector),
        bandwidth=figure("machine.memory.bandwidth", machine.bandwidth),
        usable=figure("machine.memory.usable", machine.usable),
        latency=figure("machine.memory.latency", machine.latency),
        links=tuple(record(f"machine.links.{link.name}", link) for link in machine.links),
        efficiencies=record("machine.efficiencies", machine.efficiencies),
        host=None if machine.host is None else record("machine.host", machine.host),
        record=machine.record or machine,
    )
    return opened, symbols


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
