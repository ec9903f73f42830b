"""Attention of channels to each other, and of the first position to all.

Axes: as the trail makes them; h heads, d and e channels of one.
"""

from symbolic_cost.layers.conv import Chain, Maps, Trail, under
from symbolic_cost.layers.maps import attended
from symbolic_cost.layers.pyramid import FirstPosition
from symbolic_cost.ops.declare import einsum, norm, softmax
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Crossed:
    """Attention of the channels of every head to each other, by cosines over all positions."""

    heads: int

    def declare(self, name: str, trail: Trail) -> None:
        start = trail.at
        batch, channel, *own = start.axes
        h, d = trail.heads(self.heads, trail.length(channel))
        e = trail.copy(d)
        asked = self._unit(f"{name}.query", (batch, *own, h, d), trail)
        key = self._unit(f"{name}.key", (batch, *own, h, e), trail)
        value = trail.product(f"{name}.value", start, (batch, *own, h, e))
        warm = trail.made(f"{name}.warm", "mul", asked, f"*scale[{h}]", axes=asked.axes)
        square, context = f"[{batch} {h} {d} {e}]", Maps(f"{name}.c", asked.axes)
        trail.ops += [
            einsum(f"{name}.scored", f"{warm}, {key} -> {name}.scores{square}"),
            softmax(f"{name}.softmax", f"{name}.scores{square} -> {name}.p{square}", row=e),
            einsum(f"{name}.attend", f"{name}.p{square}, {value} -> {context}"),
        ]
        trail.at = trail.product(f"{name}.proj", context, start.axes, to=name)

    def _unit(self, name: str, axes: tuple[str, ...], trail: Trail) -> Maps:
        """Declare queries or keys, every channel of length one."""
        plain = trail.product(name, trail.at, axes)
        unit = Maps(f"{name}.unit", axes)
        row = " ".join(axes[1:-2])
        trail.ops.append(norm(f"{name}.norm", f"{plain} -> {unit}", "rms_norm_bare", row))
        return unit


@dataclass(frozen=True)
class Led:
    """Layers for the first position alone; the others stay as they are."""

    chain: Chain

    def declare(self, name: str, trail: Trail) -> None:
        start = trail.at
        FirstPosition().declare(f"{name}.first", trail)
        self.chain.declare(name, trail)
        _before(name, start, trail)


@dataclass(frozen=True)
class Asked:
    """Attention of the first position to all; the others stay as they are."""

    heads: int

    def declare(self, name: str, trail: Trail) -> None:
        start = trail.at
        batch, channel, *own = start.axes
        h, d = trail.heads(self.heads, trail.length(channel))
        FirstPosition().declare(f"{name}.first", trail)
        asked = trail.product(f"{name}.query", trail.at, (batch, h, d))
        key, value = (
            trail.product(f"{name}.{part}", start, (batch, *own, h, d)) for part in ("key", "value")
        )
        context = attended(name, trail, asked, key, value)
        trail.at = trail.product(f"{name}.proj", context, (batch, channel), to=f"{name}.led")
        _before(name, start, trail)


def _before(name: str, start: Maps, trail: Trail) -> None:
    """Declare the position at hand before all but the first of a sequence.

    Raises:
        InputError: it has other channels.
    """
    *kept, own = start.axes
    trail.at = under(f"{name}.ahead", trail.at, tuple(kept), trail)
    axes = (*kept, trail.copy(own))
    trail.pointwise(f"{name}.joined", "copy", start, axes=axes, laid=[own])


@dataclass(frozen=True)
class Waved:
    """A product of sines and cosines of every position, the same for every sample, added.

    Args:
        waves: of them.
    """

    waves: int

    def declare(self, name: str, trail: Trail) -> None:
        wave, (_, *own) = trail.new_axis("w", self.waves), trail.at.axes
        known = f"!{name}.waves[{wave} {' '.join(own[1:])}]:buffer"
        places = Maps(f"{name}.places", tuple(own))
        weights = f"*w[{wave} {own[0]}] + *bias[{own[0]}]"
        trail.ops.append(einsum(f"{name}.waved", f"{known}, {weights} -> {places}"))
        trail.pointwise(name, "add", places)
