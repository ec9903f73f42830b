"""Times of collectives as they were measured: a call, hops, and bytes under two protocols.

Tiers work at the same time: a ring over all ranks crosses each of them, and the slowest sets the
pace. Above 64 ranks of a tier the hops are those of a tree; an all-to-all sends to all at once.

For example an all-gather of 512 MiB over 8 ranks of h100: 6 us for the call, 7 hops of 0.75 us, and
7/8 of the bytes and 0.35/8 for the copy of a rank's own part at 0.74 of 450 GB/s, 1.5 ms.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from sympy import Expr, Integer, ceiling, log

from symbolic_cost.algebra import add, mul, replaced
from symbolic_cost.extrema import AtLeast, Choice, Max, Min
from symbolic_cost.ledger import CollectiveKind
from symbolic_cost.reading import package_data
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import Active, exact, p
from symbolic_cost.systems.kernel_formulas import REDUCING, Calls, at_once, crowded, ways
from symbolic_cost.systems.network import Hops
from symbolic_cost.systems.routing import EACH, Routing

_ONE, _SEND = Integer(1), CollectiveKind.SEND_RECEIVE


@dataclass(frozen=True, slots=True)
class Measured:
    """Collectives of a machine.

    Args:
        calls: inside one domain, as measured.
        outer: share of an outer link's bandwidth that large messages reach.
        hop: from one domain to another [s].
    """

    calls: Calls
    outer: Expr
    hop: Expr

    def time(
        self,
        kind: CollectiveKind,
        size: Expr,
        hops: Hops,
        slowness: tuple[Expr, Expr],
        routing: Routing = EACH,
    ) -> Expr:
        """Return the time of a collective [s]; none for one rank.

        Args:
            kind: of the collective.
            size: of the full message, of the local buffer for an all-to-all [byte].
            hops: where the group lies, innermost first, at the links' own bandwidths.
            slowness: of inner and of outer links.
            routing: of an all-to-all, whose copies of an element may go on as one.
        """
        inner, outer = slowness
        several = 1 - mul(*(1 - Active(hop.ranks) for hop in hops))
        own = self.calls.reducing if kind in REDUCING else self.calls.gathering
        sending, waiting = [], []
        copied = several * self.calls.copied(kind, size / mul(*(hop.ranks for hop in hops)))
        for place, (hop, sent) in enumerate(
            zip(hops, _sent(kind, size, hops, routing), strict=True)
        ):
            crowd = _ONE if kind is _SEND else crowded(hop.link, hop.ranks)
            share = own / inner if place == 0 else self.outer / outer
            whole = sent + copied if place == 0 else sent
            sending.append(whole * crowd / (share * hop.link.bandwidth))
            step = self.calls.hop if place == 0 else self.hop
            waiting.append(step * _steps(kind, hop.ranks))
        paced = Max(*sending) if len(sending) > 1 else sending[0]
        moved = Min(paced / self.calls.small, self.calls.large + paced)
        return several * self.calls.call + add(*waiting) + moved


def outer_links() -> tuple[Expr, Expr]:
    """Return the share of the bandwidth and the time of a hop [s] outside of domains."""
    record = package_data("systems/stacks.toml")["outer"]
    return exact(record["share"]["value"]), exact(record["hop"]["value"])


def _sent(kind: CollectiveKind, size: Expr, hops: Hops, routing: Routing) -> Iterator[Expr]:
    """Yield what one rank sends on each tier [byte]."""
    every, before = mul(*(hop.ranks for hop in hops)), Integer(1)
    for hop in hops:
        reached = before * hop.ranks
        if kind is _SEND:
            yield Active(hop.ranks) * size
        elif kind is CollectiveKind.ALL_TO_ALL and routing.copies == 1:
            yield size * (reached - before) / every
        elif kind is CollectiveKind.ALL_TO_ALL:
            away = (hop.ranks - 1) / hop.ranks
            yield mul(size, away, routing.sent(every / before))
        else:
            yield ways(kind) * size * (hop.ranks - 1) / (hop.ranks * before)
        before = reached


def _steps(kind: CollectiveKind, ranks: Expr) -> Expr:
    """Return the hops in a row."""
    if kind is _SEND:
        return Active(ranks)
    if kind is CollectiveKind.ALL_TO_ALL:
        return Active(ranks) * at_once(ranks)
    if isinstance(ranks, Integer):  # SymPy takes a tenth of a second to round a logarithm up
        count = int(ranks)
        return ways(kind) * (count - 1 if count < _TREES else (count - 1).bit_length())
    return ways(kind) * replaced(_around(), {p: ranks})


@cache
def _around() -> Expr:
    """Return the hops of one way: of a ring, or of a tree above 64 ranks."""
    return Choice(AtLeast(p, _TREES), ceiling(log(p, 2)), p - 1)


_TREES = 65
"""Ranks from which on trees are faster than rings."""
