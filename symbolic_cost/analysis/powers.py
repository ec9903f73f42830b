"""Sums of products of powers: a coefficient by the powers of atoms, which are known by places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from math import gcd, lcm
from typing import TypeAlias

from sympy import Add, Expr, Integer, Rational, Symbol, default_sort_key

from symbolic_cost.symbols import GLOSSARY

Number: TypeAlias = int | Fraction
Powers: TypeAlias = tuple[tuple[int, Number], ...]
"""Places of atoms with their exponents, none of them zero, by place."""
Terms: TypeAlias = dict[Powers, Number]
"""Coefficient by product of powers, none of them zero."""

ONE: Powers = ()


class _Atoms:
    """Every atom once, by its place in the order of first sight."""

    def __init__(self) -> None:
        self.places: dict[Expr, int] = {}
        self.all: list[Expr] = []
        self.sums: set[int] = set()

    def place(self, atom: Expr) -> int:
        index = self.places.get(atom)
        if index is None:
            index = self.places[atom] = len(self.all)
            self.all.append(atom)
            if isinstance(atom, Add):
                self.sums.add(index)
        return index


ATOMS = _Atoms()


@lru_cache(1 << 14)
def rank(place: int) -> tuple[int, str]:
    """Return the order of an atom, as declared: it does not depend on when it was seen."""
    atom = ATOMS.all[place]
    if not isinstance(atom, Symbol):
        return len(GLOSSARY) + 1, str(default_sort_key(atom))
    return _DECLARED.get(atom.name, len(GLOSSARY)), atom.name


_DECLARED = {name: place for place, name in enumerate(GLOSSARY)}


def number_of(expr: Expr) -> Number:
    """Return a rational number of SymPy as one of Python."""
    below = int(expr.q)
    return int(expr.p) if below == 1 else Fraction(int(expr.p), below)


def rational(number: Number) -> Expr:
    """Return a number as one of SymPy."""
    return Integer(number) if isinstance(number, int) else Rational(*number.as_integer_ratio())


def powered(number: Number, power: int) -> Number:
    """Return a power of a number."""
    if number == 1:
        return 1
    power_of = Fraction(number) ** power
    return power_of.numerator if power_of.denominator == 1 else power_of


def summed(many: Iterable[Iterable[tuple[Powers, Number]]]) -> Terms:
    """Add up terms."""
    total: Terms = {}
    for terms in many:
        for one, c in terms:
            total[one] = total.get(one, 0) + c
    return {one: c for one, c in total.items() if c}


def multiplied(left: Mapping[Powers, Number], right: Mapping[Powers, Number]) -> Terms:
    """Multiply sums out."""
    total: Terms = {}
    for one, c in left.items():
        for other, d in right.items():
            key = merged(one, other)
            total[key] = total.get(key, 0) + c * d
    return {one: c for one, c in total.items() if c}


@lru_cache(1 << 16)
def merged(one: Powers, other: Powers) -> Powers:
    """Return the product of two products of powers."""
    if not one or not other:
        return one or other
    powers = dict(one)
    for place, power in other:
        powers[place] = powers.get(place, 0) + power
    return tuple(sorted((place, power) for place, power in powers.items() if power))


def content(terms: Terms) -> tuple[Number, Powers, Terms]:
    """Return what all terms share, a positive number and a product of powers, and what is left."""
    iterator: Iterator[Powers] = iter(terms)
    lowest: dict[int, Number] = dict(next(iterator))
    for one in iterator:
        powers = dict(one)
        for place in [*lowest]:
            other = powers.get(place, 0)
            lowest[place] = min(lowest[place], other)
        for place, power in one:
            if place not in lowest:
                lowest[place] = min(0, power)
    common = tuple(sorted((place, power) for place, power in lowest.items() if power))
    numbers = terms.values()
    if all(isinstance(c, int) for c in numbers):
        number: Number = gcd(*(c.numerator for c in numbers))
    else:
        above = gcd(*(c.numerator for c in numbers))
        number = Fraction(above, lcm(*(c.denominator for c in numbers)))
    if not common and number == 1:
        return number, common, terms
    under = tuple((place, -power) for place, power in common)
    return number, common, {merged(one, under): _divided(c, number) for one, c in terms.items()}


def _divided(number: Number, by: Number) -> Number:
    if by == 1:
        return number
    quotient = Fraction(number) / by
    return quotient.numerator if quotient.denominator == 1 else quotient
