"""Layers of image networks that see a map as patches, and attention that is linear in positions.

Axes: as the trail makes them; p places in a patch, and patches as positions y.
"""

from symbolic_cost.layers.conv import Chain, Maps, Trail
from symbolic_cost.layers.maps import Mix
from symbolic_cost.ops.declare import einsum, pointwise, softmax
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
        place, patch = trail.new_axis("p", self.side**2), trail.new_axis("y", counts[0] * counts[1])
        apart = Maps(f"{name}.apart", (batch, channel, place, patch))
        unfold = f"{trail.at} -> {apart}"
        trail.add(pointwise(f"{name}.unfold", unfold, "copy", laid=" ".join(large)), apart)
        self.layers.declare(name, trail)
        _, channel, *own = trail.at.axes
        folded = Maps(f"{name}.folded", (batch, channel, *large))
        fold = f"{trail.at} -> {folded}"
        trail.add(pointwise(f"{name}.fold", fold, "copy", laid=" ".join(own)), folded)
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
        """Declare the layer; positions of the first axis see none of the others."""
        batch, channel, place, there = trail.at.axes
        d = trail.new_axis("c", trail.length(channel))
        shares, rows = f"{batch} {place} {there}", f"{batch} {d} {place} {there}"
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
                f"{name}.sum",
                f"{name}.wk[{rows}] -> {name}.s[{batch} {d} {place}]",
                "sum",
                sums=there,
            ),
            pointwise(f"{name}.act", f"{name}.v[{rows}] -> {name}.a[{rows}]", "relu"),
        ]
        result = Maps(f"{name}.c", (batch, d, place, there))
        seen = f"{name}.a[{rows}], {name}.s[{batch} {d} {place}] -> {result}"
        trail.add(pointwise(f"{name}.mul", seen, "mul"), result)
        Mix(trail.length(channel)).declare(f"{name}.proj", trail)
