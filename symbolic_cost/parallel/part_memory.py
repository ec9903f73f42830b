"""What one part of a model takes of a rank's memory, once for all stages that hold it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from sympy import Expr, Integer

from symbolic_cost.algebra import add, sums
from symbolic_cost.ledger import Collective, CollectiveKind, Phase, Quantity, Row
from symbolic_cost.ops.derive import PartCosts
from symbolic_cost.ops.recompute import Recompute
from symbolic_cost.parallel.catalogue import DATA_AXES
from symbolic_cost.parallel.steps import FLAT
from symbolic_cost.records import dataclass, replace

STATES = (Quantity.WEIGHT, Quantity.WEIGHT_GRADIENT, Quantity.MASTER_WEIGHT, Quantity.OPTIMIZER)
"""What stays from step to step."""


@dataclass(frozen=True)
class PartMemory:
    """What a part takes of a rank's memory [byte].

    Args:
        rows: by group, counts open.
        again: of the regions that run again: what they save then, and what they keep for it.
        gradients: of the activations of each op.
        gathered: of weights that are gathered for use; None where none is.
    """

    rows: Mapping[str, tuple[Row, ...]]
    again: Mapping[str, tuple[Expr, Expr]]
    gradients: tuple[Expr, ...]
    gathered: Expr | None

    @cached_property
    def sums(self) -> Mapping[tuple[str, Quantity, Expr], Expr]:
        """Sums of the rows by group, quantity and open count."""
        return sums(
            ((group, row.quantity, row.count), row.expr)
            for group, rows in self.rows.items()
            for row in rows
        )

    def counted(self, group: str, costs: PartCosts) -> Iterator[Row]:
        """Yield the rows of a group as often as they occur."""
        return (replace(row, count=costs.times(row.count)) for row in self.rows[group])


def part_memory(
    costs: PartCosts, executed: PartCosts, states: tuple[Row, ...], policy: Recompute
) -> PartMemory:
    """Return what a part takes of memory."""
    regions = {
        f"{costs.part.path}.{op.path}": policy.region(costs.part, op) for op in costs.part.ops
    }
    saved = tuple(row for row in costs.once if row.quantity is Quantity.SAVED)
    again = sums(
        (regions[row.path], row.expr) for row in executed.once if row.quantity is Quantity.SAVED
    )
    inputs = sums((regions[row.path], row.expr) for row in saved)
    gradients = sums(
        (row.path, row.expr) for row in costs.once if row.quantity is Quantity.ACTIVATION_GRADIENT
    )
    whole = [
        row.collective.message * (1 - 1 / row.collective.ranks)
        for row in costs.once
        if row.quantity is Quantity.COMMUNICATION and row.phase is Phase.FORWARD
        if row.collective is not None and _gathers_shards(row.collective)
    ]
    return PartMemory(
        {
            "resident": tuple(row for row in costs.once if row.quantity in STATES),
            "states": states,
            "saved": saved,
            "waiting": tuple(waiting_rows(executed.once)),
        },
        {name: (s, inputs.get(name, Integer(0))) for name, s in again.items() if name is not None},
        tuple(gradients.values()),
        add(*whole) if whole else None,
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
