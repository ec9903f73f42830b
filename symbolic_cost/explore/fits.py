"""Inverse questions about memory: the largest length, microbatch or depth, the fewest GPUs.

Memory grows with each of these, so the largest integer that fits is found by halving an interval,
for all strategies of a space at once. It is exact: the next larger one that is legal does not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from symbolic_cost.display import NotebookTable
from symbolic_cost.errors import InputError
from symbolic_cost.explore.axes import Columns, columns_of
from symbolic_cost.explore.best import Search
from symbolic_cost.explore.best import search as searched
from symbolic_cost.explore.candidates import NoCandidateError, Numbers, Structured, candidates
from symbolic_cost.explore.objectives import LEGAL, NEEDED
from symbolic_cost.explore.space import Space
from symbolic_cost.explore.structured import structured_setup
from symbolic_cost.explore.subject import FREE, Subject
from symbolic_cost.explore.tally import Candidate
from symbolic_cost.explore.together import all_priced
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.jobs.timed import Timed
from symbolic_cost.program.arrays import Spread
from symbolic_cost.program.tape import Tape
from symbolic_cost.records import dataclass

LARGEST = 1 << 26
"""No size is looked for beyond."""

MORE = 10 * 2**30
"""Memory that might be had in addition [byte]."""

_DOWN = 4096
"""Sizes below the largest that fits which are tried for a legal one."""

_AT_ONCE = 512
"""Of them, how many at a time."""


@dataclass(frozen=True)
class Fits(NotebookTable):
    """What fits on a number of GPUs.

    Args:
        search: for the least memory, of the job as it is.
        largest: answers by name of what is to be large.
        fewest: GPUs that hold the job, a power of two, and how; None where there are none.
    """

    search: Search
    largest: Mapping[str, Largest]
    fewest: tuple[int, Candidate] | None

    __repr__ = NotebookTable.__str__

    def __bool__(self) -> bool:
        """Tell whether any strategy fits."""
        return bool(self.search.best)


def what_fits(base: Subject, space: Space, symbols: Iterable[str]) -> Fits:
    """Answer all questions about the memory of a job."""
    names = tuple(symbols)
    if not names:
        raise InputError("symbols = (): sizes that are to be large are accepted, as b or l")
    smallest = searched(base, space, "memory", 1)
    return Fits(smallest, {name: largest(base, space, name) for name in names}, fewest(base, space))


@dataclass(frozen=True)
class Largest:
    """The answer to one question.

    Args:
        size: of it; zero where not even one fits.
        candidate: the strategy that allows it.
        setup: the job of that size; None where nothing fits.
        more: the size with MORE memory per rank.
        per_unit: memory that one more takes there [byte]; None where nothing fits.
    """

    symbol: str
    size: int
    candidate: Candidate | None
    setup: Setup | None
    more: int
    per_unit: float | None = None

    @property
    def tried(self) -> int | None:
        """The largest size that was tried, if the search ended before the memory did."""
        return LARGEST if self.size > LARGEST - _DOWN else None


def largest(base: Subject, space: Space, symbol: str) -> Largest:
    """Return the largest size of a symbol that fits under any strategy of a space.

    Args:
        base: the job without a strategy.
        space: what may be chosen.
        symbol: "b", or a size of the model such as "l" or "n_layers".

    Raises:
        InputError: no machine with a bounded memory, or one that lacks the precision.
    """
    room = _room(base)
    most = base.setup.most(symbol) or LARGEST
    best: tuple[int, Structured, Numbers] | None = None
    each = None
    more = 0
    Timed(base.setup).setting.timing  # noqa: B018 - refuses what the machine lacks
    walked = candidates(replace(space, b=(1,)), base.facts)
    timed = symbol in FREE  # as the search for the least memory, whose programs are there
    own = base if timed else Subject(base.facts, lambda: replace(base.setup, machine=None))
    free = FREE if timed else (*FREE, symbol)
    for shape, together in all_priced(own, walked.structures, free):
        columns = columns_of(walked, shape)
        for structure in together.priced:
            tape = together.alone(structure, lambda n: n == NEEDED or n.startswith(LEGAL))
            asked = _MemoryIn(tape, columns, walked.rows(shape), symbol, most)
            least = best[0] if best else 0
            sizes = asked.largest(room, least)
            place = int(np.argmax(sizes))
            if sizes[place] > least:
                best = (int(sizes[place]), *walked.chosen(shape, structure, place))
                each = float(asked.memory_per_unit(sizes)[place])
            more = max(more, int(asked.largest(room + MORE, more).max()))
    if best is None:
        return Largest(symbol, 0, None, None, more)
    size, structure, numbers = best
    numbers = numbers._replace(b=size) if symbol == "b" else numbers
    job = _with(base.setup, structure, numbers, symbol, size)
    return Largest(symbol, size, Candidate(structure, numbers, {}, 0.0), job, more, each)


def _room(base: Subject) -> float:
    room = base.facts.capacity
    if room is None:
        raise InputError("what fits needs a machine with a bounded memory: --system h100")
    return room


def _with(base: Setup, structure: Structured, numbers: Numbers, symbol: str, size: int) -> Setup:
    """Return the job of a candidate with another size."""
    other = base if symbol == "b" else replace(base, numbers={**base.numbers, symbol: size})
    return structured_setup(other, structure, numbers)


class _MemoryIn:
    """The memory of one structure's candidates as a function of one symbol.

    Args:
        most: the largest size that is looked for.
    """

    def __init__(self, tape: Tape, columns: Columns, count: int, symbol: str, most: int) -> None:
        self._tape, self._columns, self._count, self._symbol = tape, columns, count, symbol
        self._most = most
        self._bound: dict[int, Spread] = {}

    def largest(self, room: float, least: int) -> NDArray[np.float64]:
        """Return the largest legal size that fits, by candidate.

        It is zero where none does, and of all candidates where none takes one more than the least:
        a structure that is no better is asked once and not thirty times.
        """
        low, high = np.zeros(self._count), np.full(self._count, float(self._most + 1))
        if least >= self._most or not (self._at(low + least + 1)[NEEDED] <= room).any():
            return low
        while (high - low > 1).any():
            middle = np.floor((low + high) / 2)
            fits = self._at(middle)[NEEDED] <= room
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        return self._legal(low)

    def memory_per_unit(self, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the memory that one more takes [byte], by candidate."""
        return self._at(sizes + 1)[NEEDED] - self._at(np.maximum(sizes, 1))[NEEDED]

    def _legal(self, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the largest legal sizes that are not larger."""
        answer = np.zeros(self._count)
        begin, wide = 0, 1
        while begin < _DOWN and ((answer == 0) & (sizes > begin)).any():
            below = sizes[:, None] - np.arange(begin, begin + wide)
            legal = (below > 0).ravel()
            for name, met in self._at(np.maximum(below, 1).ravel()).items():
                if name.startswith(LEGAL):
                    legal &= met != 0
            largest = np.where(legal.reshape(below.shape), below, 0).max(axis=1)
            answer = np.where(answer == 0, largest, answer)
            begin, wide = begin + wide, min(8 * wide, _AT_ONCE, _DOWN - begin - wide)
        return answer

    def _at(self, sizes: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Return every output, by candidate; of as many sizes of each as are given in a row."""
        each = len(sizes) // self._count
        values = {**self._columns, self._symbol: sizes}
        taken = {
            name: np.ascontiguousarray(
                np.repeat(values[name], each) if len(values[name]) == self._count else values[name]
            )
            for name in self._tape.inputs
        }
        if len(sizes) not in self._bound:
            self._bound[len(sizes)] = Spread(self._tape, [self._tape.inputs], [len(sizes)], [])
        results = self._bound[len(sizes)]([taken])
        return {name: np.array(np.broadcast_to(a, sizes.shape)) for name, a in results.items()}


_MOST_GPUS = 1 << 16


def fewest(base: Subject, space: Space) -> tuple[int, Candidate] | None:
    """Return the fewest GPUs, among powers of two, that hold a model; None if 65536 do not.

    One sequence per data-parallel rank is enough to ask.
    """
    gpus = 1
    while gpus <= _MOST_GPUS:
        tried = replace(space, gpus=gpus, global_batch=gpus)
        with suppress(NoCandidateError):  # tp=8 of one rank, say
            smallest = searched(base, tried, "memory", 1)
            if smallest.best:
                return gpus, smallest.best[0]
        gpus *= 2
    return None
