"""Where the copies of a token go: to how many ranks or nodes its experts lie on.

A token with k experts drawn evenly reaches u (1 - (1 - 1/u)^k) of u units. Where its experts lie in
g of G groups, as those of DeepSeek-V3 in 4 of 8, u units of G/u groups each are reached if one of
the chosen groups is theirs, and one of the experts in it:

    u < G:   u (1 - sum over j of C(G/u, j) C(G - G/u, g - j)/C(G, g) (1 - j/g)^k)
    u >= G:  u g/G (1 - (1 - G/(g u))^k)

For example 8 experts of a token in 4 of 8 groups on 8 nodes: 3.6 nodes, without groups 5.25.

Source: deepseek-2024, section 2.1.2; deepep-2025.
"""

from __future__ import annotations

from functools import cache
from math import comb

from sympy import Expr, Integer, Rational

from symbolic_cost.algebra import add, mul, replaced
from symbolic_cost.extrema import AtLeast, Choice, Max
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import E_t, p


@dataclass(frozen=True, slots=True)
class Routing:
    """Copies of a token that go as one to the experts of one unit, and are summed there.

    Args:
        copies: that go as one; one where each goes alone.
        groups: that experts are divided into.
        chosen: groups that the experts of a token lie in.
    """

    copies: Expr = Integer(1)
    groups: int = 1
    chosen: int = 1

    def sent(self, units: Expr) -> Expr:
        """Return how often an element goes out to some units, per copy of it."""
        share = replaced(_reached(self.groups, self.chosen), {E_t: self.copies, p: units})
        return mul(share, units, 1 / self.copies)


EACH = Routing()
"""Every copy goes alone."""


@cache
def _reached(groups: int, chosen: int) -> Expr:
    """Return the part of p units that E_t copies reach; units of one are never asked."""
    among = chosen * Max(p, groups)
    fine = Rational(chosen, groups) * (1 - (Max(among - groups, Rational(1, 2)) / among) ** E_t)
    if groups == 1:
        return fine
    own = Max(groups / p, 1)
    missed = (
        comb(chosen, j)
        * _falling(own, j)
        * _falling(groups - own, chosen - j)
        / _falling(Integer(groups), chosen)
        * Rational(chosen - j, chosen) ** E_t
        for j in range(chosen)
    )
    return Choice(AtLeast(p, groups), fine, 1 - add(*missed))


def _falling(size: Expr, count: int) -> Expr:
    """Return size (size - 1) ... of so many factors."""
    return mul(*(size - i for i in range(count)))
