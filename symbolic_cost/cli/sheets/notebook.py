"""Which table shows a value in a notebook, and its forms: text, LaTeX and HTML."""

from __future__ import annotations

from functools import partial, singledispatch

from sympy import Expr

from symbolic_cost.cli.sheets.laws import law_sheet
from symbolic_cost.cli.sheets.machines import machine_sheet_of
from symbolic_cost.conventions.questions import Conventions, Role
from symbolic_cost.costs import COSTS
from symbolic_cost.emit import html
from symbolic_cost.emit.formulas import plain
from symbolic_cost.emit.sheet import Cell, Sheet, headed, render
from symbolic_cost.errors import InputError
from symbolic_cost.explore.best import Search
from symbolic_cost.explore.fits import Fits
from symbolic_cost.explore.search_table import fits_sheet, search_sheet
from symbolic_cost.jobs.header import header
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.jobs.tables.per_token import terms_sheet
from symbolic_cost.jobs.tables.totals import number
from symbolic_cost.ledger import CostTable
from symbolic_cost.models.token_flop.per_token import TokenFlop
from symbolic_cost.ops.graph import Model
from symbolic_cost.parallel.catalogue import STRATEGIES
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.scaling.law import Law
from symbolic_cost.symbols import n
from symbolic_cost.systems.machines import Machine


def bundle(value: object) -> dict[str, str]:
    """Return a value as text, LaTeX and, with latex2mathml, HTML."""
    sheet = sheet_of(value)
    forms = {"text/plain": render(sheet, "table"), "text/latex": render(sheet, "latex")}
    try:
        notes = [f"<p><small>{html.escaped(note)}</small></p>" for note in sheet.visible.notes]
        forms["text/html"] = "\n".join([*html.table(sheet.visible), *notes])
    except InputError:  # the extra is not installed
        return forms
    return forms


def text(value: object) -> str:
    """Return the table of a value as text."""
    return render(sheet_of(value), "table")


@singledispatch
def sheet_of(value: object) -> Sheet:
    """Return the table that shows a value.

    Raises:
        InputError: nothing shows values of its kind.
    """
    own = getattr(value, "sheet", None)
    table = own() if callable(own) else own
    if not isinstance(table, Sheet):
        raise InputError(f"a {type(value).__name__} has no table")
    return table


sheet_of.register(Machine, machine_sheet_of)
sheet_of.register(TokenFlop, terms_sheet)
sheet_of.register(Search, search_sheet)
sheet_of.register(Fits, fits_sheet)
sheet_of.register(Law, partial(law_sheet, chosen=()))


@sheet_of.register
def _setup(value: Setup) -> Sheet:
    value.bound  # noqa: B018 - refuses numbers that do not fit
    return _totals(value.rows, f"{value.model.name}, run this way", value.value, header(value))


@sheet_of.register
def _table(value: CostTable) -> Sheet:
    return _totals(value, value.name or "costs", None, (f"conventions {value.conventions.name}",))


def _totals(table: CostTable, title: str, bound: object, notes: tuple[str, ...]) -> Sheet:
    from symbolic_cost.analysis.forms import factored

    rows: list[tuple[Cell, ...]] = []
    for cost in COSTS.values():
        own = cost.rows(table)
        if len(own) and cost.name != "flops_train":  # flops by another name
            total = cost.total(own)
            known: Expr = bound(total) if callable(bound) else total
            rows.append((cost.name, cost.unit.value, factored(total), number(known)))
    return Sheet(title, headed("cost, unit, formula, value>"), tuple(rows), notes)


@sheet_of.register
def _model(value: Model) -> Sheet:
    rows = tuple(
        (part.path, part.repeat, len(part.ops), ", ".join(op.path for op in part.ops))
        for part in value.parts
    )
    columns = headed("part, times>, number>, ops")
    sizes = ", ".join(f"{name} = {size}" for name, size in value.bindings.items())
    return Sheet(f"Model {value.name}", columns, rows, (sizes or "sizes are symbols",))


@sheet_of.register
def _strategy(value: Strategy) -> Sheet:
    rows = tuple(
        (name, " x ".join(map(str, degrees)), STRATEGIES[name].meaning)
        for name, degrees in value.degrees.items()
    )
    rows += ((f"zero={value.zero}", "", "states in shards of the data-parallel ranks"),) * bool(
        value.zero
    )
    if value.reshard:
        rows += ((f"reshard={value.reshard}", "", "weights whole from forward through backward"),)
    columns = headed("strategy, degree>, meaning")
    return Sheet(f"Strategy {str(value) or 'none'}, {value.ranks} ranks", columns, rows)


@sheet_of.register
def _conventions(value: Conventions) -> Sheet:
    rows: list[tuple[Cell, ...]] = [
        ("FLOP of a sum of n products", plain(value.contraction(n))),
        *((f"bytes of one element: {role.value}", plain(value.sizes.of(role))) for role in Role),
        ("collectives", value.charge.name),
        ("elementwise operations counted", ", ".join(sorted(value.elementwise.kinds))),
        ("source", value.source),
    ]
    columns = headed("question, answer")
    return Sheet(f"Conventions {value.name}: {value.meaning}", columns, tuple(rows))
