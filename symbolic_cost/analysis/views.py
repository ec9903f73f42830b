"""Other forms of a formula: by a symbol, leading terms, multiplied out, as derived, abbreviated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sympy import (
    Add,
    Expr,
    Integer,
    Mul,
    Number,
    Symbol,
    cancel,
    ceiling,
    expand,
    floor,
    fraction,
    preorder_traversal,
)

from symbolic_cost.analysis.forms import collected, expanded, factored, leaves, smoothed
from symbolic_cost.analysis.laurent import Terms, expression, hidden_in, terms
from symbolic_cost.errors import InputError, quote, unknown
from symbolic_cost.grouping import grouped
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import named, symbol

FORMS = ("human", "expanded", "as-derived", "by:SYMBOL", "leading:SYMBOL", "relative:SYMBOL")
"""What `formed` takes."""


@dataclass(frozen=True)
class Leading:
    """The terms that grow fastest with a symbol, and how fast the rest grows.

    Args:
        remainder: the power of the symbol that what is left out grows with; None if nothing is.
    """

    terms: Expr
    symbol: Symbol
    remainder: Number | None

    @property
    def sentence(self) -> str:
        """Say what is left out."""
        if self.remainder is None:
            return "nothing is left out"
        return f"terms that grow as {self.symbol}^{self.remainder} or slower are left out"


def leading_terms(expr: Expr, by: Symbol | str, orders: int = 1) -> Leading:
    """Return the terms of the highest orders of growth with a symbol.

    Args:
        expr: a cost.
        by: the symbol that grows.
        orders: how many powers of it are kept.

    Raises:
        InputError: the symbol stands in a Max, ceiling or denominator.

    >>> from symbolic_cost.symbols import b, e, l
    >>> polynomial = leading_terms(5*b*l**2 + 34*b*l*e + e, l)
    >>> polynomial.terms, polynomial.remainder
    (5*b*l**2, 1)
    """
    grown = symbol(by)
    groups: dict[Number, Terms] = {}
    polynomial = terms(expr)
    hidden = hidden_in(polynomial, {grown})
    if hidden:
        said = " and ".join(hidden)
        raise InputError(f"{grown.name} in {said}: orders are known for sums of powers only")
    for one, number in polynomial.items():
        power = dict(one).get(grown, Integer(0))
        groups.setdefault(power, {})[one] = number
    powers = sorted(groups, reverse=True)
    leading = Add(*(factored(expression(groups[power])) for power in powers[:orders]))
    return Leading(leading, grown, powers[orders] if len(powers) > orders else None)


def relative(expr: Expr, by: Symbol | str) -> Expr:
    """Return the leading term with a symbol times one and what the others are of it.

    Raises:
        InputError: as of `leading_terms`.

    >>> from symbolic_cost.symbols import V, b, e, l
    >>> relative(72*b*l*e**2 + 12*b*l**2*e + 6*b*l*e*V, e)
    72*b*e**2*l*(V/(12*e) + 1 + l/(6*e))
    """
    first = leading_terms(expr, by).terms
    if first == 0:
        return first
    below = terms(expand(expr) - expand(first))
    orders = grouped((dict(one).get(symbol(by), Integer(0)), one) for one in below)
    parts = (expression({one: below[one] for one in own}) for own in orders.values())
    rest = Add(1, *(_quotient(part, first) for part in parts))
    return Mul(*Mul.make_args(first), rest, evaluate=False)


def _quotient(part: Expr, first: Expr) -> Expr:
    """Return a quotient without common factors: term by term where the divisor is one product."""
    over, under = fraction(cancel(part / first))
    return factored(over) / factored(under) if under.is_Add else expand(over / under)


def formed(expr: Expr, form: str) -> tuple[Expr, str]:
    """Return a formula in a form by name, and what a reader must know of it.

    Args:
        expr: as derived.
        form: one of FORMS, as in "by:l".

    Raises:
        InputError: no such form or symbol.
    """
    kind, _, name = form.partition(":")
    if form == "human":
        return factored(expr), ""
    if form == "expanded":
        return expanded(expr), "multiplied out"
    if form == "as-derived":
        return expr, "as the derivation wrote it, one group per count"
    asked = kind in ("by", "leading", "relative") and name
    if asked and expr != 0 and symbol(name) not in expr.free_symbols:
        raise InputError(f"form {quote(form)}: the formula has no {symbol(name)}")
    if kind == "by" and name:
        return collected(expr, symbol(name)), f"by powers of {symbol(name)}"
    if kind in ("leading", "relative") and name:
        cut = smoothed(expr) if expr.has(ceiling, floor) else expr
        padded = "" if cut is expr else "; padded sizes are taken as quotients"
        if kind == "relative":
            said = f"the leading term in {symbol(name)}, and the others by it"
            return relative(cut, name), said + padded
        leading = leading_terms(cut, name)
        return leading.terms, leading.sentence + padded
    if kind in ("by", "leading", "relative"):
        raise InputError(f"form {quote(form)}: a symbol follows, as in {kind}:l")
    raise InputError(unknown("form", form, FORMS))


def abbreviated(
    exprs: Sequence[Expr], least: int = 3
) -> tuple[dict[Symbol, Expr], tuple[Expr, ...]]:
    """Return names for sums and functions that formulas repeat, and the formulas in these.

    Args:
        exprs: in their form.
        least: symbols and numbers that such a part has at least.

    >>> from symbolic_cost.symbols import b, e, f, l
    >>> abbreviated([b*(e + f + 1), l/(e + f + 1)])
    ({u_1: e + f + 1}, (b*u_1, l/u_1))
    """
    counted = Counter(
        part
        for expr in exprs
        for part in preorder_traversal(expr)
        if (isinstance(part, Add) or part.is_Function) and part != expr and leaves(part) >= least
    )
    repeated = [part for part, times in counted.items() if times > 1]
    repeated.sort(key=lambda part: (-leaves(part), str(part)))
    names: dict[Symbol, Expr] = {}
    written = tuple(exprs)
    for part in repeated:
        # A part that stands inside one with a name alone needs none.
        nodes = (node for expr in (*written, *names.values()) for node in preorder_traversal(expr))
        if sum(node == part for node in nodes) > 1:
            name = named(f"u_{len(names) + 1}")
            written = tuple(expr.xreplace({part: name}) for expr in written)
            names = {**{n: e.xreplace({part: name}) for n, e in names.items()}, name: part}
    return names, written
