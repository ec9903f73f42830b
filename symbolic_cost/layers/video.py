"""Layers of maps of videos [b c z y x]: convolutions that see no later frame, other frame rates.

Axes: as the trail makes them; z frames.
"""

from sympy import Integer, Rational, ceiling

from symbolic_cost.layers.conv import Chain, Conv, Layer, Maps, Trail, under
from symbolic_cost.layers.skips import Idle
from symbolic_cost.ops.unread import unread
from symbolic_cost.records import dataclass, replace


def causal(channels: int, kernel: int, stride: int | tuple[int, ...] = 1) -> Conv:
    """Return a convolution that sees frames up to its own."""
    side = kernel // 2, kernel // 2
    return Conv(channels, kernel, stride, ((kernel - 1, 0), side, side))


def framed(
    channels: int, kernel: int, stride: int = 1, around: int | tuple[int, int] | None = None
) -> Conv:
    """Return a convolution of every frame alone, which keeps the sides unless told otherwise."""
    around = kernel // 2 if around is None else around
    pair = around if isinstance(around, tuple) else (around, around)
    return Conv(channels, (1, kernel, kernel), (1, stride, stride), ((0, 0), pair, pair))


@dataclass(frozen=True)
class Relaid:
    """Maps of other sides: elements laid out anew, interpolated or summed.

    Args:
        by: factor of every axis of positions; what a fraction leaves is filled up.
        channels: that come out; those that go in if zero.
        function: what makes the result.
        still: frames at the start that stay as they are where there are more of the others.
        frames: that come out, if neither says it.
    """

    by: tuple[Rational | int, ...]
    channels: int = 0
    function: str = "copy"
    still: int = 0
    frames: int = 0

    def declare(self, name: str, trail: Trail) -> None:
        batch, channel, *old = trail.at.axes
        lengths = [ceiling(by * trail.sizes[a]) for by, a in zip(self.by, old, strict=True)]
        if self.by[0] > 1:
            lengths[0] -= self.still * (self.by[0] - 1)
        lengths[0] = Integer(self.frames) if self.frames else lengths[0]
        new = [trail.new_axis(a[0], length) for a, length in zip(old, lengths, strict=True)]
        wide = trail.new_axis("c", self.channels) if self.channels else channel
        if trail.at.constant:  # what comes in is laid out beforehand
            trail.at = Maps(name, (batch, wide, *new), constant=True)
            return
        laid = (*((channel,) if self.channels else ()), *old)
        trail.pointwise(name, self.function, axes=(batch, wide, *new), laid=laid)


@dataclass(frozen=True)
class NormedBy:
    """A norm, scaled and shifted by what two products make of a tensor aside.

    Args:
        norm: of the maps at hand.
        title: of the tensor, which is enlarged to their positions.
    """

    norm: Layer
    title: str

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the layer."""
        source = trail.aside[self.title]
        batch, _, *places = trail.at.axes
        self.norm.declare(f"{name}.norm", trail)
        own, axes, to = f"{name}.grow", (batch, source.axes[1], *places), f"{name}.large"
        laid = [axis for axis in source.axes[2:] if axis not in places]
        large = trail.made(own, "interpolate", source, axes=axes, laid=laid, to=to)
        scale, shift = (
            trail.product(f"{name}.{piece}", large, trail.at.axes) for piece in ("scale", "shift")
        )
        trail.pointwise(f"{name}.mul", "mul", scale)
        trail.pointwise(f"{name}.add", "add", shift)


@dataclass(frozen=True)
class Later:
    """Layers that see all frames but the first, which stays as it is; of one frame they see none.

    Args:
        layers: from some frames to as many as they please, of so many channels.
    """

    layers: Chain

    def declare(self, name: str, trail: Trail) -> None:
        start = trail.at
        batch, channel, frames, *sides = start.axes
        alone = trail.sizes[frames] == 1
        # What does not run is declared of some frames, for its weights alone.
        later = trail.new_axis("z", Integer(4) if alone else trail.sizes[frames] - 1)
        if alone:
            trail.at = Maps(f"{name}.later", (batch, channel, later, *sides))
            Idle(self.layers).declare(name, trail)
            trail.at = start
            return
        rest = (batch, channel, later, *sides)
        trail.pointwise(f"{name}.later", "copy", axes=rest, laid=[frames])
        self.layers.declare(name, trail)
        _, wide, last, *over = trail.at.axes
        every = trail.new_axis("z", trail.sizes[last] + 1)
        axes, own = (batch, wide, every, *over), f"{name}.join"
        laid = [axis for axis in (channel, frames, *sides, last) if axis not in axes]
        trail.at = trail.made(own, "copy", start, trail.at, axes=axes, laid=laid, to=name)


@dataclass(frozen=True)
class Mixed:
    """A layer, and what goes in mixed with what comes out by a learned share.

    Args:
        shared: name of the share, where other mixtures have the same.
    """

    layer: Layer
    shared: str = ""

    def declare(self, name: str, trail: Trail) -> None:
        start, one = trail.at, trail.new_axis("c", 1)
        self.layer.declare(name, trail)
        before = under(f"{name}.before", start, trail.at.axes, trail)
        share = f"*@{self.shared}.share" if self.shared else "*share"
        trail.pointwise(f"{name}.mix", "add", before, f"{share}[{one}]", laid=[one])


@dataclass(frozen=True)
class Unlearned:
    """A layer through which nothing flows back."""

    layer: Layer

    def declare(self, name: str, trail: Trail) -> None:
        first = len(trail.ops)
        self.layer.declare(name, trail)
        trail.ops[first:] = unread(trail.ops[first:])
        trail.at = replace(trail.at, constant=True)
