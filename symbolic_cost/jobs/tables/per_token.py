"""FLOP per token under the conventions of frameworks, and why they differ."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from sympy import Expr, Symbol

from symbolic_cost.analysis.forms import factored
from symbolic_cost.analysis.verdict import Side, differences
from symbolic_cost.conventions.per_token import TOKEN_PRESETS, TokenConventions, token_conventions
from symbolic_cost.emit.formulas import plain
from symbolic_cost.emit.sheet import Cell, Sheet, headed
from symbolic_cost.errors import InputError, Problems
from symbolic_cost.jobs.numbers import twice
from symbolic_cost.jobs.tables.totals import number
from symbolic_cost.models.positions import position_tables
from symbolic_cost.models.token_flop.per_token import TokenFlop, flops_per_token
from symbolic_cost.numeric.binding import bind
from symbolic_cost.ops.graph import Model
from symbolic_cost.symbols import b as batch_size
from symbolic_cost.symbols import in_glossary_order
from symbolic_cost.symbols import l as length
from symbolic_cost.units import Unit


def chosen_conventions(names: str) -> list[TokenConventions]:
    """Return presets by comma-separated names, paths of TOML files, or all of them.

    Raises:
        InputError: every name that is none, and every problem of every file.
    """
    if names == "all":
        return list(TOKEN_PRESETS.values())
    problems, listed = Problems(), [name.strip() for name in names.split(",")]
    problems.texts += twice("--conventions", listed)
    chosen = [problems.attempt(token_conventions, name) for name in dict.fromkeys(listed)]
    problems.refuse()
    return chosen


def per_token_sheet(
    model: str | Model, seq: int | None, names: str, numbers: Mapping[str, int | Fraction]
) -> Sheet:
    """Tabulate the FLOP of a token: by term under one convention, else a row for each of them."""
    counts, refused = counted(model, seq, names, numbers)
    if names != "all" and len(counts) == 1:
        return terms_sheet(counts[0])
    sheet = _compared(counts)
    return replace(sheet, notes=sheet.notes + refused)


def counted(
    model: str | Model, seq: int | None, names: str, numbers: Mapping[str, int | Fraction] | None
) -> tuple[list[TokenFlop], tuple[str, ...]]:
    """Count under conventions; of all, those that know no answer for the model are left out.

    Returns:
        The counts, and why others are left out.
    """
    counts, refused = [], []
    if numbers and batch_size.name in numbers:
        said = f"{batch_size.name} = {numbers[batch_size.name]} is not read"
        raise InputError(f"{said}: a token costs the same in every batch")
    for rule in chosen_conventions(names):
        try:
            counts.append(flops_per_token(model, seq, rule, numbers))
        except InputError as error:
            refused.append(f"left out: {error}")
            if names != "all":
                raise
    if not counts:
        raise InputError(refused[0].removeprefix("left out: "))
    return counts, tuple(refused)


def batch_sheet(
    model: str | Model, lengths: Iterable[int], names: str, numbers: Mapping[str, int | Fraction]
) -> Sheet:
    """Tabulate the FLOP of a ragged batch under conventions."""
    chosen = tuple(lengths)
    if length.name in numbers:
        told = f"{length.name} = {numbers[length.name]} is not read"
        raise InputError(f"{told}: the batch has {len(chosen)} lengths")
    rows: list[tuple[Cell, ...]] = []
    notes: tuple[str, ...] = ()
    for rule in chosen_conventions(names):
        count = flops_per_token(model, None, rule, numbers)
        whole = count.batch(chosen)
        tokens = sum(chosen)
        rows.append((rule.name, number(whole), number(whole / tokens)))
        notes = _of_model(count, (length, batch_size))
    title = f"Training FLOP of {len(chosen)} sequences of {', '.join(map(str, chosen))} tokens"
    return Sheet(title, headed("conventions, FLOP of the batch>, per token>"), tuple(rows), notes)


def ascending(counts: Iterable[TokenFlop]) -> list[TokenFlop]:
    """Sort counts by their numbers; those with symbols stay as they are."""
    known = list(counts)
    if any(count.total.free_symbols for count in known):
        return known
    return sorted(known, key=lambda count: count.total)


def reason(less: TokenFlop, more: TokenFlop) -> str:
    """Say in formulas what one count has more than another: "head +6 V e, attention -6 e l"."""
    sides = [
        {term.name: Side(term.flop, term.answer) for term in count.terms} for count in (less, more)
    ]
    differing, _ = differences(*sides)
    # Heads together may be as wide as the embedding here, and not in every model.
    felt = (one for one in differing if _bound(more, one.expr) != 0)
    return ", ".join(f"{one.name} {_signed(one.expr)}" for one in felt) or "the same"


def _signed(expr: Expr) -> str:
    text = plain(factored(expr))
    return text if text.startswith("-") else f"+{text}"


def terms_sheet(count: TokenFlop) -> Sheet:
    """Tabulate the FLOP of a token by term, each with the answer of the conventions."""
    rows: list[tuple[Cell, ...]] = [
        (term.name, term.answer, factored(term.flop), number(_bound(count, term.flop)))
        for term in count.terms
    ]
    rows.append(("total", "", factored(count.formula), number(count.total)))
    return Sheet(_title(count), headed("term, answer, formula, value>"), tuple(rows), _notes(count))


def _compared(counts: list[TokenFlop]) -> Sheet:
    ordered = ascending(counts)
    least = ordered[0].total
    rows: list[tuple[Cell, ...]] = []
    for place, count in enumerate(ordered):
        over = number(100 * (count.total / least - 1)) if least.is_number else None
        why = reason(ordered[place - 1], count) if place else ""
        rows.append((count.conventions.name, number(count.total), over, why))
    columns = headed("conventions, FLOP per token>, over the least> [%], against the row above")
    meanings = tuple(f"{one.conventions.name}: {one.conventions.meaning}" for one in ordered)
    return Sheet(_title(ordered[0]), columns, tuple(rows), _of_model(ordered[0]) + meanings)


def _bound(count: TokenFlop, expr: Expr) -> Expr:
    return expr.xreplace(dict(count.numbers))


def _title(count: TokenFlop) -> str:
    return f"Training FLOP per token of {count.model.name} [{Unit.FLOP}]"


def _of_model(count: TokenFlop, varied: Collection[Symbol] = ()) -> tuple[str, ...]:
    """Say of which model, but for what varies, and whether it has positions for its tokens."""
    known = {one: size for one, size in count.numbers.items() if one not in varied}
    numbers = ", ".join(f"{one.name} = {known[one]}" for one in in_glossary_order(known))
    said = f"model {count.model.name}, forward and both gradients{', ' if numbers else ''}{numbers}"
    return (said, *count.model.notes, *_beyond(count, known))


def _beyond(count: TokenFlop, known: Mapping[Symbol, Expr]) -> Iterator[str]:
    for rows, tokens in position_tables(count.model):
        held, asked = (bind(one, {s.name: n for s, n in known.items()}) for one in (rows, tokens))
        if held.is_number and asked.is_number and asked > held:
            yield f"the model has {held} learned positions: of {asked}, those beyond have no row"


def _notes(count: TokenFlop) -> tuple[str, ...]:
    rule = count.conventions
    return (
        *_of_model(count),
        f"conventions {rule.name}: {rule.meaning}",
        f"source: {rule.source}",
    )
