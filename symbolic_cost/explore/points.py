"""Points of a sweep as numbers: candidates counted through, degrees that follow, legal or not.

A candidate's number counts through all values, the last name fastest: first the words, then what
decides over degrees and structure (outer), then the sizes that are numbers alone (inner).
Everything is arrays of floats, in which integers up to 2**53 are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from symbolic_cost.explore.ranges import Value
from symbolic_cost.program.arrays import evaluated
from symbolic_cost.program.program import Program
from symbolic_cost.records import dataclass

Floats: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.int64]
Arrays: TypeAlias = dict[str, Floats]


@dataclass(frozen=True)
class Axis:
    """A varied name.

    Args:
        name: as typed.
        symbol: that it stands for; of words, the option.
        choices: numbers or words.
    """

    name: str
    symbol: str
    choices: tuple[Value, ...]

    @cached_property
    def array(self) -> Floats:
        """The numbers."""
        return np.array([float(value) for value in self.choices])


@dataclass(frozen=True)
class Grid:
    """Axes counted through, the last one fastest."""

    axes: tuple[Axis, ...]

    @cached_property
    def size(self) -> int:
        """How many points there are."""
        return prod(len(axis.choices) for axis in self.axes)

    def indices(self, points: Places) -> list[Places]:
        """Return the place on every axis of some points."""
        indices: list[Places] = []
        for axis in reversed(self.axes):
            points, place = np.divmod(points, len(axis.choices))
            indices.append(place)
        return indices[::-1]

    def arrays(self, points: Places) -> Arrays:
        """Return the numbers of some points, by symbol."""
        indices = self.indices(points)
        return {a.symbol: a.array[i] for a, i in zip(self.axes, indices, strict=True)}


ALIKE, ONE, TWO, MANY = range(4)
"""Classes of a degree: equal to that of its inner ranks, one, two where that matters, more."""


@dataclass(frozen=True)
class Key:
    """What of a point's numbers decides which program prices it.

    Args:
        classes: of the degrees, by symbol.
        copies: ranks that hold the same key/value heads.
        layout: of blocks over stages, where it follows: "even" or "uneven".
        chunks: of a stage: 1, or 2 for any number that is not its own structure.
    """

    classes: tuple[tuple[str, int], ...]
    copies: int
    layout: str
    chunks: int


@dataclass(frozen=True)
class Ranks:
    """How degrees follow, and what they must meet.

    Args:
        degrees: symbols of the strategy's degrees, ep among them.
        numbers: of all that does not vary, by symbol; R for the devices and B for the global batch
            where they are asked for.
        follows: whether dp follows from the devices.
        shape: outputs "heads" (that ranks share), "blocks".
    """

    degrees: tuple[str, ...]
    names: Mapping[str, str]
    numbers: Mapping[str, float]
    follows: bool
    shape: Program

    def filled(self, varied: Arrays, size: int) -> tuple[Arrays, dict[str, NDArray[np.bool_]]]:
        """Return numbers with those that follow, and by condition where it is met."""
        known = {name: np.full(size, number) for name, number in self.numbers.items()} | varied
        legal: dict[str, NDArray[np.bool_]] = {}
        others = [name for name in self.degrees if name not in ("ep", "dp")]
        together = self._product(known, others, size)
        by = "*".join(self.names[name] for name in others) or "1"
        if self.follows:
            known["dp"] = known["R"] / together
            legal[f"gpus is a multiple of {by}"] = known["R"] % together == 0
        elif "R" in known:
            whole = together * known.get("dp", 1.0)
            legal[f"gpus is {by}*dp" if "dp" in known else f"gpus is {by}"] = whole == known["R"]
        if "ep" in known:
            legal["dp is a multiple of ep"] = known["dp"] % known["ep"] == 0
        if "B" in known:
            beside = known.get("dp", 1.0) * known.get("dr", 1.0) * known["b"]
            known["M"] = known["B"] / beside
            legal["global_batch is a multiple of dp*b"] = known["B"] % beside == 0
        if "R" not in known:
            known["R"] = together * known.get("dp", 1.0)
        return known, legal

    @staticmethod
    def _product(known: Arrays, names: list[str], size: int) -> Floats:
        product = np.ones(size)
        for name in names:
            product = product * known[name]
        return product

    def codes(self, known: Arrays, size: int, chunks: str, *, auto: bool) -> Places:
        """Return one integer per point; equal ones have one structure."""
        code = np.zeros(size, dtype=np.int64)
        for name in self.degrees:
            degree = known[name]
            kind = np.where(degree == 1, ONE, MANY)
            if name == "pp":
                kind[degree == 2] = TWO  # noqa: PLR2004 - two stages have no middle one
            if name == "dp" and "ep" in known:
                kind[(degree == known["ep"]) & (degree != 1)] = ALIKE
            code = code * 4 + kind
        copies = self._copies(known, size)
        apart = known["v"] if chunks == "v" else np.full(size, float(chunks))
        uneven = self._uneven(known, apart, size) if auto else np.zeros(size, dtype=np.int64)
        alone = (apart == 1) & (chunks == "v")
        return ((code * _MOST_COPIES + copies) * 2 + uneven) * 2 + alone

    def key(self, code: int) -> Key:
        """Return what an integer of `codes` stands for."""
        code, alone = divmod(int(code), 2)
        code, uneven = divmod(code, 2)
        code, copies = divmod(code, _MOST_COPIES)
        classes = []
        for name in reversed(self.degrees):
            code, kind = divmod(code, 4)
            classes.append((name, kind))
        return Key(tuple(classes[::-1]), copies, "uneven" if uneven else "even", 1 if alone else 2)

    def _shaped(self, name: str, known: Arrays, size: int) -> Floats:
        program = self.shape.chosen([name])
        return evaluated(program.tape, {one: known[one] for one in program.inputs}, size)[name]

    def _copies(self, known: Arrays, size: int) -> Places:
        if "heads" not in self.shape.outputs or "m1" not in known:
            return np.ones(size, dtype=np.int64)
        heads, ranks = self._shaped("heads", known, size), known["m1"]
        shared = (ranks > heads) & (ranks % heads == 0)
        return np.where(shared, ranks / heads, 1).astype(np.int64)

    def _uneven(self, known: Arrays, chunks: Floats, size: int) -> Places:
        if "pp" not in known or "blocks" not in self.shape.outputs:
            return np.zeros(size, dtype=np.int64)
        blocks = self._shaped("blocks", known, size)
        return ((known["pp"] != 1) & (blocks % (known["pp"] * chunks) != 0)).astype(np.int64)


_MOST_COPIES = 1 << 25
