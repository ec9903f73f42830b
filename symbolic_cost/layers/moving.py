"""Layers of a UNet of videos: blocks and transformers that see frames alone, then together.

Axes: as in `unet`; a time step [b c z] and a prompt stand at every frame, as their code has them.
"""

from symbolic_cost.layers.conv import Chain, Conv, Layer, Maps, Trail, under
from symbolic_cost.layers.maps import Mix, Normed, Reduced, Residual
from symbolic_cost.layers.unet import GROUPS, Block, Gated, Repeated
from symbolic_cost.layers.video import Mixed, framed
from symbolic_cost.ops.declare import Role
from symbolic_cost.records import dataclass


def in_time(channels: int, kernel: int) -> Conv:
    """Return a convolution of frames alone."""
    around = kernel // 2
    return Conv(channels, (kernel, 1, 1), 1, ((around, around), (0, 0), (0, 0)))


def unit(channels: int, time: Layer | None = None) -> Chain:
    """Return a block that sees frames alone, and one that sees them together."""
    together = Mixed(Block(channels, time=time, conv=in_time))
    return Chain({"alone": Block(channels, time=time, conv=framed), "together": together})


@dataclass(frozen=True)
class Prompted:
    """Attention to a prompt, which stands at every position of some axes.

    Args:
        width: of the prompt.
        tokens: axis of its positions.
        at: how many of the axes of positions it stands at.
    """

    heads: int
    width: int
    tokens: str
    at: int

    def declare(self, name: str, trail: Trail) -> None:
        batch, _, *sides = trail.at.axes
        wide = trail.new_axis("c", self.width)
        axes = (batch, wide, *sides[: self.at], self.tokens)
        trail.aside[f"{name}.prompt"] = Maps(f"{name}.prompt", axes, constant=True)
        Reduced(self.heads, bias=False, attended=f"{name}.prompt").declare(name, trail)


@dataclass(frozen=True)
class _Turned:
    """A layer that sees frames as the last of the axes of positions.

    Args:
        title: tensor aside that is added first.
    """

    layer: Layer
    title: str

    def declare(self, name: str, trail: Trail) -> None:
        start = trail.at
        batch, channel, frames, *sides = start.axes
        places = trail.aside[self.title]
        same = under(f"{name}.places", places, (batch, channel, frames), trail)
        trail.pointwise(f"{name}.placed", "add", same)
        axes = (batch, channel, *sides, frames)
        trail.at = under(f"{name}.turned", trail.at, axes, trail)
        self.layer.declare(name, trail)
        trail.at = under(f"{name}.back", trail.at, start.axes, trail)


@dataclass(frozen=True)
class Transformer:
    """Blocks of attention to a frame and to the prompt, each with one to all frames.

    Args:
        layers: how many of them.
        width: of the prompt.
        tokens: axis of its positions.
    """

    heads: int
    layers: int
    width: int
    tokens: str

    def declare(self, name: str, trail: Trail) -> None:
        start = trail.at
        channels = trail.length(start.axes[1])
        title = f"{name}.frames"
        self._frames(title, trail)
        first: dict[str, Layer] = {"first": self._perceptron(channels)}
        together = Mixed(_Turned(self._block(channels, 2, first), title), title)
        own = Chain({"alone": self._block(channels, 1, {}), "together": together})
        inside: dict[str, Layer] = {
            "norm": GROUPS,
            "proj_in": Mix(channels),
            "block": Repeated(own, self.layers),
        }
        Residual(Chain({**inside, "proj_out": Mix(channels)})).declare(name, trail)

    @staticmethod
    def _perceptron(channels: int) -> Layer:
        wide: dict[str, Layer] = {"fc1": Gated(4 * channels), "fc2": Mix(channels)}
        return Residual(Chain({"norm": Normed(), "layer": Chain(wide)}))

    def _block(self, channels: int, apart: int, first: dict[str, Layer]) -> Chain:
        seen = Reduced(self.heads, bias=False, apart=apart)
        prompt = Prompted(self.heads, self.width, self.tokens, apart)
        layers: dict[str, Layer] = {**first}
        for own, layer in (("own", seen), ("prompt", prompt)):
            layers[own] = Residual(Chain({"norm": Normed(), "layer": layer}))
        return Chain({**layers, "mlp": self._perceptron(channels)})

    @staticmethod
    def _frames(name: str, trail: Trail) -> None:
        batch, channel, frames, *_ = trail.at.axes
        wide = trail.new_axis("c", 4 * trail.length(channel), Role.HIDDEN)
        into = trail.new_axis("c", trail.length(channel))
        numbers = Maps(f"{name}.numbers", (batch, into, frames), constant=True)
        inner, axes = (batch, wide, frames), (batch, channel, frames)
        u = trail.product(f"{name}.linear_1", numbers, inner, to=f"{name}.u")
        a = trail.made(f"{name}.act", "silu", u, axes=inner, to=f"{name}.a")
        trail.aside[name] = trail.product(f"{name}.linear_2", a, axes, to=name)
