"""Chains of layers side by side on one map.

Axes: as the trail makes them.
"""

from __future__ import annotations

from math import prod
from typing import Literal

from symbolic_cost.errors import refuse
from symbolic_cost.layers.conv import Chain, Maps, Trail, under
from symbolic_cost.layers.upsampling import beside
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Branches:
    """Chains that all take the tensor at hand; an empty one leaves it as it is.

    Args:
        how: results come out side by side in their channels, or multiplied.
    """

    chains: tuple[Chain, ...]
    how: Literal["beside", "multiplied"] = "beside"

    def declare(self, name: str, trail: Trail) -> None:
        """Declare every chain, and what becomes of the results."""
        start, made = trail.at, []
        for i, one in enumerate(self.chains):
            trail.at = start
            one.declare(f"{name}.{i}", trail)
            made.append(trail.at)
        trail.at = first = made[0]
        if self.how == "beside":
            beside(name, made, trail)
            return
        others = [under(f"{name}.as{i}", x, first.axes, trail) for i, x in enumerate(made[1:], 1)]
        trail.pointwise(name, "mul", *others)


@dataclass(frozen=True)
class Flat:
    """All positions of the map at hand as one sequence."""

    def declare(self, name: str, trail: Trail) -> None:
        batch, channel, *sides = trail.at.axes
        axes = (batch, channel, trail.new_axis("y", prod(map(trail.length, sides))))
        trail.pointwise(name, "copy", axes=axes, laid=sides)


@dataclass(frozen=True)
class Turned:
    """The positions of a sequence as its channels, and its channels as positions."""

    def declare(self, name: str, trail: Trail) -> None:
        batch, channel, *places = trail.at.axes
        if len(places) != 1:
            refuse([f"{name}: one axis of positions is turned, not {len(places)}"])
        trail.at = under(name, trail.at, (batch, *places, channel), trail)


@dataclass(frozen=True)
class Lined:
    """The channels of a vector as positions of one channel."""

    def declare(self, name: str, trail: Trail) -> None:
        batch, channel = trail.at.axes
        axes = (batch, trail.new_axis("c", 1), trail.new_axis("x", trail.length(channel)))
        trail.pointwise(name, "copy", axes=axes, laid=[channel])


@dataclass(frozen=True)
class Gate:
    """Factors of all channels, made of the map itself."""

    chain: Chain

    def declare(self, name: str, trail: Trail) -> None:
        start = trail.at
        self.chain.declare(name, trail)
        factors, axes = trail.at, start.axes[:2]
        if len(factors.axes) > len(axes):
            rest = factors.axes[2:]
            trail.pointwise(f"{name}.row", "copy", axes=axes, laid=(factors.axes[1], *rest))
        else:
            under(f"{name}.row", factors, axes, trail)
        trail.at = start
        trail.pointwise(name, "mul", Maps(f"{name}.row", axes))
