"""Overlap of communication with computing: named answers to what of it is exposed."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from decimal import Decimal, InvalidOperation

from sympy import Expr, Integer

from symbolic_cost.algebra import add, mul
from symbolic_cost.errors import InputError, unknown
from symbolic_cost.extrema import Max, Min
from symbolic_cost.ledger import CollectiveKind, Phase
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact

HOST = "host"
"""Where rows are that are offloaded; the policy of its link goes by this name."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """One answer.

    Args:
        name: of the answer, with its number; answers of one name are the same.
        rule: exposed time of (communication, what may run at the same time) [s].
        share: of the communication that may be hidden, where that is all there is to say; may
            stay open, as a term.
    """

    name: str
    meaning: str
    rule: Callable[[Expr, Expr], Expr] = field(compare=False)
    share: Expr | None = field(default=None, compare=False)

    def exposed(self, communication: Expr, busy: Expr) -> Expr:
        """Return what of a communication is waited for [s].

        Args:
            communication: its time [s].
            busy: time of the computing that may hide it [s].
        """
        return self.rule(communication, busy)

    def of(self, phase: Phase, kind: CollectiveKind | None = None) -> "Overlap":
        """Return the answer for what is sent in a phase, where that depends on it."""
        if self != GRADIENTS:
            return self
        reduced = phase is Phase.BACKWARD_INPUT and kind in _REDUCTIONS
        return FULL if reduced or phase is Phase.BACKWARD_WEIGHT else NONE

    def in_turn(self, communication: Expr, busy: Expr, times: Expr) -> Expr:
        """Return what is waited for alike communications, each beside the next computing [s].

        The first has none beside it: 3 of 5 s beside 4 s make 5 + 2 (5 - 4) s.

        Args:
            communication: time of one [s].
            busy: time of the computing that may hide one [s].
            times: how many.
        """
        return communication + (times - 1) * self.exposed(communication, busy)


def _all(communication: Expr, busy: Expr) -> Expr:  # noqa: ARG001 - one signature
    return communication


def _excess(communication: Expr, busy: Expr) -> Expr:
    return Max(communication - busy, 0)


def _rest(share: Expr, communication: Expr, busy: Expr) -> Expr:
    return communication - Min(share * communication, busy)


def _first(panels: Expr, communication: Expr, busy: Expr) -> Expr:
    return communication / panels + Max(communication - busy, 0)


NONE = Overlap("none", "everything is waited for", _all, Integer(0))
FULL = Overlap("full", "what exceeds the computing is waited for", _excess, Integer(1))

GRADIENTS = Overlap(
    "gradients",
    "reductions of gradients, and what is gathered for those of weights, are hidden",
    NONE.rule,
)
_REDUCTIONS = (CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE)


def partial(share: Expr) -> Overlap:
    """Return the answer that a share of the communication may be hidden."""
    return Overlap(
        f"partial={share}",
        "a share of the communication is hidden as far as the computing lasts",
        functools.partial(_rest, share),
        share,
    )


def exposed(parts: Sequence[tuple[Overlap, Expr]], busy: Expr) -> Expr:
    """Return what is waited for of communications under several answers [s].

    All that may be hidden hides together, since no second of computing hides two: 3 and 4 s, of the
    latter a half, beside 4 s of computing leave 3 + 4 - min(3 + 2, 4) s.

    Args:
        parts: an answer, and the time of the communication that it goes for [s].
        busy: time of the computing that may hide it [s].
    """
    apart = [policy.exposed(time, busy) for policy, time in parts if policy.share is None]
    shared = [(policy, policy.share, time) for policy, time in parts if policy.share is not None]
    apart += [time for _, share, time in shared if share == 0]
    hiding = [one for one in shared if one[1] != 0]
    whole = add(*(time for _, _, time in hiding))
    if len({policy for policy, _, _ in hiding}) > 1:
        hidden = Min(add(*(mul(share, time) for _, share, time in hiding)), busy)
        return add(*apart, whole - hidden)
    return add(*apart, *(policy.exposed(whole, busy) for policy, _, _ in hiding[:1]))


def in_turn(parts: Sequence[tuple[Overlap, Expr]], busy: Expr, times: Expr) -> Expr:
    """Return what is waited for alike communications, each beside the next computing [s].

    As `Overlap.in_turn`, of communications under several answers that hide together. Whoever runs
    none waits for none, and of half a run one in two waits.
    """
    first, others = Min(times, 1), Max(times - 1, 0)
    return first * add(*(time for _, time in parts)) + others * exposed(parts, busy)


def pipelined(panels: Expr) -> Overlap:
    """Return the answer of products in panels: the first is waited for, later ones are hidden.

    Source: subramanian-2024-head, SUMMA layers.
    """
    return Overlap(
        f"panels={panels}",
        "the communication of the first panel is waited for, and what exceeds the computing",
        functools.partial(_first, panels),
    )


_NAMED: Mapping[str, Overlap] = {one.name: one for one in (NONE, FULL, GRADIENTS)}
_WITH_NUMBER: Mapping[str, Callable[[Expr], Overlap]] = {"partial": partial, "panels": pipelined}


def overlap(text: str) -> Overlap:
    """Return an answer by name: "none", "full", "gradients", "partial=0.8" or "panels=4".

    Raises:
        InputError: no such name, or a number that it does not take.
    """
    name, equals, number = text.partition("=")
    if name in _NAMED and not equals:
        return _NAMED[name]
    if name not in _WITH_NUMBER:
        accepted = [*_NAMED, *(f"{name}=..." for name in _WITH_NUMBER)]
        raise InputError(unknown("overlap", text, accepted))
    try:
        limit = exact(Decimal(number))
    except (InvalidOperation, InputError):
        limit = Integer(-1)
    fits = 0 <= limit <= 1 if name == "partial" else limit.is_Integer and limit >= 1
    if not fits:
        wanted = "a share from 0 to 1" if name == "partial" else "a positive integer"
        raise InputError(f"overlap {text!r}: {wanted} is accepted after {name}=")
    return _WITH_NUMBER[name](limit)


def overlaps(text: str) -> dict[str, Overlap]:
    """Return the answers for mesh axes, as in "dp=full,tp=partial=0.5"."""
    pairs = (part.partition("=") for part in text.split(",") if part)
    return {mesh: overlap(answer) for mesh, _, answer in pairs}
