"""Layers of image networks that see a map as patches, and attention that is linear in positions.

Axes: as the trail makes them; u samples, once for every place in a patch, and patches as positions.
"""

from __future__ import annotations

from symbolic_cost.axes import Role
from symbolic_cost.layers.conv import Chain, Maps, Trail
from symbolic_cost.layers.maps import Mix
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise, softmax
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
        start = trail.at
        batch, channel, *sides = start.axes
        counts = [-(-trail.length(axis) // self.side) for axis in sides]
        grown = any(trail.length(a) % self.side for a in sides)
        large = tuple(
            trail.new_axis(letter, self.side * count) if grown else axis
            for letter, count, axis in zip("yx", counts, sides, strict=True)
        )
        whole = Maps(f"{name}.whole", (batch, channel, *large)) if grown else start
        self._resized(f"{name}.grow", whole, trail)
        u = trail.new_axis("u", trail.sizes[batch] * self.side**2, Role.BATCH)
        apart = Maps(f"{name}.apart", (u, channel, trail.new_axis("y", counts[0] * counts[1])))
        laid = " ".join((batch, *large))
        trail.add(pointwise(f"{name}.unfold", f"{trail.at} -> {apart}", "copy", laid=laid), apart)
        self.layers.declare(name, trail)
        _, channel, there = trail.at.axes
        folded = Maps(f"{name}.folded", (batch, channel, *large))
        back = f"{trail.at} -> {folded}"
        trail.add(pointwise(f"{name}.fold", back, "copy", laid=f"{u} {there}"), folded)
        small = Maps(f"{name}.small", (batch, channel, *sides)) if grown else folded
        self._resized(f"{name}.shrink", small, trail)

    def _resized(self, name: str, result: Maps, trail: Trail) -> None:
        old, new = trail.at.axes[2:], result.axes[2:]
        if old != new:
            resize = f"{trail.at} -> {result}"
            trail.add(pointwise(name, resize, "interpolate", laid=" ".join(old)), result)


@dataclass(frozen=True)
class Pooled:
    """Attention in which one share of every position weighs its key, and all see the sum."""

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the layer on x[b c n]."""
        batch, channel, there = trail.at.axes
        d = trail.new_axis("c", trail.length(channel))
        shares, rows = f"{batch} {there}", f"{batch} {d} {there}"
        weight = f"*w[{channel} {d}] + *bias[{d}]"
        query = f"{trail.at}, *w[{channel}] + *bias[] -> {name}.query[{shares}]"
        trail.ops += [
            einsum(f"{name}.q", query),
            *(
                einsum(f"{name}.{letter}", f"{trail.at}, {weight} -> {name}.{letter}[{rows}]")
                for letter in "kv"
            ),
            softmax(f"{name}.softmax", f"{name}.query[{shares}] -> {name}.p[{shares}]", row=there),
            pointwise(
                f"{name}.weigh", f"{name}.k[{rows}], {name}.p[{shares}] -> {name}.wk[{rows}]", "mul"
            ),
            pointwise(
                f"{name}.sum", f"{name}.wk[{rows}] -> {name}.s[{batch} {d}]", "sum", sums=there
            ),
            pointwise(f"{name}.act", f"{name}.v[{rows}] -> {name}.a[{rows}]", "relu"),
        ]
        result = Maps(f"{name}.c", (batch, d, there))
        seen = f"{name}.a[{rows}], {name}.s[{batch} {d}] -> {result}"
        trail.add(pointwise(f"{name}.mul", seen, "mul"), result)
        Mix(trail.length(channel)).declare(f"{name}.proj", trail)
