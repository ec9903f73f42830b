"""What is kept of the candidates of a sweep: counts, the best, a front, all rows, or bins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import field
from typing import Any, TypeAlias

import numpy as np

from symbolic_cost.explore.points import Floats, Places
from symbolic_cost.explore.sweep_question import SweepQuestion
from symbolic_cost.records import dataclass

Rows: TypeAlias = dict[str, Any]
"""Column by name: an array, or the word that all rows have."""


@dataclass
class Result:
    """What is kept of some candidates.

    Args:
        legal: of those, such that every condition is met.
        counted: of those, such that the question is answered by yes.
        ruled_out: candidates by the first condition that rules them out.
        places: candidates that are kept.
        rows: columns of theirs, where all are kept.
        nearest: by how much the nearest candidate misses, and which it is.
        bins: candidates by size of their key, where these are asked for; see `bounds`.
    """

    candidates: int = 0
    legal: int = 0
    counted: int = 0
    ruled_out: Counter[str] = field(default_factory=Counter)
    places: Places = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    keys: Floats = field(default_factory=lambda: np.empty((0, 0)))
    rows: Rows = field(default_factory=dict)
    nearest: tuple[float, int] = (np.inf, -1)
    bins: Counter[int] = field(default_factory=Counter)

    def count(self, other: Result) -> None:
        """Take in the counts of others."""
        self.candidates += other.candidates
        self.legal += other.legal
        self.counted += other.counted
        self.ruled_out.update(other.ruled_out)
        self.nearest = min(self.nearest, other.nearest)
        self.bins.update(other.bins)

    def tally(self, sizes: Floats) -> None:
        """Count candidates by size; what has none or is not above zero is in the lowest bin."""
        with np.errstate(all="ignore"):
            places = np.floor(np.log2(sizes) * PER_OCTAVE)
        places[~np.isfinite(places)] = LOWEST
        bins, times = np.unique(places, return_counts=True)
        self.bins.update(dict(zip(bins.astype(int).tolist(), times.tolist(), strict=True)))

    def keep(self, asked: SweepQuestion, places: Places, keys: Floats) -> None:
        """Take in candidates, and keep those that are asked for."""
        keys = keys if not self.keys.size else np.concatenate([self.keys, keys], axis=1)
        places = np.concatenate([self.places, places])
        best = _best(keys, places, asked.most) if asked.mode == "top" else front(keys, places)
        self.places, self.keys = places[best], keys[:, best]


PER_OCTAVE, LOWEST = 4, -(1 << 20)
"""Bins from a size to twice that size, and the bin of what is not above zero."""


def bounds(place: int) -> tuple[float, float]:
    """Return the sizes that a bin lies between.

    >>> bounds(4)
    (2.0, 2.378414230005442)
    """
    if place == LOWEST:
        return -np.inf, 0.0
    return 2.0 ** (place / PER_OCTAVE), 2.0 ** ((place + 1) / PER_OCTAVE)


def _best(keys: Floats, places: Places, most: int) -> Places:
    """Return where the least keys are; of equal ones the first candidate comes first."""
    key = keys[0]
    near = np.flatnonzero(np.isfinite(key))
    if len(near) > most:
        near = near[key[near] <= np.partition(key[near], most - 1)[most - 1]]
    return near[np.lexsort((places[near], key[near]))][:most]


def front(keys: Floats, places: Places) -> Places:
    """Return where the points are that none beats in both keys, by the first key."""
    near = np.flatnonzero(np.isfinite(keys).all(axis=0))
    order = near[np.lexsort((places[near], keys[1][near], keys[0][near]))]
    second = keys[1][order]
    before = np.minimum.accumulate(np.concatenate([[np.inf], second[:-1]]))
    return order[second < before]


def concatenated(parts: list[Rows], names: Collection[str]) -> Rows:
    """Return tables one below another."""
    if not parts:
        return {name: np.empty(0) for name in names}
    return {name: np.concatenate([part[name] for part in parts]) for name in names}
