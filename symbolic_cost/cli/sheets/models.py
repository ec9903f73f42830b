"""What commands about configurations, counts and conventions print."""

from collections.abc import Mapping, Sequence

from symbolic_cost.analysis.forms import factored
from symbolic_cost.conventions.presets import MODEL_FLOP, preset
from symbolic_cost.costs import named_cost
from symbolic_cost.emit.sheet import Cell, Column, Sheet, headed
from symbolic_cost.errors import InputError, Problems
from symbolic_cost.importers.recipe import Recipe
from symbolic_cost.jobs.build import modelled
from symbolic_cost.jobs.launch_files import launched
from symbolic_cost.jobs.numbers import checked_numbers
from symbolic_cost.jobs.tables.totals import number
from symbolic_cost.jobs.tied import size_symbols
from symbolic_cost.models.catalog import model as named_model
from symbolic_cost.models.compare import compare_conventions
from symbolic_cost.models.configfile import is_elsewhere
from symbolic_cost.models.lengths import of_length
from symbolic_cost.models.traced import is_graph
from symbolic_cost.numeric.assignments import parse_assignments
from symbolic_cost.numeric.binding import bind
from symbolic_cost.ops.derive import cost
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.symbols import GLOSSARY, in_glossary_order, l_t
from symbolic_cost.symbols import l as length
from symbolic_cost.units import Unit, human


def model_sheet(name: str) -> Sheet:
    """Tabulate the sizes of a model: its parameters, and every symbol with its meaning."""
    own = named_model(name)
    rows: list[tuple[Cell, ...]] = [
        (str(one), own.bindings.get(one.name), GLOSSARY[one.name].meaning)
        for one in in_glossary_order(size_symbols(own))
    ]
    params = bind(cost(own, MODEL_FLOP).total("parameter"), own.bindings)
    rows.append(("parameters", params, f"{int(params):,}" if params.is_Integer else ""))
    return Sheet(f"Sizes of {own.name}", headed("symbol, size>, meaning"), tuple(rows), own.notes)


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
        shortest = {length.name: recipe.run.get("sequence", 1)}  # weights do not depend on it
        model = of_length(recipe.model, shortest)
        params = bind(cost(model, MODEL_FLOP).total("parameter"), model.bindings)
        rows.append(("parameters", str(params), "derived"))
    of_a_model = not (recipe.degrees or recipe.switches or recipe.run)
    strategy = _NO_RUN if of_a_model else f"strategy: {recipe.strategy or 'none, on one rank'}"
    notes = (
        strategy,
        *recipe.notes,
        *(f"not read: {entry.where}" for entry in recipe.unread),
    )
    return Sheet("Imported", headed("value, is>, from"), tuple(rows), notes)


_NO_RUN = (
    "a model's configuration alone, which says nothing of a run: count takes it as it is, and "
    "memory, time and all others with --strategy and --set b=1"
)


def _place(recipe: Recipe, name: str) -> str:
    return recipe.origins[name].where if name in recipe.origins else "implied by the format"


def difference_sheet(
    name: str, first: str, second: str, cost: str, settings: Sequence[str]
) -> Sheet:
    """Tabulate a difference by kind of op, and its total."""
    problems = Problems()
    numbers = problems.attempt(parse_assignments, settings)
    model = problems.attempt(modelled, name, numbers)
    left, right = (problems.attempt(preset, numbers) for numbers in (first, second))
    problems.attempt(named_cost, cost)
    problems.refuse()
    free = {name: one for name, one in numbers.items() if name not in model.fixed}
    checked_numbers(model, Strategy(), free)
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


_UNITS = {
    "params": Unit.ELEMENT,
    "params_active": Unit.ELEMENT,
    "params_trained": Unit.ELEMENT,
    "flops_fwd": Unit.FLOP,
    "flops_train": Unit.FLOP,
    "flops_decode": Unit.FLOP,
    "kv_cache_elements": Unit.ELEMENT,
    "saved_bytes": Unit.BYTE,
    "weight_bytes": Unit.BYTE,
    "stored_params": Unit.ELEMENT,
    "stored_bytes": Unit.BYTE,
}


def refuse_length(source: str, seq: int) -> None:
    """Refuse tokens of a sequence for a model without any, as one of images alone."""
    if is_elsewhere(source) or is_graph(source) or launched(source) is not None:
        return
    try:
        model = modelled(source)
    except InputError:
        return  # told by who counts it
    free = set().union(*(one.free_symbols for one in model.sizes.values()))
    if not model.fixed and free.isdisjoint({length, l_t}):
        raise InputError(f"--seq {seq} is not read: {source} has no sequence of tokens")


def count_sheet(
    config: str, counts: Mapping[str, int | str | None], batch: int, seq: int, conventions: str
) -> Sheet:
    """Tabulate the counts of a configuration, exact and with a prefix."""
    rows = tuple(
        (
            name,
            None if number is None else str(number),
            human(number, _UNITS[name]) if isinstance(number, int) else None,
        )
        for name, number in counts.items()
        if name not in {"note", "ignored", "trained", "weight_bytes_by_format", "stored"}
    )
    said, ignored, trained = (counts.get(name) for name in ("note", "ignored", "trained"))
    formats, stored = counts.get("weight_bytes_by_format"), counts.get("stored")
    notes = (
        f"batch {batch}, sequence {seq}, conventions {conventions}",
        *((f"trained: {trained}; all other weights are frozen",) if trained else ()),
        *((f"bytes of weights by format: {formats}",) if formats else ()),
        *((str(said),) if said else ()),
        *((f"ignored: {ignored}",) if ignored else ()),
        *((f"stored: {stored}",) if stored else ()),
    )
    return Sheet(f"Counts of {config}", headed("count, exact>, short>"), rows, notes)
