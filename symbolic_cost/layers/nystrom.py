"""Attention through landmarks, means of queries and keys, after Nyström.

Axes: as in attention; n_mean landmarks of keys, n_of of queries, n_to either inside the inverse,
n_inv its products, s_n kernel of the convolution of values.

The inverse of landmarks among themselves takes six steps of four products each. They are declared
side by side along n_inv: each takes what others gave.

Source: xiong-2021, section 3.
"""

from collections.abc import Iterator

from symbolic_cost.layers.attention import Attention, output
from symbolic_cost.ops.declare import Op, conv, einsum, pointwise, softmax, view
from symbolic_cost.records import dataclass

PRODUCTS = 24
"""Products of the inverse."""


@dataclass(frozen=True)
class Landmarks(Attention):
    """Self-attention from x[b r e] to y[b r e].

    Args:
        marks: axis of the landmarks; all positions meet if empty.
        kernel: axis of a convolution of the values along positions, of each head; none if empty.
    """

    marks: str = "n_mean"
    kernel: str = "s_n"

    def ops(self) -> tuple[Op, ...]:
        keys = (view(n, f"{n[0]}[b l h d] -> {n}[b t h d]") for n in ("keys", "values"))
        core = tuple(self._marked()) if self.marks else self.core.ops()
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            *self._projections(),
            *keys,
            *core,
            *self._near(),
            *output(self.at, "h", bias=self.bias, context="placed" if self.kernel else "context"),
        )

    def _near(self) -> tuple[Op, ...]:
        if not self.kernel:
            return ()
        rows = "[b l h d]"
        return (
            view("local", "values[b t h d] -> local[b l h d]"),
            conv("near", f"local{rows}, *w[h {self.kernel}] -> near{rows}"),
            pointwise("place", f"context{rows}, near{rows} -> placed{rows}", "add"),
        )

    def _marked(self) -> Iterator[Op]:
        square, inverse = "[b h n_of n_mean]", "[b h n_inv n_of n_to]"
        yield pointwise("q_mean", "q[b l h d] -> q_mean[b n_of h d]", "sum", laid="l")
        yield pointwise("k_mean", "keys[b t h d] -> k_mean[b n_mean h d]", "sum", laid="t")
        products = {
            "wide": ("q[b l h d], k_mean[b n_mean h d]", "[b h l n_mean]", "n_mean"),
            "small": ("q_mean[b n_of h d], k_mean[b n_mean h d]", square, "n_mean"),
            "long": ("q_mean[b n_of h d], keys[b t h d]", "[b h n_of t]", "t"),
        }
        for name, (pair, result, row) in products.items():
            yield einsum(name, f"{pair} -> {name}{result}")
            yield softmax(f"{name}.softmax", f"{name}{result} -> {name}.p{result}", row=row)
        left = "[b h n_inv n_of n_mean]"
        right = "[b h n_inv n_mean n_to]"
        yield pointwise("left", f"small.p{square} -> left{left}", "copy")
        yield pointwise("right", f"small.p{square} -> right{right}", "scale", laid="n_of")
        yield einsum("inverse", f"left{left}, right{right} -> inverses{inverse}")
        last = f"inverses{inverse} -> inverse[b h n_mean n_to]"
        yield pointwise("last", last, "copy", laid="n_inv n_of")
        taken = "wide.p[b h l n_mean], inverse[b h n_mean n_to] -> p[b h l n_to]"
        yield einsum("weights", taken)
        yield einsum("values_mean", "long.p[b h n_of t], values[b t h d] -> v_mean[b h n_of d]")
        yield view("means", "v_mean[b h n_of d] -> means[b h n_to d]")
        yield einsum("attend", "p[b h l n_to], means[b h n_to d] -> context[b l h d]")
