"""What a search counts and keeps, while it goes through the candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symbolic_cost.explore.candidates import Candidates, Numbers, Shape, Structured
from symbolic_cost.explore.objectives import Objective
from symbolic_cost.explore.outputs import LEGAL, MEMORY
from symbolic_cost.explore.together import Axes, Floats, Together


@dataclass(frozen=True)
class Candidate:
    """A strategy with its numbers and what it takes.

    Args:
        structure: which strategies split anything, and options.
        numbers: degrees, microbatch, chunks.
        outputs: of the step and the memory, by name.
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
        found: every candidate.
        together: program of the shape's structures.
        axes: numbers of all candidates of the shape.
        start: first degrees.
        stop: first degrees that are not there.
        width: degrees of the parts of the shape.
    """

    found: Candidates
    shape: Shape
    together: Together[Structured]
    axes: Axes
    start: int
    stop: int
    width: int

    @property
    def size(self) -> int:
        """Candidates of a structure."""
        return self.axes.ways * (self.stop - self.start)

    def row(self, place: int) -> int:
        """Return the row among all candidates of the shape."""
        way, degrees = divmod(place, self.stop - self.start)
        return way * self.axes.sizes[-1] + self.start + degrees


class _Kept(NamedTuple):
    """A candidate, and where its other outputs come from."""

    candidate: Candidate
    part: Part
    structure: Structured
    place: int

    @property
    def point(self) -> dict[str, float]:
        """Its numbers by symbol."""
        return self.part.axes.point(self.part.row(self.place))


def _whole(kept: Sequence[_Kept]) -> tuple[Candidate, ...]:
    """Return candidates with every output; those of one structure are evaluated together."""
    alike: dict[tuple[int, Structured], list[_Kept]] = {}
    for one in kept:
        alike.setdefault((id(one.part.together), one.structure), []).append(one)
    outputs: dict[int, dict[str, float]] = {}
    for (_, structure), listed in alike.items():
        at = listed[0].part.together.at(structure, [one.point for one in listed])
        outputs |= dict(zip(map(id, listed), at, strict=True))
    return tuple(replace(one.candidate, outputs=outputs[id(one)]) for one in kept)


@dataclass
class Tally:
    """What a search counts, and what it keeps.

    Args:
        top: candidates to keep.
        objective: what is looked for.
        capacity: of a rank [byte]; None where it is not bounded.
    """

    top: int
    objective: Objective
    capacity: float | None
    legal: int = 0
    fitting: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    _best: list[_Kept] = field(default_factory=list)
    _smallest: _Kept | None = None
    _verdicts: dict[tuple[int, ...], Any] = field(default_factory=dict)

    @property
    def best(self) -> tuple[Candidate, ...]:
        """The candidates that fit, the best first."""
        return _whole(self._best)

    @property
    def smallest(self) -> Candidate | None:
        """Of what is legal, the one that takes least memory."""
        return None if self._smallest is None else _whole([self._smallest])[0]

    def add(self, part: Part) -> None:
        """Keep the best candidates of some rows."""
        asked = frozenset({MEMORY, *self.objective.outputs})
        axes = part.axes.part(part.start, part.stop)
        for structure, outputs in part.together.over(axes, part.width, asked):
            self._add(part, structure, outputs)
        self._verdicts.clear()

    def _add(self, part: Part, structure: Structured, outputs: Mapping[str, Floats]) -> None:
        legal, memory = self._legal(outputs, part.size), outputs[MEMORY]
        self.legal += int(np.count_nonzero(legal))
        fits = legal if self.capacity is None else legal & (memory <= self.capacity)
        self.fitting += int(np.count_nonzero(fits))
        score = np.where(fits, self.objective.value(outputs), np.inf)
        worst = self._best[-1].candidate.score if len(self._best) == self.top else np.inf
        near = np.flatnonzero(score <= worst if np.isfinite(worst) else fits)
        if len(near):
            places = near[_least(score[near], self.top)].tolist()
            ranked = [_ranked(part, structure, outputs, i, float(score[i])) for i in places]
            self._best = nsmallest(self.top, [*self._best, *ranked], key=_order)
        held = np.where(legal, memory, np.inf)
        least = int(held.argmin())
        before = np.inf if self._smallest is None else self._smallest.candidate.outputs[MEMORY]
        if held[least] < before:
            self._smallest = _ranked(part, structure, outputs, least, 0.0)

    def _legal(self, outputs: Mapping[str, Floats], count: int) -> NDArray[np.bool_]:
        """Return what meets every condition; what does not is counted by the first it breaks.

        Structures of one shape have most conditions in common: what they say is told once.
        """
        conditions = {name: met for name, met in outputs.items() if name.startswith(LEGAL)}
        key = tuple(map(id, conditions.values()))
        if key not in self._verdicts:
            legal, broken = np.ones(count, dtype=bool), {}
            for name, met in conditions.items():
                broken[name.removeprefix(LEGAL)] = int(np.count_nonzero(legal & (met == 0)))
                legal &= met != 0
            self._verdicts[key] = (*conditions.values(),), legal, broken
        _, legal, broken = self._verdicts[key]
        for reason, times in broken.items():
            if times:
                self.left_out[reason] = self.left_out.get(reason, 0) + times
        return legal


def _ranked(
    part: Part, structure: Structured, outputs: Mapping[str, Floats], place: int, score: float
) -> _Kept:
    told = {n: float(v[place]) for n, v in outputs.items() if not n.startswith(LEGAL)}
    chosen = part.found.chosen(part.shape, structure, part.row(place))
    return _Kept(Candidate(*chosen, told, score), part, structure, place)


def _order(ranked: _Kept) -> tuple[float, float, str]:
    """Say which of two is better: the score, then less memory, then a fixed order."""
    one = ranked.candidate
    text = f"{one.strategy} {one.structure.options} {one.numbers}"
    return one.score, one.outputs[MEMORY], text


def _least(score: Floats, count: int) -> NDArray[np.int_]:
    if len(score) <= count:
        return np.arange(len(score))
    return np.argpartition(score, count)[:count]
