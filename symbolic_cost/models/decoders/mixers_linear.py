"""Linear, recurrent and state-space mixers, from delta rules to Mamba-2's layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

from sympy import Expr, Integer, ceiling

from symbolic_cost import symbols
from symbolic_cost.axes import Glossary
from symbolic_cost.extrema import Min
from symbolic_cost.layers import delta, duality, lightning, mlstm, rglru, rwkv, scan, ssm
from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.delta import Decay, GatedDelta
from symbolic_cost.layers.duality import Duality
from symbolic_cost.layers.lightning import Lightning
from symbolic_cost.layers.mlstm import MatrixMemory
from symbolic_cost.layers.rglru import GatedRecurrence
from symbolic_cost.layers.rwkv import TimeMix
from symbolic_cost.layers.scan import ShortConv
from symbolic_cost.layers.ssm import SelectiveScan
from symbolic_cost.models.decoders.mixers import Chunked, Lettered
from symbolic_cost.models.shape import Shape
from symbolic_cost.records import dataclass, field, replace

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
    glossary: ClassVar[Glossary] = scan.AXES

    def lengths(self, shape: Shape) -> dict[str, Expr]:
        return super().lengths(shape) | {"three": Integer(3), "j": symbols.J}

    def read(self, fields: Fields) -> tuple[Short, dict[str, int]]:
        biased = fields.flag("conv_bias", default=False)
        numbers = {"J": fields.size("hidden_size"), "K": fields.size("conv_L_cache", 3)}
        return Short(ShortConv(Bias.BOTH if biased else Bias.NONE)), numbers


@dataclass(frozen=True)
class LightningMixer(Chunked):
    """Lightning attention on all heads."""

    layer: Lightning = field(default_factory=Lightning)
    glossary: ClassVar[Glossary] = lightning.AXES

    def lengths(self, shape: Shape) -> dict[str, Expr]:
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
        width, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
        numbers = {
            "h_s": heads,
            "q_s": fields.optional_width("head_dim") or max(width // heads, 1),
            "C": fields.size("block_size", 256),
        }
        return self, numbers


@dataclass(frozen=True)
class Memory(Chunked):
    """xLSTM's matrix memory."""

    layer: MatrixMemory = field(default_factory=MatrixMemory)
    glossary: ClassVar[Glossary] = mlstm.AXES

    def lengths(self, shape: Shape) -> dict[str, Expr]:
        chunks = ceiling((shape.l + 1) / symbols.C) - 1  # whole ones: there may be none
        return super().lengths(shape) | {
            "h": symbols.h_s,
            "d": symbols.k_s,
            "v": symbols.q_s,
            "y": chunks,
            **dict.fromkeys(("i", "j"), symbols.C),
            "n": shape.l - chunks * symbols.C,
        }

    def read(self, fields: Fields) -> tuple[Memory, dict[str, int]]:
        heads, chunk = fields.size("num_attention_heads"), fields.size("chunk_size", 64)
        fields.require(holds=chunk > 1, problem="1 is no chunk", name="chunk_size")
        longest = fields.size("max_inference_chunksize", 16384)
        problem = f"a chunk_size of {chunk} does not divide {longest}"
        fields.require(
            holds=longest % chunk == 0,
            problem=problem,
            name="max_inference_chunksize",
            other="chunk_size",
        )
        numbers = {"h_s": heads, "C": chunk}
        for symbol, key in (("k_s", "qk_dim_factor"), ("q_s", "v_dim_factor")):
            # As the class multiplies them: in floating point, whose last digit may decide.
            width = int(fields.size("hidden_size") * float(fields.number(key)))
            if width < heads or width % heads != 0:
                fields.note(key, f"{heads} heads do not divide a width of {width}")
            numbers[symbol] = max(width // heads, 1)
        bias = Bias.BOTH if fields.flag("use_bias", default=False) else Bias.NONE
        return replace(self, layer=replace(self.layer, bias=bias)), numbers


@dataclass(frozen=True)
class ChannelDelta(Delta):
    """The delta rule whose decay is of every channel of a key."""

    layer: GatedDelta = field(default_factory=lambda: GatedDelta(decay=Decay.NARROW))

    def lengths(self, shape: Shape) -> dict[str, Expr]:
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
        heads = fields.size("num_attention_heads")
        problem = f"only the {heads} of num_attention_heads is declared"
        own = fields.size("linear_num_heads", heads)
        fields.require(holds=own == heads, problem=problem, name="linear_num_heads")
        width = fields.size("linear_head_dim", fields.size("head_dim", 128))
        kernel = fields.size("linear_conv_kernel_dim", fields.size("short_conv_kernel_size", 4))
        return self, {"g_s": heads, "h_s": heads, "k_s": width, "q_s": width, "K": kernel}


@dataclass(frozen=True)
class Griffin(Lettered):
    """The gated recurrence."""

    layer: GatedRecurrence = field(default_factory=GatedRecurrence)
    glossary: ClassVar[Glossary] = rglru.AXES

    def lengths(self, shape: Shape) -> dict[str, Expr]:
        return super().lengths(shape) | {"h": symbols.h_s, "d": symbols.q_s, "v": symbols.q_s}

    def read(self, fields: Fields) -> tuple[Griffin, dict[str, int]]:
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
        return super().lengths(shape) | {"j": symbols.J}

    def read(self, fields: Fields) -> tuple[Time, dict[str, int]]:
        return self, {"J": fields.size("attention_hidden_size", fields.size("hidden_size"))}


def biases(fields: Fields) -> Bias:
    """Return which products of a state-space layer have a bias."""
    outer = Bias.OUTPUT if fields.flag("use_bias", default=False) else Bias.NONE
    return outer | (Bias.INNER if fields.flag("use_conv_bias", default=True) else Bias.NONE)


@dataclass(frozen=True)
class StateSpace(Lettered):
    """Mamba's layer; its inner width and its rank follow from the width unless given.

    Args:
        inner: field that may give the inner width.
    """

    layer: SelectiveScan = field(default_factory=SelectiveScan)
    inner: str = ""
    glossary: ClassVar[Glossary] = ssm.AXES

    def lengths(self, shape: Shape) -> dict[str, Expr]:
        rank, state = symbols.r_dt, symbols.N
        heads = {"n": symbols.h_s, "i": symbols.J / symbols.h_s} if self.layer.heads else {}
        return (
            super().lengths(shape)
            | heads
            | {
                "j": symbols.J,
                "s": state,
                "low": rank,
                "mixed": rank + 2 * state,
                "two": Integer(2),
            }
        )

    def read(self, fields: Fields) -> tuple[StateSpace, dict[str, int]]:
        width = fields.size("hidden_size")
        rank = fields.source.values.get("mamba_dt_rank", fields.source.values.get("time_step_rank"))
        low = -(-width // 16)
        if rank == "auto":
            fields.ignore("mamba_dt_rank", "time_step_rank")
        inner = width * fields.size("expand", 2)
        numbers = {
            "J": fields.size(self.inner, inner) if self.inner else inner,
            "N": fields.size("state_size", 16),
            "K": fields.size("conv_kernel", 4),
            "r_dt": low if rank == "auto" else fields.size("time_step_rank", low),
        }
        if self.layer.heads:
            numbers["h_s"] = fields.size("n_mamba_heads", 2)
            if numbers["J"] % numbers["h_s"] != 0:
                fields.note(
                    "n_mamba_heads", f"{numbers['h_s']} heads do not divide {numbers['J']} channels"
                )
        return replace(self, layer=replace(self.layer, bias=biases(fields))), numbers


@dataclass(frozen=True)
class Dual(Chunked):
    """Mamba-2's layer.

    Args:
        free: whether the heads make the inner width, whatever `expand` says.
    """

    layer: Duality = field(default_factory=Duality)
    free: bool = False
    glossary: ClassVar[Glossary] = duality.AXES

    def lengths(self, shape: Shape) -> dict[str, Expr]:
        chunks = ceiling(shape.l / symbols.C)
        heads, width, groups = symbols.h_s, symbols.q_s, symbols.g_s
        return super().lengths(shape) | {
            "h": heads,
            "d": width,
            "g": groups,
            "s": symbols.N,
            "m": heads * width + 2 * groups * symbols.N,
            "z": chunks,
            **dict.fromkeys(("i", "j"), symbols.C),
            **dict.fromkeys(("zo", "zi"), chunks + 1),
        }

    def read(self, fields: Fields) -> tuple[Dual, dict[str, int]]:
        heads, groups = fields.size("mamba_num_heads", 128), fields.size("n_groups", 1)
        width = self._width(fields, heads)
        if heads % groups != 0:
            fields.note("n_groups", f"{groups} groups do not divide {heads} heads")
        numbers = {
            "h_s": heads,
            "q_s": width,
            "g_s": groups,
            "N": fields.size("state_size", 128),
            "K": fields.size("conv_kernel", 4),
            "C": fields.size("chunk_size", 256),
        }
        if numbers["N"] <= 1:
            fields.note("state_size", "1 is no product of states")
        fields.require(holds=numbers["C"] > 1, problem="1 is no chunk", name="chunk_size")
        normed = fields.flag("mamba_rms_norm", default=self.layer.normed)
        return replace(self, layer=replace(self.layer, bias=biases(fields), normed=normed)), numbers

    def _width(self, fields: Fields, heads: int) -> int:
        if self.free:
            return fields.size("mamba_head_dim", 64)
        stated = fields.optional_size("mamba_d_ssm")
        expanded = fields.size("hidden_size") * fields.size("expand", 2)
        inner = stated or expanded
        if fields.source.values.get("mamba_d_head") == "auto":
            fields.ignore("mamba_d_head")
            return max(inner // heads, 1)
        width = fields.size("mamba_head_dim", max(inner // heads, 1))
        fields.require(
            holds=heads * width == inner,
            problem=f"{heads} heads of width {width} do not make the inner width {inner}",
            name="mamba_num_heads",
        )
        return width
