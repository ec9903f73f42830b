"""Weights: their bytes, the sums of their gradients over ranks, and the gathering of shards."""

from __future__ import annotations

from symbolic_cost.ledger import CollectiveKind, Phase, Quantity
from symbolic_cost.ops.book import Book
from symbolic_cost.ops.moves import Move, moves
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.pattern import Operand
from symbolic_cost.ops.placement import Partial, Replicate, Shard

_FLAT = Shard("flat")
"""A weight kept in shards is cut as one flat array, whatever its axes."""


def book_weights(book: Book, op: Op, shared: set[str]) -> None:
    """Book the weights of an op; `shared` remembers the tied ones already booked."""
    for weight in op.weights:
        _reduce_gradient(book, op, weight)
        _gather_shards(book, op, weight)
        if weight.tensor in shared:
            continue
        if weight.tensor.startswith("@"):
            shared.add(weight.tensor)
        book.elements(op, Quantity.PARAMETER, weight)
        book.bytes(op, Phase.STATE, Quantity.WEIGHT, weight)
        book.bytes(op, Phase.STATE, Quantity.WEIGHT_GRADIENT, weight.gradient())


def _reduce_gradient(book: Book, op: Op, weight: Operand) -> None:
    """Book the sum of a gradient: scattered over ranks that keep shards, else to all of them."""
    shards = {mesh for meshes in book.placement.stored.values() for mesh in meshes}
    have = book.placement.states(weight.axes, op.summing_space(weight))
    need = {
        mesh: state if not isinstance(state, Partial) else _FLAT if mesh in shards else Replicate()
        for mesh, state in have.items()
    }
    elements = book.counter.elements(weight.axes)
    for move in moves(have, need, elements, book.placement):
        book.move(op, Phase.BACKWARD_WEIGHT, move, weight.gradient(), per_step=True)


def _gather_shards(book: Book, op: Op, weight: Operand) -> None:
    """Book the gathering of a weight: before each pass that reads it, or once it is updated."""
    elements = book.counter.elements(weight.axes)
    stored = book.placement.stored
    kept = stored.get("weight", ())
    updated = tuple(mesh for mesh in stored.get("optimizer", ()) if mesh not in kept)
    if kept:
        gather = Move(CollectiveKind.ALL_GATHER, kept, _FLAT.axis, elements)
        readers = {kernel.phase for kernel in op.kernels() if weight in kernel.reads}
        for phase in (Phase.FORWARD, Phase.BACKWARD_INPUT):
            if phase in readers:
                book.move(op, phase, gather, weight)
    if updated:
        gather = Move(CollectiveKind.ALL_GATHER, updated, _FLAT.axis, elements)
        book.move(op, Phase.STEP, gather, weight, per_step=True)
