"""Front ends of speech: convolutions over time, and positions from a grouped convolution.

Axes: b recordings, y0 y1 ... samples or frames before and after every convolution, a0 a1 ... its
channels, s0 s1 ... its kernel; r positions of the residual stream, e embedding; g_c groups of the
convolution of positions, i_c and o_c channels of one, s_p its kernel, y_p and z_p frames before
and after it.
"""

from collections.abc import Iterable, Iterator
from enum import Flag, auto

from sympy import Expr, floor

from symbolic_cost.axes import Glossary, axes
from symbolic_cost.layers.embeddings import COMPUTED
from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.declare import Op, conv, dropout, einsum, norm, pointwise, stored, view
from symbolic_cost.ops.pattern import parse
from symbolic_cost.records import dataclass

AXES = axes(
    "b batch, r token residual, t key-token, e hidden, p whole, g_c whole, i_c whole, o_c whole, "
    "s_p whole, y_p token patch, z_p token patch"
)


class Trait(Flag):
    """What a convolution over time has."""

    NONE = 0
    BIAS = auto()
    """Its channels have one."""
    GATE = auto()
    """Half of its channels are multiplied with the other half."""


@dataclass(frozen=True)
class Wave:
    """A convolution over time.

    Args:
        channels: that it makes; half of them where these gate the others.
        norm: after it: "" for none, "group_norm" or "layer_norm".
        function: after that; none if empty.
        traits: what it has.
    """

    channels: int
    kernel: int
    stride: int = 1
    padding: int = 0
    norm: str = ""
    function: str = "gelu"
    traits: Trait = Trait.BIAS

    @property
    def gated(self) -> bool:
        """Whether half of its channels are multiplied with the other half."""
        return Trait.GATE in self.traits

    def length(self, before: Expr) -> Expr:
        """Return how many frames it makes of so many."""
        return floor((before + 2 * self.padding - self.kernel) / self.stride) + 1


@dataclass(frozen=True)
class Placed:
    """Positions from grouped convolutions of the stream, added to it.

    Args:
        layers: one after the other.
        weighted: whether the kernel is a direction times a learned length.
    """

    layers: int = 1
    weighted: bool = True


class Step(Flag):
    """What happens to what the convolutions give."""

    NONE = 0
    PROJECT = auto()
    """Channels are normalised and projected to e."""
    DROP = auto()
    """The result is dropped out."""
    ASK = auto()
    """A gradient of the recording is asked for, as wav2vec 2.0 of Transformers does in training."""
    HAND = auto()
    """The normalised channels are handed on besides, features[b r a_q]."""
    PLAIN = auto()
    """Channels are projected as they are, without a norm."""


@dataclass(frozen=True)
class Sound:
    """Embedding from a recording to x[b r e].

    Args:
        waves: convolutions over time.
        steps: what happens to what they give.
        places: rows of a learned table of positions, COMPUTED, or empty.
        conv: positions from convolutions, or None.
        last: norm at the end, or None.
    """

    waves: tuple[Wave, ...]
    steps: Step = Step.NONE
    places: str = ""
    conv: Placed | None = None
    last: Norm | None = None

    def ops(self) -> tuple[Op, ...]:
        ops = [*self._waves()]
        tensor = ops[-1].outputs[0] if ops else parse("!wave[b a0 y0] -> x[b]").inputs[0]
        end = len(self.waves)
        raw = "" if ops else "!"
        stream = f"{raw}{tensor.tensor}[b {' '.join(tensor.axes[1:])}]"
        if Step.PROJECT in self.steps:
            row, taken = tensor.axes[1], f"fine[{' '.join(tensor.axes)}]"
            normed = norm(
                "norm", f"{stream}, *scale[{row}], *shift[{row}] -> {taken}", "layer_norm", row
            )
            if Step.PLAIN in self.steps:
                taken = f"{tensor.tensor}[{' '.join(tensor.axes)}]"
            ops += [
                *(() if Step.PLAIN in self.steps else (normed,)),
                einsum("project", f"{taken}, *w[{row} e] + *bias[e] -> frames[b y{end} e]"),
                view("stream", f"frames[b y{end} e] -> stream[b r e]"),
            ]
            if Step.HAND in self.steps:
                fine = f"fine[{' '.join(tensor.axes)}]"
                ops.append(
                    pointwise("hand", f"{fine} -> features[b r a_q]", "copy", laid=f"y{end} {row}")
                )
        else:
            ops.append(
                pointwise(
                    "stream", f"{stream} -> stream[b r e]", "copy", laid=" ".join(tensor.axes[1:])
                )
            )
        return (*ops, *self._positions("stream"))

    def _waves(self) -> Iterator[Op]:
        x = "wave[b a0 y0]" if Step.ASK in self.steps else "!wave[b a0 y0]"
        for i, wave in enumerate(self.waves):
            channels = f"a{i + 1}_" if wave.gated else f"a{i + 1}"
            bias = f" + *bias[{channels}]" if Trait.BIAS in wave.traits else ""
            shape = f"[b {channels} y{i + 1}]"
            y = f"u{i}{shape}"
            yield conv(f"conv{i}", f"{x}, *w[a{i} {channels} s{i}]{bias} -> {y}")
            if wave.gated:
                x, y = y, f"g{i}[b a{i + 1} y{i + 1}]"
                yield pointwise(f"glu{i}", f"{x} -> {y}", "mul", laid=channels)
                shape = f"[b a{i + 1} y{i + 1}]"
            if wave.norm:
                x, y = y, f"n{i}{shape}"
                row = channels if wave.norm == "layer_norm" else f"y{i + 1}"
                yield norm(
                    f"norm{i}",
                    f"{x}, *scale[{channels}], *shift[{channels}] -> {y}",
                    wave.norm,
                    row,
                )
            if wave.function:
                x, y = y, f"v{i}{shape}"
                yield pointwise(f"act{i}", f"{x} -> {y}", wave.function)
            x = y

    def _positions(self, x: str) -> Iterator[Op]:
        if self.places:
            learned = self.places != COMPUTED
            table = f"*table[{self.places} e]" if learned else "!places[r e]:buffer"
            laid = "p" if self.places == "p" else ""
            yield pointwise("position", f"{x}[b r e], {table} -> placed[b r e]", "add", laid=laid)
            x = "placed"
        if self.conv is not None:
            yield from self._grouped(x, self.conv)
            x = "placed"
        if self.last is not None:
            yield self.last.op("norm_last", f"{x}[b r e]", "normed[b r e]")
            x = "normed"
        last = (
            dropout("dropout", f"{x}[b r e] -> x[b r e]")
            if Step.DROP in self.steps
            else view("end", f"{x}[b r e] -> x[b r e]")
        )
        yield last

    def _grouped(self, x: str, placed: Placed) -> Iterator[Op]:
        y = x
        for i in range(placed.layers):
            inside, convolved = f"grouped{i}[b g_c i_c y_p]", f"made{i}[b g_c o_c z_p]"
            yield view(f"gather{i}", f"{y}[b r e] -> whole{i}[b t e]")
            yield pointwise(f"group{i}", f"whole{i}[b t e] -> {inside}", "copy", laid="t e")
            yield conv(
                f"place{i}", f"{inside}, *w[g_c i_c o_c s_p] + *bias[g_c o_c] -> {convolved}"
            )
            if placed.weighted:
                yield stored(f"length{i}", w="s_p")
            y = f"place{i}"
            yield pointwise(f"trim{i}", f"{convolved} -> {y}[b r e]", "gelu", laid="g_c o_c z_p")
        yield pointwise("add", f"{x}[b r e], {y}[b r e] -> placed[b r e]", "add")


def wave_sizes(
    waves: Iterable[Wave], channels: int, length: Expr
) -> tuple[dict[str, Expr | int], Glossary, Expr]:
    """Return the sizes of the axes of convolutions, their roles, and the frames at the end."""
    sizes: dict[str, Expr | int] = {"a0": channels, "y0": length}
    text = "a0 whole, y0 token patch"
    for i, wave in enumerate(waves):
        length = wave.length(length)
        half = wave.channels // 2 if wave.gated else wave.channels
        sizes |= {f"a{i + 1}": half, f"y{i + 1}": length, f"s{i}": wave.kernel}
        text += f", a{i + 1} whole, y{i + 1} token patch, s{i} whole"
        if wave.gated:
            sizes[f"a{i + 1}_"] = wave.channels
            text += f", a{i + 1}_ whole"
    return sizes, axes(text), length
