"""Engines that prefill and engines that decode, apart: two pools, and caches that move between.

Requests arrive by chance, wait for one of the engines that prefill, leave it as a cache that
crosses a link, and join the next step of an engine that decodes. What follows a stage that takes
the same time for every request waits there only if it takes longer, and then as if the wait were
all at the slower (Friedman 1965), so that one queue stands for a prefill and its cache's way out;
at the other end caches of the other engines are before it:

    arriving = (1 - 1/prefilling) wait(rate/decoding, transfer)
    service  = max(prefill/stages, transfer + arriving)
    TTFT     = wait(rate/prefilling, service) + prefill + arriving + transfer
    requests = n/((N - 1) decode(n))                       of a decoding place with n sequences
    ITL      = decode(n)

Where requests arrive by chance each sees one sequence more than the mean, and waits half a step
before its first if one runs: ITL = (N - 1/2)/(N - 1) decode(n + 1) with many. An event simulation
agrees (tests/serving) while links work for a quarter of the time; beyond it caches block each
other, and no more is taken.

For example prompts of 50 ms, caches of 10 ms, 20 requests per second at 2 places that prefill and
4 that decode: 10 per second and place keep half of its time busy, 25 ms of wait; arriving takes
0.13 ms, TTFT is 25 + 50 + 0.13 + 10 ms.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import exp

from symbolic_cost.records import dataclass
from symbolic_cost.serving.load import Load
from symbolic_cost.serving.steady import MOST_BUSY, Times, waited

MOST_MOVING = 0.25
"""Share of the time in which a link moves caches at most."""


@dataclass(frozen=True)
class Prefilling:
    """The engines that prefill.

    Args:
        places: that take prompts, one after the other.
        transfer: time in which the cache of one prompt moves [s].
        stages: of a pipeline; as many prompts are on their way.
        share: of the time that they work at most.
    """

    times: Times
    places: int
    transfer: float
    stages: int = 1
    share: float = MOST_BUSY


@dataclass(frozen=True)
class Pools:
    """One of the places that decode, and all that prefill.

    Args:
        sequences: in each microbatch of a decoding engine at most.
        prefilling: engines for prompts.
        places: that decode.
        stages: of a decoding engine's pipeline.
    """

    load: Load
    sequences: float
    times: Times
    prefilling: Prefilling
    places: int = 1
    stages: int = 1

    chunk = None
    """Prompt tokens of a decode step; none, as prompts run elsewhere."""

    @cached_property
    def prompt(self) -> float:
        """Time of one prefill [s]."""
        return self.prefilling.times.prefill(1, self.load.prefilled, self.load.shared)

    @property
    def share(self) -> float:
        """Places that prefill for every place that decodes."""
        return self.prefilling.places / self.places

    def arriving(self, requests: float) -> float:
        """Return the wait of a cache for those of other engines [s]."""
        others = 1 - 1 / self.prefilling.places
        return others * waited(requests, self.prefilling.transfer)

    def service(self, requests: float) -> float:
        """Return the time between two prompts of a prefilling place that is never idle [s]."""
        leaving = self.prefilling.transfer + self.arriving(requests)
        return max(self.prompt / self.prefilling.stages, leaving)

    def step(self, more: float = 0.0) -> float:
        """Return the time of a decode step with so many sequences besides [s]."""
        return self.times.decode(self.flying + more, self.load.context)

    def decoded(self, sequences: float) -> float:
        """Return the requests per second of a place with so many sequences."""
        step = self.times.decode(sequences, self.load.context)
        return self.stages * sequences / (self.load.steps * step)

    @property
    def _worked(self) -> float:
        """Requests per second that a prefilling place runs."""
        return self.prefilling.share * self.prefilling.stages / self.prompt

    @property
    def _moved(self) -> float:
        """Requests per second whose caches a link moves."""
        return MOST_MOVING / self.prefilling.transfer

    @property
    def let(self) -> float:
        """Requests per second that a prefilling place lets through."""
        return min(self._worked, self._moved)

    @property
    def admitted(self) -> float:
        """Requests per second that prefills and links let through to this place."""
        return min(self.let * self.share, self._moved)

    @property
    def slower(self) -> str:
        """What sets the pace: decode, prefill or transfer."""
        if self.decoded(self.sequences) <= self.admitted:
            return "decode"
        return "prefill" if self.admitted == self._worked * self.share else "transfer"

    @cached_property
    def requests(self) -> float:
        """Requests per second of this place: the slower pool sets the pace."""
        return min(self.decoded(self.sequences), self.admitted)

    @cached_property
    def flying(self) -> float:
        """Sequences that decode in each microbatch, in the mean; fewer where prompts are slower."""
        if self.decoded(self.sequences) <= self.admitted:
            return self.sequences
        return in_flight(self.admitted, self.decoded, self.sequences)

    @property
    def busy(self) -> float:
        """Share of the time in which the engines for prompts work."""
        return self.requests * self.prompt / (self.prefilling.stages * self.share)

    @property
    def first_token(self) -> float:
        """Time to the first token (TTFT), which comes with the cache [s]."""
        behind = waited(self.requests / self.share, self.service(self.requests))
        return behind + self.prompt + self.arriving(self.requests) + self.prefilling.transfer

    @property
    def between(self) -> float:
        """Time from one token of a sequence to the next (ITL) where places are never free [s]."""
        return self.step() / self.load.yielded

    @property
    def between_by_chance(self) -> float:
        """ITL where requests arrive by chance [s]."""
        running = 1 - exp(-self.flying)
        joined = 1 + running / (2 * self.stages * self.load.steps)
        return joined * self.step(1.0) / self.load.yielded


def in_flight(rate: float, requests: Callable[[float], float], most: float) -> float:
    """Return the sequences in flight at a rate, in the mean.

    Args:
        rate: requests per second.
        requests: that so many sequences serve per second.
        most: sequences that there may be.
    """
    low, high = 0.0, float(most)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if requests(middle) < rate else (low, middle)
    return high


_HALVINGS = 32
