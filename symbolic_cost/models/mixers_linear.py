"""Linear mixers: the gated delta rule, and short gated convolutions, inside a decoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Self

from sympy import Expr, Integer, ceiling

from symbolic_cost import symbols
from symbolic_cost.axes import Glossary
from symbolic_cost.extrema import Min
from symbolic_cost.layers import delta, lightning, short
from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.delta import GatedDelta
from symbolic_cost.layers.lightning import Lightning
from symbolic_cost.layers.short import ShortConv
from symbolic_cost.models.mixers_state import convolved, form_on, letters_of, renamed
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.titles import retitled
from symbolic_cost.ops.op import Op
from symbolic_cost.records import dataclass

if TYPE_CHECKING:
    from symbolic_cost.models.fields import Fields

CHUNK = 64
"""Positions of a chunk of the delta rule, in every implementation."""


@dataclass(frozen=True)
class Delta:
    """The gated delta rule."""

    layer: GatedDelta = field(default_factory=GatedDelta)

    @property
    def axes(self) -> Glossary:
        """Roles of its axes."""
        return renamed(delta.AXES)

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer."""
        return retitled(self.layer.ops(), letters_of(delta.AXES))

    def on(self, shape: Shape) -> Self:
        """Return the layer in chunks, or in steps for a decode step."""
        return replace(self, layer=replace(self.layer, form=form_on(shape)))

    def sizes(self, shape: Shape) -> Mapping[str, Expr]:
        """Return the sizes of its own axes."""
        chunks = ceiling(shape.l / CHUNK)
        heads, values = symbols.g_s, symbols.h_s
        sizes = {
            "h": heads,
            "n": values / heads,
            "d": symbols.k_s,
            "v": symbols.q_s,
            "m": 2 * heads * symbols.k_s + values * symbols.q_s,
            "k": symbols.K,
            "p": convolved(shape),
            "z": chunks,
            "y": chunks - 1,
            **dict.fromkeys(("i", "j"), Integer(CHUNK)),
            "one": Integer(1),
        }
        return {f"{axis}_s": size for axis, size in sizes.items()}

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
class Short:
    """A short gated convolution of the whole width."""

    layer: ShortConv = field(default_factory=ShortConv)

    @property
    def axes(self) -> Glossary:
        """Roles of its axes."""
        return renamed(short.AXES)

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer."""
        return retitled(self.layer.ops(), letters_of(short.AXES))

    def on(self, shape: Shape) -> Short:  # noqa: ARG002 - it runs alike on every shape
        """Return the layer itself."""
        return self

    def sizes(self, shape: Shape) -> Mapping[str, Expr]:
        """Return the sizes of its own axes."""
        return {
            "three_s": Integer(3),
            "j_s": symbols.J,
            "k_s": symbols.K,
            "p_s": convolved(shape),
        }

    def read(self, fields: Fields) -> tuple[Short, dict[str, int]]:
        """Return the layer as a configuration has it, and its sizes by symbol."""
        biased = fields.flag("conv_bias", default=False)
        numbers = {"J": fields.size("hidden_size"), "K": fields.size("conv_L_cache", 3)}
        return Short(ShortConv(Bias.BOTH if biased else Bias.NONE)), numbers


@dataclass(frozen=True)
class LightningMixer:
    """Lightning attention on all heads."""

    layer: Lightning = field(default_factory=Lightning)

    @property
    def axes(self) -> Glossary:
        """Roles of its axes."""
        return renamed(lightning.AXES)

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer."""
        return retitled(self.layer.ops(), letters_of(lightning.AXES))

    def on(self, shape: Shape) -> LightningMixer:
        """Return the layer in blocks, or in steps for a decode step."""
        return replace(self, layer=replace(self.layer, form=form_on(shape)))

    def sizes(self, shape: Shape) -> Mapping[str, Expr]:
        """Return the sizes of its own axes."""
        block = symbols.C
        before = ceiling(shape.l / block) - 1
        some = Min(before, Integer(1))
        sizes = {
            "h": symbols.h_s,
            **dict.fromkeys(("d", "v"), symbols.q_s),
            "y": before,
            "w": some,
            "u": 1 - some,
            "x": before - some,
            **dict.fromkeys(("i", "j"), block),
            **dict.fromkeys(("o", "m"), shape.l - before * block),
            "one": Integer(1),
        }
        return {f"{axis}_s": size for axis, size in sizes.items()}

    def read(self, fields: Fields) -> tuple[LightningMixer, dict[str, int]]:
        """Return the layer and its sizes by symbol."""
        width, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
        numbers = {
            "h_s": heads,
            "q_s": fields.optional_size("head_dim") or max(width // heads, 1),
            "C": fields.size("block_size", 256),
        }
        return self, numbers


@dataclass(frozen=True)
class ChannelDelta(Delta):
    """The delta rule whose decay is of every channel of a key."""

    layer: GatedDelta = field(default_factory=lambda: GatedDelta(channels=True))

    def sizes(self, shape: Shape) -> Mapping[str, Expr]:
        """Return the sizes of its own axes."""
        return {**super().sizes(shape), "u_s": symbols.k_s}

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
