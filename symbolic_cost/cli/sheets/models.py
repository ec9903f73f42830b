"""What commands about configurations and conventions print."""

from collections.abc import Sequence

from symbolic_cost.analysis.forms import factored
from symbolic_cost.conventions.presets import MODEL_FLOP, preset
from symbolic_cost.costs import named_cost
from symbolic_cost.emit.sheet import Cell, Column, Sheet
from symbolic_cost.errors import Problems
from symbolic_cost.importers.recipe import Recipe
from symbolic_cost.jobs.numbers import checked_numbers
from symbolic_cost.jobs.tables.totals import number
from symbolic_cost.models.catalog import model as named_model
from symbolic_cost.models.compare import compare_conventions
from symbolic_cost.models.shape import TRAINING
from symbolic_cost.numeric.assignments import parse_assignments
from symbolic_cost.numeric.binding import bind
from symbolic_cost.ops.derive import cost
from symbolic_cost.parallel.strategy import Strategy


def recipe_sheet(recipe: Recipe) -> Sheet:
    """Tabulate every value with its place, then the model's parameters and what was not read."""
    groups = {
        "config": recipe.config,
        "degrees": recipe.degrees,
        "switches": dict.fromkeys(recipe.switches, "on"),
        "run": recipe.run,
    }
    rows: list[tuple[Cell, ...]] = [
        (name, str(value), _place(recipe, f"{group}.{name}"))
        for group, values in groups.items()
        for name, value in values.items()
    ]
    if recipe.config:
        model = recipe.model(TRAINING)
        params = bind(cost(model, MODEL_FLOP).total("parameter"), model.bindings)
        rows.append(("parameters", str(params), "derived"))
    notes = (
        f"strategy: {recipe.strategy or 'none, on one rank'}",
        *(f"not read: {entry.where}" for entry in recipe.unread),
    )
    columns = (Column("value"), Column("is", "right"), Column("from"))
    return Sheet("Imported", columns, tuple(rows), notes)


def _place(recipe: Recipe, name: str) -> str:
    return recipe.origins[name].where if name in recipe.origins else "implied by the format"


def difference_sheet(
    name: str, first: str, second: str, cost: str, settings: Sequence[str]
) -> Sheet:
    """Tabulate a difference by kind of op, and its total.

    Raises:
        InputError: every problem of every option.
    """
    problems = Problems()
    model = problems.attempt(named_model, name)
    left, right = (problems.attempt(preset, numbers) for numbers in (first, second))
    problems.attempt(named_cost, cost)
    numbers = problems.attempt(parse_assignments, settings)
    problems.refuse()
    checked_numbers(model, Strategy(), numbers)
    more = compare_conventions(model, left, right, cost)
    values = {**model.bindings, **numbers}
    rows: list[tuple[Cell, ...]] = [
        (kind, factored(expr), number(bind(expr, values))) for kind, expr in more.kinds.items()
    ]
    rows.append(("total", factored(more.total), number(bind(more.total, values))))
    columns = (Column("kind"), Column("formula"), Column("value", "right", more.unit))
    notes = tuple(f"{rule.name}: {rule.meaning}" for rule in (left, right))
    title = f"{cost} of {name}: {more.first} less {more.second}"
    return Sheet(title, columns, tuple(rows), notes)
