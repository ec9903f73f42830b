"""The time of a pass: its forward rows, priced by kind of kernel.

An op is a product with weights, a core of attention, or a pass over memory. Passes in a row run as
one kernel, in which products of activations alone (the inside of a recurrence) take part: what one
of them makes and only others of them read never reaches memory. A state is read and written once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from sympy import Add, Expr, Integer, Mul

from symbolic_cost import symbols
from symbolic_cost.algebra import mul
from symbolic_cost.axes import At, Role
from symbolic_cost.ledger import Origin, Quantity, Row, Units
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.conv import Conv
from symbolic_cost.ops.matrices import OTHERS
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.part import Part
from symbolic_cost.ops.view import View
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.records import dataclass
from symbolic_cost.serving.engine import Engine
from symbolic_cost.serving.precisions import CACHES, VALUE, Decoding, Reading
from symbolic_cost.serving.share import Share, reads_alone
from symbolic_cost.systems.definitions import Definitions
from symbolic_cost.systems.routing import EACH, Routing

PRODUCTS, PROMPTS, STEPS, PASSES, COLLECTIVES = KINDS = (
    "products",
    "attention of prompts",
    "attention of steps",
    "passes over memory",
    "collectives",
)
"""Kinds of kernels, each with an error of its own."""

PER_HEAD = Decoding.PER_HEAD

Took = tuple[str, Expr]
"""A kind and a time [s]."""


@dataclass(frozen=True)
class Work:
    """An op of one shape, or of several that run as one.

    Args:
        rows: of its kernel and its collectives.
        kind: "core", "product" or "pass".
        share: of the shape, or of the first.
        plain: whether it is a product whose weight is never in few bits, such as the head.
    """

    path: str
    rows: tuple[Row, ...]
    kind: str
    share: Share
    plain: bool = False


class Priced:
    """Prices a stage.

    Args:
        shares: of the shapes that run together.
        to: takes the definitions.
    """

    def __init__(self, engine: Engine, shares: Sequence[Share], to: Definitions) -> None:
        self.engine, self.shares, self.to = engine, shares, to
        self.kernels = engine.kernels
        self.rate = engine.units
        self.network = engine.machine.network()
        own = engine.machine.efficiencies
        factors = {**dict.fromkeys(KINDS, own.computing), COLLECTIVES: own.moving}
        self.slowness = {kind: figure.value for kind, figure in factors.items()}

    def stage(self, stage: Stage) -> Mapping[str, Expr]:
        """Define the time of a stage by kind [s], on a cluster as much longer as its steps are."""
        terms: dict[str, list[Expr]] = {kind: [] for kind in KINDS}
        for row in _as_one(
            [r for r in s.forward if r.origin is Origin.PIPELINE] for s in self.shares
        ):
            took = Mul(self.slowness[COLLECTIVES], row.count, self._moved(row))
            terms[COLLECTIVES].append(took)
        for part in self.shares[0].parts:
            for kind, took in self._part(f"{stage}.{part.path}", part).items():
                terms[kind].append(part.repeat * took)
        return {kind: self.to.add(f"{stage}.{kind}", Add(*each)) for kind, each in terms.items()}

    def _part(self, name: str, part: Part) -> Mapping[str, Expr]:
        """Define the time of a part by kind [s]."""
        terms: dict[str, list[Expr]] = {kind: [] for kind in KINDS}
        parts = [(s, next(p for p in s.parts if p.path == part.path)) for s in self.shares]
        # What the cache holds of earlier tokens is read, though a pass makes that of the new ones.
        cached = {tensor for share in self.shares for tensor in share.cached(part.path)}
        names = {new: old for new, old in _names(part).items() if new not in cached}
        each = [list(_works(share, own)) for share, own in parts]
        for works, rows in _groups(each, names):
            kind, took = self._kernel(works, rows, names)
            terms[kind].append(took)
        for row in _as_one([r for work in own for r in work.rows if r.collective] for own in each):
            terms[COLLECTIVES].append(self._moved(row))
        states = [r for share in self.shares for r in share.cache_rows(part.path, states=True)]
        if states:
            terms[PASSES].append(self.kernels.carried(2 * Add(*(row.expr for row in states))))
        by_kind = {
            kind: self.to.add(f"{name}.{kind}", mul(self.slowness[kind], Add(*each)))
            for kind, each in terms.items()
        }
        self.to.keep(name, Add(*by_kind.values()))
        return by_kind

    def _kernel(self, works: Sequence[Work], rows: Sequence[Row], names: Mapping[str, str]) -> Took:
        """Return the time of a kernel among the rows of its part."""
        work = works[0]
        if work.kind == "core":
            return self._attended(work)
        if work.kind == "pass":
            return PASSES, self._passed(works, rows, names)
        rate = self.kernels.wide if work.plain else self.rate
        return PRODUCTS, self.kernels.product(work.rows, rate, VALUE, work.share.weights)

    def _attended(self, work: Work) -> Took:
        """Return the time of a core of attention."""
        shape = work.share.shape
        layer, part = work.path.rpartition(".")[0], work.rows[0].part
        caches = work.share.read_rows(part) or work.share.cache_rows(part, states=False)
        near = [row for row in caches if row.path.startswith(f"{layer}.")] or caches
        cache = CACHES[self.engine.cache] / VALUE * Add(*(row.expr for row in near))
        if shape.by_steps:
            again = self._again(work.rows, shape) if self.engine.decoding is PER_HEAD else None
            return STEPS, self.kernels.stepped(work.rows, self._read(cache), again)
        read = Integer(0) if shape.c == 0 else cache
        return PROMPTS, self.kernels.attended(work.rows, VALUE, read)

    def _again(self, rows: Iterable[Row], shape: Shape) -> Expr:
        """Return the bytes that query heads read of the cache [byte], each on its own.

        A token of a head takes 4 d FLOP for each key and value of d elements: 2 of these to two.
        """
        flop = Add(*(row.expr for row in rows if row.quantity is Quantity.FLOP))
        return flop / (2 * shape.l) * CACHES[self.engine.cache]

    def _read(self, cache: Expr) -> Expr:
        """Return the bytes of the cache that a decode step reads.

        A cascade reads those of the shared prefix once. Sequences that see s(c) of c tokens see
        s(c - T) without the prefix: b s(c - T) of their own and s(c) - s(c - T) of the prefix, also
        where a window leaves a part of it.
        """
        if self.engine.reading is Reading.EACH or self.engine.shared == 0:
            return cache
        own = cache.xreplace({symbols.c: symbols.c - self.engine.shared})
        return own + (cache - own).xreplace({symbols.b: Integer(1)})

    def _passed(self, works: Sequence[Work], rows: Sequence[Row], names: Mapping[str, str]) -> Expr:
        """Return the time of passes that run as one kernel, among the rows of their part."""
        inside = {work.path for work in works}
        own = [row for work in works for row in work.rows]

        def tensors(quantity: Quantity, among: Iterable[Row]) -> set[str]:
            return {_first_name(r.tensor, names) for r in among if r.quantity is quantity}

        written, read = tensors(Quantity.WRITE, own), tensors(Quantity.READ, own)
        asked = tensors(Quantity.READ, (row for row in rows if row.path not in inside))
        cached, few = works[0].share.cached(own[0].part), CACHES[self.engine.cache] / VALUE
        moved = []
        for row in own:
            tensor = _first_name(row.tensor, names)
            fresh = row.quantity is Quantity.READ and tensor not in written
            left = row.quantity is Quantity.WRITE and not (tensor in read and tensor not in asked)
            if fresh or left:
                moved.append((row.kind, row.expr * few if row.tensor in cached else row.expr))
        return self.kernels.passed(moved, [row for row in own if row.units is Units.MATRIX])

    def _moved(self, row: Row) -> Expr:
        """Return the time of a row's collective."""
        move = row.collective
        if move is None:
            return Integer(0)
        divided = self.shares[0].divided
        routing, slots = EACH, At(Role.SLOT)
        if "ep" in move.meshes and divided.model.placed(slots):
            routing = Routing(divided.model.size(slots), *divided.model.routed)
        hops = self.network.hops(divided.ranks.mesh, move.meshes)
        return self.kernels.moved(move, hops, routing)


def _works(share: Share, part: Part) -> Iterator[Work]:
    """Yield the ops of a part of a shape in order."""
    ops = {f"{part.path}.{op.path}": op for op in part.ops}
    by_path: dict[str, list[Row]] = {path: [] for path in ops}
    for row in share.forward:
        if row.origin is Origin.OP and row.part == part.path:
            by_path.setdefault(row.path, []).append(row)
    cached = share.cached(part.path)
    for path, rows in by_path.items():
        if rows and not reads_alone(rows, cached):
            op = ops.get(path)
            taken = () if op is None else op.pattern.inputs
            plain = any(one.stored is not None and one.stored.name == OTHERS for one in taken)
            kind = _kind(rows, op, share.weights)
            yield Work(path, tuple(rows), kind, share, plain)


def _kind(rows: Iterable[Row], op: Op | None, weights: frozenset[str]) -> str:
    """Return what an op runs as."""
    if op is not None and op.core:
        return "core"
    computes = any(row.units is Units.MATRIX for row in rows)
    weighs = any(row.quantity is Quantity.READ and row.tensor in weights for row in rows)
    return "product" if computes and weighs and not isinstance(op, Conv) else "pass"


def _groups(
    each: Sequence[list[Work]], names: Mapping[str, str]
) -> Iterator[tuple[Sequence[Work], Sequence[Row]]]:
    """Yield what runs as one kernel, with the rows of its part: passes in a row, and one product.

    Two shapes run as one except where they differ: in attention, and in passes that only one of
    them has, as of a recurrence in chunks beside its single step. What these make and only they
    read stays inside.
    """
    rows = [[row for work in works for row in work.rows] for works in each]
    first, *others = (list(_apart(_of_one_input(works, names))) for works in each)
    left = others[0] if others else []
    for group in first:
        match = next((g for g in left if _alike(g, group)), None)
        if match is None:
            yield group, rows[0]
            continue
        left.remove(match)
        yield [_joined(*both) for both in zip(group, match, strict=True)], rows[0] + rows[1]
    yield from ((group, rows[1]) for group in left)


def _apart(works: Iterable[Work]) -> Iterator[list[Work]]:
    """Yield passes in a row together, everything else alone."""
    for kind, group in groupby(works, key=lambda work: work.kind):
        listed = list(group)
        yield from [listed] if kind == "pass" else ([work] for work in listed)


def _alike(one: Sequence[Work], other: Sequence[Work]) -> bool:
    """Return whether two shapes run the same ops as one kernel; each attends on its own."""
    return one[0].kind == other[0].kind != "core" and [w.path for w in one] == [
        w.path for w in other
    ]


def _of_one_input(works: list[Work], names: Mapping[str, str]) -> list[Work]:
    """Return ops with products of the same activations as one, as engines lay weights together.

    For example queries, keys and values are one product, gate and up another; what ran between
    them follows.
    """
    laid: list[Work] = []
    places: dict[frozenset[str], int] = {}
    for work in works:
        reads = [row for row in work.rows if row.quantity is Quantity.READ]
        inputs = [row for row in reads if row.tensor not in work.share.weights]
        key = frozenset(_first_name(row.tensor, names) for row in inputs)
        if work.kind == "product" and key in places:
            first = laid[places[key]]
            new = tuple(row for row in work.rows if row not in inputs)
            laid[places[key]] = replace(first, rows=(*first.rows, *new))
            continue
        if work.kind == "product":
            places[key] = len(laid)
        laid.append(work)
    return laid


def _joined(one: Work, other: Work) -> Work:
    """Return an op on the tokens of two shapes."""
    weights = one.share.weights if one.kind == "product" else frozenset()
    return replace(one, rows=tuple(_together(one.rows, other.rows, weights)))


def _together(
    one: Sequence[Row], other: Sequence[Row], weights: frozenset[str] = frozenset()
) -> Iterator[Row]:
    """Yield the rows of two shapes as those of one: all adds up but weights, read once."""
    left = list(other)
    for row in one:
        match = next((r for r in left if _key(r) == _key(row)), None)
        if match is None:
            yield row
            continue
        left.remove(match)
        once = row.quantity is Quantity.READ and row.tensor in weights
        yield row if once else _sum(row, match)
    yield from left


def _as_one(each: Iterable[Sequence[Row]]) -> Iterable[Row]:
    """Return the collectives of all shapes, those of the same tensor as one."""
    first, *others = each
    return _together(first, others[0]) if others else first


def _key(row: Row) -> tuple[object, ...]:
    """Return what rows of two shapes that add up agree in."""
    sent = row.collective and (row.collective.kind, row.collective.meshes)
    return row.path, row.quantity, row.tensor, row.units, row.kind, sent


def _sum(one: Row, other: Row) -> Row:
    """Return one row for the bytes or the work of two."""
    move = one.collective
    if move is not None and other.collective is not None:
        move = replace(move, message=move.message + other.collective.message)
    return replace(one, expr=one.expr + other.expr, collective=move)


def _names(part: Part) -> Mapping[str, str]:
    """Return of which tensor each result of a view is another name."""
    return {
        result.tensor: op.inputs[0].tensor
        for op in part.ops
        if isinstance(op, View)
        for result in op.outputs
    }


def _first_name(tensor: str, names: Mapping[str, str]) -> str:
    """Return the first name of a tensor."""
    while tensor in names:
        tensor = names[tensor]
    return tensor
