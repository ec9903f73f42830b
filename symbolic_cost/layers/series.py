"""Series of numbers: a patch of values is a token, and a forecast is made behind every one.

Axes: b series, r residual positions, one for each patch; n_s values of a patch and marks of those
that are missing, side by side; s_h width of a hidden layer; e embedding; n_f frequencies; n_v and
n_q values that are forecast, of two heads; d width of a head of attention; b_s series
of which each channel is a sequence, e_c what is side by side; p rows of the table of positions.

Source: das-2024.
"""

from enum import StrEnum

from symbolic_cost.layers.attention import Attention, Bias
from symbolic_cost.layers.tokens import Entry, Logits, Tokens
from symbolic_cost.ops.declare import Op, axes, dropout, einsum, lookup, pointwise, stored, view
from symbolic_cost.records import dataclass

AXES = axes("n_s whole, s_h whole, n_f whole, n_v whole, n_q whole, b_s batch, e_c hidden")


def bent(name: str, x: str, y: str, function: str, *, biased: bool) -> tuple[Op, ...]:
    """Declare a perceptron and a product beside it, added up.

    Args:
        name: of the ops.
        x: tensor that goes in, with its axes.
        y: tensor that comes out.
        function: the activation function.
        biased: whether the products are.
    """
    (at, old), (_, new) = (one.removesuffix("]").split()[-2:] for one in (x, y))
    wide, narrow = (f" + *bias[{axis}]" if biased else "" for axis in ("s_h", new))
    outer, straight = (f"{name}.{one}[b {at} {new}]" for one in ("bent", "straight"))
    return (
        einsum(f"{name}.in", f"{x}, *w[{old} s_h]{wide} -> {name}.u[b {at} s_h]"),
        pointwise(f"{name}.act", f"{name}.u[b {at} s_h] -> {name}.a[b {at} s_h]", function),
        einsum(f"{name}.out", f"{name}.a[b {at} s_h], *w[s_h {new}]{narrow} -> {outer}"),
        einsum(f"{name}.residual", f"{x}, *w[{old} {new}]{narrow} -> {straight}"),
        pointwise(f"{name}.add", f"{outer}, {straight} -> {y}", "add"),
    )


@dataclass(frozen=True)
class Patches(Tokens):
    """Embedding from series[b r n_s] to x[b r e].

    Args:
        function: the activation function.
        rates: axis of the frequencies that a series may have, if it is told.
    """

    function: str = "silu"
    rates: str = ""

    def ops(self, result: str = "x") -> tuple[Op, ...]:
        added = ["!waves[r e]"] if Entry.COMPUTED in self.steps else []
        added += ["rate[b e]"] if self.rates else []
        names = [f"patch_{n}" for n in range(len(added))] + [result]
        rate = lookup("rate", f"!rates[b]:index, *table[{self.rates} e] -> rate[b e]")
        return (
            *bent("patch", "!series[b r n_s]", f"{names[0]}[b r e]", self.function, biased=True),
            *((rate,) if self.rates else ()),
            *(
                pointwise(f"add_{n}", f"{names[n]}[b r e], {one} -> {names[n + 1]}[b r e]", "add")
                for n, one in enumerate(added)
            ),
        )


@dataclass(frozen=True)
class Marked:
    """Embedding from series[b r_p n_s] to x[b r e]; a token may end it, which the table has last.

    Args:
        function: the activation function.
        patches: axis of the patches; that of the stream where no token ends it.
    """

    function: str = "relu"
    patches: str = "r_p"

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer."""
        at, marked = self.patches, self.patches != "r"
        rows = f"{'patches' if marked else 'x'}[b {at} e]"
        patches = bent("patch", f"!series[b {at} n_s]", rows, self.function, biased=True)
        if not marked:
            return patches
        return (
            *patches,
            lookup("mark", "!last[b one]:index, *@token[v e] -> mark[b one e]"),
            pointwise("join", f"{rows}, mark[b one e] -> x[b r e]", "copy", laid=f"{at} one"),
        )


@dataclass(frozen=True)
class Forecast(Logits):
    """Forecasts from x[b r e], of every token though the last one's are taken.

    Args:
        function: the activation function.
        bias: of every product, or none.
        kinds: axes of what is forecast, a head each.
    """

    function: str = "silu"
    bias: Bias = Bias.BOTH
    kinds: tuple[str, ...] = ("n_v",)

    def ops(self) -> tuple[Op, ...]:
        return tuple(
            op
            for axis in self.kinds
            for op in bent(
                f"forecast_{axis}", "x[b r e]", f"out_{axis}[b r {axis}]", self.function,
                biased=self.bias is Bias.BOTH,
            )
        )  # fmt: skip


@dataclass(frozen=True)
class Scaled(Attention):
    """Attention whose queries are scaled by a learned factor for every element of a head."""

    def _projection(self, name: str, heads: str, *, plain: bool = False) -> tuple[Op, ...]:
        ops = super()._projection(name, heads, plain=plain)
        if name != "q":
            return ops
        before = tuple(
            op.mapped(lambda o: o.renamed("unscaled") if o.tensor == "q" else o) for op in ops
        )
        axes = f"[b {self.at.query} {heads} d]"
        return (*before, pointwise("scale_q", f"unscaled{axes}, *scale[d] -> q{axes}", "mul"))


@dataclass(frozen=True)
class Channels:
    """Embedding from series[b r n_s], a sequence for every channel, to x[b r e].

    Args:
        places: name of the table of positions.
        others: axis of channels beside the first, if each has an embedding of its own.
    """

    places: str = "sincos"
    others: str = ""

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer."""
        n = self.others
        kept = (stored("others", w=f"{n} n_s e", bias=f"{n} e"),) if n else ()
        placed = "patch[b r e], *table[p e] -> placed[b r e]"
        return (
            einsum("patch", "!series[b r n_s], *w[n_s e] + *bias[e] -> patch[b r e]"),
            *kept,
            pointwise(self.places, placed, "add", laid="p"),
            dropout("dropout", "placed[b r e] -> x[b r e]"),
        )


class Span(StrEnum):
    """What of a sequence a value is foretold from."""

    EACH = "each position"
    MEAN = "the mean of all positions"
    ALL = "all positions, side by side"
    CHANNELS = "the means of all channels, side by side"


@dataclass(frozen=True)
class Foretold:
    """Values from x[b r e], or parameters of their distribution.

    Args:
        span: what they are foretold from.
        products: one for every parameter.
    """

    span: Span = Span.MEAN
    products: int = 1

    hidden = None

    def ops(self) -> tuple[Op, ...]:
        """Declare the head."""
        mean = pointwise("mean", "x[b r e] -> mean[b e]", "sum", sums="r")
        before, taken = {
            Span.EACH: ((), "x[b r e]"),
            Span.MEAN: ((mean,), "mean[b e]"),
            Span.ALL: (
                (pointwise("lay", "x[b r e] -> all[b e_c]", "copy", laid="r e"),),
                "all[b e_c]",
            ),
            Span.CHANNELS: (
                (mean, view("lay", "mean[b e] -> all[b_s e_c]")),
                "all[b_s e_c]",
            ),
        }[self.span]
        *rows, wide = taken.partition("[")[2].removesuffix("]").split()
        values = f"[{' '.join(rows)} n_v]"
        return (
            *before,
            *(
                einsum(f"value{n}", f"{taken}, *w[{wide} n_v] + *bias[n_v] -> value{n}{values}")
                for n in range(self.products)
            ),
        )
