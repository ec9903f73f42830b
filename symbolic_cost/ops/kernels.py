"""What the kernels of an op compute and move in every pass, and the caches that it keeps."""

from __future__ import annotations

from symbolic_cost.conventions.questions import BackwardTraffic, Conventions, Reread
from symbolic_cost.ledger import BACKWARD, Phase, Quantity
from symbolic_cost.ops.book import Book
from symbolic_cost.ops.op import Kernel, Op
from symbolic_cost.ops.pattern import Operand

_MOVED = frozenset({Quantity.READ, Quantity.WRITE, Quantity.ACTIVATION_GRADIENT})


def book_kernels(book: Book, op: Op) -> None:
    """Book the FLOP and the traffic of every pass of an op."""
    kernels = op.kernels()
    for kernel in kernels:
        if kernel.phase is Phase.RECOMPUTE and not book.conventions.fused_recompute:
            continue
        _book_flop(book, op, kernel, kernel.phase)
        if kernel.phase is Phase.FORWARD:
            _book_traffic(book, op, kernel, Phase.FORWARD)
            if book.region(op) is not None:
                _book_flop(book, op, kernel, Phase.RECOMPUTE)
                _book_traffic(book, op, kernel, Phase.RECOMPUTE)
    if book.quantities.isdisjoint(_MOVED):
        return
    backward = [kernel for kernel in kernels if kernel.phase in BACKWARD]
    for kernel in _as_counted(book.conventions, op, backward):
        _book_traffic(book, op, kernel, kernel.phase)
    if backward:
        for operand in (*op.inputs, *op.outputs):
            if operand.needs_gradient:
                gradient = operand.gradient()
                book.bytes(op, Phase.BACKWARD_INPUT, Quantity.ACTIVATION_GRADIENT, gradient)


def book_caches(book: Book, op: Op) -> None:
    """Book the elements and the bytes that an op keeps for the next step of generation."""
    for operand in op.caches():
        book.elements(op, Quantity.CACHED, operand)
        book.bytes(op, Phase.STATE, Quantity.CACHE, operand)


def _as_counted(conventions: Conventions, op: Op, kernels: list[Kernel]) -> list[Kernel]:
    """Return backward passes with the reads and writes that the conventions charge."""
    reread = conventions.reread.get(op.kind, Reread.NEEDED)
    once = conventions.backward_traffic is BackwardTraffic.ONCE
    seen: set[Operand] = set()
    counted = []
    for kernel in kernels:
        reads, writes = kernel.reads, kernel.writes
        if reread is Reread.NONE:
            reads = tuple(operand for operand in reads if not operand.is_weight)
        if reread is Reread.ALL:
            reads += tuple(weight for weight in op.weights if weight not in reads)
        if once:
            reads = tuple(operand for operand in reads if operand not in seen)
            writes = tuple(operand for operand in writes if operand not in seen)
            seen.update(reads, writes)
        counted.append(Kernel(kernel.phase, reads, writes, kernel.work))
    return counted


def _book_flop(book: Book, op: Op, kernel: Kernel, phase: Phase) -> None:
    if op.kind in book.conventions.unseen:
        return
    for work in kernel.work:
        book.flop(op, phase, book.counter.flop(work, op.kind))


def _book_traffic(book: Book, op: Op, kernel: Kernel, phase: Phase) -> None:
    for operand in kernel.reads:
        book.bytes(op, phase, Quantity.READ, operand)
    for operand in kernel.writes:
        book.bytes(op, phase, Quantity.WRITE, operand)
