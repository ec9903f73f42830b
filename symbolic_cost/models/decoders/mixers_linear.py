"""Linear and recurrent mixers: delta rules, short convolutions, Griffin's and RWKV's layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

from sympy import Expr, Integer, ceiling

from symbolic_cost import symbols
from symbolic_cost.axes import Glossary
from symbolic_cost.extrema import Min
from symbolic_cost.layers import delta, lightning, rglru, rwkv, short_convolution
from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.delta import Decay, GatedDelta
from symbolic_cost.layers.lightning import Lightning
from symbolic_cost.layers.rglru import GatedRecurrence
from symbolic_cost.layers.rwkv import TimeMix
from symbolic_cost.layers.short_convolution import ShortConv
from symbolic_cost.models.decoders.mixers import Chunked, Lettered
from symbolic_cost.models.shape import Shape
from symbolic_cost.records import dataclass, field

if TYPE_CHECKING:
    from symbolic_cost.models.fields import Fields

CHUNK = 64
"""Positions of a chunk of the delta rule, in every implementation."""


@dataclass(frozen=True)
class Delta(Chunked):
    """The gated delta rule."""

    layer: GatedDelta = field(default_factory=GatedDelta)
    glossary: ClassVar[Glossary] = delta.AXES

    def lengths(self, shape: Shape) -> dict[str, Expr]:
        """Return the sizes of its own axes under the layer's letters."""
        chunks = ceiling(shape.l / CHUNK)
        heads, values = symbols.g_s, symbols.h_s
        return super().lengths(shape) | {
            "h": heads,
            "n": values / heads,
            "d": symbols.k_s,
            "v": symbols.q_s,
            "m": 2 * heads * symbols.k_s + values * symbols.q_s,
            "z": chunks,
            "y": chunks - 1,
            **dict.fromkeys(("i", "j"), Integer(CHUNK)),
        }

    def read(self, fields: Fields) -> tuple[Self, dict[str, int]]:
        """Return the layer and its sizes by symbol."""
        heads, values = fields.size("linear_num_key_heads"), fields.size("linear_num_value_heads")
        fields.require(
            holds=values % heads == 0,
            problem=f"{heads} key heads do not divide {values} value heads",
            name="linear_num_key_heads",
            other="linear_num_value_heads",
        )
        return self, {
            "g_s": heads,
            "h_s": values,
            "k_s": fields.size("linear_key_head_dim"),
            "q_s": fields.size("linear_value_head_dim"),
            "K": fields.size("linear_conv_kernel_dim", 4),
        }


@dataclass(frozen=True)
class Short(Lettered):
    """A short gated convolution of the whole width."""

    layer: ShortConv = field(default_factory=ShortConv)
    glossary: ClassVar[Glossary] = short_convolution.AXES

    def lengths(self, shape: Shape) -> dict[str, Expr]:
        """Return the sizes of its own axes under the layer's letters."""
        return super().lengths(shape) | {"three": Integer(3), "j": symbols.J}

    def read(self, fields: Fields) -> tuple[Short, dict[str, int]]:
        """Return the layer as a configuration has it, and its sizes by symbol."""
        biased = fields.flag("conv_bias", default=False)
        numbers = {"J": fields.size("hidden_size"), "K": fields.size("conv_L_cache", 3)}
        return Short(ShortConv(Bias.BOTH if biased else Bias.NONE)), numbers


@dataclass(frozen=True)
class LightningMixer(Chunked):
    """Lightning attention on all heads."""

    layer: Lightning = field(default_factory=Lightning)
    glossary: ClassVar[Glossary] = lightning.AXES

    def lengths(self, shape: Shape) -> dict[str, Expr]:
        """Return the sizes of its own axes under the layer's letters."""
        block = symbols.C
        before = ceiling(shape.l / block) - 1
        some = Min(before, Integer(1))
        return super().lengths(shape) | {
            "h": symbols.h_s,
            **dict.fromkeys(("d", "v"), symbols.q_s),
            "y": before,
            "w": some,
            "u": 1 - some,
            "x": before - some,
            **dict.fromkeys(("i", "j"), block),
            **dict.fromkeys(("o", "m"), shape.l - before * block),
        }

    def read(self, fields: Fields) -> tuple[LightningMixer, dict[str, int]]:
        """Return the layer and its sizes by symbol."""
        width, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
        numbers = {
            "h_s": heads,
            "q_s": fields.optional_width("head_dim") or max(width // heads, 1),
            "C": fields.size("block_size", 256),
        }
        return self, numbers


@dataclass(frozen=True)
class ChannelDelta(Delta):
    """The delta rule whose decay is of every channel of a key."""

    layer: GatedDelta = field(default_factory=lambda: GatedDelta(decay=Decay.NARROW))

    def lengths(self, shape: Shape) -> dict[str, Expr]:
        """Return the sizes of its own axes under the layer's letters."""
        return super().lengths(shape) | {"u": symbols.k_s}

    def read(self, fields: Fields) -> tuple[Self, dict[str, int]]:
        """Return the layer and its sizes by symbol: in a part of the file, or beside the others."""
        names = {"head_dim": "linear_head_dim", "num_heads": "linear_num_heads"}
        names["short_conv_kernel_size"] = "linear_conv_kernel_dim"
        part = fields.part("linear_attn_config")
        source = fields if part is None else part
        width, heads, kernel = (
            source.size(inner if part else outer, default)
            for (inner, outer), default in zip(names.items(), (128, 32, 4), strict=True)
        )
        if part is not None:
            part.ignore("full_attn_layers", "kda_layers")
            fields.problems += part.not_understood().values()
        return self, {"g_s": heads, "h_s": heads, "k_s": width, "q_s": width, "K": kernel}


@dataclass(frozen=True)
class WideDelta(ChannelDelta):
    """The same with as many and as wide heads as attention, without narrow projections."""

    layer: GatedDelta = field(default_factory=lambda: GatedDelta(decay=Decay.WIDE))

    def read(self, fields: Fields) -> tuple[Self, dict[str, int]]:
        """Return the layer and its sizes by symbol."""
        heads = fields.size("linear_num_heads", fields.size("num_attention_heads"))
        width = fields.size("linear_head_dim", fields.size("head_dim", 128))
        kernel = fields.size("linear_conv_kernel_dim", fields.size("short_conv_kernel_size", 4))
        return self, {"g_s": heads, "h_s": heads, "k_s": width, "q_s": width, "K": kernel}


@dataclass(frozen=True)
class Griffin(Lettered):
    """The gated recurrence."""

    layer: GatedRecurrence = field(default_factory=GatedRecurrence)
    glossary: ClassVar[Glossary] = rglru.AXES

    def lengths(self, shape: Shape) -> dict[str, Expr]:
        """Return the sizes of its own axes under the layer's letters."""
        return super().lengths(shape) | {"h": symbols.h_s, "d": symbols.q_s, "v": symbols.q_s}

    def read(self, fields: Fields) -> tuple[Griffin, dict[str, int]]:
        """Return the layer and its sizes by symbol."""
        width, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
        inner = fields.size("lru_width", width)
        if inner % heads != 0:
            fields.note("lru_width", f"{heads} heads do not divide a width of {inner}")
        numbers = {"h_s": heads, "q_s": max(inner // heads, 1), "K": fields.size("conv1d_width", 4)}
        return self, numbers


@dataclass(frozen=True)
class Time(Lettered):
    """RWKV's mean over earlier tokens."""

    layer: TimeMix = field(default_factory=TimeMix)
    glossary: ClassVar[Glossary] = rwkv.AXES

    def lengths(self, shape: Shape) -> dict[str, Expr]:
        """Return the sizes of its own axes under the layer's letters."""
        return super().lengths(shape) | {"j": symbols.J}

    def read(self, fields: Fields) -> tuple[Time, dict[str, int]]:
        """Return the layer and its sizes by symbol."""
        return self, {"J": fields.size("attention_hidden_size", fields.size("hidden_size"))}
