"""Sizes of values, and the numbers in those that sizes are computed from.

A file says of few values how large they are: the rest follows from the operators. Sizes are whole
numbers or expressions in the dynamic dimensions, all of which are taken to be larger than 1.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from math import prod
from operator import add, mul, sub
from typing import TypeAlias

from sympy import Expr, Integer, Rational, ceiling, floor, preorder_traversal

from symbolic_cost.extrema import Max, Min
from symbolic_cost.models.traced.graph import Size, number

Sizes: TypeAlias = tuple[Size, ...]
Numbers: TypeAlias = tuple[Size, ...]

_LARGEST_POWER, _LONGEST = 8, 500
_ENDLESS = 1 << 31
"""Ends of slices from here on mean the end."""


class DataDependentError(ValueError):
    """A size that depends on data."""


def as_integer(size: Expr | float) -> Size:
    """Return a size as a whole number where it is one.

    Raises:
        ValueError: it is a number that is not whole.
    """
    if isinstance(size, Expr) and not size.is_Number:
        return _bounded(size)
    if size != int(size):
        raise ValueError(f"{size} is no size")
    return int(size)


def product(sizes: Sequence[Size]) -> Size:
    """Return the number of elements."""
    return as_integer(prod((number(size) for size in sizes), start=Integer(1)))


def quotient(one: Size, other: Size) -> Size:
    """Return an exact quotient."""
    if other == 0:
        raise ValueError("a size is divided by 0")
    ratio = number(one) / number(other)
    if ratio.as_numer_denom()[1].free_symbols:
        ratio = ratio.cancel()
    return as_integer(ratio)


def broadcast(*shapes: Sizes) -> Sizes:
    """Return the sizes of a function of several tensors, aligned at the last."""
    rank = max(map(len, shapes), default=0)
    result: list[Size] = []
    for place in range(rank):
        here = {shape[place - rank] for shape in shapes if len(shape) >= rank - place} - {1}
        if len(here) > 1:
            raise ValueError(f"sizes {', '.join(sorted(map(str, here)))} meet")
        result.append(here.pop() if here else 1)
    return tuple(result)


def reshaped(old: Sizes, wanted: Numbers, *, zeros: bool) -> Sizes:
    """Return the sizes of a reshaped tensor: 0 keeps a dimension unless zeros, -1 is the rest."""
    result = [old[i] if size == 0 and not zeros else size for i, size in enumerate(wanted)]
    if -1 in result:
        rest = product([size for size in result if size != -1])
        result[result.index(-1)] = quotient(product(old), rest)
    return tuple(result)


def sliced(size: Size, start: Size, end: Size, step: Size) -> tuple[Size, Size, Size]:
    """Return how many positions a slice takes, and its bounds from the start.

    x[0:l] of 128 positions takes l, however many l are: the model runs only where they exist.
    """
    if step == -1:
        return size, 0, size  # turned around, as exporters do it
    first = _bound(size, start)
    last = size if isinstance(end, int) and end >= _ENDLESS else _bound(size, end)
    if isinstance(last, int) and isinstance(size, int):
        last = min(last, size)
    if isinstance(first, int) and isinstance(size, int):
        first = min(first, size)
    taken = as_integer(number(last) - number(first))
    if isinstance(taken, int) and taken < 0:
        taken = 0
    return (taken if step == 1 else as_integer(ceiling(number(taken) / number(step)))), first, last


def _bound(size: Size, place: Size) -> Size:
    if isinstance(place, int) and place < 0:
        back = as_integer(number(size) + place)
        return max(back, 0) if isinstance(back, int) else back
    return place


def windows(size: Size, kernel: int, stride: int, padding: int, *, up: bool = False) -> Size:
    """Return how many windows of a kernel a dimension has; up: rounded up at the end."""
    room = number(size) + padding - kernel
    return as_integer((ceiling if up else floor)(room / stride) + 1)


def _power(a: Expr, b: Expr) -> Expr:
    if not b.is_Integer or abs(int(b)) > _LARGEST_POWER:
        raise ValueError(f"{a} to the power {b} is no size")
    return a**b


_BINARY: Mapping[str, Callable[[Expr, Expr], Expr | int]] = {
    "Add": add,
    "Sub": sub,
    "Mul": mul,
    "Max": lambda a, b: a if a == b else Max(a, b),
    "Min": lambda a, b: a if a == b else Min(a, b),
    "Mod": lambda a, b: a - b * floor(a / b),
    "Equal": lambda a, b: int(a == b),
    "Pow": _power,
}
"""What operators do with numbers. Sizes that are not written alike are not equal."""

_UNARY: Mapping[str, Callable[[Expr], Expr | int]] = {
    "Neg": lambda a: -a,
    "Floor": floor,
    "Ceil": ceiling,
    "Not": lambda a: int(a == 0),
}

SAME = frozenset(
    {"Identity", "Cast", "Unsqueeze", "Squeeze", "Reshape", "Flatten", "Concat", "CastLike"}
)
"""What lets numbers follow each other as they are."""

MOST = 256
"""Numbers that are followed; shapes have a few."""


def evaluated(op: str, operands: Sequence[Numbers], integer: bool) -> Numbers | None:  # noqa: FBT001 - of the result
    """Return the numbers of a result, None where they are not followed."""
    if op in SAME:
        sources = operands if op == "Concat" else operands[:1]
        return tuple(item for operand in sources for item in operand)
    if op == "Where":
        return _paired(operands, lambda c, a, b: a if c else b)
    if op == "Div" and len(operands) == 2:  # noqa: PLR2004
        return _paired(operands, lambda a, b: _divided(a, b, integer=integer))
    if op in _UNARY and operands:
        return tuple(whole_or_part(_UNARY[op](number(a))) for a in operands[0])
    if op in _BINARY and len(operands) == 2:  # noqa: PLR2004
        return _paired(operands, lambda a, b: _BINARY[op](number(a), number(b)))
    return None


def _divided(a: Size, b: Size, *, integer: bool) -> Expr:
    ratio: Expr = number(a) / number(b)
    if integer and ratio.as_numer_denom()[1] != 1:
        ratio = floor(ratio)
    return ratio


def _paired(operands: Sequence[Numbers], function: Callable[..., Expr | float]) -> Numbers | None:
    long = max(map(len, operands))
    if any(len(operand) not in (1, long) for operand in operands):
        return None
    rows = zip(*(o * long if len(o) == 1 else o for o in operands), strict=True)
    return tuple(whole_or_part(function(*row)) for row in rows)


def whole_or_part(value: Expr | float) -> Size:
    """Return a number as it stands in sizes; parts of whole ones stay exact."""
    if isinstance(value, float):
        value = Rational(value)
    exact = number(value)
    if not exact.is_finite:
        raise ValueError(f"{exact} is no size")
    return int(exact) if exact.is_Integer else _bounded(exact)


def _bounded(size: Expr) -> Expr:
    """Return a size that is not too long: crafted ones double with every node."""
    if sum(1 for _ in islice(preorder_traversal(size), _LONGEST)) == _LONGEST:
        raise ValueError(f"a size is a formula of more than {_LONGEST} terms")
    return size
