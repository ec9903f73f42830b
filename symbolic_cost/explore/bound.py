"""Branch and bound: the least value over more combinations than anybody can price, and the proof.

A box is one row of numbers that go together (a strategy), and a range of every other axis. Bounds
of a program over a box hold for each of its combinations; a box whose bound is above the best value
known, or which breaks a condition for certain, needs no further look. The others are halved.

For example 10**4 strategies and four rates of 100 values each are 10**12 combinations, of which
some 10**5 boxes tell enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import count
from math import inf, prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from symbolic_cost.explore.boxes import (
    Axis,
    Bounded,
    Boxes,
    BoxRequest,
    Floats,
    Piece,
    Places,
    union,
)
from symbolic_cost.explore.progress import Tick, bar
from symbolic_cost.records import dataclass

AT_ONCE = 4096
"""Boxes bounded at a time."""

MOST_BOXES = 2_000_000
"""Boxes after which the search gives up, and says how far the bound is from the best value: about a
minute."""

_PROBED, _SAMPLED = 32, 64


@dataclass(frozen=True)
class Minimum:
    """The best combination, and what is known of all others.

    Args:
        piece: place of its program; -1 where nothing meets the conditions.
        places: of the values in the axes.
        value: of the objective, times its sign, in floats.
        bound: no combination is below, in exact numbers.
        combinations: that the proof covers.
        boxes: that were bounded.
        doubtful: combinations whose conditions rounding decides: floats break one, exact numbers
            perhaps none.
        open: boxes that are left; the value is proven to be the least where there are none.
    """

    piece: int
    wish: int
    row: int
    places: tuple[int, ...]
    value: float
    bound: float
    combinations: int
    boxes: int
    points: int
    doubtful: int
    open: int


def minimum(pieces: Sequence[Piece], axes: Sequence[Axis], most_boxes: int = MOST_BOXES) -> Minimum:
    """Return the least value of an objective over all rows of all pieces and all axes."""
    with bar("proving", "boxes at most", shown=True) as tick:
        search = _Search(axes, most_boxes, tick)
        for place, piece in enumerate(pieces):
            search.begin(place, piece)
        search.improve()
        left = search.finish()
    rows = sum(piece.count * len(piece.wishes) for piece in pieces)
    return Minimum(
        *search.place,
        *search.best,
        value=search.value,
        bound=min(search.bound, search.value),
        combinations=rows * prod(len(one.values) for one in axes),
        boxes=search.boxes,
        points=search.points,
        doubtful=search.doubtful,
        open=left,
    )


_Place: TypeAlias = tuple[int, int]
"""A piece, and one of its wishes."""


class _Search:
    def __init__(self, axes: Sequence[Axis], most_boxes: int, tick: Tick) -> None:
        self._axes, self._most, self._tick = axes, most_boxes, tick
        self._pieces: dict[int, Piece] = {}
        self._asked: dict[_Place, BoxRequest] = {}
        self._open: list[tuple[float, int, _Place, Boxes]] = []
        self._tie = count()
        self.place: _Place = (-1, -1)
        self.best: tuple[int, tuple[int, ...]] = (-1, ())
        self.value = self.bound = inf
        self.boxes = self.points = self.doubtful = 0

    def begin(self, place: int, piece: Piece) -> None:
        """Bound every row of a piece over all axes, and evaluate some of its combinations."""
        self._pieces[place] = piece
        asked = BoxRequest(piece, self._axes)
        rows = np.arange(piece.count)
        for ends, wishes in asked.ends.items():
            low, high = (np.tile(np.array(one, dtype=np.int64), (len(rows), 1)) for one in ends)
            for share in (0.0, 0.5, 1.0):
                places = low + np.round(share * (high - low)).astype(np.int64)
                for wish, values in asked.values(rows, places, wishes).items():
                    self._record((place, wish), rows, places, *values)
            boxes = Boxes(rows, low, high, np.zeros(len(rows)))
            for wish, (bound, possible) in self._bounds(asked, boxes, wishes).items():
                self._keep((place, wish), boxes._replace(bound=bound).at(possible))

    def finish(self) -> int:
        """Halve boxes until none is open, or there are too many; return how many are left."""
        while self._open:
            least, _, place, boxes = heappop(self._open)
            if least >= self.value:
                return 0
            if self.boxes > self._most:
                self.bound = min(self.bound, least)
                return len(boxes.row) + sum(len(one[-1].row) for one in self._open)
            self._branch(place, boxes.at(boxes.bound < self.value))
        return 0

    def improve(self) -> None:
        """Go along one axis after the other from the best combination, while it gets better."""
        before = inf
        while self.value < before:
            before = self.value
            for axis, own in enumerate(self._axes):
                row, places = self.best
                line = np.tile(np.array(places, dtype=np.int64), (len(own.values), 1))
                line[:, axis] = np.arange(len(own.values))
                self._evaluate(self.place, np.full(len(line), row), line)

    def _of(self, place: _Place) -> BoxRequest:
        """Return the program of one structure alone."""
        if place not in self._asked:
            piece = self._pieces[place[0]]
            self._asked[place] = BoxRequest(piece.alone(piece.wishes[place[1]]), self._axes)
        return self._asked[place]

    def _branch(self, place: _Place, boxes: Boxes) -> None:
        """Split boxes into as many as are bounded at once."""
        weights = self._weights(place, boxes)
        while True:
            boxes = self._halved(boxes, weights)
            open_ = int((~boxes.points).sum())
            if not open_ or len(boxes.row) + open_ > AT_ONCE:
                break
        ((bound, possible),) = self._bounds(self._of(place), boxes, (0,)).values()
        better = boxes._replace(bound=bound).at(possible & (bound < self.value))
        before, some = self.value, better.at(np.argsort(better.bound)[:_SAMPLED])
        self._evaluate(place, some.row, (some.low + some.high) // 2)
        self._keep(place, better)
        if self.value < before:
            self.improve()

    def _halved(self, boxes: Boxes, weights: Floats) -> Boxes:
        """Halve each box along the axis of greatest effect; combinations stay."""
        axis = np.argmax(self._widths(boxes) * weights, axis=1)
        splits = ~boxes.points
        where = np.nonzero(splits)[0], axis[splits]
        middle = (boxes.low[where] + boxes.high[where]) // 2
        left, right = boxes.high.copy(), boxes.low.copy()
        left[where], right[where] = middle, middle + 1
        return union([boxes._replace(high=left), boxes._replace(low=right).at(splits)])

    def _weights(self, place: _Place, boxes: Boxes) -> Floats:
        """Return by axis how far halving it raises the bound of some boxes, per width."""
        every = max(1, len(boxes.row) // _PROBED)
        some = boxes.at(np.argsort(boxes.bound)[::every][:_PROBED])
        parts = [self._halved(some, one + 1e-12) for one in np.eye(len(self._axes))]
        halves = union(parts)
        ((bound, _),) = self._bounds(self._of(place), halves, (0,)).values()
        finite = bound[np.isfinite(bound)]
        top = self.value if np.isfinite(self.value) else float(np.max(finite, initial=0.0))
        gains = np.clip(bound, -_FAR, top) - np.maximum(halves.bound, -_FAR)
        ends = np.cumsum([len(part.row) for part in parts])[:-1]
        with np.errstate(over="ignore"):  # bounds beyond any number tell nothing: all axes alike
            means = np.array([float(one.mean()) for one in np.split(gains, ends)])
            effects = np.maximum(means, 0.0) / np.maximum(self._widths(some).mean(axis=0), 1e-9)
        most = float(effects.max())
        return effects / most + _LEAST if 0 < most < inf else np.ones(len(self._axes))

    def _widths(self, boxes: Boxes) -> Floats:
        """Return the logarithm of the last value over the first, by box and axis."""
        columns = [
            axis.logs[boxes.high[:, place]] - axis.logs[boxes.low[:, place]]
            for place, axis in enumerate(self._axes)
        ]
        return np.stack(columns, axis=1)

    def _bounds(self, asked: BoxRequest, boxes: Boxes, wishes: Sequence[int]) -> dict[int, Bounded]:
        """Return bounds by wish, and whether a combination of the box may do."""
        parts = [
            asked.bounds(boxes.at(slice(start, start + AT_ONCE)), wishes)
            for start in range(0, len(boxes.row), AT_ONCE)
        ]
        self.boxes += len(boxes.row) * len(wishes)
        self._tick(min(self.boxes, self._most), self._most)
        return {
            wish: (
                np.concatenate([part[wish][0] for part in parts]),
                np.concatenate([part[wish][1] for part in parts]),
            )
            for wish in wishes
        }

    def _keep(self, place: _Place, boxes: Boxes) -> None:
        """Put boxes among those that are open; of single combinations nothing is left open."""
        left = boxes.at(boxes.bound < self.value)
        single = left.at(left.points)
        if len(single.row):
            meets = self._evaluate(place, single.row, single.low)
            self.doubtful += int((~meets).sum())
            self.bound = min(self.bound, float(single.bound.min()))
        left = left.at(~left.points)
        left = left.at(np.argsort(left.bound))
        for start in range(0, len(left.row), AT_ONCE // 2):
            part = left.at(slice(start, start + AT_ONCE // 2))
            heappush(self._open, (float(part.bound[0]), next(self._tie), place, part))

    def _evaluate(self, place: _Place, row: Places, places: Places) -> NDArray[np.bool_]:
        """Evaluate combinations, and keep the best; tell which meet the conditions."""
        if not len(row):
            return np.zeros(0, dtype=bool)
        ((value, meets),) = self._of(place).values(row, places, (0,)).values()
        self._record(place, row, places, value, meets)
        return meets

    def _record(
        self, place: _Place, row: Places, places: Places, value: Floats, meets: NDArray[np.bool_]
    ) -> None:
        self.points += len(row)
        value = np.where(meets, value, inf)
        least = int(np.argmin(value))
        if value[least] < self.value:
            self.value, self.place = float(value[least]), place
            self.best = int(row[least]), tuple(int(one) for one in places[least])


_FAR, _LEAST = 1e300, 1e-3
