"""Tensors of a trail that stand aside under a name, and layers that run side by side.

Axes: as the trail makes them; positions of a sequence are called y.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import Literal

from symbolic_cost.errors import refuse
from symbolic_cost.layers.conv import Activation, BatchNorm, Chain, Layer, Maps, Trail, under
from symbolic_cost.layers.maps import Mix, Residual, plus
from symbolic_cost.layers.upsampling import beside
from symbolic_cost.ops.declare import Op
from symbolic_cost.ops.unread import stored, unread, unused_weights
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class SetAside:
    """Sets the tensor at hand aside."""

    title: str

    def declare(self, name: str, trail: Trail) -> None:  # noqa: ARG002 - it declares nothing
        """Set it aside."""
        trail.aside[self.title] = trail.at


@dataclass(frozen=True)
class Take:
    """Takes a tensor from aside."""

    title: str

    def declare(self, name: str, trail: Trail) -> None:  # noqa: ARG002 - it declares nothing
        """Take it."""
        trail.at = trail.aside[self.title]


@dataclass(frozen=True)
class Fork:
    """Layers that all take the tensor at hand, which stays at hand."""

    layers: Mapping[str, Layer]

    def declare(self, name: str, trail: Trail) -> None:
        """Declare every one."""
        start = trail.at
        for own, layer in self.layers.items():
            trail.at = start
            layer.declare(f"{name}.{own}" if name else own, trail)
        trail.at = start


@dataclass(frozen=True)
class Learned:
    """A learned vector for each of some positions, the same for every sample."""

    positions: int
    channels: int

    def declare(self, name: str, trail: Trail) -> None:
        axes = trail.new_axis("c", self.channels), trail.new_axis("y", self.positions)
        batch, table = trail.at.axes[0], f"*table[{' '.join(axes)}]"
        samples = f"!{name}.samples[{batch}]:buffer"
        trail.at = trail.made(name, "copy", samples, table, axes=(batch, *axes))


@dataclass(frozen=True)
class Filled:
    """One of some learned vectors, at every position of a tensor aside, in place of it."""

    rows: int
    title: str

    def declare(self, name: str, trail: Trail) -> None:
        batch, channel, *places = trail.aside[self.title].axes
        row, axes = trail.new_axis("p", self.rows), (batch, channel, *map(trail.copy, places))
        taken = f"!{name}.samples[{batch}]:buffer", f"*table[{row} {channel}]"
        trail.at = trail.made(name, "copy", *taken, axes=axes, laid=[row])


@dataclass(frozen=True)
class Constant:
    """What is computed of positions alone, or zeros, in the shape of the tensor at hand.

    Args:
        channels: how many, if others than that tensor has.
    """

    channels: int = 0

    def declare(self, name: str, trail: Trail) -> None:
        """Take it."""
        batch, channel, *sides = trail.at.axes
        own = trail.new_axis("c", self.channels) if self.channels else channel
        trail.at = Maps(name, (batch, own, *sides), constant=True)


@dataclass(frozen=True)
class Idle:
    """A layer whose weights are kept and that does not run."""

    layer: Layer

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the weights; those of a layer that repeats, as often."""
        first, known = len(trail.ops), len(trail.repeats)

        def every(ops: Iterable[Op]) -> tuple[Op, ...]:
            repeats, trail.repeats[known:] = trail.repeats[known:], []
            times = {i: n for start, end, n in repeats for i in range(start, end)}
            placed = enumerate(ops, first)
            return unused_weights(op for i, op in placed for _ in range(times.get(i, 1)))

        _beside(self.layer, name, trail, every)


@dataclass(frozen=True)
class Held:
    """Weights that are kept and not used, by name, each of some sizes."""

    weights: Mapping[str, tuple[int, ...]]

    def declare(self, name: str, trail: Trail) -> None:
        """Declare them."""
        axes = {
            own: " ".join(trail.new_axis("c", size) for size in sizes)
            for own, sizes in self.weights.items()
        }
        trail.ops.append(stored(name, **axes))


@dataclass(frozen=True)
class Unread:
    """A layer that runs, and whose result nothing takes."""

    layer: Layer

    def declare(self, name: str, trail: Trail) -> None:
        _beside(self.layer, name, trail, unread)


def _beside(
    layer: Layer, name: str, trail: Trail, held: Callable[[Iterable[Op]], tuple[Op, ...]]
) -> None:
    """Declare a layer of which the tensor at hand knows nothing; its ops are held in a way."""
    start, first = trail.at, len(trail.ops)
    layer.declare(name, trail)
    trail.ops[first:] = held(trail.ops[first:])
    trail.at = start


@dataclass(frozen=True)
class Detached:
    """The tensor at hand, to which nothing flows back from here."""

    def declare(self, name: str, trail: Trail) -> None:  # noqa: ARG002 - it declares nothing
        """Mark it."""
        trail.at = Maps(trail.at.tensor, trail.at.axes, constant=True)


@dataclass(frozen=True)
class Plus:
    """The tensor at hand and one aside, added; their axes may have other names."""

    title: str

    def declare(self, name: str, trail: Trail) -> None:
        trail.at = plus(name, trail.at, self.title, trail)


@dataclass(frozen=True)
class FrozenNorm:
    """A norm of every channel by constants: what it scales and shifts by is no parameter."""

    def declare(self, name: str, trail: Trail) -> None:
        for part, function in (("scale", "mul"), ("shift", "add")):
            known = f"!{name}.{part}[{trail.at.axes[1]}]:buffer"
            trail.pointwise(f"{name}.{part}", function, known, to=f"{name}.{part}d")


def rebuilt(layer: Layer, change: Callable[[Layer], Layer]) -> Layer:
    """Return a layer with everything in its chains and branches changed."""
    if isinstance(layer, Chain):
        return Chain({name: rebuilt(one, change) for name, one in layer.layers.items()})
    if isinstance(layer, Residual):
        both = (rebuilt(one, change) if one else None for one in (layer.branch, layer.shortcut))
        branch, short = (one if isinstance(one, Chain) else None for one in both)
        return Residual(branch or layer.branch, short, layer.function)
    return change(layer)


def frozen(layer: Layer) -> Layer:
    """Return a layer with frozen norms in place of those over the batch."""
    return rebuilt(layer, lambda one: FrozenNorm() if isinstance(one, BatchNorm) else one)


def predictor(width: int, channels: int, layers: int, shared: str = "") -> Chain:
    """Return products of channels with activations between them, perhaps of shared weights."""
    names = [f"{shared}.{i}" if shared else "" for i in range(layers)]
    made: dict[str, Layer] = {}
    for i, name in enumerate(names[:-1]):
        made |= {f"fc{i}": Mix(width, shared=name), f"act{i}": Activation()}
    return Chain(made | {f"fc{layers - 1}": Mix(channels, shared=names[-1])})


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
class Some:
    """So many of the channels at hand."""

    channels: int

    def declare(self, name: str, trail: Trail) -> None:
        batch, channel, *places = trail.at.axes
        known = trail.length(channel)
        if self.channels > known:
            refuse([f"{name}: {self.channels} of {known} channels"])
        axes = (batch, trail.new_axis("c", self.channels), *places)
        trail.pointwise(name, "copy", axes=axes, laid=[channel])


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
