"""Multi-head latent attention: keys and values are expanded from one small latent per token.

Axes: b sequences, r residual positions, l query positions, t key/value positions, m positions kept
in the cache, e embedding, k heads, g one, r_q query latent, r_kv key/value latent, d head width of
queries and keys, d_n its part without rotation, d_r its rotated part, d_v head width of values.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from symbolic_cost.axes import axes
from symbolic_cost.layers.core import GroupedCore
from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.cache import cache
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.graph import scope
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.view import view

AXES = axes(
    "b batch, r token residual, l token query, t key-token, m key-token kept, e hidden, k head, "
    "g group, r_q latent, r_kv latent, d width, d_n width, d_r latent, d_v width"
)

ANGLES = "!@cos[l d_r], !@sin[l d_r]"


@dataclass(frozen=True)
class LatentAttention:
    """Self-attention from x[b r e] to y[b r e] with a cached latent.

    Args:
        query_latent: whether queries are projected through a latent too.
        absorbed: whether queries go to the latent, so that keys and values are never expanded.
        core: its variant.
    """

    query_latent: bool = True
    absorbed: bool = False
    core: GroupedCore = field(default_factory=GroupedCore)

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer."""
        attention = self._on_latents() if self.absorbed else self._on_expanded()
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            einsum("kv_down", "full[b l e], *w[e r_kv] -> latent[b l r_kv]"),
            Norm.RMS.op("norm_kv", "latent[b l r_kv]", "normed[b l r_kv]", row="r_kv"),
            einsum("k_rotated", "full[b l e], *w[e d_r] -> plain[b l d_r]"),
            pointwise("rotate_k", f"plain[b l d_r], {ANGLES} -> turned[b l d_r]", "rotary"),
            cache("cache_kv", "normed[b l r_kv] -> latents[b t r_kv]", kept="b m r_kv"),
            cache("cache_k", "turned[b l d_r] -> shared[b t d_r]", kept="b m d_r"),
            *attention,
            einsum("proj", "context[b l k g d_v], *w[k g d_v e] -> summed[b l e]"),
            view("scatter", "summed[b l e] -> y[b r e]"),
        )

    def _on_expanded(self) -> tuple[Op, ...]:
        """Declare attention to expanded keys and values; cached ones are expanded again."""
        core = replace(self.core, repeated=False, value="d_v")
        return (
            *self._queries(("q_up", "d", "raw")),
            pointwise("rotate_q", f"raw[b l k g d], {ANGLES} -> q[b l k g d]", "rotary"),
            einsum("k_up", "latents[b t r_kv], *w[r_kv k d_n] -> expanded[b t k d_n]"),
            einsum("v_up", "latents[b t r_kv], *w[r_kv k d_v] -> values[b t k d_v]"),
            pointwise("join", "expanded[b t k d_n], shared[b t d_r] -> keys[b t k d]", "copy"),
            *core.ops(),
        )

    def _on_latents(self) -> tuple[Op, ...]:
        """Declare attention to the latents, which all heads share; d is r_kv + d_r."""
        core = replace(self.core, repeated=False, heads="", value="r_kv")
        latents = scope("latent", core.ops(), q="q", keys="keys", values="latents")
        return (
            *self._queries(("q_up", "d_n", "plain_q"), ("q_rotated", "d_r", "raw")),
            pointwise("rotate_q", f"raw[b l k g d_r], {ANGLES} -> turned_q[b l k g d_r]", "rotary"),
            einsum("k_up", "plain_q[b l k g d_n], *w[r_kv k d_n] -> low_q[b l k g r_kv]"),
            pointwise(
                "join_q", "low_q[b l k g r_kv], turned_q[b l k g d_r] -> q[b l k g d]", "copy"
            ),
            pointwise("join", "latents[b t r_kv], shared[b t d_r] -> keys[b t d]", "copy"),
            *latents,
            einsum("v_up", "latent.context[b l k g r_kv], *w[r_kv k d_v] -> context[b l k g d_v]"),
        )

    def _queries(self, *parts: tuple[str, str, str]) -> tuple[Op, ...]:
        """Declare the parts of the queries, as (name, width, result)."""
        if not self.query_latent:
            return tuple(
                einsum(name, f"full[b l e], *w[e k g {width}] -> {made}[b l k g {width}]")
                for name, width, made in parts
            )
        return (
            einsum("q_down", "full[b l e], *w[e r_q] -> q_latent[b l r_q]"),
            Norm.RMS.op("norm_q", "q_latent[b l r_q]", "q_normed[b l r_q]", row="r_q"),
            *(
                einsum(name, f"q_normed[b l r_q], *w[r_q k g {width}] -> {made}[b l k g {width}]")
                for name, width, made in parts
            ),
        )
