"""Multi-head latent attention: keys and values are expanded from one small latent per token.

Axes: b sequences, r residual positions, l query positions, t key/value positions, m positions kept
in the cache, e embedding, k heads, g one, r_q query latent, r_kv key/value latent, d head width of
queries and keys, d_n its part without rotation, d_r its rotated part, d_v head width of values.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from symbolic_cost.layers.core import GroupedCore
from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.cache import cache
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.view import view


@dataclass(frozen=True)
class LatentAttention:
    """Self-attention from x[b r e] to y[b r e] with a cached latent.

    Args:
        query_latent: whether queries are projected through a latent too.
        core: its variant.
    """

    query_latent: bool = True
    core: GroupedCore = field(default_factory=GroupedCore)

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer; every position in use is expanded, cached ones again."""
        core = replace(self.core, repeated=False, value="d_v")
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            *self._queries(),
            einsum("kv_down", "full[b l e], *w[e r_kv] -> latent[b l r_kv]"),
            Norm.RMS.op("norm_kv", "latent[b l r_kv]", "normed[b l r_kv]", row="r_kv"),
            einsum("k_rotated", "full[b l e], *w[e d_r] -> plain[b l d_r]"),
            pointwise(
                "rotate_k",
                "plain[b l d_r], !@cos[l d_r], !@sin[l d_r] -> turned[b l d_r]",
                "rotary",
            ),
            cache("cache_kv", "normed[b l r_kv] -> latents[b t r_kv]", kept="b m r_kv"),
            cache("cache_k", "turned[b l d_r] -> shared[b t d_r]", kept="b m d_r"),
            einsum("k_up", "latents[b t r_kv], *w[r_kv k d_n] -> expanded[b t k d_n]"),
            einsum("v_up", "latents[b t r_kv], *w[r_kv k d_v] -> values[b t k d_v]"),
            pointwise("join", "expanded[b t k d_n], shared[b t d_r] -> keys[b t k d]", "copy"),
            *core.ops(),
            einsum("proj", "context[b l k g d_v], *w[k g d_v e] -> summed[b l e]"),
            view("scatter", "summed[b l e] -> y[b r e]"),
        )

    def _queries(self) -> tuple[Op, ...]:
        rotate = pointwise(
            "rotate_q", "raw[b l k g d], !@cos[l d_r], !@sin[l d_r] -> q[b l k g d]", "rotary"
        )
        if not self.query_latent:
            return (einsum("q", "full[b l e], *w[e k g d] -> raw[b l k g d]"), rotate)
        return (
            einsum("q_down", "full[b l e], *w[e r_q] -> q_latent[b l r_q]"),
            Norm.RMS.op("norm_q", "q_latent[b l r_q]", "q_normed[b l r_q]", row="r_q"),
            einsum("q_up", "q_normed[b l r_q], *w[r_q k g d] -> raw[b l k g d]"),
            rotate,
        )
