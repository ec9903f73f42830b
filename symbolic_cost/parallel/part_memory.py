"""What one part of a model takes of a rank's memory, once for all stages that hold it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from sympy import Expr, Integer

from symbolic_cost.algebra import add, mul, sums
from symbolic_cost.ledger import Collective, CollectiveKind, Phase, Quantity, Row
from symbolic_cost.ops.derive import PartCosts
from symbolic_cost.parallel.amounts import Amount, amount
from symbolic_cost.parallel.catalogue import DATA_AXES
from symbolic_cost.parallel.liveness import Backward, is_shared
from symbolic_cost.parallel.steps import FLAT
from symbolic_cost.records import dataclass, replace

STATES = (Quantity.WEIGHT, Quantity.WEIGHT_GRADIENT, Quantity.MASTER_WEIGHT, Quantity.OPTIMIZER)
"""What stays from step to step."""


@dataclass(frozen=True)
class PartMemory:
    """What a part takes of a rank's memory [byte].

    Args:
        rows: by group, counts open.
        backward: what its backward pass holds for a while.
        gathered: weights that are gathered for use, by name; also those that stay so in a step.
    """

    rows: Mapping[str, tuple[Row, ...]]
    backward: Backward
    gathered: Mapping[str, Amount]

    @cached_property
    def sums(self) -> Mapping[tuple[str, Quantity, Expr], Expr]:
        """Sums of the rows by group, quantity and open count."""
        return sums(
            ((group, row.quantity, row.count), row.expr)
            for group, rows in self.rows.items()
            for row in rows
        )

    def whole(self, quantity: Quantity, costs: PartCosts) -> Expr:
        """Return all of a quantity, as often as it occurs."""
        sizes = self.sums.items()
        of = ((count, size) for (_, kind, count), size in sizes if kind is quantity)
        return add(*(mul(costs.times(count), size) for count, size in of))


def part_memory(
    backward: Backward, states: tuple[Row, ...], *, for_a_step: bool = False
) -> PartMemory:
    """Return what a part takes of memory, where weights may be gathered once for all of a step."""
    gathering = {Phase.FORWARD, Phase.STEP} if for_a_step else {Phase.FORWARD}
    costs = backward.costs
    saved = tuple(row for row in costs.once if row.quantity is Quantity.SAVED)
    gathered = {
        row.tensor: amount(row.collective.message)
        for row in costs.once
        if row.quantity is Quantity.COMMUNICATION and row.phase in gathering
        if row.collective is not None and _gathers_shards(row.collective)
    }
    every = [row for row in costs.once if row.quantity in STATES]
    return PartMemory(
        {
            "resident": tuple(row for row in every if not is_shared(row.tensor)),
            "states": tuple(
                replace(row, count=costs.each) for row in states if not is_shared(row.tensor)
            ),
            "shared": tuple(row for row in (*every, *states) if is_shared(row.tensor)),
            "saved": saved,
            "waiting": tuple(waiting_rows(backward.executed.once)),
        },
        backward,
        gathered,
    )


def waiting_rows(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield what waits for the weight gradients of one microbatch, each tensor once [byte].

    What is gathered again for them waits as a shard: on 8 ranks, an eighth of the input of a layer.
    """
    own = tuple(row for row in rows if row.phase is Phase.BACKWARD_WEIGHT)
    gathers = {
        (row.path, row.tensor): row.collective.ranks
        for row in own
        if row.quantity is Quantity.COMMUNICATION and row.collective is not None
        if row.collective.kind is CollectiveKind.ALL_GATHER
    }
    seen: set[tuple[str, str]] = set()
    for row in own:
        if row.quantity is Quantity.READ and (row.part, row.tensor) not in seen:
            seen.add((row.part, row.tensor))
            kept = row.expr / gathers.get((row.path, row.tensor), Integer(1))
            yield replace(row, phase=Phase.FORWARD, quantity=Quantity.SAVED, expr=kept)


def _gathers_shards(move: Collective) -> bool:
    is_weight = move.kind is CollectiveKind.ALL_GATHER and move.axis == FLAT
    return is_weight and set(move.meshes) <= set(DATA_AXES)
