"""Recurrent mixers: Griffin's gated recurrence and RWKV's mean over earlier tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.axes import Glossary
from symbolic_cost.layers import rglru, rwkv
from symbolic_cost.layers.rglru import GatedRecurrence
from symbolic_cost.layers.rwkv import TimeMix
from symbolic_cost.models.mixers_state import convolved, letters_of, renamed
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.titles import retitled
from symbolic_cost.ops.op import Op
from symbolic_cost.records import dataclass

if TYPE_CHECKING:
    from symbolic_cost.models.fields import Fields


@dataclass(frozen=True)
class Griffin:
    """The gated recurrence."""

    layer: GatedRecurrence = field(default_factory=GatedRecurrence)

    @property
    def axes(self) -> Glossary:
        """Roles of its axes."""
        return renamed(rglru.AXES)

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer."""
        return retitled(self.layer.ops(), letters_of(rglru.AXES))

    def on(self, shape: Shape) -> Griffin:  # noqa: ARG002 - it runs alike on every shape
        """Return the layer itself."""
        return self

    def sizes(self, shape: Shape) -> Mapping[str, Expr]:
        """Return the sizes of its own axes."""
        sizes = {
            "h": symbols.h_s,
            **dict.fromkeys(("d", "v"), symbols.q_s),
            "k": symbols.K,
            "p": convolved(shape),
            "one": Integer(1),
        }
        return {f"{axis}_s": size for axis, size in sizes.items()}

    def read(self, fields: Fields) -> tuple[Griffin, dict[str, int]]:
        """Return the layer and its sizes by symbol."""
        width, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
        inner = fields.size("lru_width", width)
        fields.require(
            holds=inner % heads == 0,
            problem=f"{heads} heads do not divide a width of {inner}",
            name="lru_width",
        )
        numbers = {"h_s": heads, "q_s": max(inner // heads, 1), "K": fields.size("conv1d_width", 4)}
        return self, numbers


@dataclass(frozen=True)
class Time:
    """RWKV's mean over earlier tokens."""

    layer: TimeMix = field(default_factory=TimeMix)

    @property
    def axes(self) -> Glossary:
        """Roles of its axes, and of those of the perceptron."""
        return renamed(rwkv.AXES)

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer."""
        return retitled(self.layer.ops(), letters_of(rwkv.AXES))

    def on(self, shape: Shape) -> Time:  # noqa: ARG002 - it runs alike on every shape
        """Return the layer itself."""
        return self

    def sizes(self, shape: Shape) -> Mapping[str, Expr]:  # noqa: ARG002
        """Return the sizes of its own axes."""
        return {"j_s": symbols.J, "one_s": Integer(1)}

    def read(self, fields: Fields) -> tuple[Time, dict[str, int]]:
        """Return the layer and its sizes by symbol."""
        return self, {"J": fields.size("attention_hidden_size", fields.size("hidden_size"))}
