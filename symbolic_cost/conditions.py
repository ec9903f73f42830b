"""Conditions on numbers: divisions that must come out whole, sizes that must be large enough."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import prod

from sympy import Expr, Symbol, ceiling, floor

from symbolic_cost.errors import DivisibilityError, InputError, refuse
from symbolic_cost.records import dataclass, replace

_SHOWN_DEGREES = 6
_SEARCHED_DEGREES = 4096


@dataclass(frozen=True, slots=True)
class Split:
    """A division that must come out whole when numbers are bound: a quotient, or a split axis.

    Args:
        degrees: degree by mesh axis; none where the size itself is a quotient.
        path: where it was first met.
    """

    axis: str
    size: Expr
    degrees: tuple[tuple[str, Expr], ...]
    path: str


@dataclass(frozen=True, slots=True)
class Least:
    """A size that must not be smaller when numbers are bound: fewer would need other rows.

    Args:
        what: it counts, as in "stages of the pipeline".
        least: the smallest that is accepted.
    """

    what: str
    size: Expr
    least: Expr
    because: str


Condition = Split | Least
"""What numbers must meet."""


def check(conditions: Iterable[Condition], numbers: Mapping[Symbol, Expr]) -> None:
    """Check what numbers decide; conditions whose symbols have no number are left open.

    Raises:
        DivisibilityError: every division that does not come out whole.
        InputError: every size that is too small, and those divisions.
    """
    listed = tuple(conditions)
    uneven = [_uneven(c, bound_split(c, numbers)) for c in listed if isinstance(c, Split)]
    small = [_small(c, numbers) for c in listed if isinstance(c, Least)]
    problems = dict.fromkeys(problem for problem in (*uneven, *small) if problem)
    if any(small):
        raise InputError(problems)
    refuse(problems, DivisibilityError)


def _small(bound: Least, numbers: Mapping[Symbol, Expr]) -> str:
    """Say that a size is smaller than it may be; else nothing."""
    size, least = bound.size.xreplace(numbers), bound.least.xreplace(numbers)
    if not (size.is_number and least.is_number) or size >= least:
        return ""
    shown = size if bound.size.has(ceiling, floor) else _with_value(bound.size, size)
    return f"{bound.what}: {shown} is less than {least}: {bound.because}"


def bound_split(split: Split, numbers: Mapping[Symbol, Expr]) -> Split:
    """Return a division with numbers for its symbols."""
    degrees = tuple((mesh, degree.xreplace(numbers)) for mesh, degree in split.degrees)
    return replace(split, size=split.size.xreplace(numbers), degrees=degrees)


def _uneven(split: Split, bound: Split) -> str:
    """Say that a size with a number is no multiple of its degrees with numbers; else nothing."""
    if not bound.size.is_Rational:
        return ""
    size = _value(bound.size)
    degrees = {mesh: int(degree) for mesh, degree in bound.degrees if degree.is_Integer}
    if size % prod(degrees.values()) == 0:
        return ""
    axis = f"{split.path}: axis {split.axis} ({_with_value(split.size, size, split.axis)})"
    if isinstance(size, Fraction):
        return f"{axis} is not a whole number"
    if set(degrees) == {_SHARED}:
        ranks = degrees[_SHARED]
        return (
            f"{axis} is not divisible by the {ranks} {_SHARING}; nearest numbers that share one "
            f"{_divisors(size, ranks)}, as tp is at most the number of query heads"
        )
    nearest = _neighbours(size, prod(degrees.values()))
    named = dict(split.degrees)
    by = " and ".join(f"{mesh} ({_with_value(named[mesh], n)})" for mesh, n in degrees.items())
    plural = "mesh axes" if len(degrees) > 1 else "mesh axis"
    return f"{axis} is not divisible by {plural} {by}; {nearest}"


_SHARED, _SHARING = "kv", "ranks of tp that share a key/value head"


def _with_value(expr: Expr, number: int | Fraction | Expr, known: str = "") -> str:
    return str(number) if expr.is_number or str(expr) == known else f"{expr} = {number}"


def _neighbours(size: int, degree: int) -> str:
    """Name the sizes next to one that a degree divides, and the degrees next to one that divide."""
    below = size // degree * degree
    sizes = " or ".join(str(near) for near in (below, below + degree) if near)
    return f"nearest size {sizes}, nearest degrees that divide {_divisors(size, degree)}"


def _divisors(size: int, degree: int) -> str:
    """Name the divisors of a size that are next to a degree."""
    searched = range(1, min(size, 2 * degree, _SEARCHED_DEGREES) + 1)
    divisors = [candidate for candidate in searched if size % candidate == 0]
    nearest = sorted(sorted(divisors, key=lambda d: abs(d - degree))[:_SHOWN_DEGREES])
    return ", ".join(map(str, nearest))


def _value(number: Expr) -> int | Fraction:
    return int(number) if number.is_Integer else Fraction(int(number.p), int(number.q))
