"""Continuous batching in steady state: throughput and latencies as closed forms.

An engine holds B sequences, each with P new input and N output tokens (after what prompts share).
Contexts are spread evenly over their length, so that a step takes what one takes at the mean.

Whole prompts (`Batching`): a request waits for the pass that runs, is prefilled alone, which gives
its first token, and takes part in N - 1 decode steps. B/(N - 1) sequences end per step, and as many
prompts are prefilled between two steps:

    cycle    = decode(B) + B/(N - 1) prefill(P)            a step and the prefills after it
    requests = B/((N - 1) cycle)                           per second
    ITL      = cycle - prefill(P)/(N - 1)                  prefills of others alone
    wait     = rate prefill^2/(2 (1 - rate prefill)) + decode/2

For example 64 sequences with 20 ms a step, 256 output tokens and prompts of 50 ms: a cycle of
20 + 64/255 50 = 32.5 ms, 7.7 requests and 1,975 tokens per second.

In chunks of at most K tokens (`Chunked`): a prompt runs in n = ceil(P/K) equal parts, one beside
the decode tokens of each step; of prompts that are shorter, a step takes up to m = K // P whole.

    begun    = min(B/(N - 1 + n), m/n)                     requests per step
    D        = begun (N - 1)                               sequences that decode
    step     = (1 - n begun) T(0) + n begun T(1)           T(i): D decode tokens and i parts
    requests = begun/step,  ITL = step
    wait     = rate S^2/(2 (1 - rate S)) + T(0)/2, S = n T(1)

For example 60 sequences, 256 output tokens, prompts in 4 parts, steps of 20 ms and of 35 ms with a
part: 60/259 = 0.232 requests begin per step, 59.1 sequences decode, 93 of 100 steps hold a part, a
step takes 33.9 ms, and 6.8 requests per second are served.

The wait is that of a queue whose server is away for a step when it finds nobody (Kleinrock,
Queueing Systems II, section 3.2; Doshi 1986), with several places that of M/D/m (Crommelin 1932).
An event simulation agrees to one percent (tests/serving). Where requests arrive by chance, chunks
are up to 2 % off in ITL, 4 % where they fill seven steps of ten: more sequences join than leave
while a queue of prompts runs, so that more tokens than the mean see its chunks.

Where a draft is checked, N - 1 is what is left of it after the tokens that a step yields.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from math import ceil, exp, floor, inf, lgamma, log
from typing import Protocol

from symbolic_cost.records import dataclass
from symbolic_cost.serving.load import Load

MOST_BUSY = 0.95
"""Share of the time in which engines for prompts work at most; beyond it queues grow long."""


class Times(Protocol):
    """Times of passes [s]."""

    def prefill(self, prompts: float, tokens: float, cached: float) -> float:
        """Return the time of so many more tokens of some prompts."""

    def decode(self, sequences: float, context: float) -> float:
        """Return the time of a decode step."""

    def mixed(
        self, sequences: float, context: float, prompts: float, tokens: float, cached: float
    ) -> float:
        """Return the time of a decode step that holds part of some prompts as well."""


@dataclass(frozen=True)
class Batching:
    """An engine in steady state that prefills whole prompts between decode steps.

    Args:
        sequences: in each microbatch of the engine.
        stages: of a pipeline; as many microbatches are in flight, one after the other.
    """

    load: Load
    sequences: float
    times: Times
    stages: int = 1

    chunk = None
    """Prompt tokens of a step at most; none, as prompts are whole."""

    @cached_property
    def prompt(self) -> float:
        """Time of one prefill [s]."""
        return self.times.prefill(1, self.load.prefilled, self.load.shared)

    @cached_property
    def step(self) -> float:
        """Time of a decode step [s]."""
        return self.times.decode(self.sequences, self.load.context)

    @cached_property
    def cycle(self) -> float:
        """Time of a decode step and of the prefills after it [s].

        Prefills of all microbatches pass the stages one behind the other.
        """
        prompts = self.sequences * self.stages / self.load.steps
        return self.step + prompts * self.prompt / self.stages

    @cached_property
    def requests(self) -> float:
        """Requests per second."""
        return self.sequences * self.stages / (self.load.steps * self.cycle)

    @property
    def first_token(self) -> float:
        """Time to the first token (TTFT) where requests arrive by chance [s]."""
        own = self.prompt / self.stages
        return waited(self.requests, own) + self.step / (2 * self.stages) + self.prompt

    @property
    def between(self) -> float:
        """Time from one token of a sequence to the next (ITL), prefills of others included [s]."""
        own = self.prompt / (self.stages * self.load.steps)
        return (self.cycle - own) / self.load.yielded

    @property
    def between_by_chance(self) -> float:
        """ITL where requests arrive by chance [s]: each sees the mean number beside itself."""
        return replace(self, sequences=self.sequences + 1).between


@dataclass(frozen=True)
class Chunked:
    """An engine in steady state whose steps hold decode tokens and part of prompts.

    Args:
        sequences: in each microbatch of the engine, those that are prefilled included.
        chunk: prompt tokens of one step at most.
        stages: of a pipeline; as many microbatches are in flight, each with chunks of its own.
    """

    load: Load
    sequences: float
    times: Times
    chunk: int
    stages: int = 1

    @cached_property
    def parts(self) -> int:
        """Parts that a prompt runs in."""
        return ceil(self.load.prefilled / self.chunk)

    @cached_property
    def places(self) -> int:
        """Prompts that one step takes, or takes a part of."""
        return max(1, self.chunk // self.load.prefilled)

    @cached_property
    def begun(self) -> float:
        """Requests per step."""
        return min(self.sequences / (self.load.steps + self.parts), self.places / self.parts)

    @property
    def busy(self) -> float:
        """Share of what steps could take of prompts that they do take."""
        return self.begun * self.parts / self.places

    @property
    def decoding(self) -> float:
        """Sequences that decode."""
        return self.begun * self.load.steps

    def holding(self, prompts: int, more: float = 0.0) -> float:
        """Return the mean time of a step with part of so many prompts [s].

        Times are linear in what is cached of a prompt, so that its middle part takes the mean.

        Args:
            prompts: that it holds part of.
            more: sequences beside the mean number of those that decode.
        """
        decoding = self.decoding + more
        if prompts == 0:
            return self.times.decode(decoding, self.load.context)
        part = self.load.prefilled / self.parts
        cached = self.load.shared + (self.load.prefilled - part) / 2
        return self.times.mixed(decoding, self.load.context, prompts, part, cached)

    def _mean(self, prompts: float, more: float = 0.0) -> float:
        """Return the mean time of steps that hold so many prompts in the mean [s]."""
        few = floor(prompts)
        share = prompts - few
        one = self.holding(few, more)
        return one if share == 0 else (1 - share) * one + share * self.holding(few + 1, more)

    @cached_property
    def step(self) -> float:
        """Mean time of a step [s]."""
        return self._mean(self.begun * self.parts)

    @cached_property
    def requests(self) -> float:
        """Requests per second."""
        return self.stages * self.begun / self.step

    @property
    def first_token(self) -> float:
        """Time to the first token (TTFT) where requests arrive by chance [s]; inf if all wait."""
        if self.busy >= 1:
            return inf
        if self.places == 1:
            own = self.parts * self.holding(1)
            return waited(self.requests / self.stages, own) + self.holding(0) / 2 + own
        queued = _queued(self.begun, self.places) / self.begun * self.step
        return queued + self.step / 2 + self._mean(min(self.places, 1 + self.begun))

    @property
    def between(self) -> float:
        """Time from one token of a sequence to the next (ITL) [s]."""
        return self.step / self.load.yielded

    @property
    def between_by_chance(self) -> float:
        """ITL where requests arrive by chance [s]: each sees the mean number beside itself."""
        return self._mean(self.begun * self.parts, 1.0) / self.load.yielded


def waited(rate: float, service: float) -> float:
    """Return the mean wait in a queue whose services all take as long [s]; inf if it grows."""
    busy = rate * service
    return busy * service / (2 * (1 - busy)) if busy < 1 else inf


def _queued(arriving: float, places: int) -> float:
    """Return how many wait at the start of a step, in the mean, where each takes some at most.

    The queue is a walk with steps A - m that stops at zero; its mean is the sum of
    E[(A_1 + ... + A_i - i m)+]/i over all i, A being Poisson numbers (Spitzer's identity).
    For one place it is the square of the share over twice what the share leaves.

    >>> round(_queued(0.5, 1), 4)
    0.25
    """
    total, number = 0.0, 1
    while number < _MOST_TERMS:
        term = _beyond(arriving * number, places * number) / number
        total += term
        if term < _LEAST * total or term == 0:
            break
        number += 1
    return total


_MOST_TERMS = 2000
_LEAST = 1e-6
_LEAST_OF_A_TERM = _LEAST**2


def _beyond(mean: float, level: int) -> float:
    """Return E[(A - level)+] of a Poisson number."""
    chance = exp(level * log(mean) - mean - lgamma(level + 1))  # of A = level
    total, number, least = 0.0, level, _LEAST_OF_A_TERM
    while chance > 0:
        number += 1
        chance *= mean / number
        term = (number - level) * chance
        total += term
        if term < least * total and number > mean:
            break
    return total
