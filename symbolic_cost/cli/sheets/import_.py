"""What `import` prints."""

from __future__ import annotations

from symbolic_cost.conventions.presets import MODEL_FLOP
from symbolic_cost.emit.sheet import Cell, Column, Sheet
from symbolic_cost.importers.recipe import Recipe
from symbolic_cost.models.shape import TRAINING
from symbolic_cost.numeric.binding import bind
from symbolic_cost.ops.derive import cost


def recipe_sheet(found: Recipe) -> Sheet:
    """Tabulate every value with its place, then the model's parameters and what was not read."""
    groups = {
        "config": found.config,
        "degrees": found.degrees,
        "switches": dict.fromkeys(found.switches, "on"),
        "run": found.run,
    }
    rows: list[tuple[Cell, ...]] = [
        (name, str(value), _place(found, f"{group}.{name}"))
        for group, values in groups.items()
        for name, value in values.items()
    ]
    if found.config:
        model = found.model(TRAINING)
        params = bind(cost(model, MODEL_FLOP).total("parameter"), model.bindings)
        rows.append(("parameters", str(params), "derived"))
    notes = (
        f"strategy: {found.strategy or 'none, on one rank'}",
        *(f"not read: {entry.where}" for entry in found.unread),
    )
    columns = (Column("value"), Column("is", "right"), Column("from"))
    return Sheet("Imported", columns, tuple(rows), notes)


def _place(found: Recipe, name: str) -> str:
    return found.origins[name].where if name in found.origins else "implied by the format"
