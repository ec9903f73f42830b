"""The prefill step, declared: attention between two exchanges, then a perceptron.

Axes of the attention: r tokens in shards, l query and t key tokens together, e embedding, h all
heads, g heads in shards, d head width. Axes of the perceptron: r tokens in shards, l tokens of
one data-parallel group, e embedding, f width.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from symbolic_cost import symbols
from symbolic_cost.conventions.answers import MULTIPLY_ACCUMULATE
from symbolic_cost.conventions.presets import MODEL_FLOP
from symbolic_cost.conventions.questions import ElementSizes
from symbolic_cost.ledger import CostTable
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.graph import Model, fragment
from symbolic_cost.ops.placement import Placement
from symbolic_cost.ops.view import view

CONVENTIONS = replace(
    MODEL_FLOP,
    name="ulysses-prefill",
    meaning="2 FLOP per multiply-accumulate of matrix products, ring bytes, one element size",
    source="pycomm-prefill",
    sizes=ElementSizes(value=symbols.s, weight=symbols.s, weight_gradient=symbols.s),
)
"""What a matrix product costs."""

AS_PRINTED = replace(
    CONVENTIONS, name="ulysses-prefill-as-printed", contraction=MULTIPLY_ACCUMULATE
)
"""The log of commit d7a62c8 counts the perceptron without the factor 2."""

_ULYSSES = Placement({"ulysses": symbols.s1}, {"r": ("ulysses",), "g": ("ulysses",)})
_TENSOR_DATA = Placement(
    {"tensor": symbols.m1, "data": symbols.dp},
    {"r": ("tensor", "data"), "l": ("data",), "f": ("tensor",)},
)


@cache
def attention() -> CostTable:
    """Derive every cost of the attention on one of `s1` ranks."""
    ops = (
        *(einsum(name, f"x[r e], *w[h e d] -> {name}[h r d]") for name in "qkv"),
        view("exchange_q", "q[h r d] -> queries[g l d]"),
        view("exchange_k", "k[h r d] -> keys[g t d]"),
        view("exchange_v", "v[h r d] -> values[g t d]"),
        einsum("scores", "queries[g l d], keys[g t d] -> scores[g l t]"),
        einsum("context", "scores[g l t], values[g t d] -> c[g l d]"),
        view("exchange_c", "c[g l d] -> context[h r d]"),
        einsum("output", "context[h r d], *w[h d e] -> output[r e]"),
    )
    sizes = dict.fromkeys(("r", "l", "t"), symbols.l) | dict.fromkeys("hg", symbols.h)
    sizes |= {"e": symbols.e, "d": symbols.e / symbols.h}
    model = Model("attention", (fragment("attention", ops),), sizes, source="pycomm-prefill")
    return cost(model, CONVENTIONS, _ULYSSES)


@cache
def perceptron(*, as_printed: bool = False) -> CostTable:
    """Derive every cost of the perceptron on one of `m1 dp` ranks; layers occur `n_layers` times.

    Args:
        as_printed: whether a multiply-accumulate is one FLOP, as the later log has it.
    """
    gather = (view("gather", "output[r e] -> x[l e]"),)
    layer = (
        einsum("inter", "x[l e], *w[e f] -> inter[l f]"),
        einsum("out", "inter[l f], *w[f e] -> y[l e]"),
    )
    sizes = dict.fromkeys("rl", symbols.l) | {"e": symbols.e, "f": symbols.f}
    parts = (fragment("gather", gather), fragment("mlp", layer, symbols.n_layers))
    model = Model("perceptron", parts, sizes, source="pycomm-prefill")
    return cost(model, AS_PRINTED if as_printed else CONVENTIONS, _TENSOR_DATA)
