"""The derivation: ops, placement and conventions in, every cost out."""

from __future__ import annotations

from symbolic_cost.conventions.questions import BackwardTraffic, Conventions, Reread
from symbolic_cost.errors import InputError, PlacementError, unknown
from symbolic_cost.ledger import BACKWARD, CostTable, Phase, Quantity, Row
from symbolic_cost.ops.book import Book
from symbolic_cost.ops.counting import Counter
from symbolic_cost.ops.flow import Flow
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.op import Kernel, Op
from symbolic_cost.ops.pattern import Operand
from symbolic_cost.ops.placement import WHOLE, Placement
from symbolic_cost.ops.recompute import KEEP_ALL, Recompute
from symbolic_cost.ops.saved import book_saved
from symbolic_cost.ops.weights import book_weights, tied_weights


def cost(
    model: Model,
    conventions: Conventions,
    placement: Placement = WHOLE,
    recompute: Recompute = KEEP_ALL,
) -> CostTable:
    """Derive every cost of one rank.

    Args:
        model: parts and sizes.
        conventions: answers to the counting questions.
        placement: which axes are split; one rank unless given.
        recompute: what backward computes again.

    Returns:
        Rows per op: FLOP, bytes read and written per phase, parameters [element], weights and
        their gradients [byte], activation gradients, saved activations, communication [byte].

    Raises:
        PlacementError: the placement and the model do not go together.
        ConventionError: the conventions do not answer for an op.
        InputError: the recompute policy matches no op.
    """
    counter = Counter(model.sizes, placement, conventions, model.padded, model.means)
    _check(model, placement, counter)
    _check_regions(model, recompute)
    flows = [Flow(Book(part, counter, placement, conventions, recompute)) for part in model.parts]
    for flow in flows:
        flow.run()
    tied = tied_weights(flows)
    rows: list[Row] = []
    for flow in flows:
        book = flow.book
        for op in flow.ops:
            _book_kernels(book, op)
            book_weights(book, op, flow, tied)
            _book_caches(book, op)
        book_saved(book, flow)
        rows += book.rows
    return CostTable(tuple(rows), conventions, tuple(counter.splits.values()), model.name)


def _check(model: Model, placement: Placement, counter: Counter) -> None:
    """Refuse a placement that does not fit, with every reason."""
    names = model.axis_names
    problems = [unknown("axis", axis, names) for axis in placement.axes if axis not in names]
    for part in model.parts:
        for op in part.ops:
            where = f"{part.path}.{op.path}"
            problems += [f"{where}: {text}" for text in op.misplaced(placement)]
            try:
                for space in op.index_spaces:
                    for mesh in placement.degrees:
                        placement.split_axis(mesh, space, where)
                for axis in op.axes:
                    counter.local(axis, where)
            except InputError as error:
                problems += error.problems
    if problems:
        raise PlacementError(dict.fromkeys(problems))


def _check_regions(model: Model, recompute: Recompute) -> None:
    """Refuse a policy that would change nothing."""
    if recompute.again and not any(recompute.regions(model).values()):
        raise InputError(
            f"recompute policy {recompute.name!r}: model {model.name!r} has no "
            f"{recompute.again.value} that could run again ({recompute.meaning}); "
            "recompute none is accepted"
        )


def _book_kernels(book: Book, op: Op) -> None:
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
    backward = [kernel for kernel in kernels if kernel.phase in BACKWARD]
    for kernel in _as_counted(book.conventions, op, backward):
        _book_traffic(book, op, kernel, kernel.phase)
    if backward:
        for operand in (*op.inputs, *op.outputs):
            if operand.needs_gradient:
                gradient = operand.gradient()
                book.bytes(op, Phase.BACKWARD_INPUT, Quantity.ACTIVATION_GRADIENT, gradient)


def _book_caches(book: Book, op: Op) -> None:
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
