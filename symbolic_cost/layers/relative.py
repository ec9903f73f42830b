"""Attention to another sequence, and the learned bias per distance of T5.

Axes: b sequences, e embedding, e_s width of the other sequence where it is not e, h heads, d head
width, n_rel buckets of distances; the names of residual, query and key positions are given, since
an encoder and a decoder differ in length.
"""

from enum import StrEnum

from symbolic_cost.layers.attention import Attention, Bias, CacheKind, joined, output
from symbolic_cost.layers.attention_core import PLAIN, AttentionCore, Heads, Positions
from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.declare import Op, axes, einsum, lookup, pointwise, view
from symbolic_cost.records import dataclass, field, replace

AXES = axes(
    "h head, k head, g group, d width, n_rel whole, e hidden, e_s hidden, b batch, two whole, "
    "four whole"
)


class Distances(StrEnum):
    """Biases of scores by distance."""

    NONE = "none"
    ONCE = "one table for all blocks"
    EACH = "a table in every block"


def distances(at: Positions) -> Op:
    """Declare the bias of every pair of positions, shared by all sequences and blocks."""
    pair = f"{at.query} {at.key}"
    return lookup("bias", f"!buckets[b {pair}]:buffer, *table[n_rel h] -> position[{pair} h]")


@dataclass(frozen=True)
class CrossAttention:
    """Attention from x[b r e] to y[b r e] of one sequence to another, memory[b residual e].

    Keys and values are made where the memory's positions are, and gathered afterwards.

    Args:
        at: positions of the queries.
        source: positions of the memory; without residual ones its keys are in the cache.
        heads: axes of heads.
        bias: which projections have one.
        width: axis of the memory's width.
        cache: what generation keeps of keys and values.
        norm: of queries and keys, or None.
        row: axes along which it normalises; those of all heads if empty.
    """

    at: Positions
    source: Positions
    core: AttentionCore = field(default_factory=AttentionCore)
    heads: Heads = PLAIN
    bias: Bias = Bias.NONE
    width: str = "e"
    cache: CacheKind = CacheKind.HEADS
    norm: Norm | None = None
    row: str = ""

    def ops(self) -> tuple[Op, ...]:
        at, heads = replace(self.at, key=self.source.key), self.heads.query
        query = f"full[b {at.query} e], *w[e {heads} d]{self._bias(Bias.QUERY, heads)}"
        return (
            view("gather", f"x[b {at.residual} e] -> full[b {at.query} e]"),
            *self._projected("q", query, f"[b {at.query} {heads} d]"),
            *self._memory(),
            *self.core.ops(self.heads, at),
            *output(at, heads, bias=self.bias),
        )

    def _projected(self, name: str, operands: str, axes: str) -> tuple[Op, ...]:
        if self.norm is None or name == "v":
            return (einsum(name, f"{operands} -> {name}{axes}"),)
        heads = self.heads.query if name == "q" else self.heads.key
        plain, row = f"plain_{name}{axes}", self.row or f"{heads} d"
        return (
            einsum(name, f"{operands} -> {plain}"),
            self.norm.op(f"norm_{name}", plain, f"{name}{axes}", row=row),
        )

    def _bias(self, which: Bias, heads: str) -> str:
        return f" + *bias[{heads} d]" if which in self.bias else ""

    def _memory(self) -> tuple[Op, ...]:
        source, heads, width = self.source, self.heads.key, self.width
        writes = tuple(
            joined(name, name[0], heads, source, self.cache) for name in ("keys", "values")
        )
        if not source.residual:
            return writes
        read = f"read[b {source.query} {width}]"
        biases = {"k": self._bias(Bias.KEY, heads), "v": self._bias(Bias.VALUE, heads)}
        return (
            view("memory", f"memory[b {source.residual} {width}] -> {read}"),
            *(
                op
                for name, bias in biases.items()
                for op in self._projected(
                    name, f"{read}, *w[{width} {heads} d]{bias}", f"[b {source.query} {heads} d]"
                )
            ),
            *writes,
        )


@dataclass(frozen=True)
class OpenedDistances(Attention):
    """Attention whose biases by distance are opened by its input, head by head, as in WavLM.

    Source: chen-2021, section 3.2.
    """

    def ops(self) -> tuple[Op, ...]:
        rows = f"b {self.at.query} h"
        square = f"[b h {self.at.query} {self.at.key}]"
        bias = f"!{self.core.position}[{self.at.query} {self.at.key} h]"
        weight = "*w[d two four] + *bias[two four]"
        opened = f"a[{rows} two], *scale[h] -> opened[{rows}]"
        gate = (
            pointwise("heads", f"full[b {self.at.query} e] -> own[{rows} d]", "copy", laid="e"),
            einsum("gate", f"own[{rows} d], {weight} -> parts[{rows} two four]"),
            pointwise("sum", f"parts[{rows} two four] -> u[{rows} two]", "sum", sums="four"),
            pointwise("act", f"u[{rows} two] -> a[{rows} two]", "sigmoid"),
            pointwise("open", opened, "mul", sums="two"),
            pointwise("gated", f"opened[{rows}], {bias} -> opened_bias{square}", "mul"),
        )
        added = f"core.scores{square}, opened_bias{square} -> core.biased{square}"
        add = replace(pointwise("core.bias", added, "add"), core="core")
        first, *rest = (add if op.path == add.path else op for op in super().ops())
        return (first, *gate, *rest)
