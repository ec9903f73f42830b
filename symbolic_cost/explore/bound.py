"""Branch and bound: the least value over more combinations than anybody can price, and the proof.

A box is one row of numbers that go together (a strategy), and a range of every other axis. Bounds
of a program over a box hold for each of its combinations; a box whose bound is above the best value
known, or which breaks a condition for certain, needs no further look. The others are halved.

For example 10**4 strategies and four rates of 100 values each are 10**12 combinations, of which
some 10**5 boxes tell enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush
from itertools import count
from math import inf, prod
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from symbolic_cost.program.arrays import evaluated
from symbolic_cost.program.intervals import Intervals, directions
from symbolic_cost.program.tape import Tape

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
"""Places of values in the axes: one line per box, one column per axis."""

AT_ONCE = 4096
"""Boxes bounded at a time."""

MOST_BOXES = 20_000_000
"""Boxes after which the search gives up, and says how far the bound is from the best value."""

_PROBED, _SAMPLED = 32, 64


@dataclass(frozen=True)
class Wish:
    """What is looked for, by outputs of the programs.

    Args:
        objective: name of the output.
        sign: 1 where it is to be small, -1 where large.
        conditions: outputs that must not be zero.
        most: outputs that must not be above a number.
    """

    objective: str
    sign: int = 1
    conditions: tuple[str, ...] = ()
    most: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Axis:
    """Values of one symbol.

    Args:
        symbol: name of an input.
        values: ascending.
    """

    symbol: str
    values: Floats


@dataclass(frozen=True)
class Piece:
    """One program, with what it is asked for.

    Args:
        tape: of it.
        wish: names of its outputs.
        rows: numbers that go together, by input; each row is a choice.
        count: of rows.
    """

    tape: Tape
    wish: Wish
    rows: Mapping[str, Floats]
    count: int


@dataclass(frozen=True)
class Minimum:
    """The best combination, and what is known of all others.

    Args:
        piece: place of its program; -1 where nothing meets the conditions.
        row: of the piece.
        places: of the values in the axes.
        value: of the objective, times its sign, in floats.
        bound: no combination is below, in exact numbers.
        combinations: that the proof covers.
        boxes: that were bounded.
        points: combinations that were evaluated.
        doubtful: combinations whose conditions rounding decides: floats break one, exact numbers
            perhaps none.
        proven: whether nothing is left open.
    """

    piece: int
    row: int
    places: tuple[int, ...]
    value: float
    bound: float
    combinations: int
    boxes: int
    points: int
    doubtful: int
    proven: bool


class _Boxes(NamedTuple):
    """Boxes of one piece: row, first and last place on every axis, and the bound."""

    row: Places
    low: Places
    high: Places
    bound: Floats

    def at(self, chosen: NDArray[np.bool_] | Places | slice) -> _Boxes:
        return _Boxes(*(one[chosen] for one in self))

    @property
    def points(self) -> NDArray[np.bool_]:
        """Which of them are one combination."""
        return np.asarray((self.low == self.high).all(axis=1))


Progress: TypeAlias = Callable[[int, int], None]


def minimum(
    pieces: Sequence[Piece],
    axes: Sequence[Axis],
    most_boxes: int = MOST_BOXES,
    progress: Progress = lambda *_: None,
) -> Minimum:
    """Return the least value of an objective over all rows of all pieces and all axes.

    Args:
        pieces: at least one.
        axes: values of the symbols that every row may be combined with.
        most_boxes: after which it gives up.
        progress: told the pieces that are looked at first, and all of them.
    """
    search = _Search(axes, most_boxes)
    for place, piece in enumerate(pieces):
        progress(place, len(pieces))
        search.begin(place, piece)
    progress(len(pieces), len(pieces))
    search.improve()
    proven = search.finish()
    combinations = sum(piece.count for piece in pieces) * prod(len(one.values) for one in axes)
    return Minimum(
        *search.best,
        value=search.value,
        bound=min(search.bound, search.value),
        combinations=combinations,
        boxes=search.boxes,
        points=search.points,
        doubtful=search.doubtful,
        proven=proven,
    )


class _Search:
    """The state of one search."""

    def __init__(self, axes: Sequence[Axis], most_boxes: int) -> None:
        self._axes, self._most = axes, most_boxes
        self._pieces: dict[int, _Asked] = {}
        self._open: list[tuple[float, int, int, _Boxes]] = []
        self._tie = count()
        self.best: tuple[int, int, tuple[int, ...]] = (-1, -1, ())
        self.value = self.bound = inf
        self.boxes = self.points = self.doubtful = 0

    def begin(self, place: int, piece: Piece) -> None:
        """Bound every row of a piece over all axes, and evaluate some of its combinations."""
        asked = self._pieces[place] = _Asked(piece, self._axes)
        low, high = asked.ends
        rows = np.arange(piece.count)
        shape = (piece.count, len(self._axes))
        whole = _Boxes(rows, np.tile(low, (*shape[:1], 1)), np.tile(high, (shape[0], 1)), rows)
        found = self._bounded(place, whole)
        for share in (0.0, 0.5, 1.0):
            self._try(place, found, share)
        self._keep(place, found)

    def finish(self) -> bool:
        """Halve boxes until none is open; tell whether that is so."""
        while self._open:
            least, _, place, boxes = heappop(self._open)
            if least >= self.value:
                return True
            if self.boxes > self._most:
                self.bound = min(self.bound, least)
                return False
            self._branch(place, boxes.at(boxes.bound < self.value))
        return True

    def improve(self) -> None:
        """Go along one axis after the other from the best combination, while it gets better."""
        place, before = self.best[0], inf
        while self.best[0] == place >= 0 and self.value < before:
            before = self.value
            for axis, own in enumerate(self._axes):
                _, row, places = self.best
                line = np.tile(np.array(places, dtype=np.int64), (len(own.values), 1))
                line[:, axis] = np.arange(len(own.values))
                self._evaluate(place, np.full(len(line), row), line)

    def _branch(self, place: int, boxes: _Boxes) -> None:
        """Split boxes into as many as are bounded at once."""
        weights = self._weights(place, boxes)
        while True:
            open_ = ~boxes.points
            if not open_.any() or len(boxes.row) + int(open_.sum()) > AT_ONCE:
                break
            boxes = self._halved(place, boxes, weights)
        if len(boxes.row) > AT_ONCE // 2 and not boxes.points.all():
            boxes = self._halved(place, boxes, weights)
        found = self._bounded(place, boxes)
        self._try(place, found.at(np.argsort(found.bound)[:_SAMPLED]), 0.5)
        before = self.value
        self._points(place, found.at(found.points))
        self._keep(place, found.at(~found.points))
        if self.value < before:
            self.improve()

    def _halved(self, place: int, boxes: _Boxes, weights: Floats) -> _Boxes:
        """Halve each box along the axis of greatest effect."""
        widths = self._pieces[place].widths(boxes) * weights
        axis = np.argmax(widths, axis=1)
        splits = ~boxes.points
        one = np.arange(len(axis))
        middle = (boxes.low[one, axis] + boxes.high[one, axis]) // 2
        left, right = boxes.high.copy(), boxes.low.copy()
        left[one[splits], axis[splits]] = middle[splits]
        right[one[splits], axis[splits]] = middle[splits] + 1
        first = boxes._replace(high=left)
        second = boxes._replace(low=right).at(splits)
        return _Boxes(*(np.concatenate(both) for both in zip(first, second, strict=True)))

    def _weights(self, place: int, boxes: _Boxes) -> Floats:
        """Return by axis how far halving it raises the bound of some boxes, per width."""
        open_ = boxes.at(~boxes.points)
        some = open_.at(np.argsort(open_.bound)[:: max(1, len(open_.row) // _PROBED)][:_PROBED])
        asked, ones = self._pieces[place], np.eye(len(self._axes))
        widths = asked.widths(some)
        parts = [self._halved(place, some, one + 1e-12) for one in ones]
        starts = np.cumsum([0, *(len(part.row) for part in parts)])
        if not starts[-1]:
            return np.ones(len(self._axes))
        joined = _Boxes(*(np.concatenate(all_) for all_ in zip(*parts, strict=True)))
        bound, _ = asked.bounds(joined)
        self.boxes += len(bound)
        top = self.value if np.isfinite(self.value) else float(np.max(bound[np.isfinite(bound)], initial=1.0))
        gains = np.minimum(bound, top) - joined.bound
        effects = [
            float(gains[start:end].mean()) / max(float(widths[:, axis].mean()), 1e-12)
            for axis, (start, end) in enumerate(zip(starts[:-1], starts[1:], strict=True))
        ]
        found = np.maximum(np.nan_to_num(np.array(effects), posinf=0.0, neginf=0.0), 0.0)
        most = float(found.max())
        return found / most + 1e-3 if most > 0 else np.ones(len(self._axes))

    def _bounded(self, place: int, boxes: _Boxes) -> _Boxes:
        """Return boxes with their bounds; without those that meet no condition or are too large."""
        kept = []
        for start in range(0, len(boxes.row), AT_ONCE):
            part = boxes.at(slice(start, start + AT_ONCE))
            bound, possible = self._pieces[place].bounds(part)
            self.boxes += len(bound)
            kept.append(part._replace(bound=bound).at(possible & (bound < self.value)))
        return _Boxes(*(np.concatenate(all_) for all_ in zip(*kept, strict=True)))

    def _keep(self, place: int, boxes: _Boxes) -> None:
        """Put boxes among those that are open."""
        left = boxes.at(boxes.bound < self.value)
        points = left.points
        if points.any():
            self._points(place, left.at(points))
            left = left.at(~points)
        left = left.at(np.argsort(left.bound))
        for start in range(0, len(left.row), AT_ONCE // 2):
            part = left.at(slice(start, start + AT_ONCE // 2))
            heappush(self._open, (float(part.bound[0]), next(self._tie), place, part))

    def _try(self, place: int, boxes: _Boxes, share: float) -> None:
        """Evaluate one combination of each box."""
        places = boxes.low + np.round(share * (boxes.high - boxes.low)).astype(np.int64)
        self._evaluate(place, boxes.row, places)

    def _points(self, place: int, boxes: _Boxes) -> None:
        """Evaluate boxes that are one combination: nothing of them is left open."""
        if len(boxes.row):
            meets = self._evaluate(place, boxes.row, boxes.low)
            self.doubtful += int((~meets).sum())
            self.bound = min(self.bound, float(boxes.bound.min()))

    def _evaluate(self, place: int, row: Places, places: Places) -> NDArray[np.bool_]:
        """Evaluate combinations, and keep the best; tell which meet the conditions."""
        if not len(row):
            return np.zeros(0, dtype=bool)
        value, meets = self._pieces[place].values(row, places)
        self.points += len(row)
        value = np.where(meets, value, inf)
        least = int(np.argmin(value))
        if value[least] < self.value:
            self.value = float(value[least])
            self.best = place, int(row[least]), tuple(int(one) for one in places[least])
        return meets


class _Asked:
    """A piece on the axes: bounds of boxes, and values of points.

    Args:
        piece: to ask.
        axes: of the search.
    """

    def __init__(self, piece: Piece, axes: Sequence[Axis]) -> None:
        self._piece, self._axes, self._wish = piece, axes, piece.wish
        inputs = piece.tape.inputs
        self._places = {axis.symbol: place for place, axis in enumerate(axes)}
        self._columns = {n: self._place(n) for n in inputs}
        low = {name: values.min() for name, values in self._columns.items()}
        high = {name: values.max() for name, values in self._columns.items()}
        self._intervals = Intervals(piece.tape, low, high)
        self._logs = [np.log2(axis.values) + np.arange(len(axis.values)) * 1e-9 for axis in axes]

    def _place(self, name: str) -> Floats:
        if name in self._places:
            return self._axes[self._places[name]].values
        return self._piece.rows[name]

    @cached_property
    def ends(self) -> tuple[Places, Places]:
        """First and last place of every axis; one place where one end is best for certain.

        So it is where the objective and every condition follow the symbol one way.
        """
        tape, wish = self._piece.tape, self._wish
        ways = directions(self._intervals)
        falling = rising = 0
        wanted = [(wish.objective, wish.sign), *((name, -1) for name in wish.conditions)]
        for name, sign in (*wanted, *((name, 1) for name in wish.most)):
            place = tape.outputs[name]
            up, down = ways.rising[place], ways.falling[place]
            rising |= up if sign > 0 else down  # what gets worse as the symbol grows
            falling |= down if sign > 0 else up
        low, high = [], []
        for axis in self._axes:
            bit = 1 << tape.inputs.index(axis.symbol) if axis.symbol in tape.inputs else 0
            last = len(axis.values) - 1
            low.append(last if falling & bit and not rising & bit else 0)
            high.append(0 if not falling & bit else last)
        return np.array(low, dtype=np.int64), np.array(high, dtype=np.int64)

    def widths(self, boxes: _Boxes) -> Floats:
        """Return the logarithm of the last value over the first, by box and axis."""
        return np.stack(
            [
                logs[boxes.high[:, place]] - logs[boxes.low[:, place]]
                for place, logs in enumerate(self._logs)
            ],
            axis=1,
        )

    def bounds(self, boxes: _Boxes) -> tuple[Floats, NDArray[np.bool_]]:
        """Return by box a number that no value is below, and whether a combination may do."""
        low = self._taken(boxes.row, boxes.low)
        high = self._taken(boxes.row, boxes.high)
        spans, wish, size = self._intervals(low, high), self._wish, len(boxes.row)
        below, above = spans[wish.objective]
        bound = np.broadcast_to(below if wish.sign > 0 else -above, (size,))
        possible = np.ones(size, dtype=bool)
        for name in wish.conditions:
            possible &= (spans[name][0] != 0) | (spans[name][1] != 0)
        for name, most in wish.most.items():
            possible &= spans[name][0] <= most
        return bound, possible

    def values(self, row: Places, places: Places) -> tuple[Floats, NDArray[np.bool_]]:
        """Return by combination the value and whether all conditions are met, in floats."""
        taken = self._taken(row, places)
        size, wish = len(row), self._wish
        if not taken:
            taken = {}
        found = evaluated(self._piece.tape, taken, size)
        meets = np.isfinite(found[wish.objective])
        for name in wish.conditions:
            meets &= found[name] != 0
        for name, most in wish.most.items():
            meets &= found[name] <= most
        return wish.sign * found[wish.objective], meets

    def _taken(self, row: Places, places: Places) -> dict[str, Floats]:
        return {
            name: column[places[:, self._places[name]]] if name in self._places else column[row]
            for name, column in self._columns.items()
        }
