"""Weights: their bytes, the sums of their gradients over ranks, and the gathering of shards."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import field

from symbolic_cost.ledger import Phase, Quantity
from symbolic_cost.ops.book import Book
from symbolic_cost.ops.flow import Flow, renamed
from symbolic_cost.ops.moves import Move, moves
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.pattern import Operand, is_tied
from symbolic_cost.ops.placement import Partial, Placement, Replicate, Shard, State
from symbolic_cost.records import dataclass

_FLAT = Shard("flat")
"""A weight kept in shards is cut as one flat array, whatever its axes."""


@dataclass
class Tied:
    """A weight that several ops use, which is kept as the first of them needs it.

    Args:
        first: the operand of the first use.
        waiting: mesh axes over which the uses together leave its gradient a sum.
        booked: whether its states are booked.
    """

    first: Operand
    waiting: set[str] = field(default_factory=set)
    booked: bool = False


def tied_weights(flows: Iterable[Flow]) -> dict[str, Tied]:
    """Return the weights that several ops use, by tensor.

    The uses of a weight add their gradients on each rank, so that one sum over ranks serves all.
    """
    return _used_together(flows, is_tied)


def shared_weights(flow: Flow) -> dict[str, Tied]:
    """Return the weights that several ops of one part use, each repetition its own.

    For example DeBERTa projects the distances of a block by the weights of its tokens.
    """
    uses = Counter(weight.tensor for op in flow.ops for weight in op.weights)
    return _used_together([flow], lambda w: uses[w.tensor] > 1 and not is_tied(w))


def _used_together(flows: Iterable[Flow], wanted: Callable[[Operand], bool]) -> dict[str, Tied]:
    together: dict[str, Tied] = {}
    for flow in flows:
        for op in flow.ops:
            for weight in filter(wanted, op.weights):
                tied = together.setdefault(weight.tensor, Tied(weight))
                tied.waiting |= flow.left_partial(op, weight)
    return together


def book_weights(book: Book, op: Op, flow: Flow, tied: dict[str, Tied]) -> None:
    """Book the weights of an op, those that are tied with their first use."""
    moving = bool(book.placement.degrees)
    for weight in op.weights:
        use = tied.get(weight.tensor, Tied(weight, flow.left_partial(op, weight)))
        if moving:
            _gather_before_use(book, op, weight, use)
        if use.booked:
            if moving and weight.needs_gradient:
                _return_gradient(book, op, weight, flow.left_partial(op, weight), use)
            continue
        use.booked = True
        once, waiting = book.unrepeated() if is_tied(weight) else book, use.waiting
        if moving and weight.needs_gradient:
            _reduce_gradient(once, op, weight, waiting)
        if moving:
            _gather_once(once, op, weight)
        once.elements(op, Quantity.PARAMETER, weight)
        once.bytes(op, Phase.STATE, Quantity.WEIGHT, weight)
        if weight.needs_gradient:
            once.bytes(op, Phase.STATE, Quantity.WEIGHT_GRADIENT, weight.gradient())


def _reduce_gradient(book: Book, op: Op, weight: Operand, waiting: set[str]) -> None:
    """Book the sum of a gradient: scattered over ranks that keep shards, else to all of them.

    Where only a shard of the gradient is kept, every microbatch adds to it; the other ranks add up
    once per step, and only what those have left. For example over a grid that keeps shards and dp
    ranks that do not, a gradient W is scattered every microbatch, and W/m2 summed once.
    """
    shards = {mesh for meshes in book.placement.stored.values() for mesh in meshes}
    shard = book.placement.stored_over("weight_gradient", weight.axes)
    elements = book.counter.elements(weight.axes)
    each = [mesh for mesh in book.placement.degrees if mesh in waiting and mesh in shard]
    once = [mesh for mesh in book.placement.degrees if mesh in waiting and mesh not in shard]
    for meshes, left in ((each, elements), (once, elements / book.placement.degree(each))):
        have = {mesh: Partial() for mesh in meshes}
        need = {mesh: _FLAT if mesh in shards else Replicate() for mesh in meshes}
        for move in moves(have, need, left, book.placement):
            gradient, per_step = weight.gradient(), meshes is once
            book.move(op, Phase.BACKWARD_WEIGHT, move, gradient, per_step=per_step)


def _return_gradient(book: Book, op: Op, weight: Operand, waiting: set[str], tied: Tied) -> None:
    """Book the way of a gradient to where the first use of a tied weight keeps its own.

    Nothing moves where both cut the weight alike: terms are added before the sum. For example a
    2D grid cuts a token table W by features for the lookup and by vocabulary for the head: the
    gradient of the head, scattered over m2, is exchanged over m1, W/(m1 m2) on each rank.
    """
    have, need = cuts(book.placement, weight, tied.first)
    need |= {mesh: state for mesh, state in have.items() if mesh in tied.waiting}
    shard = book.placement.stored_over("weight_gradient", weight.axes)
    each = [mesh for mesh in book.placement.degrees if mesh in waiting and mesh in shard]
    elements = book.counter.elements(weight.axes)
    back = moves(have, need, elements / book.placement.degree(each), book.placement)
    if not back:
        return
    terms, shards = dict.fromkeys(each, Partial()), dict.fromkeys(each, _FLAT)
    for move in (*moves(terms, shards, elements, book.placement), *back):
        book.move(op, Phase.BACKWARD_WEIGHT, move, weight.gradient())


def cuts(
    placement: Placement, old: Operand, new: Operand
) -> tuple[dict[str, State], dict[str, State]]:
    """Return the states of a weight in one use and in another, under the axes of the other."""
    needs = placement.needs
    return renamed(needs(old.axes), old.axes, new.axes), dict(needs(new.axes))


def _gather_once(book: Book, op: Op, weight: Operand) -> None:
    """Book the view of a weight from how a step leaves it to how the passes of the next find it."""
    passing = book.placement.gathered_over(weight.axes)
    updated = "optimizer" if weight.needs_gradient else "weight"
    left = book.placement.stored_over(updated, weight.axes)
    for move in _gather(book, weight, tuple(mesh for mesh in left if mesh not in passing)):
        book.move(op, Phase.STEP, move, weight, per_step=True)


def _gather_before_use(book: Book, op: Op, weight: Operand, use: Tied) -> None:
    """Book the view of a weight from how it is kept to how it is used, before each such pass.

    A block that runs again right before its backward is gathered once for both. Of several that
    run again in a row, all but the last are gathered for each: of four, three.
    """
    viewed, again = (_viewed(book, weight, use, again=again) for again in (False, True))
    if not (viewed or again):
        return
    by_unit = book.placement.again is not None and book.part.live
    readers = {
        kernel.phase
        for kernel in op.kernels()
        if weight.tensor in {operand.tensor for operand in kernel.reads}
    } | ({Phase.BACKWARD_INPUT} if by_unit else set())
    for phase, found in ((Phase.FORWARD, viewed), (Phase.BACKWARD_INPUT, again)):
        for move in found if phase in readers else ():
            book.move(op, phase, move, weight)
    if book.recompute.every != 1 and book.region(op) is not None and Phase.FORWARD in readers:
        for move in again:
            book.between().move(op, Phase.RECOMPUTE, move, weight)


def _viewed(book: Book, weight: Operand, use: Tied, *, again: bool) -> tuple[Move, ...]:
    """Return what makes of a weight as a pass finds it that which it uses.

    A unit is gathered for the first of the ops in it that use a weight.
    """
    parts = book.placement.again
    stays = again and parts is not None and book.part.path not in parts
    stays = stays or (parts is not None and use.booked)
    shards = () if stays else book.placement.gathered_over(weight.axes, again=again)
    found = book.counter.elements(use.first.axes) / book.placement.degree(shards)
    turned = moves(*cuts(book.placement, use.first, weight), found, book.placement)
    return (*turned, *_gather(book, weight, shards))


def _gather(book: Book, weight: Operand, meshes: tuple[str, ...]) -> tuple[Move, ...]:
    """Return what makes a weight whole that ranks hold in shards."""
    shard = book.counter.elements(weight.axes) / book.placement.degree(meshes)
    have, need = dict.fromkeys(meshes, _FLAT), dict.fromkeys(meshes, Replicate())
    return moves(have, need, shard, book.placement)
