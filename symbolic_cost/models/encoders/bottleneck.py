"""Blocks that are narrower inside than the stream between them, as in MobileBERT.

Axes: as in an encoder; e_b width inside a block, w_t width of the token table, c three neighbours
that are embedded together, w_x features of the head beside those that the token table takes.

Source: sun-2020, section 3.
"""

from symbolic_cost.layers.attention import Attention
from symbolic_cost.layers.attention_core import AttentionCore
from symbolic_cost.layers.chain import Step, chain
from symbolic_cost.layers.embeddings import Change, Words
from symbolic_cost.layers.heads import Predicted, hidden_layer
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.models.encoders.encoder import Encoder
from symbolic_cost.ops.declare import Op, cross_entropy, dropout, einsum, pointwise, scope, view
from symbolic_cost.ops.part import retitled
from symbolic_cost.records import dataclass


def _scaled(axes: str) -> list[Step]:
    width = axes.strip("[]").split()[-1]
    scale, shift = f"{{}}{axes}, *scale[{width}] -> {{}}{axes}", f"*shift[{width}]"
    return [
        lambda x, y: pointwise("scale", scale.format(x, y), "mul"),
        lambda x, y: pointwise("shift", f"{x}{axes}, {shift} -> {y}{axes}", "add"),
    ]


def _summed(
    path: str, names: dict[str, str], axes: str, *, dropped: bool = False
) -> tuple[Op, ...]:
    """Declare y = scale (x + other) + shift, x perhaps dropped out."""
    pair = f"{{}}{axes}, other{axes} -> {{}}{axes}"
    drop: list[Step] = [lambda x, y: dropout("dropout", f"{x}{axes} -> {y}{axes}")]
    steps: list[Step] = [
        *(drop if dropped else []),
        lambda x, y: pointwise("add", pair.format(x, y), "add"),
        *_scaled(axes),
    ]
    return scope(path, chain("x", steps, "y"), **names)


@dataclass(frozen=True)
class Trigrams(Words):
    """Embedding of narrow tokens, perhaps each with its neighbours, projected before the sum.

    Args:
        near: axis of the neighbours; none if empty.
    """

    width: str = "w_t"
    near: str = "c "

    def ops(self) -> tuple[Op, ...]:
        narrow, axes, tokens = "[b r w_t]", "[b r e]", f"[b r {self.near}w_t]"
        weight = f"*w[{self.near}w_t e] + *bias[e]"
        beside: list[Step] = [lambda x, y: pointwise("near", f"{x}{narrow} -> {y}{tokens}", "copy")]
        drop: list[Step] = [lambda x, y: dropout("dropout", f"{x}{axes} -> {y}{axes}")]
        steps = [
            *self._tokens(narrow),
            *(beside if self.near else []),
            lambda x, y: einsum("project", f"{x}{tokens}, {weight} -> {y}{axes}"),
            *(self._added(name, "r e", axes) for name in self.tables),
            *_scaled(axes),
            *(drop if Change.DROP in self.changes else []),
        ]
        token, *rest = chain("ids", steps, "x")
        return (token, *Words(tables=self.tables).further(), *rest)


@dataclass(frozen=True)
class Narrowed(Attention):
    """Attention to y[b r e_b] with values of x[b r e], queries and keys of shared[b r e_b]."""

    def ops(self) -> tuple[Op, ...]:
        bias, out = " + *bias[h d]", "[b l h d]"
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            view("gather_shared", "shared[b r e_b] -> near[b l e_b]"),
            *(einsum(n, f"near[b l e_b], *w[e_b h d]{bias} -> {n}{out}") for n in "qk"),
            einsum("v", f"full[b l e], *w[e h d]{bias} -> v{out}"),
            view("keys", f"k{out} -> keys[b t h d]"),
            view("values", f"v{out} -> values[b t h d]"),
            *self.core.ops(),
            einsum("proj", f"context{out}, *w[h d e_b] + *bias[e_b] -> summed[b l e_b]"),
            view("scatter", "summed[b l e_b] -> y[b r e_b]"),
        )


@dataclass(frozen=True)
class Widened(Predicted):
    """Tokens, whose table is narrower than the stream: other features have a weight apart."""

    def ops(self) -> tuple[Op, ...]:
        hidden = self.hidden
        before = (
            ()
            if hidden is None
            else hidden_layer("transform", hidden, "x[b r e]", "y[b r w]", "act")
        )
        normed = "normed[b l w]"
        return (
            *before,
            view("gather", f"y[b r w] -> {normed}"),
            pointwise("first", f"{normed} -> first[b l w_t]", "copy", laid="w"),
            pointwise("last", f"{normed} -> last[b l w_x]", "copy", laid="w"),
            einsum("logits", "first[b l w_t], *@token[v w_t] + *bias[v] -> some[b l v]"),
            einsum("logits_last", "last[b l w_x], *w[v w_x] -> others[b l v]"),
            pointwise("logits_sum", "some[b l v], others[b l v] -> logits[b l v]", "add"),
            cross_entropy(
                "loss", "logits[b l v], !targets[b l]:index -> loss[b l]", row="v", single=False
            ),
        )


@dataclass(frozen=True)
class Bottlenecked(Encoder):
    """An encoder of narrow blocks.

    Args:
        networks: perceptrons of a block, one after the other.
    """

    networks: int = 4

    def block(self, *, bare: bool = False, windowed: bool = False) -> tuple[Op, ...]:  # noqa: ARG002
        narrow = "[b r e_b]"
        product = f"x[b r e], *w[e e_b] + *bias[e_b] -> u{narrow}"
        ops: list[Op] = []
        for name in ("entry", "shared"):
            inner = (einsum("dense", product), *chain("u", _scaled(narrow), "y"))
            ops += scope(name, inner, x="x", y=name)
        ops += scope("attention", self.attention.ops(), x="x", shared="shared", y="seen")
        ops += _summed("attention.outcome", {"x": "seen", "other": "entry", "y": "mlp0"}, narrow)
        mlp = retitled(self.perceptron.ops(), {"e": "e_b"})
        for i in range(self.networks):
            ops += scope(f"mlp{i}.layer", mlp, x=f"mlp{i}", y=f"mlp{i}.y")
            names = {"x": f"mlp{i}.y", "other": f"mlp{i}", "y": f"mlp{i + 1}"}
            ops += _summed(f"mlp{i}.outcome", names, narrow)
        last = f"mlp{self.networks}{narrow}, *w[e_b e] + *bias[e] -> wide[b r e]"
        names = {"x": "wide", "other": "x", "y": "y"}
        ops.append(einsum("output", last))
        return (*ops, *_summed("outcome", names, "[b r e]", dropped=self.branch.drops))


MOBILE = Bottlenecked(
    words=Trigrams(),
    attention=Narrowed(core=AttentionCore()),
    perceptron=MLP("relu"),
    source="sun-2020",
)
