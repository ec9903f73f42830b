"""Connectors: from what a tower sees in an image to embeddings of a language model.

Axes: b images, r and t_v positions of the tower, e_v its width, n_i tokens of an image, m_i patches
that one token joins, w_i width of a hidden layer, e width of the language model.
"""

from enum import Flag, StrEnum, auto

from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.gated import gated_products
from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.declare import Op, axes, einsum, pointwise, view
from symbolic_cost.records import dataclass

AXES = axes(
    "b batch, r token residual, t_v key-token, e_v hidden, n_i token patch, m_i whole, "
    "w_i inner, w_j hidden, e hidden"
)


class Join(StrEnum):
    """How the patches of a token are joined."""

    NONE = "a patch is a token"
    SIDE_BY_SIDE = "side by side"
    MEAN = "as their mean"


class Wide(StrEnum):
    """Width of the hidden layer."""

    NONE = "no hidden layer"
    TEXT = "that of the language model"
    JOINED = "that of the joined patches"


class Trait(Flag):
    """What a connector has besides."""

    NONE = 0
    BIAS = auto()
    """Products have biases."""
    LATE = auto()
    """The norm is over joined patches."""
    MERGE = auto()
    """Joined patches are projected to the width of one first, without a bias."""
    ADAPT = auto()
    """Joined patches go through two products with activations first, without biases."""
    GATED = auto()
    """Another product, of the same width, multiplies what the hidden layer activates."""
    DEEP = auto()
    """Joined patches are projected twice, normalised and activated before a gated perceptron."""


@dataclass(frozen=True)
class Connector:
    """From x[b r e_v] to image[b n_i e].

    Args:
        join: of the patches of a token.
        norm: of every patch, or None.
        hidden: width of the hidden layer.
        function: the activation function.
        traits: what it has besides.
    """

    join: Join = Join.NONE
    norm: Norm | None = None
    hidden: Wide = Wide.TEXT
    function: str = "gelu"
    traits: Trait = Trait.BIAS

    def ops(self) -> tuple[Op, ...]:
        ops: list[Op] = []
        x, wide = "x", "m_i e_v" if self.join is Join.SIDE_BY_SIDE else "e_v"
        if self.norm is not None and Trait.LATE not in self.traits:
            axes = "b r e_v"
            if self.join is Join.MEAN:  # the mean is normalised
                ops += _joined(x, "e_v", mean=True)
                x, axes = "joined", "b n_i e_v"
            ops.append(self.norm.op("norm", f"{x}[{axes}]", f"normed[{axes}]", row="e_v"))
            x = "normed"
        if self.join is not Join.MEAN or self.norm is None:
            ops += _joined(x, wide, mean=self.join is Join.MEAN)
            x = "joined"
        if self.norm is not None and Trait.LATE in self.traits:
            ops.append(self.norm.op("norm", f"{x}[b n_i {wide}]", f"fine[b n_i {wide}]", row=wide))
            x = "fine"
        if Trait.MERGE in self.traits:
            ops.append(einsum("merge", f"{x}[b n_i {wide}], *w[{wide} w_j] -> one[b n_i w_j]"))
            x, wide = "one", "w_j"
        if Trait.ADAPT in self.traits:
            ops += self._adapted(x, wide)
            x, wide = "adapted", "w_j"
        return (*ops, *(self._deep(x, wide) if Trait.DEEP in self.traits else self._dense(x, wide)))

    def _deep(self, x: str, wide: str) -> tuple[Op, ...]:
        last = ("acted[b n_i e]", "image[b n_i e]", "", "w_i", self.function)
        return (
            einsum("narrow", f"{x}[b n_i {wide}], *w[{wide} w_j] + *bias[w_j] -> one[b n_i w_j]"),
            einsum("project", "one[b n_i w_j], *w[w_j e] -> wide[b n_i e]"),
            Norm.LAYER.op("norm_wide", "wide[b n_i e]", "even[b n_i e]", row="e"),
            pointwise("act_wide", "even[b n_i e] -> acted[b n_i e]", "gelu"),
            *gated_products(*last, bias=Bias.NONE),
        )

    def _adapted(self, x: str, wide: str) -> tuple[Op, ...]:
        return (
            einsum("adapt_1", f"{x}[b n_i {wide}], *w[{wide} w_i] -> u[b n_i w_i]"),
            pointwise("adapt_act_1", "u[b n_i w_i] -> a[b n_i w_i]", self.function),
            einsum("adapt_2", "a[b n_i w_i], *w[w_i w_j] -> u2[b n_i w_j]"),
            pointwise("adapt_act_2", "u2[b n_i w_j] -> adapted[b n_i w_j]", self.function),
        )

    def _dense(self, x: str, wide: str) -> tuple[Op, ...]:
        out = " + *bias[e]" if Trait.BIAS in self.traits else ""
        if self.hidden is Wide.NONE:
            return (einsum("linear", f"{x}[b n_i {wide}], *w[{wide} e]{out} -> image[b n_i e]"),)
        bias = " + *bias[w_i]" if Trait.BIAS in self.traits else ""
        inner = "[b n_i w_i]"
        first = einsum("linear_1", f"{x}[b n_i {wide}], *w[{wide} w_i]{bias} -> u{inner}")
        last = einsum("linear_2", f"a{inner}, *w[w_i e]{out} -> image[b n_i e]")
        if Trait.GATED not in self.traits:
            return (first, pointwise("act", f"u{inner} -> a{inner}", self.function), last)
        return (
            first,
            einsum("gate", f"{x}[b n_i {wide}], *w[{wide} w_i]{bias} -> gated{inner}"),
            pointwise("act", f"gated{inner} -> opened{inner}", self.function),
            pointwise("mul", f"u{inner}, opened{inner} -> a{inner}", "mul"),
            last,
        )


def _joined(x: str, wide: str, *, mean: bool) -> tuple[Op, ...]:
    function = "sum" if mean else "copy"
    pattern = f"gathered[b t_v e_v] -> joined[b n_i {wide}]"
    return (
        view("gather", f"{x}[b r e_v] -> gathered[b t_v e_v]"),
        pointwise("join", pattern, function, laid="t_v"),
    )
