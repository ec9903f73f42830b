"""The declared order of sums and products: factors by the glossary, terms by their degrees.

Factors stand in the order of the glossary, numbers before them and sums, functions and brackets
after them. The terms of a sum are in graded lexicographic order of the same symbols, positive
terms before negative ones. What divides goes below one fraction bar.
"""

from collections.abc import Iterable, Iterator
from fractions import Fraction

from sympy import Add, Expr, Integer, Max, Min, Mul, Pow, Symbol, ceiling, floor
from sympy.core.sorting import default_sort_key

from symbolic_cost.symbols import GLOSSARY, Active, in_glossary_order


def flat(kind: type[Expr], expr: Expr) -> Iterator[Expr]:
    """Give the arguments of nested sums, or products, one after the other."""
    for part in kind.make_args(expr):
        if isinstance(part, kind):
            yield from flat(kind, part)
        else:
            yield part


def parts(term: Expr) -> tuple[bool, list[Expr], list[Expr]]:
    """Split a term into its sign and the factors above and below the bar, in order."""
    coefficient: Expr = Integer(1)
    top: list[Expr] = []
    bottom: list[Expr] = []
    for factor in flat(Mul, term):
        if factor.is_Number:
            coefficient *= factor
        elif isinstance(factor, Pow) and factor.exp.could_extract_minus_sign():
            bottom.append(Pow(factor.base, -factor.exp))
        else:
            top.append(factor)
    top.sort(key=_place)
    bottom.sort(key=_place)
    negative = coefficient.is_extended_negative is True
    above, below = abs(coefficient).as_numer_denom()
    if above != 1 or not top:
        top.insert(0, above)
    if below != 1:
        bottom.insert(0, below)
    return negative, top, bottom


def _place(factor: Expr) -> tuple[object, ...]:
    """Sort factors: numbers, symbols by the glossary, sums and functions, brackets."""
    base = factor.base if isinstance(factor, Pow) else factor
    kind = 0 if base.is_number else 1 if base.is_Symbol else 3 if isinstance(base, Active) else 2
    ranks = [_RANK.get(symbol.name, len(_RANK)) for symbol in base.free_symbols]
    return kind, sorted(ranks), default_sort_key(factor)


_RANK = {name: rank for rank, name in enumerate(GLOSSARY)}


def ordered(terms: Iterable[Expr]) -> list[Expr]:
    """Sort terms: positive before negative, higher degrees first, as the glossary lists them."""
    every = list(terms)
    if len(every) == 1:
        return every
    symbols = in_glossary_order({symbol for term in every for symbol in term.free_symbols})

    def key(term: Expr) -> tuple[object, ...]:
        degree, exponents = _degrees(term, symbols)
        falling = [-exponent for exponent in exponents]
        return parts(term)[0], -degree, falling, default_sort_key(term)

    return sorted(every, key=key)


def _degrees(expr: Expr, symbols: list[Symbol]) -> tuple[Fraction, list[Fraction]]:
    """Return the degree above the bar and the exponent of every symbol, of the leading term."""
    exponents = [_NONE] * len(symbols)
    if isinstance(expr, Add | Max | Min | ceiling | floor):
        return max(_degrees(part, symbols) for part in expr.args)
    for factor in Mul.make_args(expr):
        base, power = factor.as_base_exp()
        if not power.is_Rational:
            continue
        exponent = Fraction(power.p, power.q)
        if base.is_Symbol:
            exponents[symbols.index(base)] += exponent
        elif isinstance(base, _LEADING):
            inner = _degrees(base, symbols)[1]
            exponents = [old + exponent * new for old, new in zip(exponents, inner, strict=True)]
    return sum((x for x in exponents if x > 0), _NONE), exponents


_NONE = Fraction(0)
_LEADING = (Add, Mul, Max, Min, ceiling, floor)
"""What grows as its leading part does; other functions and brackets have degree zero."""
