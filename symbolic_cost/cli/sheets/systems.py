"""What `systems` prints, and how commands find a machine."""

from __future__ import annotations

from sympy import Expr

from symbolic_cost.emit.sheet import Cell, Column, Sheet
from symbolic_cost.numeric.binding import value
from symbolic_cost.systems.records import find_machine, machine, machine_names


def machines_sheet() -> Sheet:
    """Tabulate the main rates of every machine."""
    rows = []
    for name in machine_names():
        made = machine(name)
        half = next((p for p in ("bf16", "fp16", "fp32") if p in made.matrix), None)
        rows.append(
            (
                name,
                made.meaning,
                half,
                None if half is None else _number(made.peak(half) / 10**12),
                _number(made.bandwidth.value / 10**9),
                _number(made.capacity.value / 2**30),
                ", ".join(link.name for link in made.links),
            )
        )
    columns = (
        Column("machine"),
        Column("meaning"),
        Column("precision"),
        Column("peak", "right", "TFLOP/s"),
        Column("memory", "right", "GB/s"),
        Column("capacity", "right", "GiB"),
        Column("links"),
    )
    notes = ("peaks are dense; symbolic-cost systems NAME lists every number with its source",)
    return Sheet("Machines", columns, tuple(rows), notes)


def machine_sheet(name: str) -> Sheet:
    """Tabulate every number of a machine with its source and what it includes."""
    made = find_machine(name)
    rows = tuple(
        (
            place,
            _number(figure.value),
            made.sources.get(figure.source, figure.source),
            figure.includes,
        )
        for place, figure in made.figures()
    )
    columns = (Column("number"), Column("value", "right"), Column("source"), Column("includes"))
    notes = ("base units: FLOP/s, byte/s, byte, s, rank, 1",)
    return Sheet(f"{made.name}: {made.meaning}", columns, rows, notes)


def _number(expr: Expr) -> Cell:
    return expr if expr.free_symbols else value(expr) if expr.is_Rational else str(expr)
