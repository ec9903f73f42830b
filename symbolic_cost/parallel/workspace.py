"""Workspace: what is there for a while, so that the most of it counts and not the sum."""

from __future__ import annotations

from collections.abc import Iterable

from sympy import Add, Expr, Integer, Max, expand

from symbolic_cost.ledger import Phase, Quantity, Row
from symbolic_cost.units import Unit


def greatest(candidates: Iterable[Expr]) -> Expr:
    """Return the maximum of expressions in positive symbols, without those that never reach it.

    >>> from symbolic_cost.symbols import b, e, f
    >>> greatest([b * e, 2 * b * e, b * e**2 + b * e, f])
    Max(f, b*e**2 + b*e)
    """
    left: list[Expr] = []
    for candidate in dict.fromkeys(candidates):
        if not any(_never_more(candidate, other) for other in left):
            left = [other for other in left if not _never_more(other, candidate)]
            left.append(candidate)
    return Max(*left, evaluate=False) if len(left) > 1 else left[0] if left else Integer(0)


def _never_more(one: Expr, other: Expr) -> bool:
    """Tell whether it shows that one is at most the other, given that counts are at least one."""
    more = expand(other - one)
    if _adds_up(more):
        return True
    counts = [symbol for symbol in more.free_symbols if symbol.is_integer]
    if not more.is_polynomial(*counts):  # expanding would take its time
        return False
    return _adds_up(expand(more.xreplace({symbol: 1 + symbol for symbol in counts})))


def _adds_up(expr: Expr) -> bool:
    """Tell whether an expanded expression in positive symbols only adds."""
    return all(term.as_coeff_Mul()[0] >= 0 for term in Add.make_args(expr))


def workspace_row(name: str, phase: Phase, size: Expr) -> Row:
    """Return the row of a workspace [byte]."""
    return Row(
        path=name,
        kind="workspace",
        phase=phase,
        quantity=Quantity.WORKSPACE,
        unit=Unit.BYTE,
        expr=size,
    )
