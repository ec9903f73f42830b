"""What there is: symbols, conventions, strategies, precisions, kernels, with meaning and source."""

from __future__ import annotations

from collections.abc import Iterable

from symbolic_cost.conventions.per_token import TOKEN_PRESETS
from symbolic_cost.conventions.presets import PRESETS
from symbolic_cost.emit.sheet import Cell, Column, Sheet
from symbolic_cost.grouping import grouped
from symbolic_cost.ops.recompute import MODULES, POLICIES
from symbolic_cost.parallel.catalogue import STRATEGIES
from symbolic_cost.parallel.schedules import SCHEDULES
from symbolic_cost.parallel.states import OPTIMIZERS, PRECISIONS
from symbolic_cost.references import REFERENCES
from symbolic_cost.symbols import GLOSSARY


def symbols_sheet() -> Sheet:
    """List every symbol of the glossary, how it is typeset, and what it counts."""
    degrees = grouped(
        (one.name, name) for name, entry in STRATEGIES.items() for one in entry.meshes.values()
    )
    rows = (
        (name, entry.latex, entry.meaning, ", ".join(degrees.get(name, ())), _kind(entry.integer))
        for name, entry in GLOSSARY.items()
    )
    return _list("Symbols", ("symbol", "LaTeX", "meaning", "degree of", "numbers"), rows)


def _kind(integer: bool) -> str:  # noqa: FBT001 - a field of the glossary
    return "positive integers" if integer else "positive numbers"


def conventions_sheet() -> Sheet:
    """List every preset of counting conventions, and those of the FLOP of a token."""
    rows = [(p.name, "costs", p.meaning, _where(p.source)) for p in PRESETS.values()]
    rows += [(p.name, "FLOP per token", p.meaning, p.source) for p in TOKEN_PRESETS.values()]
    return _list("Conventions", ("conventions", "of", "meaning", "source"), rows)


def strategies_sheet() -> Sheet:
    """List every strategy: what it splits, what its ranks repeat, and what it goes with."""
    rows = (
        (
            "=".join(filter(None, (name, "x".join(map(str, entry.meshes.values()))))),
            entry.meaning,
            "; ".join(
                f"{mesh}: {', '.join(map(str, places))}" for mesh, places in entry.places.items()
            ),
            ", ".join(exempt.name for exempt in entry.leaves),
            ", ".join(entry.needs),
            ", ".join(entry.excludes),
            _where(entry.source),
        )
        for name, entry in STRATEGIES.items()
    )
    headings = ("strategy", "meaning", "splits", "repeats", "needs", "excludes", "source")
    return _list("Strategies", headings, rows, _OPTIONS)


def precisions_sheet() -> Sheet:
    """List precisions, optimizers, recompute policies and schedules of a training run."""
    rows: list[tuple[Cell, ...]] = [
        ("precision", p.name, p.meaning, _where(p.source)) for p in PRECISIONS.values()
    ]
    rows += [("optimizer", o.name, o.meaning, _where(o.source)) for o in OPTIMIZERS.values()]
    rows += [("schedule", s.name, s.meaning, _where(s.source)) for s in SCHEDULES.values()]
    again = {**POLICIES, **MODULES}
    rows += [("recompute", name, one.meaning, _where(one.source)) for name, one in again.items()]
    return _list("Training runs", ("option", "name", "meaning", "source"), rows)


_OPTIONS = (
    "zero=1|2|3 keeps optimizer states, gradients, weights in shards of the data-parallel ranks",
    "panels=N moves the operands of 2d and 2.5d in N steps",
)


def _where(source: str) -> str:
    return REFERENCES[source].where


def _list(
    title: str,
    headings: tuple[str, ...],
    rows: Iterable[tuple[Cell, ...]],
    notes: tuple[str, ...] = (),
) -> Sheet:
    return Sheet(title, tuple(map(Column, headings)), tuple(rows), notes)


LISTS = {
    "symbols": symbols_sheet,
    "conventions": conventions_sheet,
    "strategies": strategies_sheet,
    "precisions": precisions_sheet,
}
"""Every list by the name of its command."""
