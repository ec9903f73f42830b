"""The prefill step, declared, and what follows: attention between two exchanges, a perceptron.

The attention is that of ulysses-2023 with a key/value head per head. Axes of the perceptron: r
tokens in shards, l tokens of one data-parallel group, e embedding, f width.
"""

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from sympy import Expr

from symbolic_cost import symbols
from symbolic_cost.conventions.answers import MULTIPLY_ACCUMULATE
from symbolic_cost.conventions.presets import MODEL_FLOP
from symbolic_cost.conventions.questions import ElementSizes
from symbolic_cost.ledger import CostTable, Phase, Quantity
from symbolic_cost.numeric.binding import value
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.graph import Model, fragment
from symbolic_cost.ops.placement import Placement
from symbolic_cost.ops.view import view
from symbolic_cost.published.ulysses_2023 import EXCHANGE, exchanged_attention
from symbolic_cost.published.ulysses_prefill.run import LOGS, Run

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

_TENSOR_DATA = Placement(
    {"tensor": symbols.m1, "data": symbols.dp},
    {"r": ("tensor", "data"), "l": ("data",), "f": ("tensor",)},
)


@cache
def attention() -> CostTable:
    """Derive every cost of the attention on one of `s1` ranks."""
    table = cost(exchanged_attention(), CONVENTIONS, EXCHANGE)
    return table.map(lambda expr: expr.xreplace({symbols.k: symbols.h}))


@cache
def perceptron(*, as_printed: bool = False) -> CostTable:
    """Derive every cost of the perceptron on one of `m1 dp` ranks; layers occur `n_layers` times.

    `as_printed` a multiply-accumulate is one FLOP, as the later log has it.
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


def flop(run: Run, paths: Iterable[str], *, as_printed: bool = False) -> Fraction:
    """Return the FLOP of ops of the attention or of the perceptron on one GPU."""
    tables = (attention(), perceptron(as_printed=as_printed))
    totals = (
        table.below(path).total(Quantity.FLOP, phase=Phase.FORWARD)
        for path in paths
        for table in tables
    )
    return sum((_number(run, total) for total in totals), Fraction(0))


def volumes(run: Run) -> dict[str, Any]:
    """Return true FLOP [FLOP] and what the collectives move [byte]."""
    exchanges = list(_moves(run, attention()).values())
    moves = _moves(run, perceptron())
    gather, reduction = moves["gather.gather"], moves["mlp.out"]
    message, mlp = exchanges[0].message, flop(run, ["mlp"])
    numbers: dict[str, Fraction | int] = {
        "mlp_flops_true_total": run.P * mlp,
        "mlp_flops_true_per_gpu": mlp,
        "a2a_buffer_bytes_per_gpu": message,
        "a2a_calls": len(exchanges),
        "a2a_total_buffer_bytes_per_gpu": len(exchanges) * message,
        "a2a_wire_bytes_sent_per_gpu": sum((move.wire for move in exchanges), Fraction(0)),
        "a2a_message_bytes_per_pair_per_call": message / run.P,
        "mlp_allgather_recv_bytes_per_gpu": gather.wire,
        "mlp_allgather_output_bytes": gather.message,
        "mlp_allreduce_calls": reduction.calls,
        "mlp_allreduce_buffer_bytes": reduction.message,
        "mlp_allreduce_ring_wire_bytes_per_gpu_total": reduction.wire,
    }
    steps = {step.name: flop(run, step.flops) for step in LOGS["5e270bf"] if step.flops}
    return {"flops_per_gpu": {name: _exact(one) for name, one in steps.items()}} | {
        name: _exact(Fraction(number)) for name, number in numbers.items()
    }


class _Move(NamedTuple):
    """A collective: full message [byte], calls, and bytes sent by one GPU in all of them."""

    message: Fraction
    calls: int
    wire: Fraction


def _moves(run: Run, table: CostTable) -> dict[str, _Move]:
    return {
        row.path: _Move(
            _number(run, row.collective.message),
            int(_number(run, row.count)),
            _number(run, row.total),
        )
        for row in table.select(Quantity.COMMUNICATION, phase=Phase.FORWARD)
        if row.collective is not None
    }


def _number(run: Run, expr: Expr) -> Fraction:
    return Fraction(value(expr.xreplace(run.bindings)))


def _exact(number: Fraction) -> int | Fraction:
    return int(number) if number.denominator == 1 else number
