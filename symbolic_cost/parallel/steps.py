"""Algorithms that move data in steps: what one collective is made of, and its buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from sympy import Expr, Integer, Mul

from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.ledger import Collective, CollectiveKind, Phase, Row
from symbolic_cost.parallel.axes import KEYS, whole
from symbolic_cost.parallel.workspace import greatest, workspace_row
from symbolic_cost.symbols import Active

Step = Callable[[Row, Collective, Conventions, Expr], Row]
"""Turns a row with its collective into steps, given the number of panels."""

_PANEL_KINDS = {
    CollectiveKind.ALL_GATHER: CollectiveKind.BROADCAST,
    CollectiveKind.REDUCE_SCATTER: CollectiveKind.REDUCE,
}

_BUFFERS = {"ring": 2, "m1": 1, "m2": 1, "m3": 1}  # a block of keys and one of values; else one


def send_round(row: Row, move: Collective, conventions: Conventions, _: Expr) -> Row:
    """Send blocks of keys and values, or of their gradients, to the next rank of the ring.

    A gradient starts at the rank behind its own and collects the terms of all on its way home.
    """
    if move.axis not in KEYS or move.kind not in _PANEL_KINDS or move.mesh_axis != "ring":
        return row
    block, times = move.message / move.ranks, move.ranks - 1
    charged = conventions.charge(CollectiveKind.SEND_RECEIVE, block, move.ranks)
    return replace(
        row,
        expr=Mul(times, charged.xreplace({Active(move.ranks): Integer(1)})),
        source="liu-2023",
        collective=replace(
            move, kind=CollectiveKind.SEND_RECEIVE, message=block, calls=Mul(move.calls, times)
        ),
    )


def broadcast_panels(row: Row, move: Collective, _: Conventions, panels: Expr) -> Row:
    """Broadcast panels of inputs along m1 and of weights along m2, reduce panels of gradients."""
    is_input = move.mesh_axis == "m1" and move.axis.endswith(whole(""))
    is_weight = move.mesh_axis == "m2" and move.axis == "flat"
    if move.kind not in _PANEL_KINDS or not (is_input or is_weight):
        return row
    return replace(
        row,
        source="xu-2021",
        collective=replace(
            move,
            kind=_PANEL_KINDS[move.kind],
            message=move.message / panels,
            calls=Mul(move.calls, panels),
        ),
    )


def step_buffers(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the buffers of what arrives for one step or product [byte], one per mesh axis."""
    arriving: dict[str, list[Expr]] = {}
    for row in rows:
        move = row.collective
        if move is not None and row.phase is Phase.FORWARD and _is_buffered(move):
            arriving.setdefault(move.mesh_axis, []).append(move.message)
    for mesh, times in _BUFFERS.items():
        if mesh in arriving:
            size = Mul(times, greatest(arriving[mesh]))
            yield workspace_row(f"{mesh}_buffers", Phase.BACKWARD_INPUT, size)


def _is_buffered(move: Collective) -> bool:
    """Tell whether a message is dropped after use: a step's, or the plane and weights of 3D."""
    if move.kind is CollectiveKind.ALL_GATHER:
        return move.axis == "b_plane" or (move.mesh_axis == "m3" and move.axis == "flat")
    return move.kind in {CollectiveKind.BROADCAST, CollectiveKind.SEND_RECEIVE}
