"""Algorithms that move data in steps: what one collective is made of, and its buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from sympy import Expr, Integer, Mul

from symbolic_cost.axes import Glossary, Role
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.ledger import Collective, CollectiveKind, Phase, Row
from symbolic_cost.parallel.rules import SUMMED
from symbolic_cost.parallel.workspace import greatest, workspace_row
from symbolic_cost.symbols import Active

Step = Callable[[Row, Collective, Conventions, Expr, Glossary], Row]
"""Turns a row with its collective into steps, given panels and the roles of the axes."""

_PANEL_KINDS = {
    CollectiveKind.ALL_GATHER: CollectiveKind.BROADCAST,
    CollectiveKind.REDUCE_SCATTER: CollectiveKind.REDUCE,
}

_BUFFERS = {"ring": 2, "m1": 1, "m2": 1, "m3": 1}  # a block of keys and one of values; else one


def send_round(
    row: Row, move: Collective, conventions: Conventions, _: Expr, known: Glossary
) -> Row:
    """Send blocks of keys and values, or of their gradients, to the next rank of the ring.

    A gradient starts at the rank behind its own and collects the terms of all on its way home.
    """
    gathers_keys = move.axis in known and known[move.axis].role is Role.KEY_TOKEN
    if not gathers_keys or move.kind not in _PANEL_KINDS or move.mesh_axis != "ring":
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


def broadcast_panels(
    row: Row, move: Collective, _: Conventions, panels: Expr, known: Glossary
) -> Row:
    """Broadcast panels of inputs along m1 and of weights along m2, reduce panels of gradients."""
    summed = move.axis in known and known[move.axis].copy == SUMMED
    is_input = move.mesh_axis == "m1" and summed
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


def step_buffers(rows: Iterable[Row], known: Glossary) -> Iterator[Row]:
    """Yield the buffers of what arrives for one step or product [byte], one per mesh axis."""
    arriving: dict[str, list[Expr]] = {}
    for row in rows:
        move = row.collective
        if move is not None and row.phase is Phase.FORWARD and _is_buffered(move, known):
            arriving.setdefault(move.mesh_axis, []).append(move.message)
    for mesh, times in _BUFFERS.items():
        if mesh in arriving:
            size = Mul(times, greatest(arriving[mesh]))
            yield workspace_row(f"{mesh}_buffers", Phase.BACKWARD_INPUT, size)


def _is_buffered(move: Collective, known: Glossary) -> bool:
    """Tell whether a message is dropped after use: a step's, or the plane and weights of 3D."""
    if move.kind is CollectiveKind.ALL_GATHER:
        plane = move.axis in known and known[move.axis].copy == "plane"
        return plane or (move.mesh_axis == "m3" and move.axis == "flat")
    return move.kind in {CollectiveKind.BROADCAST, CollectiveKind.SEND_RECEIVE}
