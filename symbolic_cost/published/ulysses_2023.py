"""DeepSpeed Ulysses: what its all-to-alls move, beside Megatron's sequence parallelism.

Attention is declared with key/value heads; the all-to-alls follow from its placement.

Source: jacobs-2023, section 3.2; the log of pycomm-prefill for bytes.
"""

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any

from sympy import Expr, Integer, expand

from symbolic_cost.conventions.presets import MODEL_FLOP
from symbolic_cost.ledger import CostTable, Phase, Quantity
from symbolic_cost.models.decoders.gpt import GPT
from symbolic_cost.numeric.binding import value
from symbolic_cost.ops.declare import Model, Part, einsum, view
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.placement import Placement
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.published.contract import Comparison, compared, printed_data
from symbolic_cost.published.inputs import Count, Inputs, indivisible
from symbolic_cost.symbols import e, h, k, l, s1
from symbolic_cost.units import SI

PUBLISHED_INPUTS: Mapping[str, Any] = printed_data("inputs.toml")["ulysses_2023"]
"""Sizes of the prefill log."""


class Run(Inputs):
    """One attention: width e, heads h, key/value heads k (h unless given), beta bytes."""

    l: Count
    e: Count
    h: Count
    s1: Count
    k: Count | None = None
    beta: Count = 2

    def contradictions(self) -> list[str]:
        """Say which inputs do not go together."""
        heads = self.k or self.h
        return [
            *indivisible("l", self.l, "s1", self.s1),
            *indivisible("e", self.e, "h", self.h),
            *indivisible("h", self.h, "k", heads),
            *indivisible("key/value heads", heads, "s1", self.s1),
        ]


EXCHANGE = Placement({"sp": s1}, {"r": ("sp",), "g": ("sp",)})
"""Tokens in shards between the exchanges of an attention, heads inside."""


def exchanged_attention() -> Model:
    """Declare one attention; axes r tokens and k, n heads whole, l, t tokens and g heads used."""
    sizes = {"r": l, "l": l, "t": l, "e": e, "k": k, "g": k, "n": h / k, "d": e / h}
    ops = (
        einsum("q", "x[r e], *w[e k n d] -> q[k n r d]"),
        einsum("k", "x[r e], *w[e k d] -> k[k r d]"),
        einsum("v", "x[r e], *w[e k d] -> v[k r d]"),
        view("exchange_q", "q[k n r d] -> queries[g n l d]"),
        view("exchange_k", "k[k r d] -> keys[g t d]"),
        view("exchange_v", "v[k r d] -> values[g t d]"),
        einsum("scores", "queries[g n l d], keys[g t d] -> scores[g n l t]"),
        einsum("context", "scores[g n l t], values[g t d] -> context[g n l d]"),
        view("exchange_context", "context[g n l d] -> shards[k n r d]"),
        einsum("output", "shards[k n r d], *w[k n d e] -> y[r e]"),
    )
    return Model("ulysses", (Part("attention", ops),), sizes, source="jacobs-2023")


@cache
def _exchanges() -> CostTable:
    return cost(exchanged_attention(), MODEL_FLOP, EXCHANGE)


@cache
def _megatron() -> CostTable:
    model = GPT(b=1).model()
    return cost(model, MODEL_FLOP, parse_strategy("tp,sp").placement(model))


def aggregate(*tensors: str) -> Expr:
    """Return the elements of exchanged tensors (q, k, v, context), all ranks together [element]."""
    chosen = _exchanges().select(where=lambda row: row.tensor in tensors)
    return expand(s1 * _messages(chosen))


def per_link() -> Expr:
    """Return the elements that one link carries in forward, by the paper's count [element]."""
    return expand(aggregate("q", "k", "v", "context") / s1)


def megatron_per_link() -> Expr:
    """Return the same for Megatron's gathers and scatters of one block [element]."""
    return expand(_messages(_megatron().select(path="block")))


def sent() -> Expr:
    """Return the elements that one rank sends in forward [element]."""
    total = _exchanges().total(Quantity.COMMUNICATION, phase=Phase.FORWARD)
    return total / MODEL_FLOP.sizes.value


def evaluate(inputs: Mapping[str, Any]) -> Mapping[str, float]:
    """Compute elements per layer and forward pass, and bytes sent by one rank.

    Args:
        inputs: l, e, h, s1; optionally k, beta.

    Returns:
        "aggregate_qkv", "aggregate_out", "per_link", "megatron_per_link" [element];
        "buffer_bytes" of one all-to-all of q and "sent_bytes" of all four [byte].
    """
    run = Run.accepted(inputs)
    numbers = {k: Integer(run.h)} | run.bound("l e h s1 k")
    values = {
        "aggregate_qkv": aggregate("q", "k", "v"),
        "aggregate_out": aggregate("context"),
        "per_link": per_link(),
        "megatron_per_link": megatron_per_link(),
        "buffer_bytes": run.beta * aggregate("q") / s1,
        "sent_bytes": run.beta * sent(),
    }
    return {name: float(value(form.xreplace(numbers))) for name, form in values.items()}


def reproduce() -> list[Comparison]:
    """Compare the closed forms of section 3.2, as expressions, and the buffer of the log."""
    full = {k: h}
    forms = {
        "aggregate message of q, k and v": (3 * l * e, aggregate("q", "k", "v")),
        "aggregate message of the result": (l * e, aggregate("context")),
        "message per link": (4 * l * e / s1, per_link()),
        "message per link, Megatron": (4 * l * e, megatron_per_link()),
    }
    comparisons = [
        Comparison(
            name,
            str(printed),
            str(form.xreplace(full)),
            bool(expand(printed - form.xreplace(full)) == 0),
        )
        for name, (printed, form) in forms.items()
    ]
    buffer = Fraction(evaluate(PUBLISHED_INPUTS)["buffer_bytes"]) / SI["M"]
    return [*comparisons, compared("buffer of one all-to-all [MB]", "122.88", buffer)]


def _messages(table: CostTable) -> Expr:
    """Return the elements of all forward messages."""
    rows = table.select(Quantity.COMMUNICATION, phase=Phase.FORWARD)
    moves = [row.collective for row in rows if row.collective is not None]
    return sum((move.message for move in moves), Integer(0)) / MODEL_FLOP.sizes.value
