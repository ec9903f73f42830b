"""What the kernels of an op compute and move in every pass, and what it keeps.

Caches are kept from step to step; saved activations for backward, by tensor, less what is
recomputed.
"""

from __future__ import annotations

from collections.abc import Sequence

from symbolic_cost.conventions.questions import BackwardTraffic, Conventions, Reread, Role
from symbolic_cost.ledger import BACKWARD, Phase, Quantity
from symbolic_cost.ops.book import Book
from symbolic_cost.ops.einsum import Einsum
from symbolic_cost.ops.elementwise import BETWEEN, Elementwise
from symbolic_cost.ops.flow import Flow
from symbolic_cost.ops.op import Kernel, Op, Use
from symbolic_cost.ops.part import Part
from symbolic_cost.ops.pattern import Operand
from symbolic_cost.records import replace

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


def _handed_inside(part: Part, conventions: Conventions) -> set[str]:
    """Return the tensors that one op of a kernel hands to others of it and to nobody else.

    An activation and the product with its gate, as one kernel, keep what comes in, from which
    backward makes the activation anew. One that keeps its result in place of what comes in, as a
    sigmoid does, has nothing to make it of: that is kept, of the same size. What an op that keeps
    its inputs makes on the way, as relu(x) of relu(x)^2, is made anew as well.
    """
    inside: set[str] = set()
    for names in conventions.joined:
        scopes: dict[str, list[Op]] = {}
        for op in part.ops:
            scope, _, name = op.path.rpartition(".")
            if name in names:
                scopes.setdefault(scope, []).append(op)
        for ops in scopes.values():
            results = ({*op.outputs}.difference(_saved(op, conventions)) for op in ops)
            inside |= _handed(part, ops, {one.tensor for own in results for one in own})
            again = (op for op in ops if {*op.inputs} <= {*_saved(op, conventions)})
            inside |= {f"{one.tensor}{BETWEEN}" for op in again for one in op.outputs}
    for ends in conventions.remade:
        own = [op for op in part.ops if op.path.endswith(ends)]
        inside |= _handed(part, own, {one.tensor for op in own for one in op.outputs})
    return inside


def _handed(part: Part, ops: Sequence[Op], made: set[str]) -> set[str]:
    """Return those of some tensors that ops take, and no others."""
    taken = {one.tensor for op in ops for one in op.inputs}
    others = {one.tensor for op in part.ops if op not in ops for one in op.inputs}
    return (made & taken) - others


def _saved(op: Op, conventions: Conventions) -> tuple[Operand, ...]:
    """Return what an op keeps; an absorbed one that scales rows keeps their factors alone.

    Expert rows y = a W that are weighed as w y are the products of the rows w a.
    """
    saved = op.counted_as(conventions.kept_as).saves()
    if not op.path.endswith(conventions.absorbed):
        return saved
    wide = max((len(one.axes) for one in op.outputs), default=0)
    return tuple(one for one in saved if len(one.axes) < wide) or saved


def book_saved(book: Book, flow: Flow) -> None:
    """Book every tensor that backward needs, once.

    A tensor kept in shards is gathered again in backward. A recomputed region keeps what comes
    into it and nothing that is made inside, nor do others where the policy drops it; a tensor
    shared by the whole model ("@") is kept where it is made. What no repetition hands on to the
    next is kept once: the result of an encoder, by all blocks of its decoder. What another part
    keeps is not kept again.
    """
    made_in = {operand.tensor: book.region(op) for op in book.part.ops for operand in op.outputs}
    shared = taken_by_all(book.part)
    booked: set[str] = _handed_inside(book.part, book.conventions)
    whole: set[str] = set()
    for op in book.part.ops:
        region = book.region(op)
        saved = _saved(op, book.conventions)
        needed = (*saved, *_uncast(book, op)) if region is None else op.inputs
        narrow = region is None and _is_narrow(op, book.conventions)
        for operand in needed:
            stored = flow.kept_as.get(operand.tensor, operand)
            region_of = made_in.get(stored.tensor)
            if region is not None and (region_of == region or stored.tensor.startswith("@")):
                continue
            once = stored.tensor in shared and not narrow
            if narrow:
                stored = _factor(stored)
            elsewhere = stored.tensor in book.part.saved_before
            if (
                stored.tensor not in booked
                and not elsewhere
                and not book.recompute.drops(region_of)
            ):
                booked.add(stored.tensor)
                own = book.unrepeated() if once else book
                own.bytes(op, Phase.FORWARD, Quantity.SAVED, stored)
            if region is None and operand.tensor not in whole:
                whole.add(operand.tensor)
                phase = Phase.BACKWARD_WEIGHT if op.weights else Phase.BACKWARD_INPUT
                for move in flow.gathers.get(operand.tensor, ()):
                    book.move(op, phase, move, operand)


def _is_narrow(op: Op, conventions: Conventions) -> bool:
    """Tell whether an op keeps a copy of its input in few bits: a product with a hidden matrix."""
    if conventions.sizes.factor is None or op.use is not Use.PRODUCT or not op.movable:
        return False
    return any(one.is_weight and one.stored is None for one in op.pattern.inputs)


def _factor(operand: Operand) -> Operand:
    """Return the copy of a value in few bits, which one product with it keeps for all."""
    return replace(operand, tensor=f"{operand.tensor}.factor", role=Role.FACTOR)


def taken_by_all(part: Part) -> set[str]:
    """Return what every repetition of a part takes from outside: an encoder's result, a prompt."""
    made = {operand.tensor for op in part.ops for operand in op.outputs}
    taken = (operand for op in part.ops for operand in op.inputs)
    fixed = (o for o in taken if o.constant and o.role is Role.VALUE)
    constants = {operand.tensor for operand in fixed if operand.tensor not in made}
    return {*part.inputs, *constants} - {*part.streams}


def _uncast(book: Book, op: Op) -> tuple[Operand, ...]:
    """Return a result kept as it is where its copy in single precision would be no copy.

    The product that it meets keeps it, unless nothing else there needs a gradient; what drops some
    of it does not.
    """
    if book.conventions.sizes.cast != 0 or all(o.role is not Role.CAST for o in op.saves()):
        return ()
    (result,) = op.outputs
    users = [one for one in book.part.ops if result.tensor in {o.tensor for o in one.inputs}]
    products = [one for one in users if isinstance(one, Einsum)]
    keep = any(result in one.saves() for one in products)
    dropped = any(isinstance(one, Elementwise) and one.function == "dropout" for one in users)
    return (result,) if dropped or (products and not keep) else ()
