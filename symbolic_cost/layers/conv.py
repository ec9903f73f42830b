"""Layers of image networks, and the trail that declares them one after the other.

A layer says what it does to the tensor at hand; the trail makes its axes. Every convolution makes
new axes: c channels, y and x positions (x alone of a recording, z before them of a video), t, s and
u the kernel, g groups, each with a number.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Protocol

from sympy import Expr

from symbolic_cost.axes import Axis, Glossary, Role
from symbolic_cost.errors import InputError
from symbolic_cost.ops.declare import Op, conv, dropout, einsum, norm, pointwise, view
from symbolic_cost.records import dataclass, field
from symbolic_cost.symbols import exact


class Pad(Enum):
    """Padding that is no number of positions."""

    SAME = "so that only the stride shrinks maps"


Padding = int | Pad | tuple[int, int] | tuple[tuple[int, int], ...]
"""Positions added on either side, or before the first and behind the last, or how many follows; a
pair for every axis of positions if these differ."""

Sizes = int | tuple[int, ...]
"""A size along all axes of positions, or one along each."""


@dataclass(frozen=True, slots=True)
class Maps:
    """The tensor at hand: feature maps, or features alone once there are no positions.

    Args:
        axes: its axes, the batch first.
        constant: no gradient flows into it (an image).
    """

    tensor: str
    axes: tuple[str, ...]
    constant: bool = False

    def __str__(self) -> str:
        """Write it as in a pattern."""
        return f"{'!' * self.constant}{self.tensor}[{' '.join(self.axes)}]"


@dataclass
class Trail:
    """Ops declared so far, the axes and sizes of these, the tensor at hand, and others.

    Args:
        skips: tensors that later layers take, the last one first.
        aside: tensors that many layers take, by name: a time step, a prompt.
        roles: of the axes that it made.
        repeats: first op of every repeated block, the one behind its last, and how often it runs.
    """

    at: Maps
    sizes: dict[str, Expr]
    ops: list[Op] = field(default_factory=list)
    skips: list[Maps] = field(default_factory=list)
    aside: dict[str, Maps] = field(default_factory=dict)
    roles: dict[str, Axis] = field(default_factory=dict)
    repeats: list[tuple[int, int, int]] = field(default_factory=list)
    _numbers: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Count the axes that are there."""
        self._numbers.update(axis[0] for axis in self.sizes)

    def new_axis(self, letter: str, size: int | Expr, role: Role = Role.WHOLE) -> str:
        """Return a new axis of a size; those of positions are called y and x."""
        name = f"{letter}{self._numbers[letter]}"
        self._numbers[letter] += 1
        self.sizes[name] = exact(size)
        places = letter in _POSITIONS
        self.roles[name] = Axis(name, Role.TOKEN, "patch") if places else Axis(name, role)
        return name

    def heads(self, number: int, width: int) -> tuple[str, str]:
        """Return new axes of heads and of their widths, which divide the one of both."""
        if width % number:
            raise InputError(f"{number} heads do not divide {width} channels")
        return self.new_axis("h", number, Role.HEAD), self.new_axis("d", width // number)

    def copy(self, axis: str) -> str:
        """Return a new axis as long as another."""
        return self.new_axis(axis[0], self.sizes[axis])

    @property
    def glossary(self) -> Glossary:
        """Roles of its axes: samples, heads and inner widths may be split."""
        whole = {axis: Axis(axis, Role.WHOLE) for axis in self.sizes}
        batch = self.at.axes[0]
        return {**whole, **self.roles, batch: Axis(batch, Role.BATCH)}

    def length(self, axis: str) -> int:
        """Return the size of an axis."""
        return int(self.sizes[axis])

    def windows(
        self, name: str, kernel: Sizes, stride: Sizes, padding: Padding, apart: int = 1
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return new axes of the positions and the kernel of windows over the maps at hand.

        Maps that are padded to the same size have one window for every step, begun or whole.
        Positions of a window are so far `apart`.

        Raises:
            InputError: the window is larger than the padded maps.
        """
        old = self.at.axes[2:]
        if not old or (not isinstance(kernel, int) and len(kernel) != len(old)):
            raise InputError(f"{name}: a window of {kernel} on {len(old)} axes of positions")
        kernels, strides = _each(kernel, len(old)), _each(stride, len(old))
        places = [
            self.sizes[axis] + exact(added - apart * (size - 1) - 1)
            for axis, size, added in zip(old, kernels, _added(padding, kernels, apart), strict=True)
        ]
        if any(place.is_negative for place in places):
            maps = " x ".join(str(self.sizes[axis]) for axis in old)
            raise InputError(f"{name}: a window of {kernel} does not fit into maps of {maps}")
        positions = (
            self.new_axis(axis[0], place // step + 1)
            for axis, place, step in zip(old, places, strides, strict=True)
        )
        return tuple(positions), self.window(kernels)

    def window(self, kernels: tuple[int, ...]) -> tuple[str, ...]:
        """Return new axes of a kernel."""
        return tuple(map(self.new_axis, _KERNEL[-len(kernels) :], kernels))

    def add(self, op: Op, result: Maps) -> None:
        """Declare an op; its result is the tensor at hand."""
        self.ops.append(op)
        self.at = result

    def pointwise(
        self,
        name: str,
        function: str,
        *others: object,
        axes: Iterable[str] = (),
        laid: Iterable[str] = (),
        sums: Iterable[str] = (),
        to: str = "",
    ) -> None:
        """Declare a function of the tensor at hand and others; the result has its axes or these."""
        own = tuple(axes) or self.at.axes
        self.at = self.made(name, function, self.at, *others, axes=own, laid=laid, sums=sums, to=to)

    def made(
        self,
        name: str,
        function: str,
        *tensors: object,
        axes: Iterable[str],
        laid: Iterable[str] = (),
        sums: Iterable[str] = (),
        to: str = "",
    ) -> Maps:
        """Declare a function of tensors; return the result, which is named as the op or `to`."""
        result = Maps(to or name, tuple(axes))
        pattern = f"{', '.join(map(str, tensors))} -> {result}"
        op = pointwise(name, pattern, function, laid=" ".join(laid), sums=" ".join(sums))
        self.ops.append(op)
        return result

    def product(
        self,
        name: str,
        x: Maps,
        axes: Iterable[str],
        *,
        to: str = "",
        bias: bool = True,
        shared: str = "",
    ) -> Maps:
        """Declare the product of a tensor with weights; return the result, named as of `made`.

        Weights have the axes of x that the result lacks, and those that it has besides; a bias has
        the latter. `shared` is the name of weights that other layers have as well.
        """
        result, own = Maps(to or name, tuple(axes)), f"@{shared}." if shared else ""
        summed = [axis for axis in x.axes if axis not in result.axes]
        new = [axis for axis in result.axes if axis not in x.axes]
        added = f" + *{own}bias[{' '.join(new)}]" if bias else ""
        weight = f"*{own}w[{' '.join((*summed, *new))}]"
        self.ops.append(einsum(name, f"{x}, {weight}{added} -> {result}"))
        return result


def under(name: str, tensor: Maps, axes: tuple[str, ...], trail: Trail) -> Maps:
    """Declare a tensor under other axes of the same sizes."""
    known = all(axis in trail.sizes for axis in (*tensor.axes, *axes))  # but for those of tokens
    own, other = ([trail.sizes.get(axis) for axis in each] for each in (tensor.axes, axes))
    if known and Counter(own) != Counter(other):
        raise InputError(f"{name}: sizes of {own} and of {other} differ")
    result = Maps(name, axes)
    trail.ops.append(view(name, f"{tensor} -> {result}"))
    return result


_POSITIONS = ("z", "y", "x")
_KERNEL = ("u", "s", "t")


def _each(size: Sizes, axes: int) -> tuple[int, ...]:
    return (size,) * axes if isinstance(size, int) else size


def _added(padding: Padding, kernels: tuple[int, ...], apart: int) -> Iterator[int]:
    for place, kernel in enumerate(kernels):
        if isinstance(padding, Pad):
            yield apart * (kernel - 1)
        elif isinstance(padding, int):
            yield 2 * padding
        else:
            own = padding[place] if isinstance(padding[0], tuple) else padding
            yield sum(own)


class Layer(Protocol):
    """What a trail is made of."""

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the layer's ops, named `name`, on the tensor at hand."""


@dataclass(frozen=True)
class Conv:
    """A convolution.

    Args:
        stride: step between positions.
        padding: positions added.
        bias: whether one is added.
        apart: how far positions of a window are.
    """

    channels: int
    kernel: Sizes
    stride: Sizes = 1
    padding: Padding = 0
    bias: bool = True
    apart: int = 1

    def declare(self, name: str, trail: Trail) -> None:
        channels = trail.new_axis("c", self.channels)
        _convolve(self, name, trail, f"{trail.at.axes[1]} {channels}", channels)


@dataclass(frozen=True)
class Depthwise:
    """A convolution in which every channel is a group of its own.

    Args:
        stride: step between positions.
        padding: positions added.
        bias: whether one is added.
        apart: how far positions of a window are.
    """

    kernel: Sizes
    stride: Sizes = 1
    padding: Padding = 0
    bias: bool = True
    apart: int = 1

    def declare(self, name: str, trail: Trail) -> None:
        channels = trail.at.axes[1]
        _convolve(self, name, trail, channels, channels)


def _convolve(layer: Conv | Depthwise, name: str, trail: Trail, weight: str, channels: str) -> None:
    positions, kernel = trail.windows(name, layer.kernel, layer.stride, layer.padding, layer.apart)
    bias = f" + *bias[{channels}]" if layer.bias else ""
    result = Maps(name, (trail.at.axes[0], channels, *positions))
    pattern = f"{trail.at}, *w[{weight} {' '.join(kernel)}]{bias} -> {result}"
    trail.add(conv(name, pattern), result)


@dataclass(frozen=True)
class BatchNorm:
    """A norm of every channel over batch and positions."""

    def declare(self, name: str, trail: Trail) -> None:
        at, result = trail.at, Maps(name, trail.at.axes)
        row = " ".join(axis for axis in at.axes if axis != at.axes[1])
        weights = f"*scale[{at.axes[1]}], *shift[{at.axes[1]}]"
        trail.add(norm(name, f"{at}, {weights} -> {result}", "batch_norm", row), result)


@dataclass(frozen=True)
class Activation:
    """A function of every element."""

    function: str = "relu"

    def declare(self, name: str, trail: Trail) -> None:
        trail.pointwise(name, self.function)


@dataclass(frozen=True)
class Dropout:
    """A dropout."""

    def declare(self, name: str, trail: Trail) -> None:
        result = Maps(name, trail.at.axes)
        trail.add(dropout(name, f"{trail.at} -> {result}"), result)


@dataclass(frozen=True)
class Linear:
    """A linear layer of all features of a sample, positions included.

    Args:
        bias: whether one is added.
    """

    features: int
    bias: bool = True

    def declare(self, name: str, trail: Trail) -> None:
        columns = trail.new_axis("c", self.features, Role.HIDDEN)
        trail.at = trail.product(name, trail.at, (trail.at.axes[0], columns), bias=self.bias)


@dataclass(frozen=True)
class Chain:
    """Layers one after the other, each with a name."""

    layers: Mapping[str, Layer]

    def declare(self, name: str, trail: Trail) -> None:
        """Declare every layer below `name`; at the top, where it is empty, by its own name."""
        for own, layer in self.layers.items():
            layer.declare(f"{name}.{own}" if name else own, trail)
