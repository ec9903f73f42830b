"""Mixers: what brings positions together in a block besides the family's own attention.

A decoder holds them by the names that `layer_types` gives them. Each knows its axes, their sizes in
the glossary's symbols, and what a configuration says of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, Self

from sympy import Expr

from symbolic_cost.axes import Glossary
from symbolic_cost.layers.residual import Layer
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.graph import scope
from symbolic_cost.ops.op import Op
from symbolic_cost.records import dataclass

if TYPE_CHECKING:
    from symbolic_cost.models.fields import Fields


class Mixer(Protocol):
    """What maps x[b r e] to y[b r e], with axes of its own."""

    @property
    def axes(self) -> Glossary:
        """Roles of its axes, those of the residual stream included."""

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer."""

    def on(self, shape: Shape) -> Self:
        """Return the layer as it runs on a shape: a decode step takes single steps."""

    def sizes(self, shape: Shape) -> Mapping[str, Expr]:
        """Return the sizes of its own axes."""

    def read(self, fields: Fields) -> tuple[Self, dict[str, int]]:
        """Return the layer as a configuration has it, and its sizes by symbol."""


@dataclass(frozen=True)
class Beside:
    """A mixer that runs beside the family's attention, on the same norm."""

    name: str
    mixer: Mixer

    @property
    def axes(self) -> Glossary:
        """Roles of its axes."""
        return self.mixer.axes

    def ops(self) -> tuple[Op, ...]:
        """Declare the mixer alone."""
        return self.mixer.ops()

    def with_attention(self, attention: Layer) -> tuple[Op, ...]:
        """Declare both layers from x[b r e], and their sum y[b r e]."""
        return (
            *scope(self.name, self.mixer.ops(), x="x", y="mixed"),
            *scope("attention", attention.ops(), x="x", y="attended"),
            pointwise("join", "mixed[b r e], attended[b r e] -> y[b r e]", "add"),
        )

    def on(self, shape: Shape) -> Beside:
        """Return the mixer as it runs on a shape."""
        return replace(self, mixer=self.mixer.on(shape))

    def sizes(self, shape: Shape) -> Mapping[str, Expr]:
        """Return the sizes of its own axes."""
        return self.mixer.sizes(shape)

    def read(self, fields: Fields) -> tuple[Beside, dict[str, int]]:
        """Return the mixer as a configuration has it, and its sizes by symbol."""
        mixer, numbers = self.mixer.read(fields)
        return replace(self, mixer=mixer), numbers
