"""Exact numbers: symbols bound to integers and rationals, and the divisions that must come out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import overload

from sympy import Expr, Integer, Symbol

from symbolic_cost.conditions import bound_split, check
from symbolic_cost.errors import InputError, Problems, quote
from symbolic_cost.ledger import CostTable
from symbolic_cost.symbols import GLOSSARY, exact, in_glossary_order, symbol

LARGEST_COUNT = 10**18
"""Largest count that is accepted: beyond every machine and model, so more is a slip."""

_LONGEST_SHOWN = 40


def check_values(values: Mapping[str, object]) -> dict[Symbol, Expr]:
    """Return the exact number of every symbol.

    Args:
        values: number by symbol name. Counts are integers from 1 to LARGEST_COUNT, rates are
            positive and finite; a float stands for the decimal that it prints as.

    Raises:
        InputError: every name that the glossary lacks and every number that is refused.
    """
    problems = Problems()
    pairs = [problems.attempt(_bound, name, number) for name, number in values.items()]
    problems.refuse()
    return dict(pairs)


def _bound(name: str, number: object) -> tuple[Symbol, Expr]:
    return symbol(name), _number(name, number)


@overload
def bind(target: CostTable, values: Mapping[str, object]) -> CostTable: ...
@overload
def bind(target: Mapping[str, Expr], values: Mapping[str, object]) -> dict[str, Expr]: ...
@overload
def bind(target: Expr, values: Mapping[str, object]) -> Expr: ...
def bind(
    target: CostTable | Expr | Mapping[str, Expr], values: Mapping[str, object]
) -> CostTable | Expr | dict[str, Expr]:
    """Put exact numbers for symbols; symbols without a number stay.

    Args:
        target: a table, an expression, or expressions by name.
        values: as for `check_values`.

    Raises:
        InputError: as for `check_values`.
        DivisibilityError: every axis of a table that its mesh axes do not divide.
        InputError: also every size that is too small for the table's rows.
    """
    numbers = check_values(values)
    if isinstance(target, Mapping):
        return {name: expr.xreplace(numbers) for name, expr in target.items()}
    if isinstance(target, Expr):
        return target.xreplace(numbers)
    check(target.conditions, numbers)
    bound = target.map(lambda expr: expr.xreplace(numbers))
    return replace(bound, splits=tuple(bound_split(split, numbers) for split in target.splits))


def value(expr: Expr) -> int | Fraction:
    """Return the exact number that an expression without symbols stands for, in its unit.

    Raises:
        InputError: symbols are left, or the number is not rational.
    """
    unbound = in_glossary_order(expr.free_symbols)
    if unbound:
        raise InputError(f"no number without values for {', '.join(s.name for s in unbound)}")
    if not expr.is_Rational:
        raise InputError(f"{expr} is not a rational number; it is evaluated as float64 only")
    return int(expr) if expr.is_Integer else Fraction(int(expr.p), int(expr.q))


def _number(name: str, assigned: object) -> Expr:
    """Return the exact number of one symbol, or say what the symbol accepts."""
    entry = GLOSSARY[name]
    accepted = (
        f"an integer from 1 to 10**{len(str(LARGEST_COUNT)) - 1}"
        if entry.integer
        else "a positive finite number"
    )
    zero = not entry.symbol.is_positive  # a mean over stages

    try:
        number = exact(assigned)
    except (InputError, TypeError):
        number = Integer(0)
    fits = number.is_Integer and number <= LARGEST_COUNT if entry.integer else number.is_Rational
    if not (fits and (number > 0 or (zero and number == 0))):
        raise InputError(f"{name} = {_quoted(assigned)}: {accepted} is accepted ({entry.meaning})")
    return number


def _quoted(assigned: object) -> str:
    if isinstance(assigned, int) and abs(assigned) > LARGEST_COUNT:
        return f"an integer of {assigned.bit_length()} bits"
    return str(assigned) if isinstance(assigned, Fraction) else quote(assigned, _LONGEST_SHOWN)
