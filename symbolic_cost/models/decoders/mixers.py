"""Mixers: what brings positions together in a block besides the family's own attention.

A decoder holds them by the names that `layer_types` gives them. Each knows its axes, their sizes in
the glossary's symbols, and what a configuration says of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.layers.duality import Form
from symbolic_cost.layers.residual import Layer
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.declare import Axis, Glossary, Op, pointwise, scope
from symbolic_cost.ops.part import retitled
from symbolic_cost.records import dataclass, replace

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


_STREAM = ("b", "r", "l", "e")


def letters_of(known: Glossary) -> dict[str, str]:
    """Return names for the axes of a layer that no other layer has: "k" becomes "k_s"."""
    return {name: name if name in _STREAM else f"{name}_s" for name in known}


def renamed(known: Glossary) -> Glossary:
    """Return the roles of the axes of a layer under their new names."""
    names = letters_of(known)
    return {names[a]: Axis(names[a], axis.role, axis.copy) for a, axis in known.items()}


@dataclass(frozen=True)
class Lettered:
    """A layer inside a decoder, where its letters (p, k, s, g ...) mean others: all get an end.

    It runs alike on every shape.
    """

    layer: Any
    glossary: ClassVar[Glossary]
    """Roles of the layer's axes under its own letters."""

    @property
    def axes(self) -> Glossary:
        return renamed(self.glossary)

    def ops(self) -> tuple[Op, ...]:
        return retitled(self.layer.ops(), letters_of(self.glossary))

    def on(self, shape: Shape) -> Self:  # noqa: ARG002 - it runs alike on every shape
        return self

    def sizes(self, shape: Shape) -> Mapping[str, Expr]:
        return {f"{axis}_s": size for axis, size in self.lengths(shape).items()}

    def lengths(self, shape: Shape) -> dict[str, Expr]:
        """Return the sizes of its own axes under the layer's letters, those of all layers alike.

        A causal convolution of kernel k runs over its padding p, or at two places in a step of one.
        """
        padded = shape.l + (1 if shape.by_steps else symbols.K - 1)
        common = {"one": Integer(1), "k": symbols.K, "p": padded}
        return {axis: size for axis, size in common.items() if axis in self.glossary}


@dataclass(frozen=True)
class Chunked(Lettered):
    """A layer whose recurrence runs in chunks, or in steps for a decode step."""

    def on(self, shape: Shape) -> Self:
        form = Form.STEPS if shape.by_steps else Form.CHUNKED
        return replace(self, layer=replace(self.layer, form=form))


@dataclass(frozen=True)
class Beside:
    """A mixer that runs beside the family's attention, on the same norm."""

    name: str
    mixer: Mixer

    @property
    def axes(self) -> Glossary:
        return self.mixer.axes

    def ops(self) -> tuple[Op, ...]:
        return self.mixer.ops()

    def with_attention(self, attention: Layer) -> tuple[Op, ...]:
        """Declare both layers from x[b r e], and their sum y[b r e]."""
        return (
            *scope(self.name, self.mixer.ops(), x="x", y="mixed"),
            *scope("attention", attention.ops(), x="x", y="attended"),
            pointwise("join", "mixed[b r e], attended[b r e] -> y[b r e]", "add"),
        )

    def on(self, shape: Shape) -> Beside:
        return replace(self, mixer=self.mixer.on(shape))

    def sizes(self, shape: Shape) -> Mapping[str, Expr]:
        return self.mixer.sizes(shape)

    def read(self, fields: Fields) -> tuple[Beside, dict[str, int]]:
        mixer, numbers = self.mixer.read(fields)
        return replace(self, mixer=mixer), numbers
