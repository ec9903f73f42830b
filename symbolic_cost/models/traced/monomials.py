"""Numbers as short sums of monomials of fields: 160 = num_heads * head_dim + hidden_size.

Values of several configurations are looked for at once, exactly; the shortest sum that explains
all of them is taken. One of p terms needs more than p configurations, so that it proves something.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from math import prod

from symbolic_cost.records import dataclass

Row = Sequence[Fraction]
Powers = tuple[tuple[str, int], ...]
"""Fields with their exponents, which are not zero."""

_MOST_FACTORS = 3
_LARGEST = 64
"""Numerators and denominators of coefficients; larger ones explain nothing but what is constant."""


@dataclass(frozen=True)
class Sum:
    """A sum of monomials with coefficients.

    >>> str(Sum(((Fraction(2), (("a", 1), ("b", -1))), (Fraction(1), ()))))
    '2*a/b + 1'
    """

    terms: tuple[tuple[Fraction, Powers], ...]

    def at(self, fields: Mapping[str, int]) -> Fraction:
        """Return the value at some numbers of the fields."""
        return sum((c * _value(powers, fields) for c, powers in self.terms), start=Fraction())

    def __str__(self) -> str:
        """Write the sum as a formula."""
        return " + ".join(_written(c, powers) for c, powers in self.terms).replace("+ -", "- ")


def _value(powers: Powers, fields: Mapping[str, int]) -> Fraction:
    return prod((Fraction(fields[name]) ** power for name, power in powers), start=Fraction(1))


def _written(coefficient: Fraction, powers: Powers) -> str:
    above = [n if p == 1 else f"{n}**{p}" for n, p in powers if p > 0]
    below = [n if p == -1 else f"{n}**{-p}" for n, p in powers if p < 0]
    if abs(coefficient.numerator) != 1 or not above:
        above.insert(0, str(coefficient.numerator))
    elif coefficient < 0:
        above[0] = f"-{above[0]}"
    if coefficient.denominator != 1:
        below.insert(0, str(coefficient.denominator))
    return "/".join(["*".join(above), *below])


class Fitter:
    """Explains values by fields.

    Args:
        configurations: numbers of the fields, one mapping for each value.
    """

    def __init__(self, configurations: Sequence[Mapping[str, int]]) -> None:
        self._fields = configurations
        first = configurations[0]
        varied = [n for n in first if len({one[n] for one in configurations}) > 1]
        self._monomials = [
            (powers, [_value(powers, one) for one in configurations]) for powers in _powers(varied)
        ]
        self._known: dict[tuple[Fraction, ...], Sum | None] = {}

    def explained(self, values: Sequence[Fraction], *, affine: bool = False) -> Sum | None:
        """Return the shortest sum that has some values; None if none has.

        Args:
            values: one of each configuration.
            affine: whether products of fields are none, as in repetitions.
        """
        key = tuple(values)
        if key not in self._known or affine:
            explanation = next(self._sums(key, affine=affine), None)
            if affine:
                return explanation
            self._known[key] = explanation
        return self._known[key]

    def _sums(self, values: tuple[Fraction, ...], *, affine: bool) -> Iterator[Sum]:
        usable = [one for one in self._monomials if not affine or sum(p for _, p in one[0]) <= 1]
        if affine:
            usable = [one for one in usable if len(one[0]) <= 1]
        for powers, row in usable:
            ratio = values[0] / row[0]
            if (not powers or _is_plain(ratio)) and all(
                v == ratio * x for v, x in zip(values, row, strict=True)
            ):
                yield Sum(((ratio, powers),))
        if len(values) < _TWO + _SPARE:
            return
        short = [one for one in usable if len(one[0]) < _MOST_FACTORS]
        for (one, left), (other, right) in combinations(short, _TWO):
            solved = _solved(values, left, right)
            if solved is not None:
                yield Sum(tuple(sorted(zip(solved, (one, other), strict=True), key=_last_constant)))


_TWO, _SPARE = 2, 2


def _last_constant(term: tuple[Fraction, Powers]) -> tuple[bool, bool, int]:
    return not term[1], term[0] < 0, -len(term[1])


def _is_plain(number: Fraction) -> bool:
    return max(abs(number.numerator), number.denominator) <= _LARGEST


def _solved(values: Row, left: Row, right: Row) -> tuple[Fraction, Fraction] | None:
    """Return a, b with values = a left + b right everywhere."""
    determinant = left[0] * right[1] - left[1] * right[0]
    if not determinant:
        return None
    a = (values[0] * right[1] - values[1] * right[0]) / determinant
    b = (left[0] * values[1] - left[1] * values[0]) / determinant
    if not a or not b or not _is_plain(a) or not _is_plain(b):
        return None
    rows = zip(values, left, right, strict=True)
    return (a, b) if all(v == a * x + b * y for v, x, y in rows) else None


def _powers(names: Sequence[str]) -> Iterator[Powers]:
    """Yield monomials: the constant, fields, products, quotients; the shortest first."""
    yield ()
    yield from (((name, 1),) for name in names)
    for count in range(_TWO, _MOST_FACTORS + 1):
        for chosen in combinations_with_replacement(names, count):
            yield tuple((n, chosen.count(n)) for n in dict.fromkeys(chosen))
            if len(set(chosen)) == count:
                for below in chosen:
                    yield tuple((n, -1 if n == below else 1) for n in chosen)
