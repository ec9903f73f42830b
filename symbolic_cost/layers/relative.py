"""Attention with a learned bias per distance, as in T5: no other biases, scores not scaled.

Axes: b sequences, e embedding, h heads, d head width, n_rel buckets of distances; the names of
residual, query and key positions are given, since an encoder and a decoder differ in length.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from symbolic_cost.axes import axes
from symbolic_cost.layers.attention import core_ops
from symbolic_cost.ops.cache import cache
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.graph import scope
from symbolic_cost.ops.lookup import lookup
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.view import view

AXES = axes("h head, d whole, n_rel whole, e hidden, b batch")


@dataclass(frozen=True)
class Positions:
    """Names of the axes of positions.

    Args:
        residual: of the residual stream.
        query: of queries.
        key: of keys and values.
        causal: whether a query sees the keys up to its own position only.
    """

    residual: str
    query: str
    key: str
    causal: bool = False

    def distances(self) -> Op:
        """Declare the bias of every pair of positions, shared by all sequences and blocks."""
        pair = f"{self.query} {self.key}"
        pattern = f"!buckets[b {pair}]:buffer, *table[n_rel h] -> position[{pair} h]"
        return lookup("bias", pattern)


@dataclass(frozen=True)
class SelfAttention:
    """Attention from x[b r e] to y[b r e] of one sequence to itself.

    Args:
        positions: of the sequence.
        dropout: whether the probabilities are dropped out.
    """

    positions: Positions
    dropout: bool = True

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer; it takes the bias position[l t h]."""
        at = self.positions
        pair = f"{at.query} {at.key}"
        # Constant here: its gradient is summed over all blocks where it is made.
        bias = f"scores[b h {pair}], !position[{pair} h] -> biased[b h {pair}]"
        kept = f"b {at.key} h d"
        made = tuple(
            cache(name, f"{name[0]}[b {at.query} h d] -> {name}[{kept}]", kept=kept)
            if at.causal
            else view(name, f"{name[0]}[b {at.query} h d] -> {name}[{kept}]")
            for name in ("keys", "values")
        )
        return _attention(
            at,
            "qkv",
            (),
            made,
            _core(at, (pointwise("bias", bias, "add"),), drop=self.dropout),
        )


@dataclass(frozen=True)
class CrossAttention:
    """Attention from x[b r e] to y[b r e] of one sequence to another, memory[b residual e].

    Keys and values are made where the memory's positions are, and gathered afterwards.

    Args:
        positions: of the sequence.
        source: of the memory.
        dropout: whether the probabilities are dropped out.
        projected: whether keys and values of the memory are made, and not in the cache already.
    """

    positions: Positions
    source: Positions
    dropout: bool = True
    projected: bool = True

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer."""
        source = self.source
        at = replace(self.positions, key=source.key)
        kept, new = f"b {source.key} h d", f"b {source.query if self.projected else source.key} h d"
        read = f"read[b {source.query} e]"
        memory = (
            view("memory", f"memory[b {source.residual} e] -> {read}"),
            *(einsum(name, f"{read}, *w[e h d] -> {name}[{new}]") for name in "kv"),
        )
        caches = tuple(
            cache(name, f"{name[0]}[{new}] -> {name}[{kept}]", kept=kept)
            for name in ("keys", "values")
        )
        made = memory if self.projected else ()
        return _attention(at, "q", made, caches, _core(at, (), drop=self.dropout))


def _attention(
    at: Positions,
    projected: str,
    memory: tuple[Op, ...],
    views: tuple[Op, ...],
    core: tuple[Op, ...],
) -> tuple[Op, ...]:
    query = at.query
    names = {name: name for name in ("q", "keys", "values", "position", "context")}
    return (
        view("gather", f"x[b {at.residual} e] -> full[b {query} e]"),
        *(
            einsum(name, f"full[b {query} e], *w[e h d] -> {name}[b {query} h d]")
            for name in projected
        ),
        *memory,
        *views,
        *scope("core", core, **names),
        einsum("proj", f"context[b {query} h d], *w[h d e] -> summed[b {query} e]"),
        view("scatter", f"summed[b {query} e] -> y[b {at.residual} e]"),
    )


def _core(at: Positions, bias: tuple[Op, ...], *, drop: bool) -> tuple[Op, ...]:
    return core_ops(at.query, at.key, masked=at.causal, drop=drop, bias=bias)
