"""Formulas of measured kernels: products, attention, and collectives inside one domain.

`systems.kernels` says what each is; the parameters are those of kernels.toml.
"""

from __future__ import annotations

from functools import cache

from sympy import Expr, Integer, ceiling, log

from symbolic_cost.algebra import replaced
from symbolic_cost.extrema import Max, Min
from symbolic_cost.ledger import CollectiveKind
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import Active, p
from symbolic_cost.systems.collectives import ALGORITHMS
from symbolic_cost.systems.network import Link

NORMAL_WIDTH = Integer(128)
"""Width of the heads whose share of the peak is on record."""


@dataclass(frozen=True, slots=True)
class Products:
    """Matrix products in one precision.

    Args:
        share: of the matrix peak that large products reach.
        area: of a result that reaches half of it [element].
        length: of a sum that reaches half of it [element].
        memory: share of the memory's bandwidth that products reach which wait for it.
        call: of one kernel [s].
        cold: part of the time in which memory supplies operands by which computing is longer where
            these are in no cache, as among the other kernels of a model.
    """

    share: Expr
    area: Expr
    length: Expr
    memory: Expr
    call: Expr
    cold: Expr = Integer(0)

    def time(self, flop: Expr, area: Expr, traffic: Expr, peak: Expr, bandwidth: Expr) -> Expr:
        """Return the time of a product [s].

        Args:
            flop: that it takes; twice its area times its length.
            area: of its result [element].
            traffic: that it reads and writes [byte].
            peak: of the matrix units [FLOP/s].
            bandwidth: of the memory [byte/s].
        """
        slow = traffic / (self.memory * bandwidth)
        busy = self.charged(flop, area) / (self.share * peak)
        return self.call + Max(busy + self.fetched(traffic, bandwidth), slow)

    def fetched(self, traffic: Expr, bandwidth: Expr) -> Expr:
        """Return by how much longer a product computes whose operands are in no cache [s]."""
        return self.cold * traffic / bandwidth

    def charged(self, flop: Expr, area: Expr, whole: Expr | None = None) -> Expr:
        """Return the FLOP of a product of unlimited size that takes as long [FLOP].

        Args:
            flop: that it takes.
            area: of its result [element].
            whole: area of the results of the kernel that it is part of; its own unless given. Where
                it may be none, as of chunks but one, what computes nothing takes nothing.
        """
        some = Max(area if whole is None else whole, 1)
        return (flop + 2 * self.length * area) * (1 + self.area / some)


@dataclass(frozen=True, slots=True)
class AttentionKernels:
    """Attention over a prompt and of a decode step, in 16 bits.

    Args:
        share: of the matrix peak that long prompts reach with heads of 128.
        length: of a prompt that reaches half of it [token].
        width: of a head that takes twice as long per FLOP as a wide one.
        rows: of queries, of all heads and prompts, that reach half of it: few leave units idle.
        moving: share of the memory's bandwidth at which a prompt's tensors move; before and after
            its products, not beside them. None where that is in the share.
        call: of one kernel over a prompt [s].
        memory: share of the memory's bandwidth at which a decode step reads its cache.
        queries: how many bytes of cache one byte of queries and results costs as much as.
        step: of one kernel of a decode step [s].
    """

    share: Expr
    length: Expr
    width: Expr
    call: Expr
    memory: Expr
    queries: Expr
    step: Expr
    rows: Expr = Integer(0)
    moving: Expr | None = None

    def slowness(self, tokens: Expr, wide: Expr, rows: Expr) -> Expr:
        """Return the time of a FLOP, that of a long prompt with heads of 128 being one.

        Args:
            tokens: of one prompt.
            wide: width of a head.
            rows: of queries, of all heads and prompts.
        """
        own = (1 + self.width / wide) / (1 + self.width / NORMAL_WIDTH)
        return (1 + self.length / tokens) * (1 + self.rows / rows) * own

    def moved(self, traffic: Expr, bandwidth: Expr) -> Expr:
        """Return the time in which a prompt's tensors move beside no product [s].

        Args:
            traffic: that is read and written [byte].
            bandwidth: of the memory [byte/s].
        """
        return Integer(0) if self.moving is None else traffic / (self.moving * bandwidth)

    def decode(self, cache: Expr, queries: Expr, busy: Expr, bandwidth: Expr) -> Expr:
        """Return the time of the attention of a decode step [s].

        Args:
            cache: bytes of keys and values that are read.
            queries: bytes of queries and of results.
            busy: what its products take [s]; many heads that share one latent wait for these.
            bandwidth: of the memory [byte/s].
        """
        slow = (cache + self.queries * queries) / (self.memory * bandwidth)
        return self.step + Max(slow, busy)


@dataclass(frozen=True, slots=True)
class Calls:
    """Collectives inside one domain: a call, hops around a ring, and bytes.

    Args:
        gathering: share of the link's bandwidth that all-gathers and all-to-alls reach.
        reducing: that of all-reduces and reduce-scatters.
        small: part of both that the protocol for small messages reaches.
        call: of one collective [s].
        hop: from one rank to the next [s].
        large: by which the protocol for large messages begins later [s].
        copy_share: time in which a rank copies its own part, in that in which another's arrives.
    """

    gathering: Expr
    reducing: Expr
    small: Expr
    call: Expr
    hop: Expr
    large: Expr
    copy_share: Expr = Integer(0)

    def time(self, kind: CollectiveKind, size: Expr, ranks: Expr, link: Link) -> Expr:
        """Return the time of a collective [s]; none for one rank.

        Args:
            kind: of the collective.
            size: of the full message, of the local buffer for an all-to-all [byte].
            ranks: that take part.
            link: at its own bandwidth.
        """
        steps = ALGORITHMS["ring"].steps(kind, size, ranks)
        count = at_once(ranks) if kind is CollectiveKind.ALL_TO_ALL else steps.count
        sent = (steps.sent + self.copied(kind, size / ranks)) * crowded(link, ranks)
        took = self.call + self.hop * count + self.sending(kind, sent / link.bandwidth)
        return Active(ranks) * took

    def copied(self, kind: CollectiveKind, part: Expr) -> Expr:
        """Return the bytes sent that take as long as a rank's copy of its own part [byte]."""
        return (
            Integer(0)
            if kind is CollectiveKind.SEND_RECEIVE
            else ways(kind) * self.copy_share * part
        )

    def sending(self, kind: CollectiveKind, nominal: Expr) -> Expr:
        """Return what the bytes take under the faster protocol [s].

        Args:
            kind: of the collective.
            nominal: what they take at the link's bandwidth [s].
        """
        share = self.reducing if kind in REDUCING else self.gathering
        return Min(nominal / (self.small * share), self.large + nominal / share)


def ways(kind: CollectiveKind) -> int:
    """Return 2 for collectives whose parts go there and back, 1 for others."""
    return 2 if kind in _TWICE else 1


def at_once(ranks: Expr) -> Expr:
    """Return the hops in a row of an all-to-all, whose messages to all partners go at once.

    One, and one for every doubling of the ranks: between 2, 4 and 8 of b200 small messages take
    9.0, 9.9 and 10.6 us, those of an all-gather, which passes them around, 8.0, 10.7 and 15.8.
    """
    if isinstance(ranks, Integer):  # SymPy takes a tenth of a second to round a logarithm up
        return Integer(1 + (int(ranks) - 1).bit_length())
    return 1 + replaced(_doublings(), {p: ranks})


@cache
def _doublings() -> Expr:
    return ceiling(log(p, 2))


def crowded(link: Link, ranks: Expr) -> Expr:
    """Return how many times longer than between two ranks a link is busy per byte that one sends.

    Devices on PCIe reach each other over the bridges of their host, which all share: on a server of
    eight l40s two ranks reach 20, four 4.8 and eight 1.4 GB/s, as 1/p^2.
    """
    return ranks**2 / 4 if link.name == "pcie" else Integer(1)


_TWICE = (CollectiveKind.ALL_REDUCE, CollectiveKind.BROADCAST, CollectiveKind.REDUCE)

REDUCING = (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER, CollectiveKind.REDUCE)
