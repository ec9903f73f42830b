"""Products in groups: features are divided, and each part makes its part of the result.

As in SqueezeBERT, whose products are convolutions of kernel one. Axes: as in attention; g_P groups
of the product P, i_P features that one takes and o_P that it makes, one the kernel.

Source: iandola-2020, section 3.2.
"""

from symbolic_cost.layers.attention import Attention
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.ops.declare import Op, conv, einsum, pointwise, view
from symbolic_cost.records import dataclass


def product(
    name: str, x: str, wide: str, y: str, narrow: str, *, kernel: str = "one"
) -> tuple[Op, ...]:
    """Declare a product from x[b l wide] to y[b l narrow]: a convolution if it has a kernel."""
    g, i, o = (f"{part}_{name}" for part in "gio")
    parts, result = f"{name}.parts[b {g} {i} l]", f"{name}.whole[b {g} {o} l]"
    declared = conv if kernel else einsum
    return (
        pointwise(f"{name}.group", f"{x}[b l {wide}] -> {parts}", "copy", laid=wide),
        declared(name, f"{parts}, *w[{g} {i} {o} {kernel}] + *bias[{g} {o}] -> {result}"),
        pointwise(f"{name}.join", f"{result} -> {y}[b l {narrow}]", "copy", laid=f"{g} {o}"),
    )


@dataclass(frozen=True)
class GroupedAttention(Attention):
    """Self-attention from x[b r e] to y[b r e] whose products run in groups."""

    def ops(self) -> tuple[Op, ...]:
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            *(op for name in "qkv" for op in product(name, "full", "e", name, "h d")),
            view("keys", "k[b l h d] -> keys[b t h d]"),
            view("values", "v[b l h d] -> values[b t h d]"),
            *self.core.ops(),
            *product("proj", "context", "h d", "summed", "e"),
            view("scatter", "summed[b l e] -> y[b r e]"),
        )


@dataclass(frozen=True)
class GroupedMLP(MLP):
    """Perceptron from x[b r e] to y[b r e] whose products run in groups.

    Args:
        kernel: axis of that of a convolution; they are products of batches if empty.
    """

    kernel: str = "one"

    def ops(self) -> tuple[Op, ...]:
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            *product("fc1", "full", "e", "u", "f", kernel=self.kernel),
            pointwise("act", "u[b l f] -> a[b l f]", self.function),
            *product("fc2", "a", "f", "summed", "e", kernel=self.kernel),
            view("scatter", "summed[b l e] -> y[b r e]"),
        )
