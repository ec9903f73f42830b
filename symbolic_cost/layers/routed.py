"""Attention whose queries and results are projected by some of several experts, as in JetMoE.

Axes: those of attention and of a mixture of experts; the g query heads of a key/value head are the
experts that a token is sent to (Shen et al. 2024).
"""

from symbolic_cost.layers import attention, moe
from symbolic_cost.layers.attention import Attention, joined
from symbolic_cost.layers.attention_core import FULL, GROUPED
from symbolic_cost.layers.moe import MixtureOfExperts
from symbolic_cost.layers.rotary import rotation
from symbolic_cost.ops.declare import Op, einsum, glossary, pointwise, view
from symbolic_cost.records import dataclass

AXES = glossary(attention.AXES, moe.AXES)

_HEADS = "[b l k g d]"


@dataclass(frozen=True)
class RoutedAttention(Attention):
    """Self-attention from x[b r e] to y[b r e], whose tokens are routed once for both products."""

    def ops(self) -> tuple[Op, ...]:
        mixture = MixtureOfExperts()
        return (
            *mixture.routed(),
            einsum("q", "sent[u z x e], *w[x e k d] -> asked[u z x k d]"),
            view("scatter_q", "asked[u z x k d] -> ready_q[u z_r x k d]"),
            view("return_q", "ready_q[u z_r x k d] -> back_q[b r a k d]"),
            view("gather_q", f"back_q[b r a k d] -> plain_q{_HEADS}"),
            rotation("rotate_q", f"plain_q{_HEADS}", f"q{_HEADS}", "d"),
            view("gather_x", "x[b r e] -> full[b l e]"),
            einsum("k", "full[b l e], *w[e k d] -> plain_k[b l k d]"),
            rotation("rotate_k", "plain_k[b l k d]", "k[b l k d]", "d"),
            einsum("v", "full[b l e], *w[e k d] -> v[b l k d]"),
            joined("keys", "k", "k", FULL, self.cache),
            joined("values", "v", "k", FULL, self.cache),
            *self.core.ops(GROUPED, FULL),
            view("scatter_context", f"context{_HEADS} -> found[b r a k d]"),
            view("dispatch_context", "found[b r a k d] -> posted_context[u z_r x k d]"),
            view("gather_context", "posted_context[u z_r x k d] -> sent_context[u z x k d]"),
            einsum("proj", "sent_context[u z x k d], *w[x k d e] -> done[u z x e]"),
            *mixture.combined("mixed"),
            pointwise("offset", "mixed[b r e], *bias[e] -> y[b r e]", "add"),
        )
