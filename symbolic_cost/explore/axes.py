"""Numbers of a shape's candidates by the axis that they vary along."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from symbolic_cost.explore.candidates import Candidates, Numbers, Shape
from symbolic_cost.explore.choices import CONTEXT, DEGREES, INSIDE, numbers_of
from symbolic_cost.program.layered import Places
from symbolic_cost.records import dataclass

Floats = NDArray[np.float64]
Columns = Mapping[str, Floats]


@dataclass(frozen=True)
class Axes:
    """Numbers of candidates that are a product: orders of ranks, other ways, degrees.

    Args:
        along: columns by symbol, of every axis; the last is that of degrees.
        sizes: length of every axis.
    """

    along: Sequence[Columns]
    sizes: tuple[int, ...]

    @property
    def ways(self) -> int:
        """Candidates of the same degrees."""
        return prod(self.sizes[:-1])

    @property
    def size(self) -> int:
        """All candidates."""
        return prod(self.sizes)

    def columns(self) -> Columns:
        """Return one column for all candidates by symbol."""
        columns: dict[str, Floats] = {}
        for place, own in enumerate(self.along):
            inner, outer = prod(self.sizes[place + 1 :]), prod(self.sizes[:place])
            for name, column in own.items():
                columns[name] = np.tile(np.repeat(column, inner), outer)
        return columns

    def some(self, degrees: Places) -> Axes:
        """Return the candidates of some degrees."""
        own = {name: column[degrees] for name, column in self.along[-1].items()}
        return Axes((*self.along[:-1], own), (*self.sizes[:-1], len(degrees)))

    def read(self, names: Collection[str]) -> Axes:
        """Return the axes along which some symbols vary; the others have one candidate."""
        along = [{n: own[n] for n in names if n in own} for own in self.along[:-1]]
        sizes = [size if own else 1 for own, size in zip(along, self.sizes[:-1], strict=True)]
        return Axes((*along, self.along[-1]), (*sizes, self.sizes[-1]))

    def point(self, row: int) -> dict[str, float]:
        """Return the numbers of one candidate by symbol."""
        places = np.unravel_index(row, self.sizes)
        return {
            name: float(column[place])
            for own, place in zip(self.along, places, strict=True)
            for name, column in own.items()
        }


def axes_of(walked: Candidates, shape: Shape) -> Axes:
    """Return the numbers of a shape's rows by the axis that they vary along.

    Rows are orders of ranks, each with every other way, each of these with all degrees.
    """
    run, numbers = walked.ways[shape], _numbers(shape, walked.numbers[shape])
    if len(run) == 1:
        return Axes(({}, {}, numbers), (1, 1, len(walked.numbers[shape])))
    options = numbers_of(run, shape.names)
    orders = len({way.order for way in run})
    others = len(run) // orders
    along: list[dict[str, Floats]] = [{}, {}]
    for name, column in options.items():
        inside = name.startswith(INSIDE)
        along[not inside][name] = np.array(column[::others] if inside else column[:others])
    return Axes((*along, numbers), (orders, others, len(walked.numbers[shape])))


def columns_of(walked: Candidates, shape: Shape) -> Columns:
    """Return the numbers of every symbol by its name, of a shape's rows."""
    return axes_of(walked, shape).columns()


def _numbers(shape: Shape, listed: Sequence[Numbers]) -> dict[str, Floats]:
    by_name = dict(zip(Numbers._fields, np.array(listed, dtype=float).T, strict=True))
    columns = {name: by_name[name] for name in ("b", "M", "v")}
    for name, _ in shape.degrees:
        columns[DEGREES[name]] = by_name["cp" if name in CONTEXT else name]
    return columns
