"""Placements: which axis is split over which mesh axes, and what that makes of every tensor.

For one mesh axis a tensor is in one of three states, as in PyTorch's DTensor: split along one of
its axes (Shard), whole on every rank (Replicate), or a term of a sum still to be made (Partial).
The rule that everything follows from: an op over an index space of which a mesh axis splits axis
a makes results with a that are Shard(a) and results without a, summed over it, that are Partial.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any

from sympy import Expr, Integer, Mul

from symbolic_cost.checking import checked
from symbolic_cost.errors import PlacementError, looked_up, refuse, unknown
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact


@dataclass(frozen=True, slots=True)
class Shard:
    """Split along an axis."""

    axis: str


@dataclass(frozen=True, slots=True)
class Replicate:
    """Whole on every rank of the mesh axis."""


@dataclass(frozen=True, slots=True)
class Partial:
    """One term of a sum over the ranks of the mesh axis."""


State = Shard | Replicate | Partial

STORED = ("weight", "weight_gradient", "optimizer")
"""What data-parallel ranks may keep in shards (ZeRO)."""

_NOTHING: Mapping[str, tuple[str, ...]] = {}


@checked
@dataclass(frozen=True)
class Placement:
    """Axes over mesh axes.

    Args:
        degrees: ranks by mesh axis, innermost first; positive integers or symbols.
        axes: mesh axes by axis, innermost first: neighbours on the first hold neighbouring blocks.
        stored: mesh axes over which weights, their gradients or optimizer states are kept in
            shards: keys "weight", "weight_gradient", "optimizer".
        whole: mesh axes over which a weight that is kept in shards stays whole once it is gathered,
            until backward is done with it.
        again: parts whose weights are all gathered again for backward, by path; those of others
            stay whole. None where every op gathers what it reads.

    Raises:
        PlacementError: every contradiction found.
    """

    degrees: Mapping[str, Any] = field(default_factory=dict)
    axes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stored: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _NOTHING)
    whole: tuple[str, ...] = ()
    again: frozenset[str] | None = None

    def __post_init__(self) -> None:
        """Check the mesh, then leave out mesh axes of one rank: they split nothing."""
        problems = [
            f"mesh axis {mesh!r} has degree {degree!r}: a positive integer or a symbol is accepted"
            for mesh, degree in self.degrees.items()
            if not _is_degree(degree)
        ]
        uses = [(f"axis {axis!r}", meshes) for axis, meshes in self.axes.items()]
        uses += [(f"stored {what!r}", meshes) for what, meshes in self.stored.items()]
        uses.append(("whole", self.whole))
        for user, meshes in uses:
            problems += [
                unknown("mesh axis", mesh, self.degrees)
                for mesh in meshes
                if mesh not in self.degrees
            ]
            problems += [
                f"{user} names mesh axis {mesh!r} twice"
                for mesh in dict.fromkeys(meshes)
                if meshes.count(mesh) > 1
            ]
        problems += [
            unknown("stored quantity", what, STORED) for what in self.stored if what not in STORED
        ]
        refuse(problems, PlacementError)
        degrees = {mesh: exact(degree) for mesh, degree in self.degrees.items() if degree != 1}
        object.__setattr__(self, "degrees", degrees)
        for name in ("axes", "stored"):
            split = {
                user: tuple(mesh for mesh in meshes if mesh in degrees)
                for user, meshes in getattr(self, name).items()
            }
            object.__setattr__(self, name, {user: m for user, m in split.items() if m})
        object.__setattr__(self, "whole", tuple(mesh for mesh in self.whole if mesh in degrees))

    def meshes(self, axis: str) -> tuple[str, ...]:
        """Return the mesh axes that split an axis."""
        return self.axes.get(axis, ())

    def stored_over(self, what: str, axes: Iterable[str]) -> tuple[str, ...]:
        """Return the mesh axes over whose ranks a weight with these axes is kept in shards.

        Ranks that already hold different parts of it have nothing left to divide.
        """
        split = {mesh for axis in axes for mesh in self.axes.get(axis, ())}
        return tuple(mesh for mesh in self.stored.get(what, ()) if mesh not in split)

    @property
    def adds_up(self) -> bool:
        """Whether gradients add up whole of weights that are kept in shards."""
        stored, reduced = (self.stored.get(what, ()) for what in ("weight", "weight_gradient"))
        return not set(stored) <= set(reduced)

    def gathered_over(self, axes: Iterable[str], *, again: bool = False) -> tuple[str, ...]:
        """Return the mesh axes over whose ranks a pass gathers such a weight; backward `again`.

        Where gradients add up whole, forward finds it whole as the backward before has left it: of
        M microbatches forward gathers it for the first alone.
        """
        stored, reduced = (self.stored_over(what, axes) for what in ("weight", "weight_gradient"))
        stays = self.whole if again else set(stored).difference(reduced)
        return tuple(mesh for mesh in stored if mesh not in stays)

    def degree(self, meshes: Iterable[str]) -> Expr:
        """Return the ranks of a group of mesh axes."""
        group = tuple(meshes)
        if group not in self._degrees:
            self._degrees[group] = Mul(
                *(looked_up("mesh axis", mesh, self.degrees) for mesh in group)
            )
        return self._degrees[group]

    def split_axis(self, mesh: str, axes: Iterable[str], where: str = "") -> str | None:
        """Return the axis of an index space that a mesh axis splits, or None.

        Raises:
            PlacementError: it splits two of them, so that most of the work would be missing.
        """
        split = [axis for axis in axes if mesh in self.axes.get(axis, ())]
        if len(split) > 1:
            raise PlacementError(
                f"{where or 'index space'}: mesh axis {mesh!r} splits {' and '.join(split)}; "
                "it may split one axis of an op"
            )
        return split[0] if split else None

    def states(self, operand: Iterable[str], space: Iterable[str]) -> dict[str, State]:
        """Return the state of a result with axes `operand` of an op over `space`, by mesh axis."""
        own_axes = set(operand)
        states: dict[str, State] = {}
        for mesh in self.degrees:
            axis = self.split_axis(mesh, space)
            left = Shard(axis) if axis in own_axes else Partial()
            states[mesh] = Replicate() if axis is None else left
        return states

    def needs(self, operand: Iterable[str]) -> dict[str, State]:
        """Return the state in which an op takes an operand, by mesh axis."""
        axes = tuple(operand)
        if axes not in self._needs:
            split = {mesh: self.split_axis(mesh, axes) for mesh in self.degrees}
            self._needs[axes] = {
                mesh: Replicate() if axis is None else Shard(axis) for mesh, axis in split.items()
            }
        return dict(self._needs[axes])

    @cached_property
    def _needs(self) -> dict[tuple[str, ...], dict[str, State]]:
        return {}

    @cached_property
    def _degrees(self) -> dict[tuple[str, ...], Expr]:
        return {}


WHOLE = Placement()
"""One rank."""


def _is_degree(degree: object) -> bool:
    if isinstance(degree, Integer):
        return bool(degree > 0)
    if isinstance(degree, Expr):  # a quotient of integers may come out whole
        counts = all(symbol.is_integer for symbol in degree.free_symbols)
        return counts and degree.is_integer is not False and degree.is_positive is True
    return isinstance(degree, int) and not isinstance(degree, bool) and degree > 0
