"""Layers of networks that denoise or encode maps: time steps, prompts, maps of another side.

A trail's tensors aside: "time", a vector of a sample [b c]; "prompt", positions of text [b c l].
"""

from collections.abc import Callable

from symbolic_cost.layers.conv import Activation, Chain, Conv, Layer, Trail, under
from symbolic_cost.layers.maps import Mix, Normed, Reduced, Residual
from symbolic_cost.ops.declare import Role
from symbolic_cost.records import dataclass

GROUPS = Normed("group_norm", "both")


@dataclass(frozen=True)
class Timed:
    """A vector of the sample's time step, or of every frame's, added to every position.

    Args:
        function: before its projection.
    """

    function: str = "silu"

    def declare(self, name: str, trail: Trail) -> None:
        at, time = trail.at, trail.aside["time"]
        batch, channel = at.axes[:2]
        if len(time.axes) > 2:  # noqa: PLR2004 - one for every frame
            time = under(f"{name}.step", time, (*time.axes[:2], at.axes[2]), trail)
        active = trail.made(f"{name}.active", self.function, time, axes=time.axes)
        axes = (batch, channel, *time.axes[2:])
        shift = trail.product(f"{name}.linear", active, axes, to=f"{name}.shift")
        trail.pointwise(name, "add", shift)


def same(channels: int, kernel: int) -> Conv:
    """Return a convolution that keeps the sides."""
    return Conv(channels, kernel, 1, kernel // 2)


@dataclass(frozen=True)
class Block:
    """Two convolutions, each behind a norm, around the time step if there is one.

    Args:
        channels: that come out.
        function: the activation function.
        time: adds the time step, if anything does.
        norm: before either convolution.
        conv: a convolution to some channels, with a kernel of some size.
        short: norm of what stands beside, where the channels change.
    """

    channels: int
    function: str = "silu"
    time: Layer | None = None
    norm: Layer = GROUPS
    conv: Callable[[int, int], Layer] = same
    short: Layer | None = None

    def declare(self, name: str, trail: Trail) -> None:
        layers: dict[str, Layer] = {
            "norm1": self.norm,
            "act1": Activation(self.function),
            "conv1": self.conv(self.channels, 3),
            **({"time": self.time} if self.time else {}),
            "norm2": self.norm,
            "act2": Activation(self.function),
            "conv2": self.conv(self.channels, 3),
        }
        beside = {"norm": self.short} if self.short else {}
        changed = self.channels != trail.length(trail.at.axes[1])
        short = Chain({**beside, "conv": self.conv(self.channels, 1)}) if changed else None
        Residual(Chain(layers), short).declare(name, trail)


@dataclass(frozen=True)
class Enlarged:
    """Maps of the sides of another one; of twice their own if there is none.

    Args:
        like: tensor aside; empty for the one that was kept last, if any.
        sides: height and width, if they are numbers.
    """

    like: str = ""
    sides: tuple[int, ...] = ()

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the layer; maps that have these sides already stay as they are."""
        batch, channel, *old = trail.at.axes
        before = [trail.length(axis) for axis in old]
        lengths = [2 * length for length in before]
        other = trail.aside[self.like] if self.like else trail.skips[-1] if trail.skips else None
        if other is not None:
            lengths = [trail.length(axis) for axis in other.axes[2:]]
        lengths = list(self.sides) or lengths
        if (self.like or self.sides) and lengths == before:
            return
        new = [trail.new_axis(axis[0], length) for axis, length in zip(old, lengths, strict=True)]
        trail.pointwise(name, "interpolate", axes=(batch, channel, *new), laid=old)


@dataclass(frozen=True)
class Rejoined:
    """The map that was kept last, side by side with the one at hand."""

    def declare(self, name: str, trail: Trail) -> None:
        batch, channel, *sides = trail.at.axes
        other = trail.skips.pop()
        kept = under(f"{name}.kept", other, (batch, other.axes[1], *sides), trail)
        both = trail.new_axis("c", trail.length(channel) + trail.length(other.axes[1]))
        channels = (channel, other.axes[1])
        trail.pointwise(name, "copy", kept, axes=(batch, both, *sides), laid=channels)


@dataclass(frozen=True)
class First:
    """The first of some channels: the means of a distribution.

    Args:
        channels: how many.
    """

    channels: int

    def declare(self, name: str, trail: Trail) -> None:
        batch, channel, *sides = trail.at.axes
        axes = (batch, trail.new_axis("c", self.channels), *sides)
        trail.pointwise(name, "copy", axes=axes, laid=[channel])


@dataclass(frozen=True)
class Gated:
    """A product of channels, opened by another one that is activated."""

    channels: int
    function: str = "gelu"

    def declare(self, name: str, trail: Trail) -> None:
        batch, _, *rest = trail.at.axes
        axes = (batch, trail.new_axis("c", self.channels, Role.INNER), *rest)
        gate = trail.product(f"{name}.gate", trail.at, axes, to=f"{name}.g")
        up = trail.product(f"{name}.up", trail.at, axes, to=f"{name}.u")
        trail.at = trail.made(f"{name}.act", self.function, gate, axes=axes, to=f"{name}.a")
        trail.pointwise(f"{name}.mul", "mul", up, to=name)


def attention(heads: int, norm: Layer = GROUPS, *, apart: bool = False) -> Residual:
    """Return attention of a map to itself, behind a norm; of every frame alone if `apart`."""
    return Residual(Chain({"norm": norm, "own": Reduced(heads, 1, apart=apart)}))


@dataclass(frozen=True)
class Repeated:
    """A layer that runs several times, each on what the one before gives.

    Args:
        layer: that gives channels and positions as it takes them.
        times: how often.
    """

    layer: Layer
    times: int

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the layer once."""
        start, first = trail.at, len(trail.ops)
        # The first tensor that a repeated part takes is what the one before hands on.
        trail.at = under(f"{name}.start", start, start.axes, trail)
        self.layer.declare(name, trail)
        if trail.at.axes != start.axes:
            trail.at = under(f"{name}.next", trail.at, start.axes, trail)
        if self.times > 1:
            trail.repeats.append((first, len(trail.ops), self.times))


def transformer(channels: int, heads: int, layers: int) -> Residual:
    """Return blocks of attention to the map and to the prompt between two projections."""
    wide: dict[str, Layer] = {"fc1": Gated(4 * channels), "fc2": Mix(channels)}
    own: dict[str, Layer] = {
        "own": Reduced(heads, 1, bias=False),
        "prompt": Reduced(heads, 1, bias=False, attended="prompt"),
        "mlp": Chain(wide),
    }
    block = {
        name: Residual(Chain({"norm": Normed(), "layer": layer})) for name, layer in own.items()
    }
    inside: dict[str, Layer] = {"norm": GROUPS, "proj_in": Mix(channels)}
    inside["block"] = Repeated(Chain(block), layers)
    return Residual(Chain(inside | {"proj_out": Mix(channels)}))
