"""Layers of hierarchical image networks, for a trail of feature maps [b c y x].

Channels are mixed at every position, positions attend to each other in windows or to a smaller map.
"""

from typing import Literal

from symbolic_cost.layers.conv import Activation, Chain, Conv, Depthwise, Layer, Maps, Trail, under
from symbolic_cost.ops.declare import Role, einsum, norm, softmax
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Mix:
    """A linear layer of the channels of every position.

    Args:
        bias: whether one is added.
        role: of the channels that it makes.
        shared: name of its weights, where other layers have the same.
    """

    channels: int
    bias: bool = True
    role: Role = Role.WHOLE
    shared: str = ""

    def declare(self, name: str, trail: Trail) -> None:
        batch, _, *rest = trail.at.axes
        axes = (batch, trail.new_axis("c", self.channels, self.role), *rest)
        trail.at = trail.product(name, trail.at, axes, bias=self.bias, shared=self.shared)


@dataclass(frozen=True)
class Normed:
    """A norm with a scale and a shift for every channel, or less.

    Args:
        function: of elementwise.toml.
        rows: what it normalises over: channels, positions, or both.
        shared: name of its weights, where other norms have the same.
        learned: its weights.
    """

    function: str = "layer_norm"
    rows: str = "channels"
    shared: str = ""
    learned: tuple[str, ...] = ("scale", "shift")

    def declare(self, name: str, trail: Trail) -> None:
        at, result = trail.at, Maps(name, trail.at.axes)
        channel, positions = at.axes[1], at.axes[2:]
        row = {"channels": (channel,), "positions": positions, "both": at.axes[1:]}[self.rows]
        own = f"@{self.shared}." if self.shared else ""
        weights = "".join(f", *{own}{weight}[{channel}]" for weight in self.learned)
        trail.add(norm(name, f"{at}{weights} -> {result}", self.function, " ".join(row)), result)


@dataclass(frozen=True)
class Scaled:
    """A learned factor for every channel."""

    def declare(self, name: str, trail: Trail) -> None:
        trail.pointwise(name, "mul", f"*scale[{trail.at.axes[1]}]")


@dataclass(frozen=True)
class Placed:
    """A learned vector for every position, added."""

    def declare(self, name: str, trail: Trail) -> None:
        trail.pointwise(name, "add", f"*table[{' '.join(trail.at.axes[1:])}]")


@dataclass(frozen=True)
class Tiled:
    """A learned map of some sides, enlarged or laid side by side to that at hand, added."""

    sides: tuple[int, ...]

    def declare(self, name: str, trail: Trail) -> None:
        axes = [trail.new_axis("p", side) for side in self.sides]
        table = f"*table[{trail.at.axes[1]} {' '.join(axes)}]"
        trail.pointwise(name, "add", table, laid=axes)


@dataclass(frozen=True)
class Shifted:
    """A learned vector, the same for every position, added."""

    def declare(self, name: str, trail: Trail) -> None:
        trail.pointwise(name, "add", f"*shift[{trail.at.axes[1]}]")


@dataclass(frozen=True)
class Mean:
    """The mean of all positions."""

    def declare(self, name: str, trail: Trail) -> None:
        batch, channel, *rest = trail.at.axes
        trail.pointwise(name, "sum", axes=(batch, channel), sums=rest)


@dataclass(frozen=True)
class Merge:
    """Two by two positions side by side, mixed to other channels.

    Args:
        normed: what is normalised: what is joined, or the result.
    """

    channels: int
    normed: Literal["joined", "result"] = "joined"

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the merger; odd maps are padded."""
        batch, channel, y, x = trail.at.axes
        four = trail.new_axis("m", 4)
        sides = [
            trail.new_axis(letter, -(-trail.length(a) // 2))
            for letter, a in zip("yx", (y, x), strict=True)
        ]
        joined = (batch, four, channel, *sides)
        trail.pointwise(f"{name}.join", "copy", axes=joined, laid=(y, x), to=f"{name}.joined")
        if self.normed == "joined":
            axes, fine = f"{four} {channel}", Maps(f"{name}.normed", joined)
            pattern = f"{trail.at}, *scale[{axes}], *shift[{axes}] -> {fine}"
            trail.add(norm(f"{name}.norm", pattern, "layer_norm", axes), fine)
        mixed = (batch, trail.new_axis("c", self.channels), *sides)
        own, to = f"{name}.reduction", f"{name}.mixed"
        trail.at = trail.product(own, trail.at, mixed, to=to, bias=False)
        if self.normed == "result":
            Normed().declare(f"{name}.norm", trail)


@dataclass(frozen=True)
class Reduced:
    """Attention of every position to a smaller map.

    Args:
        ratio: of the sides; 1 keeps the map.
        bias: whether query, key and value have one.
        attended: tensor aside that is attended to in place of the map.
        place: tensor aside that is added to queries and to own keys, not to values.
        place_seen: tensor aside that is added to the keys of what is seen.
        width: of all heads together; that of the channels if zero.
        apart: of how many axes of positions, the first of them, every one is alone.
        unbiased: key or value, if one of them has no bias while the others have.
    """

    heads: int
    ratio: int = 1
    bias: bool = True
    attended: str = ""
    place: str = ""
    place_seen: str = ""
    width: int = 0
    apart: int = 0
    unbiased: str = ""

    def declare(self, name: str, trail: Trail) -> None:
        start = trail.at
        batch, channel, *own = start.axes
        h, d = trail.heads(self.heads, self.width or trail.length(channel))
        asked, heads = plus(f"{name}.asked", start, self.place, trail), (batch, *own, h, d)
        q = trail.product(f"{name}.query", asked, heads, to=f"{name}.q", bias=self.bias)
        keyed, valued = self._keys(name, trail, asked)
        key, value = (
            trail.product(
                f"{name}.{part}",
                taken,
                (batch, *valued.axes[2:], h, d),
                bias=self.bias and part != self.unbiased,
            )
            for part, taken in (("key", keyed), ("value", valued))
        )
        trail.at = self._joined(name, attended(name, trail, q, key, value), start.axes, trail)

    def _joined(self, name: str, context: Maps, axes: tuple[str, ...], trail: Trail) -> Maps:
        return trail.product(f"{name}.proj", context, axes, to=name)

    def _keys(self, name: str, trail: Trail, asked: Maps) -> tuple[Maps, Maps]:
        batch, channel, *own = trail.at.axes
        if self.attended:
            valued = trail.aside[self.attended]
            return plus(f"{name}.placed", valued, self.place_seen, trail), valued
        if self.ratio > 1:
            step = Conv(trail.length(channel), self.ratio, self.ratio)
            Chain({"reduction": step, "norm": Normed()}).declare(name, trail)
            return trail.at, trail.at
        alone = own[: self.apart]
        axes = (batch, channel, *alone, *map(trail.copy, own[len(alone) :]))
        valued = under(f"{name}.all", trail.at, axes, trail)
        return under(f"{name}.places", asked, axes, trail) if self.place else valued, valued


@dataclass(frozen=True)
class Unprojected(Reduced):
    """Attention whose result is the values of all heads, side by side."""

    def _joined(self, name: str, context: Maps, axes: tuple[str, ...], trail: Trail) -> Maps:
        return trail.made(name, "copy", context, axes=axes, laid=context.axes[-2:])


def plus(name: str, tensor: Maps, title: str, trail: Trail) -> Maps:
    """Declare a tensor and one aside, under its axes, added; the tensor itself without a title."""
    if not title:
        return tensor
    other = trail.aside[title]
    same = under(f"{name}.same", other, tensor.axes[-len(other.axes) :], trail)
    return trail.made(name, "add", tensor, same, axes=tensor.axes)


def attended(name: str, trail: Trail, q: Maps, key: Maps, value: Maps) -> Maps:
    """Declare the core of attention of q[b .. h d] to key[b .. h d] and value[b .. h w]."""
    (batch, *own, h, _), (_, *seen, _, _) = q.axes, key.axes
    there = " ".join(axis for axis in seen if axis not in own)
    square = f"[{batch} {h} {' '.join(own)} {there}]"
    context = Maps(f"{name}.c", (batch, *own, h, value.axes[-1]))
    trail.ops += [
        einsum(f"{name}.scored", f"{q}, {key} -> {name}.scores{square}"),
        softmax(f"{name}.softmax", f"{name}.scores{square} -> {name}.p{square}", row=there),
        einsum(f"{name}.attend", f"{name}.p{square}, {value} -> {context}"),
    ]
    return context


@dataclass(frozen=True)
class KeepMap:
    """Keeps the map at hand for `JoinMaps`."""

    def declare(self, name: str, trail: Trail) -> None:  # noqa: ARG002 - it declares nothing
        """Keep the map."""
        trail.skips.append(trail.at)


@dataclass(frozen=True)
class JoinMaps:
    """The maps that were kept, each mixed to some channels and enlarged to the first one's sides.

    Args:
        channels: of each.
    """

    channels: int

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the layer; the last map comes first, as in SegFormer."""
        first, parts = trail.skips[0], []
        batch, sides = first.axes[0], first.axes[2:]
        for i, at in enumerate(reversed(trail.skips)):
            trail.at = at
            Mix(self.channels).declare(f"{name}.mix{i}", trail)
            axes, old = (*trail.at.axes[:2], *sides), trail.at.axes[2:]
            laid, large = () if old == sides else old, f"{name}.large{i}"
            trail.pointwise(f"{name}.grow{i}", "interpolate", axes=axes, laid=laid, to=large)
            parts.append(trail.at)
        axes = (batch, trail.new_axis("c", self.channels * len(parts)), *sides)
        laid = tuple(part.axes[1] for part in parts)
        trail.at = trail.made(f"{name}.join", "copy", *parts, axes=axes, laid=laid, to=name)


def perceptron(width: int, channels: int, function: str, deep: Layer | None = None) -> Chain:
    """Return two linear layers of channels, perhaps with a convolution between them."""
    layers: dict[str, Layer] = {"fc1": Mix(width, role=Role.INNER)}
    layers |= {"deep": deep} if deep else {}
    return Chain(layers | {"act": Activation(function), "fc2": Mix(channels)})


def deep(kernel: int, stride: int = 1, *, bias: bool = True) -> Depthwise:
    """Return a depthwise convolution that keeps the sides at stride 1."""
    return Depthwise(kernel, stride, kernel // 2, bias=bias)


def chain(*layers: Layer) -> Chain:
    """Name layers by their place, as PyTorch's Sequential does."""
    return Chain({f"{place}": layer for place, layer in enumerate(layers)})


@dataclass(frozen=True)
class Residual:
    """y = function(branch(x) + shortcut(x)).

    Args:
        shortcut: of layers; x itself if there are none.
        function: applied to the sum; none if empty.
    """

    branch: Chain
    shortcut: Chain | None = None
    function: str = ""

    def declare(self, name: str, trail: Trail) -> None:
        """Declare both ways and their sum."""
        start = trail.at
        self.branch.declare(name, trail)
        branch, trail.at = trail.at, start
        if self.shortcut is not None:
            self.shortcut.declare(f"{name}.downsample", trail)
        short = under(f"{name}.short", trail.at, branch.axes, trail)
        trail.at = branch
        trail.pointwise(f"{name}.add", "add", short, to=f"{name}.sum")
        if self.function:
            Activation(self.function).declare(f"{name}.{self.function}", trail)
