"""What a search counts and keeps, while it goes through the candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from math import prod
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from symbolic_cost.explore.axes import Axes, Floats
from symbolic_cost.explore.candidates import Candidates, Numbers, Shape, Structured
from symbolic_cost.explore.objectives import LEGAL, MEMORY, NEEDED, Objective
from symbolic_cost.explore.together import Together
from symbolic_cost.grouping import grouped
from symbolic_cost.program.layered import Places
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Candidate:
    """A strategy with its numbers and what it takes.

    Args:
        structure: which strategies split anything, and options.
        numbers: degrees, microbatch, chunks.
        score: of the objective, smaller is better.
    """

    structure: Structured
    numbers: Numbers
    outputs: Mapping[str, float]
    score: float

    @property
    def strategy(self) -> str:
        """The strategy as text."""
        return self.structure.strategy(self.numbers)

    @property
    def options(self) -> dict[str, str]:
        """The options of a job."""
        return {name: text for name, text in self.structure.options if text}

    @property
    def bindings(self) -> dict[str, int]:
        """The numbers of a job besides degrees."""
        return self.numbers.bindings()


class Part(NamedTuple):
    """The candidates of some degrees of a shape.

    Args:
        walked: every candidate.
        shape: of these.
        together: program of the shape's structures.
        axes: numbers of all candidates of the shape.
        degrees: which of the shape's these are.
        width: degrees for which there are buffers, no less.
    """

    walked: Candidates
    shape: Shape
    together: Together[Structured]
    axes: Axes
    degrees: Places
    width: int

    def pieces(self, each: int) -> Iterator[Part]:
        """Yield the same candidates in parts of ROWS at most, of so many for each degree."""
        count = len(self.degrees)
        width = -(-count // -(-count * each // ROWS)) if count else 1
        for start in range(0, count, width):
            yield self._replace(degrees=self.degrees[start : start + width], width=width)

    def outputs(self, *names: str) -> list[tuple[Structured, dict[str, Floats]]]:
        """Return outputs by structure, as of `Together.over`."""
        own = self.axes.some(self.degrees)
        return list(self.together.over(own, self.width, frozenset(names)))

    def row(self, order: int, other: int, degrees: int) -> int:
        """Return the row of a candidate among all of the shape."""
        _, others, count = self.axes.sizes
        return (order * others + other) * count + int(self.degrees[degrees])

    def chosen(self, structure: Structured, row: int) -> tuple[Structured, Numbers]:
        """Return a candidate: its structure with nothing left open, and its numbers."""
        return self.walked.chosen(self.shape, structure, row)


ROWS = 8192
"""Rows of a shape priced together, so that the buffers of all its structures stay small."""


class _Kept(NamedTuple):
    """A candidate, and where its other outputs come from.

    Args:
        order: says which of two is better: the score, then less memory, then a fixed order.
    """

    order: tuple[float, float, str]
    part: Part
    structure: Structured
    row: int


def _with_every_output(kept: Sequence[_Kept]) -> tuple[Candidate, ...]:
    """Return candidates with every output; those of one program are evaluated together."""
    alike = grouped((id(one.part.together), one) for one in kept)
    outputs: dict[int, dict[str, float]] = {}
    for listed in alike.values():
        points = [(one.structure, one.part.axes.point(one.row)) for one in listed]
        at = listed[0].part.together.at(points)
        outputs |= dict(zip(map(id, listed), at, strict=True))
    return tuple(
        Candidate(*one.part.chosen(one.structure, one.row), outputs[id(one)], one.order[0])
        for one in kept
    )


@dataclass
class Tally:
    """What a search counts, and what it keeps.

    Args:
        capacity: of a rank [byte]; None where it is not bounded.
    """

    top: int
    objective: Objective
    capacity: float | None
    legal: int = 0
    fitting: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    _best: list[_Kept] = field(default_factory=list)
    _smallest: _Kept | None = None

    @property
    def best(self) -> tuple[Candidate, ...]:
        """The candidates that fit, the best first."""
        return _with_every_output(self._best)

    @property
    def smallest(self) -> Candidate | None:
        """Of what is legal, the one that takes least memory."""
        return None if self._smallest is None else _with_every_output([self._smallest])[0]

    def add(self, part: Part) -> None:
        """Count the candidates of some degrees, and keep the best of those that fit.

        Conditions and memory are a fifth of the steps: what takes time is evaluated of degrees at
        which any structure fits.
        """
        listed = part.outputs(LEGAL, MEMORY, NEEDED)
        if not listed:
            return
        structures, told = zip(*listed, strict=True)
        memory = np.stack([outputs[MEMORY] for outputs in told])
        alike = part.axes.ways // prod(memory.shape[1:-1])
        legal = self._legal(told, alike)
        fits = legal
        if self.capacity is not None:
            fits = legal & (np.stack([outputs[NEEDED] for outputs in told]) <= self.capacity)
        self.legal += alike * int(np.count_nonzero(legal))
        self.fitting += alike * int(np.count_nonzero(fits))
        held = np.where(legal, memory, np.inf)
        one, *places = np.unravel_index(held.argmin(), held.shape)
        least = float(held[(one, *places)])
        if least < (np.inf if self._smallest is None else self._smallest.order[1]):
            row = part.row(*map(int, places))
            self._smallest = _Kept((0.0, least, ""), part, structures[int(one)], row)
        some, start = np.flatnonzero(fits.any(axis=(0, 1, 2))), 0
        for piece in part._replace(degrees=part.degrees[some]).pieces(part.axes.ways):
            own = some[start : start + len(piece.degrees)]
            self._rank(piece, fits[..., own], memory[..., own])
            start += len(own)

    def _legal(self, told: Sequence[Mapping[str, Floats]], alike: int) -> NDArray[np.bool_]:
        """Return what meets every condition; what does not is counted by the first it breaks.

        Structures of one shape have most conditions in common: what they say is told once.
        """
        verdicts: dict[tuple[int, ...], tuple[NDArray[np.bool_], dict[str, int]]] = {}
        rows = []
        for outputs in told:
            conditions = {name: met for name, met in outputs.items() if name.startswith(LEGAL)}
            key = tuple(map(id, conditions.values()))
            if key not in verdicts:
                legal, broken = np.ones(outputs[MEMORY].shape, dtype=bool), {}
                for name, met in conditions.items():
                    times = int(np.count_nonzero(legal & (met == 0)))
                    broken[name.removeprefix(LEGAL)] = alike * times
                    legal &= met != 0
                verdicts[key] = legal, broken
            rows.append(verdicts[key][0])
            self.left_out += Counter(verdicts[key][1])
        return np.stack(rows)

    def _rank(self, part: Part, fits: NDArray[np.bool_], memory: Floats) -> None:
        """Keep the best candidates, with every other one that is as good as the last of them."""
        structures, told = zip(*part.outputs(*self.objective.outputs), strict=True)
        shape = (len(structures), *part.axes.sizes[:-1], len(part.degrees))
        values = np.stack([self.objective.value(outputs) for outputs in told])
        score, fits = (np.broadcast_to(one, shape).reshape(-1) for one in (values, fits))
        worst = self._best[-1].order[0] if len(self._best) == self.top else np.inf
        near = np.flatnonzero(fits & (score <= worst))
        score = score[near]
        if len(near) > self.top:
            first = score <= np.partition(score, self.top - 1)[self.top - 1]
            near, score = near[first], score[first]
        places = np.unravel_index(near, shape)
        memory = np.broadcast_to(memory, shape)[places]
        for place in _least(score, memory, self.top).tolist():
            one, *others = (int(axis[place]) for axis in places)
            row = part.row(*others)
            run, numbers = part.chosen(structures[one], row)
            text = f"{run.strategy(numbers)} {run.options} {numbers}"
            order = (float(score[place]), float(memory[place]), text)
            self._best.append(_Kept(order, part, structures[one], row))
        self._best = sorted(self._best, key=attrgetter("order"))[: self.top]


def _least(score: Floats, memory: Floats, count: int) -> Places:
    """Return where the best are: the least score, then the least memory; all of equal ones."""
    order = np.lexsort((memory, score))
    if len(order) > count:
        last = order[count - 1]
        worse = (score > score[last]) | ((score == score[last]) & (memory > memory[last]))
        return np.flatnonzero(~worse)
    return order
