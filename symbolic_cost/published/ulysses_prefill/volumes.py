"""FLOP and bytes on the wire of the prefill step, from the derived tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sympy import Expr

from symbolic_cost.ledger import CostTable, Phase, Quantity
from symbolic_cost.numeric.binding import value
from symbolic_cost.published.ulysses_prefill.declaration import attention, perceptron
from symbolic_cost.published.ulysses_prefill.log import LOGS
from symbolic_cost.published.ulysses_prefill.run import Run


def flop(run: Run, paths: Iterable[str], *, as_printed: bool = False) -> Fraction:
    """Return the FLOP of ops on one GPU.

    Args:
        run: the inputs.
        paths: of ops of the attention or of the perceptron.
        as_printed: whether the perceptron's multiply-accumulate is one FLOP.
    """
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
    message = exchanges[0].message
    mlp = flop(run, ["mlp"])
    return {
        "flops_per_gpu": {
            step.name: _exact(flop(run, step.flops)) for step in LOGS["5e270bf"] if step.flops
        },
        "mlp_flops_true_total": _exact(run.P * mlp),
        "mlp_flops_true_per_gpu": _exact(mlp),
        "a2a_buffer_bytes_per_gpu": _exact(message),
        "a2a_calls": len(exchanges),
        "a2a_total_buffer_bytes_per_gpu": _exact(len(exchanges) * message),
        "a2a_wire_bytes_sent_per_gpu": _exact(Fraction(sum(move.wire for move in exchanges))),
        "a2a_message_bytes_per_pair_per_call": _exact(message / run.P),
        "mlp_allgather_recv_bytes_per_gpu": _exact(gather.wire),
        "mlp_allgather_output_bytes": _exact(gather.message),
        "mlp_allreduce_calls": reduction.calls,
        "mlp_allreduce_buffer_bytes": _exact(reduction.message),
        "mlp_allreduce_ring_wire_bytes_per_gpu_total": _exact(reduction.wire),
    }


@dataclass(frozen=True, slots=True)
class _Move:
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
