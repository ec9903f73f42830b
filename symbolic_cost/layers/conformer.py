"""Conformers: attention by distance, and convolutions along positions, between two perceptrons.

Axes: as in attention; two halves of what is gated, j channels, s_c kernel; s_rel distances that are
computed, n_side learned ones.

Source: gulati-2020, section 2.
"""

from enum import StrEnum

from symbolic_cost.layers.attention import Attention, Bias
from symbolic_cost.layers.disentangled import Shifted
from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.declare import Op, axes, conv, einsum, lookup, norm, pointwise, split, view
from symbolic_cost.records import dataclass, replace

AXES = axes("two whole, j inner, s_c whole, n_side whole, s_rel whole")


class Places(StrEnum):
    """What attention knows of positions, by the names that configurations use."""

    NONE = ""
    RELATIVE = "relative"
    ROTARY = "rotary"
    KEYS = "relative_key"


@dataclass(frozen=True)
class ByDistance(Shifted):
    """Self-attention whose queries meet the keys of computed distances, 2 l - 1 of them.

    Args:
        rows: axes of the distances: of every sequence, or of all alike.
    """

    rows: str = "b s_rel"

    def embedded(self, *, normed: bool) -> tuple[Op, ...]:  # noqa: ARG002 - none has a norm
        """Declare the waves of distances."""
        places = f"!places[{self.rows}]:buffer -> relative[{self.rows} e]"
        return (pointwise("waves", places, "angles"),)

    def _related(self) -> tuple[Op, ...]:
        content, place, *_ = super()._related()
        key = f"!relative[{self.rows} e], *w[e h d] -> rel_k[{self.rows} h d]"
        return (content, place, einsum("rel_k", key))

    def _near(self) -> tuple[Op, ...]:
        keys = f"rel_k[{self.rows} h d]"
        return (einsum("to_distances", f"q_place[b l h d], {keys} -> from_queries[b h l s_rel]"),)


@dataclass(frozen=True)
class Rotating(Attention):
    """Self-attention that rotates what queries and keys are made of."""

    def ops(self) -> tuple[Op, ...]:
        turn = pointwise("turn", "full[b l e] -> turned[b l e]", "rotary")
        gather, *rest = super().ops()
        return (gather, turn, *(_of_turned(op) if op.path in {"q", "k"} else op for op in rest))


def _of_turned(op: Op) -> Op:
    return op.mapped(lambda o: o.renamed("turned") if o.tensor == "full" else o)


@dataclass(frozen=True)
class KeyedDistances(Attention):
    """Self-attention whose queries meet a learned key of every distance.

    Args:
        table: its name, with "@" where all layers share one.
    """

    table: str = "table"

    def ops(self) -> tuple[Op, ...]:
        square = "[b h l t]"
        keys = f"!places[l t]:buffer, *{self.table}[n_side d] -> near[l t d]"
        near = (
            lookup("distances", keys),
            einsum("to_distances", f"q[b l h d], near[l t d] -> biases{square}"),
            pointwise("bias", f"core.scores{square}, biases{square} -> biased{square}", "add"),
        )
        ops = super().ops()
        place = next(i for i, op in enumerate(ops) if op.path == "core.softmax")
        soft = ops[place].mapped(lambda o: o.renamed("biased") if o.tensor == "core.scores" else o)
        return (*ops[:place], *near, soft, *ops[place + 1 :])


@dataclass(frozen=True)
class Gated:
    """A convolution of every channel of x[b r e] along positions, y[b r e], between two products.

    Args:
        norm: of all positions of a channel (None, a batch norm), or of a position.
    """

    function: str = "silu"
    norm: Norm | None = None
    bias: Bias = Bias.NONE

    def ops(self) -> tuple[Op, ...]:
        biased = self.bias is not Bias.NONE
        wide, inner, last = (f" + *bias[{axes}]" if biased else "" for axes in ("two j", "j", "e"))
        rows = "[b l j]"
        learned = f"near{rows}, *scale[j], *shift[j] -> fine{rows}"
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            einsum("in", f"full[b l e], *w[e two j]{wide} -> all[two b l j]"),
            split("split", f"all[two b l j] -> u{rows}, gate{rows}"),
            pointwise("sigmoid", f"gate{rows} -> share{rows}", "sigmoid"),
            pointwise("open", f"u{rows}, share{rows} -> opened{rows}", "mul"),
            conv("near", f"opened{rows}, *w[j s_c]{inner} -> near{rows}"),
            self.norm.op("inner_norm", f"near{rows}", f"fine{rows}", row="j")
            if self.norm
            else norm("inner_norm", learned, "batch_norm", "b l"),
            pointwise("act", f"fine{rows} -> a{rows}", self.function),
            einsum("out", f"a{rows}, *w[j e]{last} -> summed[b l e]"),
            view("scatter", "summed[b l e] -> y[b r e]"),
        )


def halved(ops: tuple[Op, ...]) -> tuple[Op, ...]:
    """Declare half of what a layer from x[b r e] to y[b r e] gives."""
    named = tuple(op.mapped(lambda o: o.renamed("wide") if o.tensor == "y" else o) for op in ops)
    return (*named, pointwise("half", "wide[b r e] -> y[b r e]", "scale"))


def attention(places: Places, plain: Attention, rows: str) -> Attention:
    """Return attention as a Conformer has it, with the traits of another."""
    kinds = {
        Places.NONE: Attention,
        Places.RELATIVE: ByDistance,
        Places.ROTARY: Rotating,
        Places.KEYS: KeyedDistances,
    }
    own = kinds[places](**vars(plain))
    return replace(own, rows=rows) if isinstance(own, ByDistance) else own
