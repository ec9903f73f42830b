"""Formulas of measured kernels: products, attention, and collectives inside one domain.

`systems.kernels` says what each is; the parameters are those of kernels.toml.
"""

from __future__ import annotations

from sympy import Expr, Integer

from symbolic_cost.extrema import Max, Min
from symbolic_cost.ledger import CollectiveKind
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import Active
from symbolic_cost.systems.collectives import ALGORITHMS

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
    """

    share: Expr
    area: Expr
    length: Expr
    memory: Expr
    call: Expr

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
        return self.call + Max(self.charged(flop, area) / (self.share * peak), slow)

    def charged(self, flop: Expr, area: Expr, whole: Expr | None = None) -> Expr:
        """Return the FLOP of a product of unlimited size that takes as long [FLOP].

        Args:
            flop: that it takes.
            area: of its result [element].
            whole: area of the results of the kernel that it is part of; its own unless given.
        """
        return (flop + 2 * self.length * area) * (
            1 + self.area / (area if whole is None else whole)
        )


@dataclass(frozen=True, slots=True)
class AttentionKernels:
    """Attention over a prompt and of a decode step, in 16 bits.

    Args:
        share: of the matrix peak that long prompts reach with heads of 128.
        length: of a prompt that reaches half of it [token].
        width: of a head that takes twice as long per FLOP as a wide one.
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

    def prefill(self, flop: Expr, tokens: Expr, wide: Expr, peak: Expr) -> Expr:
        """Return the time of attention over a prompt [s].

        Args:
            flop: of both products, without what the mask leaves out.
            tokens: of one prompt.
            wide: width of a head.
            peak: of the matrix units [FLOP/s].
        """
        return self.call + flop * self.slowness(tokens, wide) / (self.share * peak)

    def slowness(self, tokens: Expr, wide: Expr) -> Expr:
        """Return the time of a FLOP, that of a long prompt with heads of 128 being one."""
        own = (1 + self.width / wide) / (1 + self.width / NORMAL_WIDTH)
        return (1 + self.length / tokens) * own

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
    """

    gathering: Expr
    reducing: Expr
    small: Expr
    call: Expr
    hop: Expr
    large: Expr

    def time(self, kind: CollectiveKind, size: Expr, ranks: Expr, bandwidth: Expr) -> Expr:
        """Return the time of a collective [s]; none for one rank.

        Args:
            kind: of the collective.
            size: of the full message, of the local buffer for an all-to-all [byte].
            ranks: that take part.
            bandwidth: of the link, one direction [byte/s].
        """
        steps = ALGORITHMS["ring"].steps(kind, size, ranks)
        took = self.call + self.hop * steps.count + self.sending(kind, steps.sent / bandwidth)
        return Active(ranks) * took

    def sending(self, kind: CollectiveKind, nominal: Expr) -> Expr:
        """Return what the bytes take under the faster protocol [s].

        Args:
            kind: of the collective.
            nominal: what they take at the link's bandwidth [s].
        """
        share = self.reducing if kind in REDUCING else self.gathering
        return Min(nominal / (self.small * share), self.large + nominal / share)


REDUCING = (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER, CollectiveKind.REDUCE)
