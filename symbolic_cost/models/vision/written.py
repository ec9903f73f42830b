"""Image networks written out in words.

A word is a layer: c64k3s2 is a convolution to 64 channels of kernel 3 and stride 2, d7 one of every
channel alone, m96 a product of the channels of every position, f384 one to inner features, attn12
attention of 12 heads, heads12 one without a product at its end, cross8 one of the channels of each
head to each other, ask8 one of the first position to all, wave64 a product of so many waves of the
positions, win3w7 one in windows of 7 a side
with biases of distances, which look3w7 looks up by products, max3s2 a pool, ceil3s2 one that counts
what is left over at the end, part48 so many of the channels, ln a norm, lns one without a shift,
gelu a function. Marks follow: p padding of so many, v of none, t of as many as keep the map; g
groups; b a bias, q one of queries and values; n a batch norm and a the activation of the network.

Groups of words: `6*( .. )` runs six times and keeps the shape of the map, `2x( .. )` need not;
`[ .. | .. ]` adds what a shortcut makes, or the map itself; `gate( .. )` multiplies every channel;
`lead( .. )` changes the first position alone;
`( .. | .. )` lays results side by side and `< .. | .. >` multiplies them, an empty branch being
the map itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from symbolic_cost.axes import Role
from symbolic_cost.errors import quote
from symbolic_cost.layers.class_attention import Asked, Crossed, Led, Waved
from symbolic_cost.layers.conv import (
    Activation,
    BatchNorm,
    Chain,
    Conv,
    Depthwise,
    Layer,
    Pad,
    Padding,
)
from symbolic_cost.layers.maps import (
    Mean,
    Mix,
    Normed,
    Placed,
    Reduced,
    Residual,
    Scaled,
    Shifted,
    Unprojected,
)
from symbolic_cost.layers.mask_heads import Scalar
from symbolic_cost.layers.pyramid import FirstPosition, Grouped, Squeeze, Token
from symbolic_cost.layers.skips import Branches, Flat, Gate, Lined, Some, Turned
from symbolic_cost.layers.unet import Repeated
from symbolic_cost.layers.upsampling import Pool
from symbolic_cost.layers.window_attention import Looked, Windowed
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.functions import FUNCTIONS
from symbolic_cost.records import dataclass

_PART = re.compile(r"\d{1,4}[*x]\(|gate\(|lead\(|[()\[\]<>|]|[^\s()\[\]<>|]+")
_WORD = re.compile(r"([a-z]+?)(\d{1,9})((?:[kspgwo]\d{1,4}(?:x\d{1,4})?|[vtbqna])*)")
_MARK = re.compile(r"([a-z])(\d*)x?(\d*)")
_LAYERS, _DEEP = 5_000, 20
_AROUND: Mapping[str, Callable[[Chain], Layer]] = {"gate(": Gate, "lead(": Led}
_CLOSING = {"(": ")", "[": "]", "<": ">"}


class UnwrittenError(ValueError):
    """A text that these words do not make."""


def written(fields: Fields) -> dict[str, Layer]:
    """Return the layers of a text."""
    act = FUNCTIONS[fields.text("hidden_act", "relu", tuple(FUNCTIONS))]
    try:
        return dict(_Reader(fields.text("layers", ""), act).whole().layers)
    except UnwrittenError as problem:
        fields.note("layers", str(problem))
        return {}


class _Reader:
    """Reads words and the groups of them.

    Args:
        text: of all layers.
        act: activation of the network.
    """

    def __init__(self, text: str, act: str) -> None:
        self.parts, self.act = _PART.findall(text)[::-1], act
        self.made, self.repeats = 0, False

    def whole(self) -> Chain:
        """Return the layers of the text."""
        (chain,) = self._branches("", 1, 0)
        if not chain.layers:
            raise UnwrittenError("words are needed, such as c64k3s2na")
        return chain

    def _branches(self, end: str, times: int, deep: int) -> list[Chain]:
        """Return the branches up to the end of a group, whose layers run so often."""
        branches: list[dict[str, Layer]] = [{}]
        while self.parts:
            part = self.parts.pop()
            if part == end:
                return list(map(Chain, branches))
            if part == "|" and end:
                branches.append({})
            else:
                own = branches[-1]
                own[f"layer{len(own)}"] = self._layer(part, times, deep + 1)
        if end:
            raise UnwrittenError(f"{end} is missing at the end")
        return list(map(Chain, branches))

    def _layer(self, part: str, times: int, deep: int) -> Layer:
        """Return a word or a group as a layer."""
        self.made += times
        if self.made > _LAYERS or deep > _DEEP:
            raise UnwrittenError(f"{_LAYERS} layers in groups {_DEEP} deep are accepted")
        if part[-1] not in _CLOSING:
            return _layer_of(part, self.act)
        number, outer = int(part[:-2] or 1) if part[0].isdigit() else 1, self.repeats
        if "*" in part and outer:
            raise UnwrittenError(f"{part} .. ) stands in another of *")
        self.repeats = outer or "*" in part
        branches = self._branches(_CLOSING[part[-1]], times * number, deep)
        self.repeats = outer
        first, *others = branches
        if part in {"(", "<"}:
            return Branches(tuple(branches), "beside" if part == "(" else "multiplied")
        if part == "[" and first.layers and len(others) <= 1:
            return Residual(first, others[0] if others else None)
        if part in _AROUND and not others:
            return _AROUND[part](first)
        if part in {"[", *_AROUND} or others:
            raise UnwrittenError(f"{part} .. {_CLOSING[part[-1]]} is no group")
        if part.endswith("*(") and number:
            return Repeated(first, number)
        return Chain({f"of{i}": first for i in range(number)})


def _layer_of(word: str, act: str) -> Layer:
    """Return a word as a layer."""
    if word in FUNCTIONS:
        return Activation(FUNCTIONS[word])
    if word in _PLAIN:
        return _PLAIN[word]
    match = _WORD.fullmatch(word)
    if match is None or match[1] not in _SIZED or int(match[2]) == 0:
        accepted = ", ".join((*_PLAIN, *(f"{name}N" for name in _SIZED)))
        raise UnwrittenError(f"{quote(word)} is not accepted: {accepted} are, and functions")
    accepted, maker = _SIZED[match[1]]
    found = _MARK.findall(match[3])
    marks = {mark: (first, second) for mark, first, second in found}
    if len(marks) < len(found) or len(marks.keys() & {"p", "v", "t"}) > 1:
        raise UnwrittenError(f"{quote(word)}: each mark once, and one of p, v and t, are accepted")
    odd = [mark for mark in marks if mark not in accepted]
    if odd:
        raise UnwrittenError(f"{quote(word)}: {odd[0]} does not go with {match[1]}N")
    layers = {"own": maker(int(match[2]), _Marks(marks))}
    layers |= {"norm": BatchNorm()} if "n" in marks else {}
    layers |= {"act": Activation(act)} if "a" in marks else {}
    return Chain(layers) if len(layers) > 1 else layers["own"]


@dataclass(frozen=True)
class _Marks:
    """Marks of a word, each with its sizes as texts."""

    of: Mapping[str, tuple[str, str]]

    def size(self, mark: str, default: int = 1) -> int:
        """Return the one size of a mark."""
        first, second = self.of.get(mark, (f"{default}", ""))
        if second or not int(first):
            raise UnwrittenError(f"{mark}{first}x{second}: one size, 1 or more, is accepted")
        return int(first)

    @property
    def kernel(self) -> tuple[int, int]:
        """Return the sizes of a kernel."""
        first, second = self.of.get("k", ("1", ""))
        if not int(first) or second == "0":
            raise UnwrittenError("a kernel has a size of 1 or more")
        return int(first), int(second or first)

    def padding(self, kernel: tuple[int, int]) -> Padding:
        """Return the padding, half of the kernel unless said."""
        if "t" in self.of:
            return Pad.SAME
        first, second = self.of.get("p", ("0", "") if "v" in self.of else ("", ""))
        if not first:
            return tuple((size // 2, size // 2) for size in kernel)
        down, across = int(first), int(second or first)
        return (down, down), (across, across)


def _conv(channels: int, marks: _Marks) -> Layer:
    kernel, stride, groups = marks.kernel, marks.size("s"), marks.size("g")
    around, bias = marks.padding(kernel), "b" in marks.of
    if groups == 1:
        return Conv(channels, kernel, stride, around, bias)
    grouped = Grouped(groups, kernel, stride, around, channels)
    return Chain({"conv": grouped, "bias": Shifted()}) if bias else grouped


def _deep(kernel: int, marks: _Marks) -> Layer:
    around = marks.padding((kernel, kernel))
    return Depthwise(kernel, marks.size("s"), around, "b" in marks.of)


def _pool(function: str) -> Callable[[int, _Marks], Layer]:
    def made(side: int, marks: _Marks) -> Layer:
        padding: Padding = marks.padding((side, side)) if marks.of.keys() & {"p", "t"} else 0
        return Pool(function, side, marks.size("s"), padding)

    return made


def _attention(kind: type[Reduced], heads: int, marks: _Marks) -> Layer:
    return kind(heads, bias=bool(marks.of), unbiased="key" if "q" in marks.of else "")


def _beside(kernel: int, _: _Marks) -> Layer:
    near = Conv(1, kernel, 1, kernel // 2, bias=False)
    made: dict[str, Layer] = {"mean": Mean(), "line": Lined(), "conv": near}
    return Gate(Chain({**made, "act": Activation("sigmoid")}))


def _windowed(kind: type[Windowed], heads: int, marks: _Marks) -> Layer:
    channels = marks.size("o") if "o" in marks.of else 0
    return kind(heads, marks.size("w"), "b" in marks.of, channels=channels)


_PLAIN: Mapping[str, Layer] = MappingProxyType(
    {
        "bn": BatchNorm(),
        "ln": Normed(),
        "gn": Normed("group_norm", "both"),
        "lns": Normed(learned=("scale",)),
        "gns": Normed("group_norm", "both", learned=("scale",)),
        "gain": Scalar("mul"),
        "offset": Scalar(),
        "rms": Normed("rms_norm", learned=("scale",)),
        "flat": Flat(),
        "turn": Turned(),
        "place": Placed(),
        "first": FirstPosition(),
        "mean": Mean(),
        "scale": Scaled(),
        "shift": Shifted(),
    }
)
"""Words that are layers without sizes; names of functions are others."""

_SIZED: Mapping[str, tuple[str, Callable[[int, _Marks], Layer]]] = MappingProxyType(
    {
        "c": ("kspgvtbna", _conv),
        "d": ("spvtbna", _deep),
        "m": ("b", lambda size, marks: Mix(size, "b" in marks.of)),
        "f": ("b", lambda size, marks: Mix(size, "b" in marks.of, Role.INNER)),
        "attn": ("bq", partial(_attention, Reduced)),
        "heads": ("bq", partial(_attention, Unprojected)),
        "cross": ("", lambda heads, _: Crossed(heads)),
        "ask": ("", lambda heads, _: Asked(heads)),
        "wave": ("", lambda waves, _: Waved(waves)),
        "win": ("bwo", partial(_windowed, Windowed)),
        "look": ("bwo", partial(_windowed, Looked)),
        "max": ("spt", _pool("max_pool")),
        "avg": ("spt", _pool("avg_pool")),
        "ceil": (
            "s",
            lambda side, marks: Pool("max_pool", side, marks.size("s"), (0, marks.size("s") - 1)),
        ),
        "se": ("", lambda size, _: Squeeze(size)),
        "eca": ("", _beside),
        "token": ("", lambda size, _: Token(size)),
        "part": ("", lambda size, _: Some(size)),
    }
)
"""Words with a size: the marks that may follow it, and what makes the layer."""
