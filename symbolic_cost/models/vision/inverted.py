"""Networks of timm made of inverted residuals, whose blocks are words: "ir_r2_k3_s2_e6_c24".

The kind comes first: ds, depthwise and pointwise, dsa with an activation behind; ir, an inverted
residual; er, one whose expansion is a whole convolution; cn, a convolution alone; uir, an inverted
residual with a depthwise convolution of kernel a before it. Then repeats r, kernel k, stride s of
the first, expansion e, channels c, channels fc that are expanded, share se of a squeeze, and n, an
activation that is not the network's.
"""

import re
from collections.abc import Callable
from math import ceil

from symbolic_cost.layers.conv import Activation, BatchNorm, Chain, Conv, Depthwise, Layer, Pad
from symbolic_cost.layers.maps import Mean, Mix, Residual, chain
from symbolic_cost.layers.pyramid import Squeeze
from symbolic_cost.models.fields import Fields, shortened
from symbolic_cost.models.vision.maps_families import convolved, function_of, ratio_of
from symbolic_cost.records import dataclass

Word = dict[str, str | None]

_WORD = re.compile(
    r"(?P<kind>ds|dsa|ir|er|cn|uir)_r(?P<r>[1-9]\d?)(_a(?P<a>\d))?_k(?P<k>\d)_s(?P<s>[12])"
    r"(_e(?P<e>[1-9]\d?(\.\d{1,2})?))?_c(?P<c>[1-9]\d{0,3})(_fc(?P<fc>[1-9]\d{0,3}))?"
    r"(_se(?P<se>0\.\d{1,2}))?(_n(?P<act>re|hs|sw))?(_(?P<skip>skip|noskip))?"
)
_ACTS = {"re": "relu", "hs": "silu", "sw": "silu"}
"""Activations of words; a hard one keeps and costs what a silu does."""


@dataclass(frozen=True)
class Blocks:
    """What all blocks of a network share.

    Args:
        width: factor of their channels.
        least: hundredths of channels that rounding to eights must leave.
        squeeze: "given", squeezes are shares of what a block gets; "expanded", of its expanded
            channels; or "eights", of those in eights.
        act: activation of the network.
        squeeze_act: that of squeezes; the block's if none is named.
    """

    width: float
    least: int
    squeeze: str
    act: str
    squeeze_act: str

    def channels(self, number: float) -> int:
        """Return channels of a block, by the factor."""
        return _rounded(number * self.width, self.least)

    def block(self, word: Word, inner: int, stride: int) -> tuple[int, Layer]:
        """Return the channels that a block makes of others, and the block."""
        kind, kernel, new = word["kind"], int(word["k"] or 1), self.channels(int(word["c"] or 1))
        stated, act = int(word["fc"] or 0), _ACTS.get(word["act"] or "", self.act)
        wide = _rounded((self.channels(stated) if stated else inner) * float(word["e"] or 1))
        layers: list[Layer] = []
        if kind == "cn":
            layers.append(_conv(act, new, kernel, stride))
        elif kind in {"ds", "dsa"}:
            behind = _conv(act, new) if kind == "dsa" else _last(new)
            layers += [_deep(act, kernel, stride), *self._squeezed(word, inner, act), behind]
        else:
            before = int(word["a"] or 0)
            if before:
                step = 1 if kernel else stride
                deep = Depthwise(before, step, Pad.SAME, bias=False)
                layers.append(chain(deep, BatchNorm()))
            whole = kind == "er"
            layers.append(_conv(act, wide, kernel, stride) if whole else _conv(act, wide))
            if kernel and not whole:
                layers.append(_deep(act, kernel, stride))
            layers += [*self._squeezed(word, wide, act), _last(new)]
        told = word["skip"] == "skip" if kind == "cn" else word["skip"] is None and kind != "dsa"
        made = chain(*layers)
        return new, Residual(made) if told and stride == 1 and inner == new else made

    def _squeezed(self, word: Word, wide: int, act: str) -> tuple[Layer, ...]:
        if word["se"] is None:
            return ()
        given = self.squeeze == "given"
        share = wide * (float(word["se"]) / (float(word["e"] or 1) if given else 1))
        eights = self.squeeze == "eights"
        channels = _rounded(share, self.least) if eights else max(1, round(share))
        return (Squeeze(channels, self.squeeze_act or act),)


def inverted(fields: Fields) -> dict[str, Layer]:
    """Return the stem, the blocks and what follows them, before the classes."""
    least = fields.optional_size("least", 90) or 0
    squeeze = fields.text("squeeze", "given", ("given", "expanded", "eights"))
    act = function_of(fields, "silu")
    squeezed = fields.text("squeeze_act", "", ("", "relu"))
    kind = Blocks(ratio_of(fields, "width", 1), least, squeeze, act, squeezed)
    depth, stages = ratio_of(fields, "depth", 1), fields.items("stages")
    up = fields.text("depth_rounding", "ceil", ("ceil", "round")) == "ceil"
    rounding: Callable[[float], int] = ceil if up else round
    fields.require(holds=bool(stages), problem="blocks are needed", name="stages")
    ends, inner = fields.flag("fixed_ends", default=False), fields.size("stem_size", 32)
    inner = inner if fields.flag("fixed_stem", default=False) else kind.channels(inner)
    layers: dict[str, Layer] = {"stem": _conv(act, inner, 3, 2)}
    for stage, text in enumerate(stages):
        words = _words(fields, text)
        factor = 1 if ends and stage in {0, len(stages) - 1} else depth
        for place, (word, times) in enumerate(
            zip(words, _times(words, factor, rounding), strict=True)
        ):
            for i in range(times):
                stride = 1 if i or place else int(word["s"] or 1)
                inner, layers[f"stage{stage}.{place}.{i}"] = kind.block(word, inner, stride)
    return layers | _last_of(fields, act)


def _last_of(fields: Fields, act: str) -> dict[str, Layer]:
    wide = fields.optional_size("last_size")
    last = fields.text("last", "conv", ("conv", "biased", "bare", "normed"))
    if wide is None:
        return {"mean": Mean()}
    if last == "conv":
        return {"end": _conv(act, wide), "mean": Mean()}
    layers: dict[str, Layer] = {"mean": Mean(), "end": Mix(wide, bias=last == "biased")}
    layers |= {"norm": BatchNorm()} if last == "normed" else {}
    return {**layers, "act": Activation(act)}


def _words(fields: Fields, text: object) -> list[Word]:
    words = text.split() if isinstance(text, str) else []
    matches = [_WORD.fullmatch(word) for word in words]
    fine = bool(words) and all(matches)
    problem = f"{shortened(text)}: blocks are accepted, such as ir_r2_k3_s2_e6_c24"
    fields.require(holds=fine, problem=problem, name="stages")
    return [match.groupdict() for match in matches if match] if fine else []


def _times(words: list[Word], factor: float, rounding: Callable[[float], int]) -> list[int]:
    """Return how often each block of a stage stands, by a factor; the last are rounded first."""
    repeats = [int(word["r"] or 1) for word in words]
    whole, scaled, times = sum(repeats), max(1, rounding(sum(repeats) * factor)), []
    for each in reversed(repeats):
        times.append(max(1, round(each / whole * scaled)))
        whole, scaled = whole - each, scaled - times[-1]
    return times[::-1]


def _rounded(channels: float, least: int = 90) -> int:
    near = max(8, int(channels + 4) // 8 * 8)
    return near + 8 if 100 * near < least * channels else near


def _conv(act: str, channels: int, kernel: int = 1, stride: int = 1) -> Chain:
    return convolved(Conv(channels, kernel, stride, Pad.SAME, bias=False), act)


def _deep(act: str, kernel: int, stride: int) -> Chain:
    return convolved(Depthwise(kernel, stride, Pad.SAME, bias=False), act)


def _last(channels: int) -> Chain:
    return chain(Conv(channels, 1, bias=False), BatchNorm())
