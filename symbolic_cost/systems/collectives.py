"""Algorithms of collectives as sequences of steps, and their times on a network.

A run is a number of steps in a row; each step costs a latency, and the bytes that one rank sends
in all of them cost bandwidth (alpha-beta model).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cache, partial

from sympy import Expr, Integer, ceiling, log

from symbolic_cost.algebra import add, mul, replaced
from symbolic_cost.errors import InputError, looked_up
from symbolic_cost.extrema import Choice, Max
from symbolic_cost.lazy import Lazy
from symbolic_cost.ledger import CollectiveKind
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import Active, exact, message, p
from symbolic_cost.systems.network import Hops, Link

_ALL_REDUCE = CollectiveKind.ALL_REDUCE
_SCATTER = CollectiveKind.REDUCE_SCATTER
_GATHER = CollectiveKind.ALL_GATHER
_ALL_TO_ALL = CollectiveKind.ALL_TO_ALL
_BROADCAST = CollectiveKind.BROADCAST
_REDUCE = CollectiveKind.REDUCE
_SEND = CollectiveKind.SEND_RECEIVE


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps in a row.

    Args:
        count: how many.
        sent: by one rank in all of them [byte].
    """

    count: Expr
    sent: Expr


@dataclass(frozen=True)
class Algorithm:
    """The steps of every collective.

    Args:
        rules: count and bytes sent by collective, of (message, p).
    """

    name: str
    meaning: str
    source: str
    rules: Mapping[CollectiveKind, tuple[Expr, Expr]] = field(hash=False)

    def steps(self, kind: CollectiveKind, size: Expr, ranks: Expr) -> Steps:
        """Return the steps of a collective."""
        count, sent = self.rules[kind]
        of = {message: size, p: ranks}
        return Steps(replaced(count, of), replaced(sent, of))

    def time(self, kind: CollectiveKind, size: Expr, ranks: Expr, link: Link) -> Expr:
        """Return the time of a collective over one kind of link [s]."""
        steps = self.steps(kind, size, ranks)
        waits = self.steps(kind, size, link.around(ranks)).count
        return waits * link.latency + steps.sent / link.bandwidth


_PART = message * (p - 1) / p
_TWICE = (_ALL_REDUCE, _BROADCAST, _REDUCE)
"""Collectives whose parts go there and back."""


@cache
def _rounds() -> Expr:
    return ceiling(log(p, 2))


def _rules(
    rules: Mapping[CollectiveKind, tuple[Expr | int, Expr]],
) -> dict[CollectiveKind, tuple[Expr, Expr]]:
    whole = {_SEND: (1, message), **rules}
    return {kind: (exact(count), sent) for kind, (count, sent) in whole.items()}


def _doubled() -> dict[CollectiveKind, tuple[Expr | int, Expr]]:
    """Return the steps of partners at distances 1, 2, 4, ...: once, or there and back."""
    return {
        **dict.fromkeys((_SCATTER, _GATHER), (_rounds(), _PART)),
        **dict.fromkeys(_TWICE, (2 * _rounds(), 2 * _PART)),
        _ALL_TO_ALL: (_rounds(), _rounds() * message / 2),
    }


ALGORITHMS: Mapping[str, Algorithm] = Lazy(
    {
        "ring": lambda: Algorithm(
            "ring",
            "neighbours pass on one p-th of the message; broadcasts and reductions in p pieces",
            "ring-collectives",
            _rules(
                {
                    **dict.fromkeys(_TWICE, (2 * (p - 1), 2 * _PART)),
                    **dict.fromkeys((_SCATTER, _GATHER, _ALL_TO_ALL), (p - 1, _PART)),
                }
            ),
        ),
        "tree": lambda: Algorithm(
            "tree",
            "a binomial tree; scattering and gathering halve or double what they pass on",
            "thakur-2005",
            _rules(
                {
                    _ALL_REDUCE: (2 * _rounds(), 2 * _rounds() * message),
                    _SCATTER: (2 * _rounds(), _rounds() * message + _PART),
                    _GATHER: (2 * _rounds(), _PART + _rounds() * message),
                    _ALL_TO_ALL: (_rounds(), _rounds() * message / 2),
                    _BROADCAST: (_rounds(), _rounds() * message),
                    _REDUCE: (_rounds(), _rounds() * message),
                }
            ),
        ),
        "recursive doubling": lambda: Algorithm(
            "recursive doubling",
            "partners at distances 1, 2, 4, ...; "
            "an all-reduce exchanges the whole message each time",
            "thakur-2005",
            _rules(_doubled() | {_ALL_REDUCE: (_rounds(), _rounds() * message)}),
        ),
        "halving and doubling": lambda: Algorithm(
            "halving and doubling",
            "as recursive doubling; an all-reduce is a reduce-scatter and an all-gather",
            "thakur-2005",
            _rules(_doubled()),
        ),
        "in-network": lambda: Algorithm(
            "in-network",
            "switches add and copy: up to the switch and down; an all-to-all gains nothing",
            "graham-2016",
            _rules(
                {
                    _ALL_REDUCE: (2, message),
                    _SCATTER: (2, _PART),
                    _GATHER: (2, _PART),
                    _ALL_TO_ALL: (p - 1, _PART),
                    _BROADCAST: (2, message),
                    _REDUCE: (2, message),
                }
            ),
        ),
    }
)
"""Every algorithm by name."""

Rule = Callable[[CollectiveKind, Expr, Hops], Expr]
"""Time of a collective of a message in a group [s]."""


@dataclass(frozen=True, slots=True)
class Collectives:
    """A named answer to the question how long a collective takes on a network.

    Args:
        rule: gives the time [s].
    """

    name: str
    meaning: str
    source: str
    rule: Rule

    def time(self, kind: CollectiveKind, size: Expr, hops: Hops) -> Expr:
        """Return the time of a collective [s].

        Args:
            kind: of the collective.
            size: of the full message, of the local buffer for an all-to-all [byte].
            hops: where the group lies.
        """
        return self.rule(kind, size, hops)


@dataclass(frozen=True)
class _Flat:
    """Takes no notice of tiers: every step waits for the slowest link."""

    algorithm: Algorithm

    def __call__(self, kind: CollectiveKind, size: Expr, hops: Hops) -> Expr:
        steps = self.algorithm.steps(kind, size, _ranks(hops))
        latency = Max(*(Active(hop.ranks) * hop.link.latency for hop in hops))
        slowness = Max(*(Active(hop.ranks) / hop.link.bandwidth for hop in hops))
        return steps.count * latency + steps.sent * slowness


@dataclass(frozen=True)
class _Hierarchical:
    """Runs in every tier, outer tiers on what inner ones have reduced."""

    algorithm: Algorithm

    def __call__(self, kind: CollectiveKind, size: Expr, hops: Hops) -> Expr:
        terms, left = [], size
        for hop in hops:
            time = self.algorithm.time(kind, left, hop.ranks, hop.link)
            terms.append(Active(hop.ranks) * time)
            if kind in {_ALL_REDUCE, _SCATTER, _GATHER}:
                left = left / hop.ranks
        return Max(*terms) if kind is _SEND else add(*terms)


@dataclass(frozen=True)
class _TwoTiers:
    """Rings on two tiers, whose members in one domain share some network interfaces each."""

    nics: Expr

    def __call__(self, kind: CollectiveKind, size: Expr, hops: Hops) -> Expr:
        return _two_tiers(kind, size, hops, self.nics)


def flat(algorithm: Algorithm) -> Collectives:
    """Return an algorithm that takes no notice of tiers: every step waits for the slowest link."""
    rule = _Flat(algorithm)
    return Collectives(algorithm.name, algorithm.meaning, algorithm.source, rule)


def hierarchical(algorithm: Algorithm) -> Collectives:
    """Return an algorithm that runs in every tier, outer tiers on what inner ones have reduced."""
    meaning = "reduce-scatter and all-gather inside a domain, the rest of the work between domains"
    rule = _Hierarchical(algorithm)
    return Collectives(f"hierarchical {algorithm.name}", meaning, algorithm.source, rule)


_TIERS = 2


def two_tier_rings(nics: Expr) -> Collectives:
    """Return rings on two tiers, whose members in one domain share its network interfaces.

    Broadcasts and reductions are pipelined, so that they send the message once. Where a group
    uses both tiers, the slower of them sets the pace and every hop costs its latency.

    Args:
        nics: interfaces per member.

    Source: subramanian-2024-head, time model.
    """
    return Collectives(
        "two-tier rings",
        "rings whose members in one domain share its network interfaces",
        "subramanian-2024-head",
        _TwoTiers(nics),
    )


def _two_tiers(kind: CollectiveKind, size: Expr, hops: Hops, nics: Expr) -> Expr:
    if len(hops) != _TIERS:
        raise InputError(
            f"two-tier rings take {_TIERS} kinds of links; the machine has {len(hops)}"
        )
    inside, outside = hops
    fast, slow = inside.link, outside.link
    ranks = _ranks(hops)
    if kind is _SEND:
        hop = [link.latency + size / link.bandwidth for link in (slow, fast)]
        return Active(ranks) * Choice(Active(outside.ranks), *hop)
    sent = size if kind in {_BROADCAST, _REDUCE} else size * (ranks - 1) / ranks
    sent = 2 * sent if kind is _ALL_REDUCE else sent
    shared = Choice(Active(inside.ranks), nics * inside.ranks, Integer(1))
    between = Active(outside.ranks) / (shared * slow.bandwidth)
    within = Active(inside.ranks) / fast.bandwidth
    latency = (outside.ranks - 1) * slow.latency + (ranks - outside.ranks) * fast.latency
    return sent * Max(between, within) + latency


def _ranks(hops: Hops) -> Expr:
    return mul(*(hop.ranks for hop in hops))


COLLECTIVES: Mapping[str, Collectives] = Lazy(
    {
        **{name: partial(lambda name: flat(ALGORITHMS[name]), name) for name in ALGORITHMS},
        **{
            f"hierarchical {name}": partial(lambda name: hierarchical(ALGORITHMS[name]), name)
            for name in ALGORITHMS
            if name != "in-network"
        },
        "two-tier rings": lambda: two_tier_rings(Integer(1)),
    }
)
"""Every answer by name."""


def collectives(name: str) -> Collectives:
    """Return an answer by name.

    Raises:
        UnknownNameError: no such answer; the closest are offered.
    """
    return looked_up("collective algorithm", name, COLLECTIVES)
