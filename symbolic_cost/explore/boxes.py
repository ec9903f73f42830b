"""Boxes of combinations, and what a program asked about one of them tells.

A box is one row of numbers that go together (a strategy), and a range of every other axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from symbolic_cost.grouping import grouped
from symbolic_cost.program.arrays import evaluated
from symbolic_cost.program.intervals import Directions, Intervals, directions
from symbolic_cost.program.tape import Tape
from symbolic_cost.records import dataclass

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
"""Places of values in the axes: one line per box, one column per axis."""

Bounded: TypeAlias = tuple[Floats, NDArray[np.bool_]]
"""A number of every box or combination, and whether it may do."""


@dataclass(frozen=True)
class Wish:
    """What is looked for, by outputs of the programs.

    Args:
        sign: 1 where it is to be small, -1 where large.
        conditions: outputs that must not be zero.
        most: outputs that must not be above a number.
    """

    objective: str
    sign: int = 1
    conditions: tuple[str, ...] = ()
    most: Mapping[str, float] = field(default_factory=dict)

    @property
    def outputs(self) -> tuple[str, ...]:
        """All names."""
        return tuple(dict.fromkeys((self.objective, *self.conditions, *self.most)))


@dataclass(frozen=True)
class Axis:
    """Values of one symbol.

    Args:
        symbol: name of an input.
        values: ascending.
    """

    symbol: str
    values: Floats

    @cached_property
    def logs(self) -> Floats:
        """Logarithms of the values, apart from each other."""
        return np.asarray(np.log2(self.values) + 1e-9 * np.arange(len(self.values)))


@dataclass(frozen=True)
class Piece:
    """One program, with what it is asked for.

    Args:
        wishes: of each structure that the program holds; the best of all is looked for.
        rows: numbers that go together, by input; each row is a choice.
    """

    tape: Tape
    wishes: tuple[Wish, ...]
    rows: Mapping[str, Floats]
    count: int

    def alone(self, wish: Wish) -> Piece:
        """Return the piece of one wish, with the steps that it needs."""
        return Piece(self.tape.only(wish.outputs), (wish,), self.rows, self.count)


class Boxes(NamedTuple):
    """Boxes of one piece: row, first and last place on every axis, and the bound."""

    row: Places
    low: Places
    high: Places
    bound: Floats

    def at(self, chosen: NDArray[np.bool_] | Places | slice) -> Boxes:
        """Return the chosen ones."""
        return Boxes(self.row[chosen], self.low[chosen], self.high[chosen], self.bound[chosen])

    @property
    def points(self) -> NDArray[np.bool_]:
        """Which of them are one combination."""
        return np.asarray((self.low == self.high).all(axis=1))


def union(parts: Sequence[Boxes]) -> Boxes:
    """Return the boxes of all parts in one."""
    return Boxes(*(np.concatenate(all_) for all_ in zip(*parts, strict=True)))


class BoxRequest:
    """A piece on the axes: bounds of boxes, and values of points, by wish."""

    def __init__(self, piece: Piece, axes: Sequence[Axis]) -> None:
        self._piece, self._axes = piece, axes
        self._places = {axis.symbol: place for place, axis in enumerate(axes)}
        self._columns = {
            name: axes[self._places[name]].values if name in self._places else piece.rows[name]
            for name in piece.tape.inputs
        }
        low = {name: values.min() for name, values in self._columns.items()}
        high = {name: values.max() for name, values in self._columns.items()}
        self._intervals = Intervals(piece.tape, low, high)

    @cached_property
    def ends(self) -> dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]]:
        """Wishes by the first and last places of the axes that they need to look at.

        They are one place where the objective and every condition follow a symbol one way, so
        that one end is best for certain.
        """
        ways = directions(self._intervals)
        wishes = enumerate(self._piece.wishes)
        return grouped((self._ends(wish, ways), place) for place, wish in wishes)

    def _ends(self, wish: Wish, ways: Directions) -> tuple[tuple[int, ...], tuple[int, ...]]:
        tape = self._piece.tape
        wanted = [(wish.objective, wish.sign), *((name, -1) for name in wish.conditions)]
        worse = better = 0
        for name, sign in (*wanted, *((name, 1) for name in wish.most)):
            up, down = (way[tape.outputs[name]] for way in (ways.rising, ways.falling))
            worse |= up if sign > 0 else down  # as the symbol grows
            better |= down if sign > 0 else up
        low, high = [], []
        for axis in self._axes:
            bit = 1 << tape.inputs.index(axis.symbol) if axis.symbol in tape.inputs else 0
            last = len(axis.values) - 1
            low.append(last if better & bit and not worse & bit else 0)
            high.append(last if better & bit else 0)
        return tuple(low), tuple(high)

    def bounds(self, boxes: Boxes, wishes: Sequence[int]) -> dict[int, Bounded]:
        """Return by wish a number that no value is below, and whether a combination may do."""
        low = self._columns_at(boxes.row, boxes.low)
        high = self._columns_at(boxes.row, boxes.high)
        spans, size = self._intervals(low, high), len(boxes.row)
        bounds: dict[int, Bounded] = {}
        for place in wishes:
            wish = self._piece.wishes[place]
            below, above = spans[wish.objective]
            possible = np.ones(size, dtype=bool)
            for name in wish.conditions:
                possible &= (spans[name][0] != 0) | (spans[name][1] != 0)
            for name, most in wish.most.items():
                possible &= spans[name][0] <= most
            bound = np.broadcast_to(below if wish.sign > 0 else -above, (size,))
            bounds[place] = bound, possible
        return bounds

    def values(self, row: Places, places: Places, wishes: Sequence[int]) -> dict[int, Bounded]:
        """Return by wish the value of every combination, and whether it meets all conditions."""
        outputs = evaluated(self._piece.tape, self._columns_at(row, places), len(row))
        results: dict[int, Bounded] = {}
        for place in wishes:
            wish = self._piece.wishes[place]
            meets = np.isfinite(outputs[wish.objective])
            for name in wish.conditions:
                meets &= outputs[name] != 0
            for name, most in wish.most.items():
                meets &= outputs[name] <= most
            results[place] = wish.sign * outputs[wish.objective], meets
        return results

    def _columns_at(self, row: Places, places: Places) -> dict[str, Floats]:
        return {
            name: column[places[:, self._places[name]]] if name in self._places else column[row]
            for name, column in self._columns.items()
        }
