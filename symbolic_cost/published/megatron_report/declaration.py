"""The GPT of the report, declared: embedding, layer, head.

Axes: b sequences, l query and t key positions, e embedding, c the three of query, key and value,
h heads, d head width, g gate and up, f MLP width, v vocabulary, p learned positions.
"""

from functools import cache

from sympy import Integer

from symbolic_cost import symbols
from symbolic_cost.conventions.presets import MEGATRON_REPORT
from symbolic_cost.ledger import CostTable
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import cross_entropy, dropout, norm, pointwise, softmax
from symbolic_cost.ops.fused import fused
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.lookup import lookup
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.part import fragment
from symbolic_cost.ops.placement import WHOLE, Placement
from symbolic_cost.ops.view import split, view

SIZES = {
    "b": symbols.b,
    "l": symbols.l,
    "t": symbols.l,
    "p": symbols.l,
    "e": symbols.e,
    "c": Integer(3),
    "h": symbols.h,
    "d": symbols.e / symbols.h,
    "g": Integer(2),
    "f": symbols.f,
    "v": symbols.V,
}
"""Size by axis."""

TENSOR = Placement({"tensor": symbols.m1}, {"h": ("tensor",), "f": ("tensor",), "v": ("tensor",)})
"""Tensor parallelism: heads, MLP width and vocabulary over one mesh axis."""


def derived(placement: Placement = WHOLE) -> CostTable:
    """Return every cost of one rank, whole or `TENSOR`; layers occur `n_layers` times."""
    whole, split = _tables()
    return whole if placement == WHOLE else split


@cache
def _tables() -> tuple[CostTable, CostTable]:
    whole, split = (cost(gpt(), MEGATRON_REPORT, placement) for placement in (WHOLE, TENSOR))
    return whole, split


def gpt() -> Model:
    """Declare the model."""
    layer = (*_attention(), *_mlp())
    parts = (
        fragment("embedding", _embedding()),
        fragment("layer", layer, symbols.n_layers),
        fragment("head", _head()),
    )
    return Model("megatron-report", parts, SIZES, source="megatron-report")


def _embedding() -> tuple[Op, ...]:
    return (
        lookup("word_embeddings", "!ids[b l]:index, *@token[v e] -> words[b l e]"),
        lookup("position_embeddings", "!places[l]:index, *w[p e] -> positions[l e]"),
        pointwise("add", "words[b l e], positions[l e] -> summed[b l e]", "add"),
        dropout("dropout", "summed[b l e] -> x[b l e]"),
    )


def _layer_norm(name: str, x: str, y: str) -> Op:
    return norm(name, f"{x}[b l e], *w[e], *bias[e] -> {y}[b l e]", "layer_norm", row="e")


def _attention() -> tuple[Op, ...]:
    return (
        _layer_norm("input_layernorm", "x", "normed"),
        einsum("query_key_value", "normed[b l e], *w[c h d e] + *bias[c h d] -> made[c b l h d]"),
        pointwise("rearrange_qkv", "made[c b l h d] -> qkv[c b l h d]", "copy"),
        split("split", "qkv[c b l h d] -> q[b l h d], k[b l h d], v[b l h d]"),
        view("keys", "k[b l h d] -> keys[b t h d]"),
        view("values", "v[b l h d] -> values[b t h d]"),
        _flash(),
        pointwise("rearrange_ctx", "context[b l h d] -> merged[b l h d]", "copy"),
        einsum("dense", "merged[b l h d], *w[h d e] + *bias[e] -> attended[b l e]"),
        pointwise("add", "x[b l e], attended[b l e] -> middle[b l e]", "add"),
    )


def _flash() -> Op:
    ops = (
        einsum("scores", "q[b l h d], keys[b t h d] -> scores[b h l t]", pairs="l t"),
        softmax("softmax", "scores[b h l t] -> weights[b h l t]", row="t"),
        einsum("attend", "weights[b h l t], values[b t h d] -> context[b l h d]", pairs="l t"),
    )
    border = "q[b l h d], keys[b t h d], values[b t h d]"
    return fused(
        "core_attention_flash",
        f"{border} -> context[b l h d]",
        ops,
        saves=f"{border}, context[b l h d], logsumexp[b l h]:statistic",
        recompute=("scores", "softmax"),
    )


def _mlp() -> tuple[Op, ...]:
    """Declare the gated perceptron; its activation runs unfused, so every part is written."""
    drop_add = (
        dropout("dropout", "narrow[b l e] -> dropped[b l e]"),
        pointwise("add", "middle[b l e], dropped[b l e] -> y[b l e]", "add"),
    )
    return (
        _layer_norm("post_attention_layernorm", "middle", "normed_again"),
        einsum("dense_h_to_4h", "normed_again[b l e], *w[g f e] -> wide[g b l f]"),
        pointwise("bias_glue.bias", "wide[g b l f], *bias[g f] -> biased[g b l f]", "add"),
        split("bias_glue.split", "biased[g b l f] -> gate[b l f], up[b l f]"),
        pointwise("bias_glue.silu", "gate[b l f] -> open[b l f]", "silu"),
        pointwise("bias_glue.gate", "open[b l f], up[b l f] -> gated[b l f]", "mul"),
        einsum("dense_4h_to_h", "gated[b l f], *w[e f] + *bias[e] -> narrow[b l e]"),
        fused(
            "drop_add_fusion",
            "narrow[b l e], middle[b l e] -> y[b l e]",
            drop_add,
            saves="dropped.mask[b l e]:mask",
        ),
    )


def _head() -> tuple[Op, ...]:
    return (
        _layer_norm("final_layernorm", "y", "normed"),
        einsum("logits", "normed[b l e], *@token[v e] -> logits[b l v]"),
        cross_entropy("loss", "logits[b l v], !targets[b l]:index -> loss[b l]", row="v"),
    )
