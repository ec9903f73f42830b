"""Grouped-query self-attention, with multi-head and multi-query attention as its extremes.

Axes: b sequences, r residual positions, l query positions, t key/value positions, m positions kept
in the cache, e embedding, k key/value heads, g query heads of one key/value head, d head width, d_r
its rotated part and d_n the rest where not all of it is rotated.
Sliding layers have `near` and `m_near` in place of t and m.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from symbolic_cost.axes import axes
from symbolic_cost.layers.chain import Step, chain
from symbolic_cost.layers.core import GroupedCore
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.rotary import partial_rotation, rotation
from symbolic_cost.ops.cache import cache
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.view import view

AXES = axes(
    "b batch, r token residual, l token query, t key-token, near key-token, m key-token kept, "
    "m_near key-token kept, e hidden, k head, g group, d whole"
)


class HeadNorm(StrEnum):
    """Norms of queries and keys."""

    NONE = "none"
    HEAD = "over each head, one scale for all"
    HEADS = "over each head, a scale for each"
    WIDTH = "over all heads together"


class Rotated(StrEnum):
    """How much of queries and keys is rotated; the value is the axis of the rotated width."""

    NOTHING = ""
    WHOLE = "d"
    PART = "d_r"


@dataclass(frozen=True)
class GroupedAttention:
    """Self-attention from x[b r e] to y[b r e].

    Args:
        qkv_bias: whether the query, key and value projections have a bias.
        output_bias: whether the output projection has one.
        head_norm: of queries and keys.
        norm: its kind.
        rotated: how much of queries and keys is.
        sliding: whether queries see a window of the keys.
        cached_heads: whether keys and values are cached for every query head.
        core: its variant.
    """

    qkv_bias: bool = False
    output_bias: bool = False
    head_norm: HeadNorm = HeadNorm.NONE
    norm: Norm = Norm.RMS
    rotated: Rotated = Rotated.WHOLE
    sliding: bool = False
    cached_heads: bool = False
    core: GroupedCore = field(default_factory=GroupedCore)

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer."""
        bias = " + *bias[e]" if self.output_bias else ""
        keys, window = ("near", "window") if self.sliding else ("t", "")
        core = replace(self.core, keys=keys, window=window, shared=not self.cached_heads)
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            *self._projection("q", "k g"),
            *self._projection("k", "k"),
            *self._projection("v", "k", plain=True),
            *self._cache("k", "keys"),
            *self._cache("v", "values"),
            *core.ops(),
            einsum("proj", f"context[b l k g d], *w[k g d e]{bias} -> summed[b l e]"),
            view("scatter", "summed[b l e] -> y[b r e]"),
        )

    def _projection(self, name: str, heads: str, *, plain: bool = False) -> tuple[Op, ...]:
        """Declare q, k or v: projected, and unless `plain` normalised and rotated."""
        axes = f"[b l {heads} d]"
        bias = f" + *bias[{heads} d]" if self.qkv_bias else ""
        row = f"{heads} d" if self.head_norm is HeadNorm.WIDTH else "d"
        scale = "d" if self.head_norm is HeadNorm.HEAD else f"{heads} d"
        steps: list[Step] = [
            lambda x, y: einsum(name, f"{x}[b l e], *w[e {heads} d]{bias} -> {y}{axes}")
        ]
        if self.head_norm is not HeadNorm.NONE and not plain:
            steps.append(
                lambda x, y: self.norm.op(
                    f"norm_{name}", f"{x}{axes}", f"{y}{axes}", row=row, scale=scale
                )
            )
        if plain or self.rotated is Rotated.NOTHING:
            return chain("full", steps, name)
        if self.rotated is Rotated.PART:
            turned = partial_rotation(f"rotate_{name}", f"{name}_whole", name, f"b l {heads}")
            return (*chain("full", steps, f"{name}_whole"), *turned)
        steps.append(lambda x, y: rotation(f"rotate_{name}", f"{x}{axes}", f"{y}{axes}", "d"))
        return chain("full", steps, name)

    def _cache(self, name: str, result: str) -> tuple[Op, ...]:
        t, m = ("near", "m_near") if self.sliding else ("t", "m")
        if not self.cached_heads:
            pattern = f"{name}[b l k d] -> {result}[b {t} k d]"
            return (cache(f"cache_{name}", pattern, kept=f"b {m} k d"),)
        return (
            pointwise(f"copy_{name}", f"{name}[b l k d] -> many_{name}[b l k g d]", "copy"),
            cache(
                f"cache_{name}",
                f"many_{name}[b l k g d] -> {result}[b {t} k g d]",
                kept=f"b {m} k g d",
            ),
        )
