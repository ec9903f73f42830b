"""Saved activations: what each op keeps for backward, by tensor, less what is recomputed."""

from symbolic_cost.conventions.questions import Role
from symbolic_cost.ledger import Phase, Quantity
from symbolic_cost.ops.book import Book
from symbolic_cost.ops.einsum import Einsum
from symbolic_cost.ops.elementwise import Elementwise
from symbolic_cost.ops.flow import Flow
from symbolic_cost.ops.graph import Part
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.pattern import Operand


def book_saved(book: Book, flow: Flow) -> None:
    """Book every tensor that backward needs, once.

    A tensor kept in shards is gathered again in backward. A recomputed region keeps what comes
    into it and nothing that is made inside, nor do others where the policy drops it; a tensor
    shared by the whole model ("@") is kept where it is made. What every repetition of the part
    takes from outside is kept once: the result of an encoder, by all blocks of its decoder. What
    another part keeps is not kept again.
    """
    made_in = {operand.tensor: book.region(op) for op in book.part.ops for operand in op.outputs}
    shared = taken_by_all(book.part)
    booked: set[str] = set()
    whole: set[str] = set()
    for op in book.part.ops:
        region = book.region(op)
        needed = (
            (*op.counted_as(book.conventions.kept_as).saves(), *_uncast(book, op))
            if region is None
            else op.inputs
        )
        for operand in needed:
            stored = flow.kept_as.get(operand.tensor, operand)
            region_of = made_in.get(stored.tensor)
            if region is not None and (region_of == region or stored.tensor.startswith("@")):
                continue
            elsewhere = stored.tensor in book.part.saved_before
            if (
                stored.tensor not in booked
                and not elsewhere
                and not book.recompute.drops(region_of)
            ):
                booked.add(stored.tensor)
                own = book.unrepeated() if stored.tensor in shared else book
                own.bytes(op, Phase.FORWARD, Quantity.SAVED, stored)
            if region is None and operand.tensor not in whole:
                whole.add(operand.tensor)
                _book_gathers(book, flow, op, operand)


def taken_by_all(part: Part) -> set[str]:
    """Return what every repetition of a part takes from outside: an encoder's result, a prompt."""
    made = {operand.tensor for op in part.ops for operand in op.outputs}
    taken = (operand for op in part.ops for operand in op.inputs)
    fixed = (o for o in taken if o.constant and o.role is Role.VALUE)
    constants = {operand.tensor for operand in fixed if operand.tensor not in made}
    return {*part.inputs, *constants} - {part.stream}


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


def _book_gathers(book: Book, flow: Flow, op: Op, operand: Operand) -> None:
    """Book the gathering of what was kept in shards, in the backward pass that reads it."""
    phase = Phase.BACKWARD_WEIGHT if op.weights else Phase.BACKWARD_INPUT
    for move in flow.gathers.get(operand.tensor, ()):
        book.move(op, phase, move, operand)
