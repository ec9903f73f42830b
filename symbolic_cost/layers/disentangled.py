"""Attention that scores contents and distances apart, as in DeBERTa.

To the scores of contents are added those of queries with the keys of distances, and of keys with
the queries of distances. Axes: as in attention; s_rel distances, n_rel rows of their table.
"""

from symbolic_cost.axes import axes
from symbolic_cost.layers.attention import Attention, output
from symbolic_cost.layers.attention_core import Step
from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.declare import Op, einsum, lookup, pointwise, scope, softmax, stored, view
from symbolic_cost.records import dataclass, replace

AXES = axes("s_rel whole, n_rel whole, e hidden, h head, d width, l token query, t key-token")


def relative(*, normed: bool) -> tuple[Op, ...]:
    """Declare the embeddings of distances, relative[s_rel e], one table for all blocks."""
    rows = "found" if normed else "relative"
    rows_of_table = lookup(
        "distances", f"!places[s_rel]:buffer, *table[n_rel e] -> {rows}[s_rel e]"
    )
    norm = Norm.LAYER.op("norm", "found[s_rel e]", "relative[s_rel e]", row="e")
    return (rows_of_table, *((norm,) if normed else ()))


@dataclass(frozen=True)
class Disentangled(Attention):
    """Self-attention from x[b r e] and relative[s_rel e] to y[b r e].

    Args:
        shared: whether distances are projected by the weights of contents.
    """

    shared: bool = True

    @property
    def outside(self) -> tuple[str, ...]:
        """Tensors that the core takes."""
        return ("q", "keys", "values", "context", "rel_q", "rel_k")

    def ops(self) -> tuple[Op, ...]:
        at = self.at
        gather = view("gather", f"x[b {at.residual} e] -> full[b {at.query} e]")
        keys = (view(n, f"{n[0]}[b l h d] -> {n}[b t h d]") for n in ("keys", "values"))
        outside = {name: name for name in self.outside}
        core = (replace(op, core="core") for op in scope("core", self._scored(), **outside))
        return (
            gather,
            *self._projections(),
            *keys,
            *self._related(),
            *core,
            *output(at, "h", bias=self.bias, call=self.call),
        )

    def embedded(self, *, normed: bool) -> tuple[Op, ...]:
        """Declare the embeddings of distances."""
        return relative(normed=normed)

    def _related(self) -> tuple[Op, ...]:
        return tuple(self._distances(name) for name in "qk")

    def _distances(self, name: str) -> Op:
        """Declare the queries or keys of distances, perhaps by the weights of those of contents."""
        pattern = f"relative[s_rel e], *w[e h d] + *bias[h d] -> rel_{name}[s_rel h d]"
        product = einsum(f"rel_{name}", pattern)
        if not self.shared:
            return product
        own = f"rel_{name}."
        return product.mapped(
            lambda o: o.renamed(o.tensor.replace(own, f"{name}.")) if o.is_weight else o
        )

    def _scored(self) -> tuple[Op, ...]:
        square = "[b h l t]"
        results = (op.outputs[0] for op in self._near())
        near = ", ".join(f"{result.tensor}[{' '.join(result.axes)}]" for result in results)
        dropped = Step.DROP in self.core.steps
        last, query = "dropped" if dropped else "p", self.outside[0]
        scores = f"{query}[b l h d], keys[b t h d] -> scores{square}"
        return (
            einsum("scores", scores, "l t", masked=False),
            *self._near(),
            pointwise("bias", f"scores{square}, {near} -> biased{square}", "add", laid="s_rel"),
            softmax("softmax", f"biased{square} -> p{square}", row="t"),
            *(
                (pointwise("dropout", f"p{square} -> dropped{square}", "dropout"),)
                if dropped
                else ()
            ),
            einsum(
                "attend",
                f"{last}{square}, values[b t h d] -> context[b l h d]",
                "l t",
                masked=False,
            ),
        )

    def _near(self) -> tuple[Op, ...]:
        return (
            einsum("to_distances", "q[b l h d], rel_k[s_rel h d] -> from_queries[b h l s_rel]"),
            einsum("of_distances", "keys[b t h d], rel_q[s_rel h d] -> from_keys[b h t s_rel]"),
        )


@dataclass(frozen=True)
class Spanned(Disentangled):
    """The same as DeBERTa had it first: distances as far as the sequence, unbiased keys of them."""

    def _distances(self, name: str) -> Op:
        bias = " + *bias[h d]" if name == "q" else ""
        return einsum(f"rel_{name}", f"relative[s_rel e], *w[e h d]{bias} -> rel_{name}[s_rel h d]")


@dataclass(frozen=True)
class Shifted(Disentangled):
    """Self-attention whose queries meet the keys of computed distances, as in Transformer-XL.

    Contents and distances see a query with a bias each; those of segments stay unused without them.
    Distances are computed for every sequence: s_rel = 2 l of them.
    """

    @property
    def outside(self) -> tuple[str, ...]:
        """Tensors that the core takes."""
        return ("q_content", "keys", "values", "context", "q_place", "rel_k")

    def embedded(self, *, normed: bool) -> tuple[Op, ...]:  # noqa: ARG002 - none has a norm
        """Declare the waves of distances, relative[b s_rel e]."""
        places = "!places[b s_rel]:buffer -> relative[b s_rel e]"
        return (pointwise("waves", places, "angles"),)

    def _related(self) -> tuple[Op, ...]:
        queries = (
            pointwise(name, f"q[b l h d], *bias[h d] -> q_{name}[b l h d]", "add")
            for name in ("content", "place")
        )
        key = "!relative[b s_rel e], *w[e h d] -> rel_k[b s_rel h d]"
        return (*queries, einsum("rel_k", key, call=self.call), stored("segments", w="c h d"))

    def _near(self) -> tuple[Op, ...]:
        pattern = "q_place[b l h d], rel_k[b s_rel h d] -> from_queries[b h l s_rel]"
        return (einsum("to_distances", pattern),)
