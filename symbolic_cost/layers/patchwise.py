"""Layers of image networks that see a map as patches, and attention that is linear in positions.

Axes: as the trail makes them; p places in a patch, and patches as positions y.
"""

from symbolic_cost.layers.conv import Chain, Maps, Trail
from symbolic_cost.layers.maps import Mix
from symbolic_cost.ops.declare import softmax
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Patchwise:
    """Layers that see a place of a patch in all patches, and no other place.

    Args:
        side: of a patch; maps that patches do not divide are enlarged for these layers.
    """

    side: int
    layers: Chain

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the layers, and what is laid out for them and back."""
        batch, channel, *sides = trail.at.axes
        counts = [-(-trail.length(axis) // self.side) for axis in sides]
        grown = any(trail.length(a) % self.side for a in sides)
        large = tuple(
            trail.new_axis(letter, self.side * count) if grown else axis
            for letter, count, axis in zip("yx", counts, sides, strict=True)
        )
        self._resized(f"{name}.grow", f"{name}.whole", large, trail)
        place, patch = trail.new_axis("p", self.side**2), trail.new_axis("y", counts[0] * counts[1])
        apart = (batch, channel, place, patch)
        trail.pointwise(f"{name}.unfold", "copy", axes=apart, laid=large, to=f"{name}.apart")
        self.layers.declare(name, trail)
        _, channel, *own = trail.at.axes
        whole = (batch, channel, *large)
        trail.pointwise(f"{name}.fold", "copy", axes=whole, laid=own, to=f"{name}.folded")
        self._resized(f"{name}.shrink", f"{name}.small", tuple(sides), trail)

    def _resized(self, name: str, to: str, sides: tuple[str, ...], trail: Trail) -> None:
        batch, channel, *old = trail.at.axes
        if tuple(old) != sides:
            trail.pointwise(name, "interpolate", axes=(batch, channel, *sides), laid=old, to=to)


@dataclass(frozen=True)
class Pooled:
    """Attention in which one share of every position weighs its key, and all see the sum."""

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the layer; positions of the first axis see none of the others."""
        batch, channel, place, there = trail.at.axes
        d = trail.new_axis("c", trail.length(channel))
        shares, rows = (batch, place, there), (batch, d, place, there)
        query = trail.product(f"{name}.q", trail.at, shares, to=f"{name}.query")
        k, v = (trail.product(f"{name}.{letter}", trail.at, rows) for letter in "kv")
        p = Maps(f"{name}.p", shares)
        trail.ops.append(softmax(f"{name}.softmax", f"{query} -> {p}", row=there))
        wk = trail.made(f"{name}.weigh", "mul", k, p, axes=rows, to=f"{name}.wk")
        axes, to = (batch, d, place), f"{name}.s"
        seen = trail.made(f"{name}.sum", "sum", wk, axes=axes, sums=[there], to=to)
        trail.at = trail.made(f"{name}.act", "relu", v, axes=rows, to=f"{name}.a")
        trail.pointwise(f"{name}.mul", "mul", seen, to=f"{name}.c")
        Mix(trail.length(channel)).declare(f"{name}.proj", trail)
