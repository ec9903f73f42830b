"""Named answers to the counting questions, shared by the presets."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from sympy import Expr, Integer, Lambda

from symbolic_cost.conventions.questions import Charge, ElementSizes, Elementwise, ElementwiseFlop
from symbolic_cost.extrema import Min
from symbolic_cost.lazy import Lazy
from symbolic_cost.reading import package_data
from symbolic_cost.symbols import W, l, message, n, p, t

# Answers: FLOP of a contraction of n terms.
MULTIPLY_ADD_EXACT = Lambda(n, 2 * n - 1)
MULTIPLY_ADD_PAIR = Lambda(n, 2 * n)
MULTIPLY_ACCUMULATE = Lambda(n, n)
SUM_EXACT = Lambda(n, n - 1)
SUM_ROUNDED = Lambda(n, n)
NOT_COUNTED = Lambda(n, Integer(0))

# Answers: pairs of the attention mask.
NO_PAIRS = Lambda((l, t), Integer(0))
"""Products of activations with activations are not counted."""

CAUSAL = Lambda((l, t), l * (2 * t - l + 1) / 2)
"""Query i of l sees the keys up to its own position, counted from the end of t keys."""

_GROWING = Min(l, W - t + l)
CAUSAL_WINDOW = Lambda((l, t, W), _GROWING * (2 * (t - l) + _GROWING + 1) / 2 + (l - _GROWING) * W)
"""Query i of l sees the last W keys up to its own position; the first of them see fewer."""

# Answers: additions of a reduction over p ranks, per element of the full message.
ADDITIONS_OF_RING = Lambda(p, (p - 1) / p)
NO_ADDITIONS = Lambda(p, Integer(0))

# Answers: bytes of a collective.
WHOLE_MESSAGE = Charge("whole message", Lambda((message, p), message))
RING = Charge(
    "ring, bytes sent by one rank",
    Lambda((message, p), message * (p - 1) / p),
    {
        "all-reduce": Lambda((message, p), 2 * message * (p - 1) / p),
        "send-receive": Lambda((message, p), message),
    },
)


def elementwise_flop(forward: Expr | int, backward: Expr | int) -> ElementwiseFlop:
    """Answer for rows of n elements, as expressions in n."""
    return ElementwiseFlop(Lambda(n, forward), Lambda(n, backward))


def _declared(flop: Sequence[int], **reason: str) -> ElementwiseFlop:
    """Return the answer of a record of operations.toml."""
    forward, constant, backward, other = flop
    return replace(elementwise_flop(forward * n + constant, backward * n + other), **reason)


_RECORDS = package_data("conventions/operations.toml")
OPERATIONS = Elementwise(Lazy({name: partial(_declared, **one) for name, one in _RECORDS.items()}))
"""One per addition, multiplication, comparison or transcendental function."""

FREE = elementwise_flop(0, 0)
"""Ops that a tool does not see, or a paper neglects."""

MATMUL_ALONE = Elementwise({}, default=FREE)
"""Elementwise ops are left out of the count."""

TABLES = Elementwise(
    {
        "softmax": elementwise_flop(3 * n - 1, 4 * n - 1),
        "layer_norm": elementwise_flop(9 * n, 13 * n - 4),
        "activation": elementwise_flop(n, n),
        "dropout": elementwise_flop(n, n),
    }
)
"""Softmax: exp, sum, divide; an activation function is one operation."""

MIXED = ElementSizes(value=Integer(2))
"""Two-byte values, weights and gradients, one-byte masks, four-byte statistics."""
