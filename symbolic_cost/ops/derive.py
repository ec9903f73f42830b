"""The derivation: ops, placement and conventions in, every cost out."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import field
from functools import cached_property
from typing import Any, TypeAlias

from sympy import Expr, Integer, ceiling, floor

from symbolic_cost.algebra import mul
from symbolic_cost.axes import Role
from symbolic_cost.conditions import Condition, Split
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.errors import InputError, PlacementError, refuse, unknown
from symbolic_cost.extrema import Max, Min
from symbolic_cost.ledger import CostTable, Quantity, Row
from symbolic_cost.ops.book import EVERY, Book
from symbolic_cost.ops.counting import Counter
from symbolic_cost.ops.flow import Flow
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.kernels import book_caches, book_kernels, book_saved
from symbolic_cost.ops.part import Part
from symbolic_cost.ops.placement import WHOLE, Placement
from symbolic_cost.ops.recompute import KEEP_ALL, Recompute
from symbolic_cost.ops.weights import Tied, book_weights, shared_weights, tied_weights
from symbolic_cost.records import dataclass, replace
from symbolic_cost.symbols import named


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
    return Derivation(model, conventions, placement, recompute).table(model.parts)


def counted(model: Model, conventions: Conventions, quantities: Collection[Quantity]) -> CostTable:
    """Derive the costs of some quantities alone, on one rank; a table of the others has no rows.

    Raises:
        ConventionError: the conventions do not answer for an op.
    """
    every = Derivation(model, conventions, WHOLE, KEEP_ALL, quantities=quantities)
    return every.table(model.parts)


Change = Callable[[Row], tuple[Row, ...]]
"""The rows that a row becomes."""

_TIMES = named("times")
"""How often a block occurs, until a table says it."""


@dataclass(frozen=True, eq=False)
class PartCosts:
    """What a part costs where it stands.

    Args:
        part: as often as it occurs there.
        once: rows whose counts are open; the same object wherever these rows are the same.
        derived: of these rows, by what it is; shared as they are.
    """

    part: Part
    once: tuple[Row, ...]
    derived: dict[object, Any]

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The rows as often as they occur."""
        return tuple(self.counted(self.once))

    def counted(self, once: Iterable[Row]) -> Iterator[Row]:
        """Yield some of the rows as often as they occur."""
        for row in once:
            count = self._runs(row)
            yield row if count is row.count else replace(row, count=count)

    def _runs(self, row: Row) -> Expr:
        """Return how often a row occurs; work is shared where a part runs on several stages."""
        times, share = self.times(row.count), self.part.share
        return (
            mul(times, share)
            if share != 1 and row.quantity in _WORK and not row.per_step
            else times
        )

    @property
    def each(self) -> Expr:
        """How often what every repetition has occurs, as in `once`."""
        return _TIMES if self.part.is_block else self.part.repeat

    def times(self, count: Expr) -> Expr:
        """Return how often a row occurs, of its count in `once`.

        Six blocks in three chunks, every fourth kept, are three: one of each chunk.
        """
        if count not in self._counts:
            each = count.xreplace({_TIMES: self.part.repeat / self.part.chunks})
            once = each == count
            self._counts[count] = self._held(count) if once else self.part.chunks * each
        return self._counts[count]

    def _held(self, count: Expr) -> Expr:
        """Return how often what all repetitions share occurs: where a stage may hold none, less."""
        times = self.part.repeat
        may_be_none = any(not letter.is_positive for letter in times.free_symbols)
        few = may_be_none or times.is_number or times.is_Add or times.has(*_OPEN)
        few = few and self.part.is_block
        return mul(count, Min(Integer(1), times)) if few else count

    @cached_property
    def _counts(self) -> dict[Expr, Expr]:
        return {}


_OPEN = (Min, Max, ceiling, floor)
_KEPT = frozenset({Quantity.SAVED, Quantity.COMMUNICATION})
_OF_WEIGHTS = frozenset(
    {Quantity.PARAMETER, Quantity.WEIGHT, Quantity.WEIGHT_GRADIENT, Quantity.COMMUNICATION}
)
_WORK = {Quantity.FLOP, Quantity.READ, Quantity.WRITE, Quantity.COMMUNICATION}


Kernels: TypeAlias = dict[tuple[str, int, bool], list[Row]]
"""Rows of an op's kernels by its part, its place there, and whether it is recomputed."""


@dataclass(frozen=True)
class Bookings:
    """Rows that derivations share.

    Args:
        kernels: of every op's passes.
        weights: of every op of each of some parts that stand together, by these and by what of
            the state is kept in shards.
    """

    kernels: Kernels = field(default_factory=dict)
    weights: dict[tuple[object, ...], dict[str, list[list[Row]]]] = field(default_factory=dict)


Booked = tuple[tuple[Row, ...], dict[object, Any]]
"""Rows of a part, and what is derived from them."""


class Derivation:
    """The costs of the parts of a model, each derived once for all tables.

    A part costs the same wherever it stands and however often it occurs: the stages of a pipeline
    share their blocks. What it keeps of a tied weight depends on the other uses beside it.

    Args:
        booked: what other derivations booked of the same ops under the same conventions; they
            differ in what is recomputed, or in what of the state is sharded.
        quantities: of which there are rows.

    Raises:
        PlacementError: the placement and the model do not go together.
        ConventionError: the conventions do not answer for an op.
        InputError: the recompute policy matches no op.
    """

    def __init__(
        self,
        model: Model,
        conventions: Conventions,
        placement: Placement,
        recompute: Recompute,
        booked: Bookings | None = None,
        *,
        quantities: Collection[Quantity] = EVERY,
    ) -> None:
        self._model, self._conventions, wanted = model, conventions, frozenset(quantities)
        self._bounds = recompute.conditions(model)
        self._bookings = booked or Bookings()
        self._stored = (*placement.stored.items(), placement.whole, placement.again)
        self._flows: dict[str, Flow] = {}
        self._rows: dict[tuple[str, tuple[str, ...]], Booked] = {}
        self._costs: dict[tuple[object, ...], PartCosts] = {}
        problems = [
            unknown("axis", axis, model.axis_names)
            for axis in placement.axes
            if axis not in model.axis_names
        ]
        counted = {one for one in model.means if one in model.axes}
        slots = {one for one in counted if model.axes[one].role is Role.TOKEN}
        rules = (placement, conventions, model.padded, model.means)
        for part in model.parts:
            counter = Counter(model.sizes, *rules, slots=slots)
            problems += _misplaced(part, placement, counter)
            once = replace(part, repeat=_TIMES) if part.is_block else part
            self._flows[part.path] = Flow(
                Book(once, counter, placement, conventions, recompute, wanted)
            )
        refuse(dict.fromkeys(problems), PlacementError)
        if recompute.what and not any(recompute.regions(model).values()):
            raise InputError(
                f"recompute policy {recompute.name!r}: model {model.name!r} has no "
                f"{recompute.what} that could run again ({recompute.meaning}); "
                "recompute none is accepted"
            )

    def table(self, parts: Iterable[Part]) -> CostTable:
        """Return the costs of parts of the model, by path, as often as they occur."""
        return self.combined(self.parts(parts))

    def combined(self, costs: Iterable[PartCosts]) -> CostTable:
        """Return the costs of parts as one table."""
        listed = tuple(costs)
        rows = tuple(row for one in listed for row in one.rows)
        splits, name = self._splits(listed), self._model.name
        return CostTable(rows, self._conventions, splits, name, self._bounds)

    def conditions(self, costs: Iterable[PartCosts]) -> tuple[Condition, ...]:
        """Return what the numbers of parts and their blocks must meet."""
        return (*self._splits(costs), *self._bounds)

    def _splits(self, costs: Iterable[PartCosts]) -> tuple[Split, ...]:
        """Return the divisions of parts that must come out whole."""
        splits: dict[str, Split] = {}
        for one in costs:
            for axis, split in self._flows[one.part.path].book.counter.splits.items():
                splits.setdefault(axis, split)
        return tuple(splits.values())

    def parts(
        self, parts: Iterable[Part], change: Change = lambda row: (row,)
    ) -> tuple[PartCosts, ...]:
        """Return the costs of each of some parts that stand together."""
        here = tuple(parts)
        for part in here:
            self._flows[part.path].run()
        return tuple(self._standing(part, here, change) for part in here)

    def _standing(self, part: Part, here: tuple[Part, ...], change: Change) -> PartCosts:
        """Return the costs of a part beside others."""
        uses = self._flows[part.path].tied
        beside = tuple(p.path for p in here if uses & self._flows[p.path].tied)
        key = (part.path, beside, part.repeat, part.share, part.chunks)
        if key not in self._costs:
            self._costs[key] = PartCosts(part, *self._booked(part.path, beside, change))
        return self._costs[key]

    def _booked(self, path: str, beside: tuple[str, ...], change: Change) -> Booked:
        """Return the rows of a part; those of tied weights depend on the parts beside it.

        The first of these keeps a tied weight, so all are booked together.
        """
        if (path, beside) not in self._rows:
            flows = [self._flows[one] for one in beside or (path,)]
            places = tuple(flow.book.part.path for flow in flows)
            key = (*places, self._stored, flows[0].book.recompute.every)
            if key not in self._bookings.weights:
                tied = tied_weights(flows)
                shared = (_weight_rows(flow, tied) for flow in flows)
                self._bookings.weights[key] = dict(zip(places, shared, strict=True))
            weights = self._bookings.weights[key]
            for flow in flows:
                own = weights[flow.book.part.path]
                booked = _rows(flow, own, self._bookings.kernels)
                rows = tuple(each for row in booked for each in change(row))
                self._rows[flow.book.part.path, beside] = rows, {}
        return self._rows[path, beside]


def _weight_rows(flow: Flow, tied: dict[str, Tied]) -> list[list[Row]]:
    """Return the rows of each op's weights and caches."""
    tied = tied | shared_weights(flow)
    rows = []
    for op in flow.ops:
        book = replace(flow.book, rows=[])
        if not book.quantities.isdisjoint(_OF_WEIGHTS):
            book_weights(book, op, flow, tied)
        book_caches(book, op)
        rows.append(book.rows)
    return rows


def _rows(flow: Flow, weights: list[list[Row]], kernels: Kernels) -> list[Row]:
    """Return the rows of one part, those of its flow first."""
    book = replace(flow.book, rows=list(flow.book.rows))
    for place, op in enumerate(flow.ops):
        key = (book.part.path, place, book.region(op) is not None)
        if key not in kernels:
            own = replace(book, rows=[])
            book_kernels(own, op)
            kernels[key] = own.rows
        book.rows += kernels[key] + weights[place]
    if not book.quantities.isdisjoint(_KEPT):
        book_saved(book, flow)
    return book.rows


def _misplaced(part: Part, placement: Placement, counter: Counter) -> list[str]:
    """Say why a placement does not fit, with every reason."""
    problems: list[str] = []
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
    return problems
