"""Attention within windows: every window of positions is a sequence of its own.

Axes: b sequences, r, l and t positions; u_w windows of all sequences, r_w, l_w and t_w positions of
one. Their sizes agree: b r = u_w r_w.
"""

from collections.abc import Iterable

from symbolic_cost.ops.declare import Op, Operand, axes, scope, view
from symbolic_cost.ops.part import retitled

AXES = axes("u_w batch routed, r_w token residual, l_w token query, t_w key-token")

_NAMES = {"b": "u_w", "r": "r_w", "l": "l_w", "t": "t_w"}


def inside(ops: Iterable[Op]) -> tuple[Op, ...]:
    """Return ops of positions as ops of the positions of a window, shared tensors apart."""

    def own(operand: Operand) -> Operand:
        shared = operand.tensor.startswith("@")
        return operand.renamed(f"@window_{operand.tensor[1:]}") if shared else operand

    return tuple(op.mapped(own) for op in retitled(ops, _NAMES))


def within(ops: Iterable[Op]) -> tuple[Op, ...]:
    """Declare a layer from x[b r e] to y[b r e] on every window alone."""
    return (
        view("windows", "x[b r e] -> parts[u_w r_w e]"),
        *scope("window", inside(ops), x="parts", y="done"),
        view("whole", "done[u_w r_w e] -> y[b r e]"),
    )
