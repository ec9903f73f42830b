"""Weights: their bytes, the sums of their gradients over ranks, and the gathering of shards."""

from __future__ import annotations

from collections.abc import Iterable

from symbolic_cost.ledger import Phase, Quantity
from symbolic_cost.ops.book import Book
from symbolic_cost.ops.flow import Flow
from symbolic_cost.ops.moves import Move, moves
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.pattern import Operand
from symbolic_cost.ops.placement import Partial, Replicate, Shard

_FLAT = Shard("flat")
"""A weight kept in shards is cut as one flat array, whatever its axes."""


def tied_sums(flows: Iterable[Flow]) -> dict[str, set[str]]:
    """Return the mesh axes over which the gradients of tied weights are sums, by tensor.

    The uses of a weight add their gradients on each rank, so that one sum over ranks serves all.
    """
    found: dict[str, set[str]] = {}
    for flow in flows:
        for op in flow.ops:
            for weight in op.weights:
                if _is_tied(weight):
                    found.setdefault(weight.tensor, set()).update(flow.left_partial(op, weight))
    return found


def book_weights(book: Book, op: Op, flow: Flow, tied: dict[str, set[str]]) -> None:
    """Book the weights of an op; `tied` holds the tied ones not booked yet."""
    for weight in op.weights:
        _gather_before_use(book, op, weight)
        if _is_tied(weight) and weight.tensor not in tied:
            continue
        once = book.unrepeated() if _is_tied(weight) else book
        waiting = tied.pop(weight.tensor, None) or flow.left_partial(op, weight)
        _reduce_gradient(once, op, weight, waiting)
        _gather_updated(once, op, weight)
        once.elements(op, Quantity.PARAMETER, weight)
        once.bytes(op, Phase.STATE, Quantity.WEIGHT, weight)
        once.bytes(op, Phase.STATE, Quantity.WEIGHT_GRADIENT, weight.gradient())


def _is_tied(weight: Operand) -> bool:
    return weight.tensor.startswith("@")


def _reduce_gradient(book: Book, op: Op, weight: Operand, waiting: set[str]) -> None:
    """Book the sum of a gradient: scattered over ranks that keep shards, else to all of them.

    Where only a shard of the gradient is kept, every microbatch adds to it; the other ranks add up
    once per step, and only what those have left. For example over a grid that keeps shards and dp
    ranks that do not, a gradient W is scattered every microbatch, and W/m2 summed once.
    """
    shards = {mesh for meshes in book.placement.stored.values() for mesh in meshes}
    kept = book.placement.stored_over("weight_gradient", weight.axes)
    elements = book.counter.elements(weight.axes)
    each = [mesh for mesh in book.placement.degrees if mesh in waiting and mesh in kept]
    once = [mesh for mesh in book.placement.degrees if mesh in waiting and mesh not in kept]
    for meshes, left in ((each, elements), (once, elements / book.placement.degree(each))):
        have = {mesh: Partial() for mesh in meshes}
        need = {mesh: _FLAT if mesh in shards else Replicate() for mesh in meshes}
        for move in moves(have, need, left, book.placement):
            gradient, per_step = weight.gradient(), meshes is once
            book.move(op, Phase.BACKWARD_WEIGHT, move, gradient, per_step=per_step)


def _gather_before_use(book: Book, op: Op, weight: Operand) -> None:
    """Book the view of a weight from how it is kept to how it is used, before each such pass."""
    kept = book.placement.stored_over("weight", weight.axes)
    readers = {
        kernel.phase
        for kernel in op.kernels()
        if weight.tensor in {operand.tensor for operand in kernel.reads}
    }
    for phase in (Phase.FORWARD, Phase.BACKWARD_INPUT):
        for move in _whole(book, weight, kept) if phase in readers else ():
            book.move(op, phase, move, weight)


def _gather_updated(book: Book, op: Op, weight: Operand) -> None:
    """Book the view of a weight from how it is updated to how it is kept."""
    kept = book.placement.stored_over("weight", weight.axes)
    states = book.placement.stored_over("optimizer", weight.axes)
    updated = tuple(mesh for mesh in states if mesh not in kept)
    for move in _whole(book, weight, updated):
        book.move(op, Phase.STEP, move, weight, per_step=True)


def _whole(book: Book, weight: Operand, meshes: tuple[str, ...]) -> tuple[Move, ...]:
    """Return what makes a weight whole that ranks hold in shards."""
    shard = book.counter.elements(weight.axes) / book.placement.degree(meshes)
    have, need = dict.fromkeys(meshes, _FLAT), dict.fromkeys(meshes, Replicate())
    return moves(have, need, shard, book.placement)
