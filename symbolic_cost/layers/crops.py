"""Crops of an image, each a sequence of patches that sees none of the others.

Axes: as the trail makes them; n crops, y positions of one.
"""

from symbolic_cost.layers.conv import Trail
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Crops:
    """The map at hand, crops below each other, as sequences behind a learned token, with places."""

    number: int

    def declare(self, name: str, trail: Trail) -> None:
        batch, channel, *sides = trail.at.axes
        every = trail.length(sides[0]) * trail.length(sides[1])
        n, y = trail.new_axis("n", self.number), trail.new_axis("y", every // self.number + 1)
        axes = (batch, channel, n, y)
        trail.pointwise(f"{name}.crops", "copy", f"*token[{channel}]", axes=axes, laid=sides)
        trail.pointwise(f"{name}.places", "add", f"*table[{channel} {y}]")


@dataclass(frozen=True)
class Merged:
    """The crops at hand, or some of them, side by side as a map of some sides."""

    sides: tuple[int, int]

    def declare(self, name: str, trail: Trail) -> None:
        batch, channel, *old = trail.at.axes
        sides = [
            trail.new_axis(letter, side) for letter, side in zip("yx", self.sides, strict=True)
        ]
        trail.pointwise(name, "interpolate", axes=(batch, channel, *sides), laid=old)
