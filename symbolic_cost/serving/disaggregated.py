"""Plans with engines that prefill apart from those that decode: how many of each, of which kinds.

Both pools are as large as their shares of the load ask for. For example engines of 8 GPUs that
prefill 6 requests per second, beside engines of 8 that decode 4: of 80 GPUs 4 prefill 24 and 6
decode 24; for 10 requests per second 2 and 3 are enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from math import ceil

from symbolic_cost.errors import InputError
from symbolic_cost.records import dataclass
from symbolic_cost.serving.choice import Choice, Miss, MissedError, Plan, roomy
from symbolic_cost.serving.engine_numbers import Clock, Sized
from symbolic_cost.serving.pools import MOST_MOVING, Pools, Prefilling, in_flight
from symbolic_cost.serving.steady import MOST_BUSY
from symbolic_cost.systems.network import Link

_LEAST = 2
"""Prompts that a prefilling engine has room for: one that runs, and one whose cache leaves."""
_TRIED = 3
"""Kinds of engines that prefill which are looked at beside one that decodes."""

_MANY = 1024
"""Engines of which each leaves but few caches for one."""

Counts = tuple[int, int]
"""Engines that prefill, and engines that decode."""


@dataclass(frozen=True)
class Pair:
    """A kind of engine that prefills and one that decodes."""

    choice: Choice
    first: Clock
    then: Clock

    @property
    def ranks(self) -> Counts:
        """Of one engine of each kind."""
        return int(self.first.sized.engine.ranks), int(self.then.sized.engine.ranks)

    @property
    def _most(self) -> int:
        return self.then.sized.most(self.choice.load.longest)

    @property
    def transfer(self) -> float:
        """Time in which the cache of one prompt moves [s].

        The ranks of both engines send and receive their shares at once; the largest takes longest.
        """
        tokens, link = self.choice.load.input, self.link
        size = max(one.sized.sequence_bytes(tokens) for one in (self.first, self.then))
        return size / float(link.bandwidth) + float(link.latency)

    @property
    def link(self) -> Link:
        """The link that caches cross: the innermost that joins all GPUs."""
        links = self.then.sized.engine.machine.links
        gpus = self.choice.gpus
        joining = (one for one in links if one.ranks is None or gpus <= int(one.ranks.value))
        return next(joining, links[-1]).reached

    def pools(self, counts: Counts, sequences: float, share: float = MOST_BUSY) -> Pools:
        """Return one place that decodes, of so many engines of each kind."""
        first, then = self.first.sized, self.then.sized
        stages, places = int(first.engine.stages), counts[0] * first.copies
        prefilling = Prefilling(self.first, places, self.transfer, stages, share)
        return Pools(
            self.choice.load,
            sequences,
            self.then,
            prefilling,
            counts[1] * then.copies,
            int(then.engine.stages),
        )

    def plans(self) -> Iterator[Plan]:
        """Yield plans that meet the targets: at a rate, or on all GPUs by sequences of each."""
        if self.choice.targets.rate is not None:
            yield self._at(self.choice.targets.rate)
            return
        for n in self.choice.meeting(lambda n: self._fullest(n)[1], self._most, self.then.sized):
            counts, steady = self._fullest(n)
            flying = replace(steady, sequences=steady.flying)
            yield self._plan(counts, flying, steady.slower)

    def _plan(self, counts: Counts, steady: Pools, binds: str, rate: float | None = None) -> Plan:
        apart = (self.first.sized, counts[0])
        return Plan(self.then.sized, counts[1], steady, binds, apart, rate)

    def _fullest(self, sequences: float) -> tuple[Counts, Pools]:
        """Return the engines of each kind that serve most on all GPUs, the fewest of these."""
        share = self._share(sequences)
        each = [(c, self.pools(c, sequences, share)) for c in self._counts(sequences, share)]
        return max(each, key=lambda one: (one[0][1] * one[1].requests, -one[0][0]))

    def _share(self, sequences: float) -> float:
        """Return the share of the time that prefilling engines may work and meet the TTFT."""
        one, ttft = self.pools((_MANY, _MANY), sequences), self.choice.targets.ttft
        if ttft is None:
            return MOST_BUSY
        most = min(one.decoded(sequences), MOST_MOVING / self.transfer)
        left = ttft - one.prompt - self.transfer - one.arriving(most)
        return min(MOST_BUSY, 2 * left / (one.service(most) + 2 * left)) if left > 0 else MOST_BUSY

    def _counts(self, sequences: float, share: float) -> Iterator[Counts]:
        """Yield numbers of engines of both kinds near those that keep step with each other."""
        one, (first, then) = self.pools((1, 1), sequences, share), self.ranks
        sized = self.first.sized, self.then.sized
        wanted = one.decoded(sequences) * sized[1].copies / (one.let * sized[0].copies)
        near = int(self.choice.gpus / (then + first * wanted))
        most = (self.choice.gpus - first) // then
        for decoding in {min(most, max(1, near + more)) for more in (0, 1)}:
            room = (self.choice.gpus - decoding * then) // first
            yield min(room, ceil(decoding * wanted)), decoding

    def _at(self, rate: float) -> Plan:
        """Return the fewest engines that take requests as they come."""
        targets, (first, then) = self.choice.targets, self.ranks
        stages = int(self.then.sized.engine.stages)
        room = roomy(self._most * stages) / stages
        free = self.pools((self.choice.gpus, 1), room)

        def pools(counts: Counts) -> Pools:
            each = rate / (counts[1] * self.then.sized.copies)
            return self.pools(counts, in_flight(each, free.decoded, room))

        def decodes(number: int) -> bool:
            each = rate / (number * self.then.sized.copies)
            own = pools((self.choice.gpus, number))
            keeps = free.decoded(room) >= each and each * self.transfer <= MOST_MOVING
            return keeps and targets.excess(0, own.between_by_chance) <= 1

        def prefills(number: int) -> bool:
            own = pools((number, decoding))
            each = rate / (decoding * self.then.sized.copies)
            return own.admitted >= each and targets.excess(own.first_token, 0) <= 1

        most = max(1, (self.choice.gpus - first) // then)
        decoding = _least(most, decodes)
        if decoding == 0:
            counts = ((self.choice.gpus - most * then) // first, most)
            raise self._missed(rate, counts, pools(counts))
        most = (self.choice.gpus - decoding * then) // first
        counts = (_least(most, prefills) or most, decoding)
        if not prefills(counts[0]):
            raise self._missed(rate, counts, pools(counts))
        return self._plan(counts, pools(counts), "rate", rate)

    def _missed(self, rate: float, counts: Counts, one: Pools) -> MissedError:
        """Say which pool is too small, with as many engines as there could be."""
        targets, told = self.choice.targets, f"at {rate:g} requests per second"
        if one.requests * counts[1] * self.then.sized.copies < (1 - _EXACT) * rate:
            most = one.requests * counts[1] * self.then.sized.copies
            words = f"takes {most:.4g} requests per second at most, of {rate:g}"
            return MissedError(Miss(rate / most, words))
        words = f"misses {targets.missed(one.first_token, one.between_by_chance)} {told}"
        return MissedError(Miss(targets.excess(one.first_token, one.between_by_chance), words))


_EXACT = 1e-6


def _least(most: int, meets: Callable[[int], bool]) -> int:
    """Return the least number from one to most that meets, all above meeting as well; 0 if none."""
    if most < 1 or not meets(most):
        return 0
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def pairs(asked: Choice, firsts: Iterable[Sized], then: Sized) -> Iterator[Pair]:
    """Yield the pairs worth a look: those whose first prefills most per GPU, of which two fit.

    Raises:
        InputError: none has room beside an engine that decodes.
    """
    asked.fitting(then)
    clock, listed = Clock(then), []
    for sized in firsts:
        pair = Pair(asked, Clock(sized), clock)
        fits = sum(pair.ranks) <= asked.gpus and sized.most(asked.load.input) >= _LEAST
        if fits:
            listed.append((pair.pools((1, 1), 1).prompt * pair.ranks[0] / sized.copies, pair))
    if not listed:
        raise InputError(f"{asked.gpus} GPUs do not hold two engines")
    yield from (pair for _, pair in sorted(listed, key=lambda one: one[0])[:_TRIED])
