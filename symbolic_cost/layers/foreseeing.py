"""A target that foresees: beside its own stream of positions, one for every token further ahead.

Axes as in attention, and: l positions of all streams, one after the other, l_g those of one stream,
n_g streams that foresee, n_u rows of their table, t positions of the first stream with what is in
the cache, t_g those and the positions of one that foresees, n_rel buckets of distances.

For example 50 tokens that foresee 2 make 150 positions; queries of the first 50 see 50 keys, those
of the others 100.

Source: qi-2020, section 3.
"""

from symbolic_cost.layers.attention import Attention, joined, output
from symbolic_cost.layers.attention_core import Step
from symbolic_cost.layers.embeddings import Change, Words
from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.declare import Op, axes, dropout, einsum, lookup, pointwise, softmax, view
from symbolic_cost.ops.elementwise import cross_entropy
from symbolic_cost.records import dataclass, replace

AXES = axes("l_g whole, n_g whole, n_u whole, t_g whole")

_FIRST, _AHEAD = "b l_g", "b n_g l_g"
"""Positions of the first stream, and of those that foresee."""


@dataclass(frozen=True)
class Foreseeing(Attention):
    """Self-attention from x[b r e] to y[b r e], whose biases are a product, picked by distance."""

    def ops(self) -> tuple[Op, ...]:
        relative = "*w[e n_rel h] + *bias[n_rel h] -> relative[b l n_rel h]"
        first = replace(self.at, query="l_g")
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            *self._projections(),
            einsum("relative", f"full[b l e], {relative}"),
            *(
                pointwise(
                    f"streams_{name}",
                    f"{name}[b l h d] -> first_{name}[{_FIRST} h d], ahead_{name}[{_AHEAD} h d]",
                    "copy",
                    laid="l",
                )
                for name in "qkv"
            ),
            joined("keys", "first_k", "h", first, self.cache),
            joined("values", "first_v", "h", first, self.cache),
            *(
                pointwise(
                    f"all_{name}",
                    f"{name}[b t h d], ahead_{name[0]}[{_AHEAD} h d] -> all_{name}[b n_g t_g h d]",
                    "copy",
                    laid="t l_g",
                )
                for name in ("keys", "values")
            ),
            *self._core("first", _FIRST, "keys[b t h d]", "values[b t h d]"),
            *self._core("ahead", _AHEAD, "all_keys[b n_g t_g h d]", "all_values[b n_g t_g h d]"),
            pointwise(
                "join",
                f"first[{_FIRST} h d], ahead[{_AHEAD} h d] -> context[b l h d]",
                "copy",
                laid="l_g n_g",
            ),
            *output(self.at, "h", bias=self.bias),
        )

    def _core(self, name: str, rows: str, keys: str, values: str) -> tuple[Op, ...]:
        """Declare what streams read of keys and values."""
        key = keys.split()[-3]
        square = f"[{rows} h {key}]"
        last = f"{name}_p"
        drop = Step.DROP in self.core.steps
        added = f"{name}_scores{square}, relative[b l n_rel h] -> {name}_biased{square}"
        return (
            einsum(f"{name}_scores", f"{name}_q[{rows} h d], {keys} -> {name}_scores{square}"),
            pointwise(f"{name}_bias", added, "add", laid="l n_rel"),
            softmax(
                f"{name}_softmax", f"{name}_biased{square} -> {last}{square}", key, single=True
            ),
            *((dropout(f"{name}_drop", f"{last}{square} -> {name}_kept{square}"),) if drop else ()),
            einsum(
                f"{name}_attend",
                f"{f'{name}_kept' if drop else last}{square}, {values} -> {name}[{rows} h d]",
            ),
        )


@dataclass(frozen=True)
class Ahead(Words):
    """Embedding from ids to x[b r e]; streams that foresee have positions, and a row each."""

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer; the token table is shared with a tied output head."""
        rows = "words[b l_g e], places[l_g e], rows[n_g e]"
        dropped = Change.DROP in self.changes
        normed = "normed[b r e]" if dropped else "x[b r e]"
        return (
            lookup("token", f"!ids[{_FIRST}]:index, *{self.token}[v e] -> words[{_FIRST} e]"),
            lookup("position", "!place_ids[l_g]:buffer, *table[p e] -> places[l_g e]"),
            lookup("streams", "!stream_ids[n_g]:buffer, *table[n_u e] -> rows[n_g e]"),
            pointwise("join", f"{rows} -> joined[b r e]", "add", laid="l_g n_g"),
            Norm.LAYER.op("norm", "joined[b r e]", normed),
            *((dropout("dropout", f"{normed} -> x[b r e]"),) if dropped else ()),
        )


@dataclass(frozen=True)
class Foreseen:
    """Tokens from x[b r e] to logits[b n_g l_g v] of the streams that foresee, and the loss."""

    def ops(self) -> tuple[Op, ...]:
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            pointwise("ahead", f"full[b l e] -> ahead[{_AHEAD} e]", "copy", laid="l"),
            einsum("logits", f"ahead[{_AHEAD} e], *@token[v e] -> logits[{_AHEAD} v]"),
            cross_entropy(
                "loss",
                f"logits[{_AHEAD} v], !targets[{_AHEAD}]:index -> loss[{_AHEAD}]",
                row="v",
                single=True,
            ),
        )
