"""Algorithms that move data in steps: what one collective is made of, and its buffers."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from sympy import Expr

from symbolic_cost.algebra import mul
from symbolic_cost.axes import Glossary, Role
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.ledger import Collective, CollectiveKind, Origin, Phase, Quantity, Row
from symbolic_cost.parallel.amounts import amount, greatest
from symbolic_cost.parallel.rules import SUMMED
from symbolic_cost.parallel.workspace import workspace_row
from symbolic_cost.records import replace
from symbolic_cost.symbols import Active

FLAT = "flat"
"""A weight kept in shards is cut as one flat array."""

Step = Callable[[Row, Collective, Conventions, Expr, Glossary], Row]
"""Turns a row with its collective into steps, given panels and the roles of the axes."""

_PANEL_KINDS = {
    CollectiveKind.ALL_GATHER: CollectiveKind.BROADCAST,
    CollectiveKind.REDUCE_SCATTER: CollectiveKind.REDUCE,
}

BUFFERS = {"ring": 2, "m1": 1, "m2": 1, "m3": 1}  # a block of keys and one of values; else one


def send_round(
    row: Row, move: Collective, conventions: Conventions, _: Expr, known: Glossary
) -> Row:
    """Send blocks of keys and values, or of their gradients, to the next rank of the ring.

    A gradient starts at the rank behind its own and collects the terms of all on its way home.
    """
    gathers_keys = move.axis in known and known[move.axis].role is Role.KEY_TOKEN
    if not gathers_keys or move.kind not in _PANEL_KINDS or "ring" not in move.meshes:
        return row
    block, times = move.message / move.ranks, move.ranks - 1
    charged = conventions.charge.of(CollectiveKind.SEND_RECEIVE, block, move.ranks)
    return replace(
        row,
        expr=mul(times, charged),
        source="liu-2023",
        collective=replace(
            move, kind=CollectiveKind.SEND_RECEIVE, message=block, calls=mul(move.calls, times)
        ),
    )


def broadcast_panels(
    row: Row, move: Collective, _: Conventions, panels: Expr, known: Glossary
) -> Row:
    """Broadcast panels of inputs along m1 and of weights along m2, reduce panels of gradients."""
    summed = move.axis in known and known[move.axis].copy == SUMMED
    is_input = "m1" in move.meshes and summed
    is_weight = "m2" in move.meshes and move.axis == FLAT
    if move.kind not in _PANEL_KINDS or not (is_input or is_weight):
        return row
    return replace(
        row,
        source="xu-2021",
        collective=replace(
            move,
            kind=_PANEL_KINDS[move.kind],
            message=move.message / panels,
            calls=mul(move.calls, panels),
        ),
    )


def apart(
    row: Row, grid: tuple[str, ...], degrees: Mapping[str, Expr], conventions: Conventions
) -> tuple[Row, ...]:
    """Return a move of weights over a grid and other ranks as two, since a grid moves in steps.

    For example a weight W that is kept in shards over m2 and dp is gathered over dp, W/m2 on each
    rank, and W is then sent along m2; its gradient is added up along m2 first.
    """
    move = row.collective
    inside = () if move is None else tuple(mesh for mesh in move.meshes if mesh in grid)
    if move is None or move.axis != FLAT or inside in {(), move.meshes}:
        return (row,)
    outside = tuple(mesh for mesh in move.meshes if mesh not in grid)
    ranks = mul(*(degrees[mesh] for mesh in inside))
    among = replace(move, meshes=inside, ranks=ranks)
    others = replace(move, meshes=outside, ranks=move.ranks / ranks, message=move.message / ranks)
    if row.quantity is not Quantity.COMMUNICATION:  # the additions of both
        return (row,)
    return tuple(
        replace(row, collective=each, expr=conventions.charge(each.kind, each.message, each.ranks))
        for each in (among, others)
    )


def step_buffers(rows: Iterable[Row], known: Glossary) -> Iterator[Row]:
    """Yield the buffers of what arrives for one step or product [byte], one per mesh axis."""
    arriving: dict[tuple[str, Expr], list[Expr]] = {}
    for row in rows:
        move = row.collective
        if move is None or row.phase is not Phase.FORWARD:
            continue
        is_step = row.quantity is Quantity.COMMUNICATION and row.origin is Origin.OP
        if is_step and _is_buffered(move, known):
            for mesh in set(move.meshes) & set(BUFFERS):
                arriving.setdefault((mesh, move.ranks), []).append(move.message)
    for mesh, times in BUFFERS.items():
        sizes = [
            mul(Active(ranks), greatest(map(amount, messages)))
            for (name, ranks), messages in arriving.items()
            if name == mesh
        ]
        if sizes:
            size = mul(times, greatest(map(amount, sizes)))
            yield workspace_row(f"{mesh}_buffers", Phase.BACKWARD_INPUT, size)


def _is_buffered(move: Collective, known: Glossary) -> bool:
    """Tell whether a message is dropped after use: a step's, or the plane and weights of 3D."""
    if move.kind is CollectiveKind.ALL_GATHER:
        plane = move.axis in known and known[move.axis].copy == "plane"
        return plane or ("m3" in move.meshes and move.axis == FLAT)
    return move.kind in {CollectiveKind.BROADCAST, CollectiveKind.SEND_RECEIVE}
