"""Where the derivation of one part writes its rows."""

from __future__ import annotations

from dataclasses import field
from sys import intern

from sympy import Expr, Integer, ceiling

from symbolic_cost.algebra import mul
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.ledger import Collective, CollectiveKind, Phase, Quantity, Row
from symbolic_cost.ops.counting import Counter
from symbolic_cost.ops.moves import Move
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.part import Part
from symbolic_cost.ops.pattern import Operand
from symbolic_cost.ops.placement import Placement
from symbolic_cost.ops.recompute import Recompute
from symbolic_cost.records import dataclass, replace
from symbolic_cost.units import Unit

_UNITS = {Quantity.FLOP: Unit.FLOP, Quantity.PARAMETER: Unit.ELEMENT, Quantity.CACHED: Unit.ELEMENT}
_REDUCING = (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER)


EVERY = frozenset(Quantity)


@dataclass
class Book:
    """The rows of one part, and what is needed to write them."""

    part: Part
    counter: Counter
    placement: Placement
    conventions: Conventions
    recompute: Recompute
    quantities: frozenset[Quantity] = EVERY
    rows: list[Row] = field(default_factory=list)

    def path(self, op: Op) -> str:
        """Return the place of an op in the model, one text for all its rows."""
        return intern(f"{self.part.path}.{op.path}")

    def unrepeated(self) -> Book:
        """Return the same book for what all repetitions of the part share."""
        return self._occurring(Integer(1))

    def every(self) -> Book:
        """Return the same book for what only the first of several regions in a row keeps.

        Of 96 blocks, every seventh kept, these are 14: the last group has five.
        """
        return self if self.recompute.every == 1 else self._occurring(self._groups)

    def between(self) -> Book:
        """Return the same book for the regions of a row that run again before others of it.

        Of 96 blocks in groups of seven, these are 82: of each group all but the last one.
        """
        return self._occurring(self.part.repeat - self._groups)

    @property
    def _groups(self) -> Expr:
        return ceiling(self.part.repeat / self.recompute.every)

    def _occurring(self, repeat: Expr) -> Book:
        if repeat == self.part.repeat:
            return self
        return replace(self, part=replace(self.part, repeat=repeat))

    def region(self, op: Op) -> str | None:
        """Return the recomputed region that an op belongs to, or None."""
        return self.recompute.region(self.part, op, self.conventions.kept_as)

    def flop(self, op: Op, phase: Phase, expr: Expr) -> None:
        """Write FLOP."""
        self._row(op, phase, Quantity.FLOP, expr)

    def elements(self, op: Op, quantity: Quantity, operand: Operand) -> None:
        """Write the elements of a state."""
        elements = self.counter.elements(operand.axes)
        self._row(op, Phase.STATE, quantity, elements, operand.tensor)

    def bytes(self, op: Op, phase: Phase, quantity: Quantity, operand: Operand) -> None:
        """Write the bytes of an operand."""
        if quantity not in self.quantities:
            return
        size = self.counter.bytes(operand)
        if phase is Phase.STATE:
            size = size / self.placement.degree(
                self.placement.stored_over(quantity.value, operand.axes)
            )
        book = self
        if quantity is Quantity.SAVED and self.region(op) is not None:
            book = self.every()
        book._row(op, phase, quantity, size, operand.tensor)  # noqa: SLF001 - its own kind

    def move(
        self, op: Op, phase: Phase, move: Move, operand: Operand, *, per_step: bool = False
    ) -> None:
        """Write a collective on an operand: the bytes charged, and the additions it makes."""
        ranks = self.placement.degree(move.meshes)
        message = mul(self.counter.moved(operand), move.elements)
        charged = self.conventions.charge(move.kind, message, ranks)
        collective = Collective(move.kind, move.meshes, ranks, message, move.axis)
        amounts = {Quantity.COMMUNICATION: charged}
        if move.kind in _REDUCING:
            additions = self.conventions.reduction_additions(ranks)
            amounts[Quantity.FLOP] = mul(additions, move.elements)
        for quantity, amount in amounts.items():
            said = (op, phase, quantity, amount, operand.tensor)
            self._row(*said, collective=collective, per_step=per_step)

    def _row(
        self,
        op: Op,
        phase: Phase,
        quantity: Quantity,
        expr: Expr,
        tensor: str = "",
        *,
        collective: Collective | None = None,
        per_step: bool = False,
    ) -> None:
        if expr != 0:
            self.rows.append(
                Row(
                    path=self.path(op),
                    kind=op.kind,
                    phase=phase,
                    quantity=quantity,
                    unit=_UNITS.get(quantity, Unit.BYTE),
                    expr=expr,
                    count=self.part.repeat,
                    tensor=tensor,
                    collective=collective,
                    per_step=per_step,
                    units=op.units if quantity is Quantity.FLOP and collective is None else None,
                    part=self.part.path,
                )
            )
