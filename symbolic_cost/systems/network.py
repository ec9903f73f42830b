"""Networks: a fast link inside a domain, a slow one between domains."""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Expr, Integer, log


@dataclass(frozen=True, slots=True)
class Link:
    """One kind of link.

    Args:
        name: of the link.
        bandwidth: of one rank [byte/s].
        latency: of one step [s].
    """

    name: str
    bandwidth: Expr
    latency: Expr = Integer(0)

    def time(self, charged: Expr, ranks: Expr) -> Expr:
        """Return the time of a collective whose steps double the ranks reached [s].

        Args:
            charged: bytes charged to one rank [byte].
            ranks: that take part.
        """
        return charged / self.bandwidth + log(ranks, 2) * self.latency


@dataclass(frozen=True, slots=True)
class TwoLinks:
    """Two links, of which a whole group uses one.

    Args:
        fast: used by groups that fit into one domain.
        slow: used by the others.
        domain: ranks that the fast link joins; 0 where there is none, infinite where all are.
    """

    fast: Link
    slow: Link
    domain: Expr

    def link(self, ranks: Expr) -> Link:
        """Return the link that a group of ranks uses."""
        return self.fast if ranks <= self.domain else self.slow
