"""Layers of recordings [b c x]: convolutions of samples, recurrent layers, codes of what is heard.

Axes: as the trail makes them; x samples or frames.
"""

from __future__ import annotations

from collections.abc import Callable

from symbolic_cost.layers.conv import Chain, Conv, Layer, Maps, Trail, under
from symbolic_cost.layers.maps import Residual
from symbolic_cost.layers.recurrent import Cell
from symbolic_cost.layers.upsampling import Spread
from symbolic_cost.ops.conv import TransposedConv
from symbolic_cost.ops.declare import conv as convolution
from symbolic_cost.ops.declare import einsum, pointwise, scope, stored, unread
from symbolic_cost.ops.part import retitled
from symbolic_cost.records import dataclass, replace

Wrap = Callable[[Conv | Spread], Layer]
"""What a codec makes of its convolutions."""


@dataclass(frozen=True)
class Weighted:
    """A convolution whose kernels are directions times learned lengths."""

    layer: Conv | Spread

    def declare(self, name: str, trail: Trail) -> None:
        before = trail.at.axes[1]
        self.layer.declare(name, trail)
        first = before if isinstance(self.layer, Spread) else trail.at.axes[1]
        trail.ops.append(stored(f"{name}.lengths", w=first))


@dataclass(frozen=True)
class Snake:
    """x + sin(a x)^2 / c of every channel.

    Args:
        weights: a, and c if that is another one.
    """

    weights: tuple[str, ...] = ("alpha",)

    def declare(self, name: str, trail: Trail) -> None:
        channel = trail.at.axes[1]
        trail.pointwise(name, "snake", *(f"*{weight}[{channel}]" for weight in self.weights))


@dataclass(frozen=True)
class Memory:
    """Layers of an LSTM over all positions, and what went in added.

    Args:
        layers: how many.
    """

    layers: int

    def declare(self, name: str, trail: Trail) -> None:
        start = trail.at
        batch, channel, place = start.axes
        old, gates = channel, trail.new_axis("n", Cell.LSTM.gates)
        x = under(f"{name}.start", start, (batch, place, channel), trail).tensor
        for i in range(self.layers):
            new, before = trail.copy(channel), trail.copy(channel)
            titles = {"b": batch, "l": place, "i": old, "o": new, "m": before, "n": gates}
            y = f"{name}.{i}"
            trail.ops += scope(y, retitled((Cell.LSTM.op(),), titles), x=x, y=y)
            x, old = y, new
        last = Maps(x, (batch, place, old))
        trail.at = trail.made(f"{name}.end", "copy", last, axes=start.axes, laid=[old])
        trail.pointwise(name, "add", start)


@dataclass(frozen=True)
class Coded:
    """What one codebook leaves of a stream: the stream without the code that is nearest to it.

    Args:
        size: codes of the book.
        width: of a code, which projections stand around; where it is zero there are none, and
            codes are no weights.
    """

    size: int
    width: int = 0

    def declare(self, name: str, trail: Trail) -> None:
        start = trail.at
        if self.width:
            Conv(self.width, 1).declare(f"{name}.in", trail)
        batch, channel, place = trail.at.axes
        codes, near = trail.new_axis("n", self.size), trail.at
        book = f"*codes[{channel} {codes}]" if self.width else f"!codes[{channel} {codes}]:buffer"
        scores = f"{name}.scores[{batch} {codes} {place}]"
        code = f"{name}.code[{batch} {place}]:index"
        row = Maps(near.tensor, near.axes, constant=True)
        trail.ops += [
            einsum(f"{name}.near", f"{row}, {book} -> {scores}", frozen=True),
            pointwise(f"{name}.choose", f"!{scores} -> {code}", "choice", row=codes),
        ]
        trail.pointwise(f"{name}.of_code", "add", f"!{code}")
        if self.width:
            Conv(trail.length(start.axes[1]), 1).declare(f"{name}.out", trail)
        made = under(f"{name}.made", trail.at, start.axes, trail)
        trail.at = start
        trail.pointwise(f"{name}.rest", "add", made)


@dataclass(frozen=True)
class Books:
    """The sum of the codes of some books, each nearest to what those before leave.

    Codes are no weights: distances are elementwise, and nothing flows through a choice. Products
    stand around them where codes are not as wide as the stream.

    Args:
        size: codes of a book.
        width: of a code.
        books: how many.
    """

    size: int
    width: int
    books: int

    def declare(self, name: str, trail: Trail) -> None:
        wide = trail.length(trail.at.axes[1])
        if wide != self.width:
            Conv(self.width, 1, bias=False).declare(f"{name}.in", trail)
            trail.ops[-1:] = unread(trail.ops[-1:])
        batch, channel, place = trail.at.axes
        books, codes = trail.new_axis("q", self.books), trail.new_axis("n", self.size)
        near, whole = f"{name}.scores[{batch} {books} {codes} {place}]", trail.at.tensor
        code = f"{name}.code[{batch} {books} {place}]:index"
        buffer = f"!{name}.table[{books} {codes} {channel}]:buffer"
        made = Maps(f"{name}.codes", (batch, channel, place), constant=True)
        trail.ops += [
            pointwise(
                f"{name}.near",
                f"!{whole}[{batch} {channel} {place}], {buffer} -> {near}",
                "mul",
                sums=channel,
            ),
            pointwise(f"{name}.choose", f"!{near} -> {code}", "choice", row=codes),
            pointwise(
                f"{name}.sum",
                f"!{code}, {buffer} -> {made.tensor}[{batch} {channel} {place}]",
                "add",
                sums=f"{books} {codes}",
            ),
        ]
        trail.at = made
        if wide != self.width:
            Conv(wide, 1, bias=False).declare(f"{name}.out", trail)


@dataclass(frozen=True)
class Split:
    """Books beside others, on one stream; what both code is added."""

    first: Books
    second: Books

    def declare(self, name: str, trail: Trail) -> None:
        start = trail.at
        self.first.declare(f"{name}.first", trail)
        one, trail.at = trail.at, start
        self.second.declare(f"{name}.second", trail)
        other = under(f"{name}.same", trail.at, one.axes, trail)
        trail.at = one
        trail.pointwise(name, "add", other)
        if one.constant:
            trail.ops[-2:] = unread(trail.ops[-2:])
            trail.at = replace(trail.at, constant=True)


@dataclass(frozen=True)
class Filled:
    """A transposed convolution of every channel alone.

    Args:
        kernel: positions of a window.
        step: between windows.
    """

    kernel: int
    step: int

    def declare(self, name: str, trail: Trail) -> None:
        batch, channel, place = trail.at.axes
        (window,) = trail.window((self.kernel,))
        new = trail.new_axis(place[0], self.step * trail.sizes[place])
        result = Maps(name, (batch, channel, new))
        made = convolution(name, f"{trail.at}, *w[{channel} {window}] -> {result}")
        trail.add(TransposedConv(made.path, made.pattern, made.among), result)


def heard(
    channels: int, kernel: int, stride: int = 1, apart: int = 1, *, bias: bool = True
) -> Conv:
    """Return a convolution whose padding leaves a position for every step."""
    return Conv(channels, kernel, stride, (apart * (kernel - 1) + 1 - stride, 0), bias, apart)


def snaking(channels: int, apart: int, snake: Snake, conv: Wrap) -> Residual:
    """Return two convolutions, each behind its snake, the first of positions so far apart."""
    layers = {
        "snake1": snake,
        "conv1": conv(heard(channels, 7, 1, apart)),
        "snake2": snake,
        "conv2": conv(heard(channels, 1)),
    }
    return Residual(Chain(layers))
