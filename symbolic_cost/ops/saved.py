"""Saved activations: what each op keeps for backward, by tensor, less what is recomputed."""

from __future__ import annotations

from symbolic_cost.ledger import Phase, Quantity
from symbolic_cost.ops.book import Book
from symbolic_cost.ops.flow import Flow
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.pattern import Operand
from symbolic_cost.ops.view import View


def book_saved(book: Book, flow: Flow) -> None:
    """Book every tensor that backward needs, once.

    A tensor kept in shards is gathered again in backward. A recomputed region keeps what comes
    into it and nothing that is made inside.
    """
    region_of = {operand.tensor: book.region(op) for op in book.part.ops for operand in op.outputs}
    kept: set[str] = set()
    for op in book.part.ops:
        region = book.region(op)
        for operand in _needed(op, recomputed=region is not None):
            stored = flow.kept_as.get(operand.tensor, operand)
            if stored.tensor in kept:
                continue
            if region is not None and region_of.get(stored.tensor) == region:
                continue
            kept.add(stored.tensor)
            book.bytes(op, Phase.FORWARD, Quantity.SAVED, stored)
            if region is None:
                for move in flow.gathers.get(operand.tensor, ()):
                    book.move(op, Phase.BACKWARD_WEIGHT, move, stored)


def _needed(op: Op, *, recomputed: bool) -> tuple[Operand, ...]:
    """Return what an op keeps; if it runs again, what it takes."""
    if not recomputed:
        return op.saves()
    return () if isinstance(op, View) else op.inputs
