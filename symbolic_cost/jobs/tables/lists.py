"""What there is: symbols, conventions, strategies, precisions, kernels, with meaning and source."""

from __future__ import annotations

from symbolic_cost.conventions.per_token import TOKEN_PRESETS
from symbolic_cost.conventions.presets import PRESETS
from symbolic_cost.emit.sheet import Cell, Sheet, headed
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
    return Sheet("Symbols", headed("symbol, LaTeX, meaning, degree of, numbers"), tuple(rows))


def _kind(integer: bool) -> str:  # noqa: FBT001 - a field of the glossary
    return "positive integers" if integer else "positive numbers"


def conventions_sheet() -> Sheet:
    """List every preset of counting conventions, and those of the FLOP of a token."""
    rows = [(p.name, "costs", p.meaning, _where(p.source)) for p in PRESETS.values()]
    rows += [(p.name, "FLOP per token", p.meaning, p.source) for p in TOKEN_PRESETS.values()]
    return Sheet("Conventions", headed("conventions, of, meaning, source"), tuple(rows))


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
    columns = headed("strategy, meaning, splits, repeats, needs, excludes, source")
    return Sheet("Strategies", columns, tuple(rows), _OPTIONS)


def precisions_sheet() -> Sheet:
    """List precisions, optimizers, recompute policies and schedules of a training run."""
    rows: list[tuple[Cell, ...]] = [
        ("precision", p.name, p.meaning, _where(p.source)) for p in PRECISIONS.values()
    ]
    rows += [("optimizer", o.name, o.meaning, _where(o.source)) for o in OPTIMIZERS.values()]
    rows += [("schedule", s.name, s.meaning, _where(s.source)) for s in SCHEDULES.values()]
    again = {**POLICIES, **MODULES}
    rows += [("recompute", name, one.meaning, _where(one.source)) for name, one in again.items()]
    return Sheet("Training runs", headed("option, name, meaning, source"), tuple(rows))


_OPTIONS = (
    "zero=1|2|3 keeps optimizer states, gradients, weights in shards of the data-parallel ranks",
    "reshard=1 keeps weights of zero=3 whole after forward, as FSDP's reshard_after_forward=False",
    "panels=N moves the operands of 2d and 2.5d in N steps",
)


def _where(source: str) -> str:
    return REFERENCES[source].where


LISTS = {
    "symbols": symbols_sheet,
    "conventions": conventions_sheet,
    "strategies": strategies_sheet,
    "precisions": precisions_sheet,
}
"""Every list by the name of its command."""
