"""Sums of bytes by monomial, of which the greatest are found without comparing expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from sympy import Expr, Integer, Rational

from symbolic_cost.algebra import Term, add, mul
from symbolic_cost.extrema import Max

Amount: TypeAlias = Mapping[Expr, int | Fraction]
"""Coefficients by what they multiply, all of it positive; integers where they are whole."""


def amount(*exprs: Expr) -> Amount:
    """Return a sum of products.

    >>> from symbolic_cost.symbols import b, e
    >>> amount(2 * b * e, b * e, Integer(4))
    {b*e: 3, 1: 4}
    """
    found: dict[Expr, int | Fraction] = {}
    for expr in exprs:
        if isinstance(expr, Term):
            found[expr] = found.get(expr, 0) + 1
            continue
        coefficient, rest = expr.as_coeff_Mul()
        number = coefficient.p if coefficient.q == 1 else Fraction(coefficient.p, coefficient.q)
        found[rest] = found.get(rest, 0) + number
    return found


def total(*amounts: Amount) -> Amount:
    """Return a sum."""
    found: dict[Expr, int | Fraction] = {}
    for one in amounts:
        for rest, coefficient in one.items():
            found[rest] = found.get(rest, 0) + coefficient
    return found


def times(factor: Expr | int, one: Amount) -> Amount:
    """Return a multiple."""
    if factor in (1, -1):
        return one if factor == 1 else {rest: -coefficient for rest, coefficient in one.items()}
    return amount(
        *(
            mul(Rational(c), Integer(factor) if isinstance(factor, int) else factor, rest)
            for rest, c in one.items()
        )
    )


_FEW = 16
"""Sums of which a formula is made shorter; more take longer to compare than to compute."""


def greatest(amounts: Iterable[Amount]) -> Expr:
    """Return the maximum, without those that never reach it since counts are at least one.

    >>> from symbolic_cost.symbols import b, e, f
    >>> greatest([amount(b * e), amount(2 * b * e, -e), amount(b * e**2, b * e), amount(f)])
    Max(f, b*e**2 + b*e)
    """
    some = undominated(amounts)
    if len(some) <= _FEW and not _of_terms(some):
        some = _last(some, _covers)  # no term is a multiple of another
    left = [_sum(one) for one in some]
    return Max(*left, evaluate=False) if len(left) > 1 else next(iter(left), Integer(0))


def as_one_term(amounts: Iterable[Amount]) -> list[Amount]:
    """Return those that no other has; of terms their maximum alone, as one that others share."""
    some = undominated(amounts)
    return [amount(greatest(some))] if some and _of_terms(some) else some


def _of_terms(amounts: Iterable[Amount]) -> bool:
    return any(isinstance(rest, Term) for one in amounts for rest in one)


def undominated(amounts: Iterable[Amount]) -> list[Amount]:
    """Return those that no other has term by term, in which equal monomials are compared alone."""
    return _last(amounts, _has)


def _last(amounts: Iterable[Amount], over: Callable[[Amount, Amount], bool]) -> list[Amount]:
    """Return those that no other is over."""
    left: list[Amount] = []
    for one in amounts:
        if not any(over(other, one) for other in left):
            left = [other for other in left if not over(one, other)]
            left.append(one)
    return left


def _has(one: Amount, other: Amount) -> bool:
    return all(one.get(rest, 0) >= c for rest, c in other.items()) and all(
        c >= 0 for rest, c in one.items() if rest not in other
    )


def _covers(one: Amount, other: Amount) -> bool:
    """Tell whether what one has more than the other covers what it has less."""
    more = {rest: one.get(rest, 0) - other.get(rest, 0) for rest in one.keys() | other.keys()}
    room = {rest: c for rest, c in more.items() if c > 0}
    if not room:
        return all(c >= 0 for c in more.values())
    for rest, c in more.items():
        lacking = -c
        for greater in room if lacking > 0 else ():
            if room[greater] > 0 and _is_multiple(greater, rest):
                taken = min(room[greater], lacking)
                room[greater] -= taken
                lacking -= taken
        if lacking > 0:
            return False
    return True


def _is_multiple(one: Expr, other: Expr) -> bool:
    """Tell whether a monomial is the other times counts."""
    powers, least = _powers(one), _powers(other)
    return all(
        powers.get(base, 0) == least.get(base, 0)
        or (base.is_Symbol and base.is_integer and powers.get(base, 0) > least.get(base, 0))
        for base in powers.keys() | least.keys()
    )


@lru_cache(maxsize=4096)
def _powers(monomial: Expr) -> Mapping[Expr, Any]:
    """Return exponents by base; a term is its own."""
    if isinstance(monomial, Term):
        return {monomial: 1}
    powers = monomial.as_powers_dict().items()
    return {base: int(p) if p.is_Integer else p for base, p in powers if base != 1}


def _sum(one: Amount) -> Expr:
    return add(*(mul(Rational(c), rest) for rest, c in one.items() if c != 0))
