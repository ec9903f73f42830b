"""Exact numbers: symbols bound to integers and rationals, and the divisions that must come out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from math import prod
from typing import overload

from sympy import Expr, Integer, Symbol

from symbolic_cost.conventions.questions import Uneven
from symbolic_cost.errors import DivisibilityError, InputError
from symbolic_cost.ledger import CostTable, Split
from symbolic_cost.symbols import GLOSSARY, exact, in_glossary_order, symbol

LARGEST_COUNT = 10**18
"""Largest count that is accepted: beyond every machine and model, so more is a slip."""

_LONGEST_SHOWN = 40
_SHOWN_DEGREES = 6
_SEARCHED_DEGREES = 4096


def check_values(values: Mapping[str, object]) -> dict[Symbol, Expr]:
    """Return the exact number of every symbol.

    Args:
        values: number by symbol name. Counts are integers from 1 to LARGEST_COUNT, rates are
            positive and finite; a float stands for the decimal that it prints as.

    Raises:
        InputError: every name that the glossary lacks and every number that is refused.
    """
    numbers: dict[Symbol, Expr] = {}
    problems: list[str] = []
    for name, given in values.items():
        try:
            key = symbol(name)
            numbers[key] = _number(name, given)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return numbers


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
        DivisibilityError: every axis of a table that its mesh axes do not divide, unless the
            table's conventions round uneven sizes up.
    """
    numbers = check_values(values)
    if isinstance(target, Mapping):
        return {name: expr.xreplace(numbers) for name, expr in target.items()}
    if isinstance(target, Expr):
        return target.xreplace(numbers)
    if target.conventions.uneven is not Uneven.CEILING:
        _check_splits(target.splits, numbers)
    bound = target.map(lambda expr: expr.xreplace(numbers))
    return replace(bound, splits=tuple(_bound_split(split, numbers) for split in target.splits))


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


def _number(name: str, given: object) -> Expr:
    """Return the exact number of one symbol, or say what the symbol accepts."""
    entry = GLOSSARY[name]
    accepted = (
        f"an integer from 1 to {_power_of_ten(LARGEST_COUNT)}"
        if entry.integer
        else "a positive finite number"
    )
    try:
        number = exact(given)
    except (InputError, TypeError):
        number = Integer(0)
    fits = number.is_Integer and number <= LARGEST_COUNT if entry.integer else number.is_Rational
    if not (fits and number > 0):
        raise InputError(f"{name} = {_shown(given)}: {accepted} is accepted ({entry.meaning})")
    return number


def _power_of_ten(number: int) -> str:
    return f"10**{len(str(number)) - 1}"


def _shown(given: object) -> str:
    if isinstance(given, int) and abs(given) > LARGEST_COUNT:
        return f"an integer of {given.bit_length()} bits"
    text = repr(given)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


# ---------------------------------------------------------------------- divisions


def _bound_split(split: Split, numbers: Mapping[Symbol, Expr]) -> Split:
    degrees = tuple((mesh, degree.xreplace(numbers)) for mesh, degree in split.degrees)
    return replace(split, size=split.size.xreplace(numbers), degrees=degrees)


def _check_splits(splits: Iterable[Split], numbers: Mapping[Symbol, Expr]) -> None:
    problems = [_uneven(split, _bound_split(split, numbers)) for split in splits]
    found = [problem for problem in problems if problem]
    if found:
        raise DivisibilityError(dict.fromkeys(found))


def _uneven(split: Split, bound: Split) -> str:
    """Say that a size with a number is no multiple of its degrees with numbers; else nothing."""
    if not bound.size.is_Rational:
        return ""
    size = value(bound.size)
    degrees = {mesh: int(degree) for mesh, degree in bound.degrees if degree.is_Integer}
    if size % prod(degrees.values()) == 0:
        return ""
    axis = f"{split.path}: axis {split.axis} ({_named(split.size, size, split.axis)})"
    if isinstance(size, Fraction):
        return f"{axis} is not a whole number"
    named = dict(split.degrees)
    by = " and ".join(f"{mesh} ({_named(named[mesh], n)})" for mesh, n in degrees.items())
    plural = "mesh axes" if len(degrees) > 1 else "mesh axis"
    return f"{axis} is not divisible by {plural} {by}; {_neighbours(size, prod(degrees.values()))}"


def _named(expr: Expr, number: int | Fraction, known: str = "") -> str:
    return str(number) if expr.is_number or str(expr) == known else f"{expr} = {number}"


def _neighbours(size: int, degree: int) -> str:
    """Name the sizes next to one that a degree divides, and the degrees next to one that divide."""
    below = size // degree * degree
    sizes = " or ".join(str(near) for near in (below, below + degree) if near)
    searched = range(1, min(size, 2 * degree, _SEARCHED_DEGREES) + 1)
    divisors = [candidate for candidate in searched if size % candidate == 0]
    nearest = sorted(sorted(divisors, key=lambda d: abs(d - degree))[:_SHOWN_DEGREES])
    return f"nearest size {sizes}, nearest degrees that divide {', '.join(map(str, nearest))}"
