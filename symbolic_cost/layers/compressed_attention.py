"""Attention to a window and to compressed positions, on keys that are the values too.

Every so many positions are pooled to one, by shares that are learned for each feature; a query
meets the keys of its window and the compressed ones, of which an indexer may choose some
(DeepSeek V4). Queries and the output go through latents, the output's by groups of heads.

Axes: b sequences, r residual positions, l query positions, near and m_near as in attention, e
embedding, k_s groups of heads, g_s heads of a group, d head width, d_n its part without rotation,
d_r its rotated part, d_l and d_k the widths of a head and of that part where all heads share them,
r_q query latent, r_o latent of a group's output, k_o groups and d_o their width where they are no
whole heads, n_w features of a position that are pooled apart, n_p pooled positions, n_b those that
wait for others, n_l the last pooled ones, n_n new compressed positions, n_f all of them, n_k keys
together, n_win those that a query meets, n_j positions that make one, h_x heads and d_x width of
the indexer.
"""

from symbolic_cost.layers.attention_core import SLIDING, AttentionCore, Heads, Positions
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.rotary import partial_rotation
from symbolic_cost.ops.declare import Op, axes, cache, einsum, scope, stored, unread, view
from symbolic_cost.ops.elementwise import pointwise, softmax
from symbolic_cost.records import dataclass, field

AXES = axes(
    "b batch, r token residual, l token query, near key-token sliding, m_near key-token kept, "
    "e hidden, k_s head, g_s group, d width, d_n width, d_r latent, d_l latent, d_k latent, "
    "r_q latent, r_o latent, k_o head, d_o width, n_w whole, n_win whole, n_p key-token, "
    "n_b key-token kept, n_l key-token kept, n_n key-token, n_f key-token, n_k key-token, "
    "n_j whole, h_x latent, d_x latent, n_1 whole"
)

_HEADS = Heads("k_s g_s", "")
_KEYS = Positions(key="n_k", window="n_win")
"""A query meets at most its window and the compressed positions, or those chosen of them."""


@dataclass(frozen=True)
class CompressedAttention:
    """Self-attention from x[b r e] to y[b r e].

    Args:
        pooled: whether there are compressed positions, and whether what makes them is learned:
            nothing is where no position of a short sequence is complete.
        indexed: whether an indexer chooses compressed positions.
        whole: whether the output's groups are whole heads.
    """

    core: AttentionCore = field(default_factory=AttentionCore)
    pooled: str = "learned"
    indexed: str = ""
    whole: str = "heads"

    def ops(self) -> tuple[Op, ...]:
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            einsum("q_down", "full[b l e], *w[e r_q] -> q_low[b l r_q]"),
            Norm.RMS.op("norm_low", "q_low[b l r_q]", "q_latent[b l r_q]", row="r_q"),
            einsum("q_up", "q_latent[b l r_q], *w[r_q k_s g_s d] -> q_heads[b l k_s g_s d]"),
            Norm.RMS_BARE.op("norm_q", "q_heads[b l k_s g_s d]", "raw[b l k_s g_s d]", row="d"),
            *partial_rotation("rotate_q", "raw", "q", "b l k_s g_s"),
            einsum("kv", "full[b l e], *w[e d_l] -> kv_low[b l d_l]"),
            Norm.RMS.op("norm_kv", "kv_low[b l d_l]", "kv_normed[b l d_l]", row="d_l"),
            *_turned("rotate_kv", "kv_normed", "kv_own", "b l"),
            cache("cache", "kv_own[b l d] -> near_kv[b near d]", kept="b m_near d"),
            *self._far(),
            *self._attended(),
            *self._output(),
        )

    def _far(self) -> tuple[Op, ...]:
        if not self.pooled:  # such layers keep values apart
            own = "kv_own[b l d] -> near_values[b near d]"
            return (cache("cache_values", own, kept="b m_near d"),)
        pooled = (*compressed("far", "d_l"), *_turned("rotate_far", "far.y", "far_own", "b n_f"))
        chosen = index() if self.indexed else ()
        join = "near_kv[b near d], far_own[b n_f d] -> keys[b n_k d]"
        return (
            *(pooled if self.pooled == "learned" else unread(pooled)),
            *unread(chosen),
            pointwise("join", join, "copy", laid="near n_f"),
        )

    def _attended(self) -> tuple[Op, ...]:
        """Declare the core, whose keys are its values."""
        keys, at = ("keys", _KEYS) if self.pooled else ("near_kv", SLIDING)
        values = keys if self.pooled else "near_values"
        core = self.core.ops(_HEADS, at)
        return scope("window", core, q="q", keys=keys, values=values, context="turned")

    def _output(self) -> tuple[Op, ...]:
        back = partial_rotation("rotate_back", "turned", "context", "b l k_s g_s")
        if self.whole:
            groups, low = "k_s", "context[b l k_s g_s d], *w[k_s g_s d r_o]"
            regrouped: tuple[Op, ...] = ()
        else:
            groups, low = "k_o", "grouped[b l k_o d_o], *w[k_o d_o r_o]"
            split = "context[b l k_s g_s d] -> grouped[b l k_o d_o]"
            regrouped = (pointwise("regroup", split, "copy", laid="k_s g_s d"),)
        return (
            *back,
            *regrouped,
            einsum("out_down", f"{low} -> low[b l {groups} r_o]"),
            einsum("out_up", f"low[b l {groups} r_o], *w[{groups} r_o e] -> summed[b l e]"),
            view("scatter", "summed[b l e] -> y[b r e]"),
        )


def _turned(path: str, tensor: str, result: str, rows: str) -> tuple[Op, ...]:
    """Declare keys of all heads, whose last part is rotated by angles of their positions."""
    plain, turned, rest = (f"{path}_{part}" for part in ("plain", "turned", "rest"))
    angles = f"!{path}_cos[{rows} d_r], !{path}_sin[{rows} d_r]"
    return (
        view(f"{path}_part", f"{tensor}[{rows} d_l] -> {plain}[{rows} d_r]"),
        view(f"{path}_rest", f"{tensor}[{rows} d_l] -> {rest}[{rows} d_k]"),
        pointwise(path, f"{plain}[{rows} d_r], {angles} -> {turned}[{rows} d_r]", "rotary"),
        pointwise(
            f"{path}_join",
            f"{rest}[{rows} d_k], {turned}[{rows} d_r] -> {result}[{rows} d]",
            "copy",
            laid="d_k d_r",
        ),
    )


def compressed(path: str, width: str) -> tuple[Op, ...]:
    """Declare compressed positions of full[b l e], `path`.y[b n_f width]."""
    own, pool = f"[b l n_w {width}]", f"[b n_p n_w {width}]"
    parts = (("kv", "pooled"), ("gate", "gates"))
    ops = (
        *(einsum(name, f"full[b l e], *w[e n_w {width}] -> {name}{own}") for name, _ in parts),
        stored("places", w=f"n_j n_w {width}"),
        *(
            cache(f"buffer_{name}", f"{name}{own} -> new_{name}{pool}", f"b n_b n_w {width}")
            for name, _ in parts
        ),
        *(
            cache(f"overlap_{name}", f"new_{name}{pool} -> {to}{pool}", f"b n_l n_1 {width}")
            for name, to in parts
        ),
        softmax("share", f"gates{pool} -> shares{pool}", row="n_p"),
        pointwise(
            "pool", f"pooled{pool}, shares{pool} -> sums[b n_n {width}]", "mul", laid="n_p n_w"
        ),
        Norm.RMS.op("norm", f"sums[b n_n {width}]", f"new[b n_n {width}]", row=width),
        cache("cache", f"new[b n_n {width}] -> y[b n_f {width}]", f"b n_f {width}"),
    )
    return scope(path, ops, full="full")


def index() -> tuple[Op, ...]:
    """Declare which compressed positions every query chooses; nothing is learned by it."""
    scores = "[b l n_f h_x]"
    return (
        *compressed("index", "d_x"),
        einsum("index_q", "q_latent[b l r_q], *w[r_q h_x d_x] -> iq[b l h_x d_x]"),
        einsum("index_scores", f"iq[b l h_x d_x], index.y[b n_f d_x] -> index_scores{scores}"),
        pointwise("index_act", f"index_scores{scores} -> index_positive{scores}", "relu"),
        einsum("index_weights", "full[b l e], *w[e h_x] -> index_shares[b l h_x]"),
        pointwise(
            "index_sum",
            f"index_shares[b l h_x], index_positive{scores} -> index_all[b l n_f]",
            "mul",
            sums="h_x",
        ),
        pointwise(
            "index_choice", "index_all[b l n_f] -> chosen[b l n_k]:index", "choice", row="n_f"
        ),
    )
