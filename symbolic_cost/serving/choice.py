"""Plans of one engine: at which numbers of sequences, and in which chunks, it meets the targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from functools import partial
from math import ceil, inf, sqrt

from symbolic_cost.errors import InputError, NothingFitsError
from symbolic_cost.records import dataclass
from symbolic_cost.serving.engine_numbers import MOST_SEQUENCES, USED, Clock, Sized
from symbolic_cost.serving.load import Load, Targets
from symbolic_cost.serving.pools import Pools, in_flight
from symbolic_cost.serving.steady import MOST_BUSY, Batching, Chunked

Steady = Batching | Chunked | Pools
"""An engine in steady state."""

CHUNKS: tuple[int | None, ...] = (None, 512, 1024, 2048, 4096, 8192, 16384)
"""Prompt tokens of a step that are looked at where none are asked for; None for whole prompts."""


@dataclass(frozen=True)
class Plan:
    """So many engines of one kind, each with so many sequences.

    Args:
        engines: how many.
        steady: one of them in steady state.
        binds: what keeps it from more.
        apart: engines that prefill apart from these, and how many; None where all do both.
        rate: requests per second that arrive by chance; None where there are always more.
    """

    sized: Sized
    engines: int
    steady: Steady
    binds: str
    apart: tuple[Sized, int] | None = field(default=None)
    rate: float | None = field(default=None)

    @property
    def gpus(self) -> int:
        """Ranks of all engines."""
        first = 0 if self.apart is None else self.apart[1] * int(self.apart[0].engine.ranks)
        return first + self.engines * int(self.sized.engine.ranks)

    @property
    def chunk(self) -> int | None:
        """Prompt tokens of a step at most; None where prompts are whole."""
        return self.steady.chunk

    @property
    def places(self) -> int:
        """Groups of ranks that hold sequences of their own."""
        return self.engines * self.sized.copies

    @property
    def requests(self) -> float:
        """Requests per second."""
        return self.steady.requests * self.places

    @property
    def tokens(self) -> float:
        """Output tokens per second and GPU."""
        return self.requests * self.steady.load.output / self.gpus

    @property
    def ttft(self) -> float:
        """Time to the first token [s]."""
        return self.steady.first_token

    @property
    def itl(self) -> float:
        """Time between tokens [s]."""
        return self.steady.between if self.rate is None else self.steady.between_by_chance

    @property
    def sequences(self) -> float:
        """Sequences of one engine."""
        return self.steady.sequences * self.sized.copies * self.steady.stages

    @property
    def memory(self) -> float:
        """What the fullest rank holds: weights and the cache at its fullest [byte]."""
        sequences = self.steady.sequences * self.steady.stages
        return self.sized.fixed_bytes + sequences * self.sized.sequence_bytes(
            self.steady.load.longest
        )

    def slowed(self, slow: dict[str, float]) -> Plan:
        """Return the plan where kinds of kernels take so many times as long."""
        steady: Steady
        if isinstance(self.steady, Pools) and self.apart is not None:
            own = replace(self.steady.prefilling, times=Clock(self.apart[0], slow))
            steady = replace(self.steady, times=Clock(self.sized, slow), prefilling=own)
        else:
            steady = replace(self.steady, times=Clock(self.sized, slow))
        if self.rate is not None:
            steady = at_rate(self.rate / self.places, partial(_with, steady), self._most)
        return replace(self, steady=steady)

    @property
    def _most(self) -> int:
        return self.sized.most(self.steady.load.longest)


def _with(steady: Steady, sequences: float) -> Steady:
    return replace(steady, sequences=sequences)


def at_rate(rate: float, at: Callable[[float], Steady], most: float) -> Steady:
    """Return an engine with as many sequences as are in flight at a rate, in the mean."""
    return at(in_flight(rate, lambda n: at(n).requests, most))


@dataclass(frozen=True)
class Miss:
    """What came nearest to the targets.

    Args:
        excess: how many times its target the worst figure is.
        words: the figures.
    """

    excess: float
    words: str


class MissedError(NothingFitsError):
    """No plan of an engine meets the targets.

    Args:
        nearest: what came nearest.
    """

    def __init__(self, nearest: Miss) -> None:
        super().__init__(nearest.words)
        self.nearest = nearest


@dataclass(frozen=True)
class Choice:
    """What is asked of an engine.

    Args:
        targets: what must be reached.
        chunks: prompt tokens of a step that are looked at; None for whole prompts.
    """

    gpus: int
    load: Load
    targets: Targets
    chunks: Sequence[int | None] = CHUNKS

    def plans(self, sized: Sized) -> Iterator[Plan]:
        """Yield plans of one kind of engine: at each number of sequences that meets the targets.

        Raises:
            InputError: it does not fit; `MissedError`, with the nearest, where nothing meets them.
        """
        engines, most = self.fitting(sized)
        whole: list[Plan] = []
        misses: list[Miss] = []
        clock = Clock(sized)
        for chunk in self.chunks:
            at = self._steady(clock, chunk)
            try:
                whole += self._chosen(sized, engines, at, most)
            except MissedError as missed:
                misses.append(missed.nearest)
        if not whole:
            raise MissedError(min(misses, key=lambda miss: miss.excess))
        yield from whole

    def fitting(self, sized: Sized) -> tuple[int, int]:
        """Return how many engines there are, and the sequences that one has room for.

        Raises:
            InputError: none.
        """
        engines = self.gpus // int(sized.engine.ranks)
        if engines == 0:
            raise InputError(f"{sized.engine.ranks} GPUs are more than {self.gpus}")
        most = sized.most(self.load.longest)
        if most == 0:
            need = sized.fixed_bytes + sized.sequence_bytes(self.load.longest) * int(
                sized.engine.stages
            )
            room = USED * float(sized.engine.machine.usable.value)
            raise NothingFitsError(
                f"does not fit: {need / 2**30:.1f} GiB of weights and one sequence on a rank that "
                f"has {room / 2**30:.1f} GiB for them"
            )
        return engines, most

    def _steady(self, times: Clock, chunk: int | None) -> Callable[[float], Steady]:
        """Return the engine at so many sequences."""
        stages = int(times.sized.engine.stages)
        if chunk is None:
            return partial(Batching, self.load, times=times, stages=stages)
        return partial(Chunked, self.load, times=times, chunk=chunk, stages=stages)

    def _chosen(
        self, sized: Sized, engines: int, at: Callable[[float], Steady], most: int
    ) -> Iterator[Plan]:
        """Yield the plans of an engine that takes prompts in one way."""
        if self.targets.rate is not None:
            yield self._at_rate(sized, engines, at, most)
            return
        for n in self.meeting(at, most, sized):
            yield Plan(sized, engines, at(n), self._binds(n, at, most))

    def meeting(self, at: Callable[[float], Steady], most: int, sized: Sized) -> list[int]:
        """Return numbers of sequences that meet the targets, the most that do among them.

        Raises:
            MissedError: none; with the nearest.
        """
        points = {n: at(n) for n in numbers(most)}
        meeting = [n for n, one in points.items() if self._excess(one) <= 1]
        if not meeting:
            raise MissedError(self._miss(sized, min(points.values(), key=self._excess)))
        return sorted({*meeting, self._largest(max(meeting), at, most)})

    def _largest(self, n: int, at: Callable[[float], Steady], most: int) -> int:
        """Return the most sequences that meet the targets, from a number that does."""
        above = next((one for one in numbers(most) if one > n), n + 1)
        while above - n > 1:
            middle = (n + above) // 2
            n, above = (middle, above) if self._excess(at(middle)) <= 1 else (n, middle)
        return n

    def _binds(self, n: int, at: Callable[[float], Steady], most: int) -> str:
        """Return what keeps an engine from more sequences."""
        if n == most:
            return "memory" if most < MOST_SEQUENCES else f"{most} sequences"
        more = at(n + 1)
        if self._excess(more) == inf:
            return "prompts"
        missed = self.targets.missed(more.first_token, more.between)
        return " and ".join(name for name in ("TTFT", "ITL") if name in missed) or "batch"

    def _excess(self, one: Steady) -> float:
        """Return how far an engine is from the targets; without end where prompts wait long."""
        first = one.first_token
        return inf if self.crowded(one) else self.targets.excess(first, one.between)

    @staticmethod
    def crowded(one: Steady) -> bool:
        """Return whether prompts wait long for room in the steps of an engine."""
        busy = isinstance(one, Chunked) and one.busy > MOST_BUSY
        return busy or one.first_token == inf

    def _miss(self, sized: Sized, one: Steady) -> Miss:
        """Say what an engine misses, and which kind of kernels takes most of that time."""
        first, between, load = one.first_token, one.between, self.load
        missed = self.targets.missed(first, between)
        way = "whole prompts" if one.chunk is None else f"chunks of {one.chunk}"
        way = "prompts apart" if isinstance(one, Pools) else way
        of_prompt = self.targets.excess(first, 0.0) > self.targets.excess(0.0, between)
        prefills = one.prefilling.times if isinstance(one, Pools) else None
        first_sized = prefills.sized if isinstance(prefills, Clock) else sized
        times = (
            first_sized.prefilled(1, load.prefilled, load.shared)
            if of_prompt
            else sized.stepped(one.sequences, load.context)
        )
        kind = max(times, key=lambda name: times[name])
        told = f"a {'prefill' if of_prompt else 'step'} of {sum(times.values()) * 1000:.4g} ms"
        count = f"{one.sequences:.0f} sequence{'s' if one.sequences > 1 else ''}"
        words = f"misses {missed} with {count} and {way}; {told} is {kind} most of all"
        return Miss(self._excess(one), words)

    def _at_rate(
        self, sized: Sized, engines: int, at: Callable[[float], Steady], most: int
    ) -> Plan:
        """Return the fewest engines that take requests as they come."""
        rate, room = self.targets.rate or 0.0, roomy(most * int(sized.engine.stages))
        each = at(room / int(sized.engine.stages)).requests * sized.copies
        misses = []
        for number in range(ceil(rate / each), engines + 1):
            steady = at_rate(rate / (number * sized.copies), at, most)
            plan = Plan(sized, number, steady, "rate", rate=rate)
            excess = inf if self.crowded(steady) else self.targets.excess(plan.ttft, plan.itl)
            if excess <= 1:
                return plan
            missed = self.targets.missed(plan.ttft, plan.itl) or "steps that take more prompts"
            words = f"misses {missed} at {rate:g} requests per second on {number} engines"
            misses.append(Miss(excess, words))
        if not misses:
            words = f"takes {each * engines:.4g} requests per second at most, of {rate:g}"
            misses.append(Miss(rate / (each * engines), words))
        raise MissedError(min(misses, key=lambda miss: miss.excess))


def roomy(most: int) -> float:
    """Return the sequences in flight in the mean that leave room for three standard deviations.

    Where requests arrive by chance their number is Poisson's: of 225 in the mean 270 are seldom
    exceeded. With room for the mean alone, requests wait for places a hundred times as long as for
    their prefill (tests/serving).

    >>> roomy(270)
    225.0
    """
    return ((sqrt(9 + 4 * most) - 3) / 2) ** 2


def numbers(most: int) -> list[int]:
    """Return numbers of sequences to look at: powers of two with one between, and the most."""
    steps = {min(most, round(2 ** (i / 2))) for i in range(2 * most.bit_length() + 1)}
    return sorted({*steps, most})
