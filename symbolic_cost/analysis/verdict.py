"""A formula from a paper beside a derived one: equal, equal to leading order, or how it differs.

Of two counts: what one has more than the other, term by term, as formulas with sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from sympy import Add, Expr, Integer, Symbol

from symbolic_cost.analysis.forms import equal, factored
from symbolic_cost.analysis.laurent import Monomial, Terms, cleared, divided, monomial_of, terms
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import Active


class Answer(StrEnum):
    """What a comparison says."""

    EQUAL = "equal"
    AT_SIZES = "equal at these sizes"
    LEADING = "equal to leading order"
    FACTOR = "differs by a factor"
    DIFFERS = "differs"


@dataclass(frozen=True)
class Verdict:
    """What a typed formula is to a derived one.

    Args:
        difference: derived less typed.
        factor: derived over typed, where that is one monomial.
        smaller: the sizes by which terms of the difference are smaller, to leading order.
    """

    answer: Answer
    typed: Expr
    derived: Expr
    difference: Expr
    factor: Expr | None = None
    smaller: tuple[Expr, ...] = ()


def compared(typed: Expr, derived: Expr) -> Verdict:
    """Compare two formulas.

    To leading order they are equal if each term of the difference is some term of the derived one
    over sizes: 8 b l is 34 b l e over e, up to a number.

    >>> from symbolic_cost.symbols import b, e, l
    >>> compared(34 * b * e * l, 34 * b * e * l + 8 * b * l).answer.value
    'equal to leading order'
    """
    numerator, below = cleared(derived - typed)
    if not numerator:
        return Verdict(Answer.EQUAL, typed, derived, Integer(0))
    difference = factored(derived - typed)
    factor = _ratio(derived, typed)
    if factor is not None:
        return Verdict(Answer.FACTOR, typed, derived, difference, factor)
    smaller = _smaller(numerator, terms(derived * below))
    if smaller:
        return Verdict(Answer.LEADING, typed, derived, difference, smaller=smaller)
    return Verdict(Answer.DIFFERS, typed, derived, difference)


def _ratio(derived: Expr, typed: Expr) -> Expr | None:
    """Return the quotient of two formulas if that of what stands above sums is one monomial.

    2 b e + 2 e over b + 1 is 2 e.
    """
    (above, under), (below, beneath) = cleared(derived), cleared(typed)
    if not above or not below or len(above) != len(below):
        return None
    first = next(iter(above))
    for other, number in below.items():
        shift = divided(first, other)
        factor = above[first] / number
        moved = {_times(m, shift): c * factor for m, c in below.items()}
        if moved == above:
            return factored(factor * monomial_of(shift) * beneath / under)
    return None


def _times(one: Monomial, shift: Monomial) -> Monomial:
    return divided(one, frozenset((atom, -power) for atom, power in shift))


def _smaller(difference: Terms, derived: Terms) -> tuple[Expr, ...]:
    """Return by what each term of a difference is below a term of the formula; none if one is not.

    Terms of the formula count only if they are no part of the difference themselves.
    """
    leading = [one for one in derived if one not in difference]
    rests: dict[Expr, None] = {}
    for one in difference:
        ratios = (divided(large, one) for large in leading)
        sizes = [
            ratio
            for ratio in ratios
            if ratio and all(isinstance(atom, Symbol) and power > 0 for atom, power in ratio)
        ]
        if not sizes:
            return ()
        rests[monomial_of(min(sizes, key=_degree))] = None
    return tuple(rests)


def _degree(ratio: Monomial) -> Expr:
    return Add(*(power for _, power in ratio))


def without_brackets(expr: Expr) -> Expr:
    """Take every degree for several ranks: papers leave the brackets [p > 1] out."""
    return expr.replace(Active, lambda _: Integer(1))


@dataclass(frozen=True, slots=True)
class Side:
    """A term of one count.

    Args:
        source: why it is what it is: a reference, an answer of conventions, ops.
    """

    expr: Expr
    source: str


NOTHING = Side(Integer(0), "none")


@dataclass(frozen=True, slots=True)
class Differing:
    """A term that two counts do not share."""

    name: str
    first: Side
    second: Side

    @property
    def expr(self) -> Expr:
        """What the second has more than the first."""
        return self.second.expr - self.first.expr


def differences(
    first: Mapping[str, Side], second: Mapping[str, Side]
) -> tuple[tuple[Differing, ...], tuple[str, ...]]:
    """Compare two counts term by term.

    Returns:
        The terms that differ, in the order of the counts, and the names of those that are equal.

    >>> from symbolic_cost.symbols import V, e
    >>> head, norm = Side(6 * V * e, "head"), Side(6 * e, "norms")
    >>> differing, alike = differences({"head": head}, {"head": head, "norms": norm})
    >>> [(one.name, one.expr) for one in differing], alike
    ([('norms', 6*e)], ('head',))
    """
    names = dict.fromkeys((*first, *second))
    pairs = [Differing(n, first.get(n, NOTHING), second.get(n, NOTHING)) for n in names]
    differing = tuple(one for one in pairs if not equal(one.first.expr, one.second.expr))
    unlike = {one.name for one in differing}
    return differing, tuple(name for name in names if name not in unlike)


def total(differing: tuple[Differing, ...]) -> Expr:
    """Sum what the second count has more."""
    return Add(*(one.expr for one in differing))
