"""Rows and the table of rows: the only thing that the upper floors exchange."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from functools import cached_property

from sympy import Expr, Integer

from symbolic_cost.algebra import add, mul, sums
from symbolic_cost.checking import Names, checked
from symbolic_cost.conditions import Condition, Least, Split
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.display import NotebookTable
from symbolic_cost.errors import ConventionError, InputError, UnknownNameError, quote, unknown
from symbolic_cost.records import dataclass, replace
from symbolic_cost.units import Unit


class Phase(Names):
    """When in a training step a cost arises."""

    FORWARD = "forward"
    BACKWARD_INPUT = "backward_input"
    BACKWARD_WEIGHT = "backward_weight"
    RECOMPUTE = "recompute"
    STEP = "step"
    STATE = "state"


BACKWARD = (Phase.BACKWARD_INPUT, Phase.BACKWARD_WEIGHT)
"""Both gradients."""

TRAINING = (Phase.FORWARD, *BACKWARD, Phase.RECOMPUTE)
"""All that is computed per microbatch."""


class Quantity(Names):
    """What a row is about."""

    FLOP = "flop"
    READ = "read"
    WRITE = "write"
    PARAMETER = "parameter"
    WEIGHT = "weight"
    WEIGHT_GRADIENT = "weight_gradient"
    MASTER_WEIGHT = "master_weight"
    OPTIMIZER = "optimizer"
    WORKSPACE = "workspace"
    ACTIVATION_GRADIENT = "activation_gradient"
    SAVED = "saved"
    CACHED = "cached"
    CACHE = "cache"
    COMMUNICATION = "communication"
    TIME = "time"


class Units(StrEnum):
    """What of a device computes."""

    MATRIX = "matrix"
    VECTOR = "vector"


class Origin(StrEnum):
    """Why a row is there."""

    OP = "op"
    """A declared op works on it, or needs it."""
    PIPELINE = "pipeline"
    """Stages pass it on to each other."""
    WORKSPACE = "workspace"
    """It is there for a while, beside what ops name."""
    WAITING = "waiting"
    """Time in which an op waits for its collectives."""


class Place(StrEnum):
    """Whose memory holds something."""

    DEVICE = "device"
    HOST = "host"


class CollectiveKind(StrEnum):
    """The field's names of collectives."""

    ALL_REDUCE = "all-reduce"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_GATHER = "all-gather"
    ALL_TO_ALL = "all-to-all"
    BROADCAST = "broadcast"
    REDUCE = "reduce"
    SEND_RECEIVE = "send-receive"


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective of one rank.

    Args:
        meshes: mesh axes whose ranks take part, innermost first.
        message: bytes of the full message (of the local buffer for all-to-all).
        axis: the tensor's axis that is gathered or scattered; empty for an all-reduce.
        calls: how often per pass of the row.
    """

    kind: CollectiveKind
    meshes: tuple[str, ...]
    ranks: Expr
    message: Expr
    axis: str = ""
    calls: Expr = Integer(1)

    @property
    def group(self) -> str:
        """The mesh axes as they are printed: "cp+dp"."""
        return "+".join(self.meshes)


@checked
@dataclass(frozen=True, slots=True)
class Row:
    """One cost of one rank.

    Args:
        path: dotted place in the model.
        kind: the op's kind ("einsum", "softmax", ...).
        count: how often it occurs (repeated blocks), as a factor.
        tensor: the tensor it concerns; empty for FLOP.
        collective: for communication rows.
        per_step: once per step (after gradient accumulation) and not per microbatch.
        place: whose memory holds it.
        units: that compute FLOP; None for the additions of a collective, which makes them itself.
        part: path of the part of the model that it belongs to; empty where it belongs to none.
    """

    path: str
    kind: str
    phase: Phase
    quantity: Quantity
    unit: Unit
    expr: Expr
    count: Expr = Integer(1)
    tensor: str = ""
    source: str = "definition"
    collective: Collective | None = None
    per_step: bool = False
    origin: Origin = Origin.OP
    place: Place = Place.DEVICE
    units: Units | None = None
    part: str = ""

    @property
    def total(self) -> Expr:
        """The cost times its count, in the row's unit."""
        return mul(self.count, self.expr)


@checked
@dataclass(frozen=True)
class CostTable(NotebookTable):
    """Rows counted under one set of conventions.

    Args:
        conventions: under which they were counted.
        splits: the divisions that must come out whole when numbers are bound.
        bounds: sizes that must be large enough when numbers are bound.
        selected_from: the table that these rows were selected from, whose names are the known ones.
    """

    rows: tuple[Row, ...]
    conventions: Conventions
    splits: tuple[Split, ...] = ()
    name: str = ""
    bounds: tuple[Least, ...] = ()
    selected_from: CostTable | None = field(default=None, repr=False, compare=False)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All that numbers must meet when they are bound."""
        return (*self.splits, *self.bounds)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __add__(self, other: CostTable) -> CostTable:
        """Join two tables counted alike.

        Raises:
            ConventionError: the tables were counted under different conventions.
        """
        if other.conventions != self.conventions:
            raise ConventionError(
                f"tables of different conventions do not add: {self.conventions.name} "
                f"and {other.conventions.name}; cost both under one"
            )
        names = self.name if self.name == other.name else f"{self.name} + {other.name}"
        return CostTable(
            self.rows + other.rows,
            self.conventions,
            tuple(dict.fromkeys(self.splits + other.splits)),
            names,
            tuple(dict.fromkeys(self.bounds + other.bounds)),
        )

    def select(
        self,
        quantity: Quantity | str | None = None,
        *,
        phase: Phase | Iterable[Phase | str] | str | None = None,
        path: str | None = None,
        kind: str | None = None,
        tensor: str | None = None,
        where: Callable[[Row], bool] | None = None,
    ) -> CostTable:
        """Return the rows that meet every given condition; `path` takes its subtree.

        A phase may be several: "backward" is that of inputs and of weights, "train" is all but the
        step; "fwd" and "bwd" are short for "forward" and "backward".

        Raises:
            UnknownNameError: a quantity or phase that is none; a path, kind or tensor that no row
                has, of this table or of the one that it was selected from.
        """
        given = (phase,) if phase is None or isinstance(phase, str) else phase
        phases = None if phase is None else tuple(one for name in given for one in _phases(name))
        self._check(quantity, phases, path=path, kind=kind, tensor=tensor)
        selected = tuple(
            row
            for row in self.rows
            if (quantity is None or row.quantity == quantity)
            and (phases is None or row.phase in phases)
            and (path is None or row.path == path or row.path.startswith(path + "."))
            and (kind is None or row.kind == kind)
            and (tensor is None or row.tensor == tensor)
            and (where is None or where(row))
        )
        return replace(self, rows=selected, selected_from=self.selected_from or self)

    def below(self, path: str) -> CostTable:
        """Return the rows of a part of the model: none where the part costs nothing."""
        known = (self.selected_from or self).parts
        return self.select(path=path) if path in known else replace(self, rows=())

    def total(
        self,
        quantity: Quantity | str | None = None,
        *,
        phase: Phase | Iterable[Phase | str] | str | None = None,
        path: str | None = None,
        kind: str | None = None,
    ) -> Expr:
        """Sum the selected rows to one plain SymPy expression, in their common unit.

        Raises:
            ConventionError: the selected rows have more than one unit or quantity.
        """
        chosen = self.select(quantity, phase=phase, path=path, kind=kind)
        quantities = {row.quantity for row in chosen}
        if len(quantities) > 1:
            raise ConventionError(
                f"a total is of one quantity, not of {', '.join(sorted(quantities))}: name one"
            )
        by_count = sums((row.count, row.expr) for row in chosen)
        return add(*(mul(count, once) for count, once in by_count.items()))

    def _check(
        self, quantity: object, phases: tuple[object, ...] | None, **names: str | None
    ) -> None:
        """Refuse names that select nothing because they are no names."""
        problems = ["no phase is named: one or more are accepted"] if phases == () else []
        if quantity is not None and quantity not in _QUANTITIES:
            problems.append(unknown("quantity", quantity, _QUANTITIES))
        problems += [unknown("phase", one, _PHASES) for one in phases or () if one not in _PHASES]
        whole = self.selected_from or self
        known = (whole.parts, whole.kinds, whole.tensors)
        for (what, name), accepted in zip(names.items(), known, strict=True):
            if name is not None and name not in accepted:
                problems.append(unknown(what, name, accepted))
        if problems:
            raise UnknownNameError(problems)

    @cached_property
    def parts(self) -> frozenset[str]:
        """Every path, and every part that paths lie below."""
        split = (path.split(".") for path in self.paths())
        lengths = ((steps, depth) for steps in split for depth in range(1, len(steps) + 1))
        return frozenset(".".join(steps[:depth]) for steps, depth in lengths)

    @cached_property
    def tensors(self) -> frozenset[str]:
        """Every tensor of the rows."""
        return frozenset(row.tensor for row in self.rows)

    @cached_property
    def kinds(self) -> frozenset[str]:
        """Every kind of the rows."""
        return frozenset(row.kind for row in self.rows)

    def paths(self) -> tuple[str, ...]:
        """The paths of the rows, in order of first appearance."""
        return tuple(dict.fromkeys(row.path for row in self.rows))

    def once(self) -> CostTable:
        """Return the rows counted once, whatever their repetition."""
        return replace(self, rows=tuple(replace(row, count=Integer(1)) for row in self.rows))

    def map(self, change: Callable[[Expr], Expr]) -> CostTable:
        """Apply a change of expressions to every row, its count and its collective.

        Raises:
            InputError: the change gives no expression.
        """

        def applied(expr: Expr) -> Expr:
            result = change(expr)
            if not isinstance(result, Expr):
                raise InputError(f"change gives {quote(result)}: a SymPy Expr is accepted")
            return result

        def changed(row: Row) -> Row:
            move = row.collective
            if move is not None:
                ranks, message, calls = map(applied, (move.ranks, move.message, move.calls))
                move = replace(move, ranks=ranks, message=message, calls=calls)
            return replace(row, expr=applied(row.expr), count=applied(row.count), collective=move)

        return replace(self, rows=tuple(map(changed, self.rows)))


_PHASE_WORDS: Mapping[object, tuple[Phase, ...]] = {
    "fwd": (Phase.FORWARD,),
    **dict.fromkeys(("bwd", "backward"), BACKWARD),
    "train": TRAINING,
}


def _phases(name: object) -> tuple[object, ...]:
    """Return the phases that a word stands for, one of them as it is."""
    return _PHASE_WORDS.get(name, (name,)) if isinstance(name, str) else (name,)


_QUANTITIES, _PHASES = frozenset(Quantity), frozenset(Phase)
