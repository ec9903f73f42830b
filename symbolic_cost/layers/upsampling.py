"""Layers that make maps of a sequence or of other maps, larger or smaller, side by side or pooled.

Axes: as the trail makes them; n crops, y positions of one.
"""

from __future__ import annotations

from symbolic_cost.errors import InputError
from symbolic_cost.layers.conv import Maps, Padding, Trail, under
from symbolic_cost.ops.conv import TransposedConv, pool
from symbolic_cost.ops.conv import conv as convolution
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Grid:
    """The positions of a sequence behind the first one as a map.

    Args:
        height: of the map.
        width: of the map.
        first: what happens to the first position: "ignore", "add" to all others, or "project",
            which puts it beside the channels of all others.
    """

    height: int
    width: int
    first: str = "ignore"

    def declare(self, name: str, trail: Trail) -> None:
        batch, channel, *old = trail.at.axes
        wide = channel
        if self.first == "project":
            wide = trail.new_axis("c", 2 * trail.length(channel))
        sides = trail.new_axis("y", self.height), trail.new_axis("x", self.width)
        laid = [*old, *([channel] if wide != channel else [])]
        how = "add" if self.first == "add" else "copy"
        trail.pointwise(name, how, axes=(batch, wide, *sides), laid=laid)


@dataclass(frozen=True)
class Spread:
    """A transposed convolution, whose windows lie side by side unless they step less.

    Args:
        channels: that come out.
        kernel: positions of a window.
        step: between windows, and so the factor of the sides; the kernel if zero.
        bias: whether one is added.
        cut: positions that are cut off; as many as leave a whole factor unless given.
    """

    channels: int
    kernel: int
    step: int = 0
    bias: bool = True
    cut: int | None = None

    def declare(self, name: str, trail: Trail) -> None:
        at = trail.at
        batch, old, *sides = at.axes
        new = trail.new_axis("c", self.channels)
        step = self.step or self.kernel
        left = 0 if self.cut is None else self.kernel - step - self.cut
        positions = [trail.new_axis(a[0], step * trail.sizes[a] + left) for a in sides]
        result = Maps(name, (batch, new, *positions))
        window = trail.window((self.kernel,) * len(sides))
        bias = f" + *bias[{new}]" if self.bias else ""
        pattern = f"{at}, *w[{old} {new} {' '.join(window)}]{bias} -> {result}"
        made = convolution(name, pattern)
        trail.add(TransposedConv(made.path, made.pattern, made.among), result)


@dataclass(frozen=True)
class Beside:
    """The tensor at hand and others aside, side by side in their channels."""

    titles: tuple[str, ...]

    def declare(self, name: str, trail: Trail) -> None:
        beside(name, [trail.at, *(trail.aside[title] for title in self.titles)], trail)


def beside(name: str, tensors: list[Maps], trail: Trail) -> None:
    """Declare maps side by side in their channels, at the positions of the one at hand.

    Raises:
        InputError: they have other positions.
    """
    if len({tuple(map(trail.length, tensor.axes[2:])) for tensor in tensors}) > 1:
        raise InputError(f"{name}: maps of one size stand side by side")
    every = trail.new_axis("c", sum(trail.length(tensor.axes[1]) for tensor in tensors))
    axes = (trail.at.axes[0], every, *trail.at.axes[2:])
    known = dict.fromkeys(axis for tensor in tensors for axis in tensor.axes)
    laid = [axis for axis in known if axis not in axes]
    trail.at = trail.made(name, "copy", *tensors, axes=axes, laid=laid)


@dataclass(frozen=True)
class Opened:
    """The sum of tensors aside, each times a channel of the map at hand."""

    titles: tuple[str, ...]

    def declare(self, name: str, trail: Trail) -> None:
        batch, channel, *sides = trail.at.axes
        first = trail.aside[self.titles[0]]
        axes = (batch, first.axes[1], *sides)
        taken = [under(f"{name}.{title}", trail.aside[title], axes, trail) for title in self.titles]
        trail.pointwise(name, "mul", *taken, axes=axes, sums=[channel])


@dataclass(frozen=True)
class Carved:
    """Some positions of the sequence at hand as a map again.

    Args:
        like: map aside that they were.
    """

    like: str

    def declare(self, name: str, trail: Trail) -> None:
        batch, channel, *old = trail.at.axes
        sides = map(trail.copy, trail.aside[self.like].axes[2:])
        trail.pointwise(name, "copy", axes=(batch, channel, *sides), laid=old)


@dataclass(frozen=True)
class Pool:
    """A maximum or mean over square windows.

    Args:
        function: "max_pool" or "avg_pool".
        stride: step between positions.
    """

    function: str
    kernel: int
    stride: int
    padding: Padding = 0

    def declare(self, name: str, trail: Trail) -> None:
        positions, window = trail.windows(name, self.kernel, self.stride, self.padding)
        _reduce(name, trail, self.function, positions, window)


@dataclass(frozen=True)
class AdaptiveMean:
    """A mean over windows that leave maps of a given side."""

    side: int

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the pooling; windows overlap where the sides do not divide."""
        lengths = [trail.length(axis) for axis in trail.at.axes[2:]]
        positions = tuple(trail.new_axis(letter, self.side) for letter in "yx")
        window = tuple(
            trail.new_axis(letter, -(-length // self.side))
            for letter, length in zip("st", lengths, strict=True)
        )
        _reduce(name, trail, "avg_pool", positions, window)


def _reduce(
    name: str, trail: Trail, function: str, positions: tuple[str, ...], window: tuple[str, ...]
) -> None:
    result = Maps(name, (*trail.at.axes[:2], *positions))
    trail.add(pool(name, f"{trail.at} -> {result}", function, " ".join(window)), result)


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
