"""Differences term by term: what one count has more than another, as formulas with sources."""

from __future__ import annotations

from collections.abc import Mapping

from sympy import Add, Expr, Integer

from symbolic_cost.analysis.forms import equal
from symbolic_cost.records import dataclass


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
