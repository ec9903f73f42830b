"""Named costs: what users ask for by one word, as a selection of rows."""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Add, Expr

from symbolic_cost.errors import UnknownNameError, unknown
from symbolic_cost.ledger import BACKWARD, TRAINING, CostTable, Phase, Quantity
from symbolic_cost.units import Unit


@dataclass(frozen=True, slots=True)
class NamedCost:
    """A selection of rows of one unit.

    Args:
        name: the word.
        meaning: one line for people.
        unit: of the total.
        quantities: that are summed.
        phases: that are summed; all if empty.
    """

    name: str
    meaning: str
    unit: Unit
    quantities: tuple[Quantity, ...]
    phases: tuple[Phase, ...] = ()

    def rows(self, table: CostTable) -> CostTable:
        """Return the rows of a table that belong to the cost."""
        return table.select(
            phase=self.phases or None, where=lambda row: row.quantity in self.quantities
        )

    def total(self, table: CostTable) -> Expr:
        """Sum them to one plain SymPy expression."""
        rows = self.rows(table)
        return Add(*(rows.total(quantity) for quantity in self.quantities))


PHASES: dict[str, tuple[Phase, ...]] = {
    "fwd": (Phase.FORWARD,),
    "bwd": BACKWARD,
    "recompute": (Phase.RECOMPUTE,),
    "train": TRAINING,
    "step": (Phase.STEP,),
}
"""Phases by the short names of the command line."""

_TRAFFIC = (Quantity.READ, Quantity.WRITE)

_COSTS = (
    NamedCost("flops", "training FLOP of one microbatch", Unit.FLOP, (Quantity.FLOP,), TRAINING),
    NamedCost("flops_fwd", "forward FLOP", Unit.FLOP, (Quantity.FLOP,), PHASES["fwd"]),
    NamedCost("flops_bwd", "backward FLOP", Unit.FLOP, (Quantity.FLOP,), BACKWARD),
    NamedCost(
        "flops_recompute", "recomputed FLOP", Unit.FLOP, (Quantity.FLOP,), PHASES["recompute"]
    ),
    NamedCost("flops_train", "the same as flops", Unit.FLOP, (Quantity.FLOP,), TRAINING),
    NamedCost("params", "parameters of one rank", Unit.ELEMENT, (Quantity.PARAMETER,)),
    NamedCost("weights", "bytes of the weights", Unit.BYTE, (Quantity.WEIGHT,)),
    NamedCost(
        "weight_gradients", "bytes of their gradients", Unit.BYTE, (Quantity.WEIGHT_GRADIENT,)
    ),
    NamedCost("saved", "activations kept for backward", Unit.BYTE, (Quantity.SAVED,)),
    NamedCost("bytes_fwd", "memory traffic of forward", Unit.BYTE, _TRAFFIC, PHASES["fwd"]),
    NamedCost("bytes_bwd", "memory traffic of backward", Unit.BYTE, _TRAFFIC, BACKWARD),
    NamedCost("bytes", "memory traffic of training", Unit.BYTE, _TRAFFIC, TRAINING),
    NamedCost(
        "comm_fwd",
        "bytes communicated in forward",
        Unit.BYTE,
        (Quantity.COMMUNICATION,),
        PHASES["fwd"],
    ),
    NamedCost(
        "comm_bwd", "bytes communicated in backward", Unit.BYTE, (Quantity.COMMUNICATION,), BACKWARD
    ),
    NamedCost("comm", "bytes communicated", Unit.BYTE, (Quantity.COMMUNICATION,)),
)

COSTS: dict[str, NamedCost] = {entry.name: entry for entry in _COSTS}
"""Every named cost."""


def named_cost(name: str, phase: str | None = None) -> NamedCost:
    """Return a named cost, narrowed to a phase if one is given.

    Raises:
        UnknownNameError: no such cost or phase; the closest are offered.
    """
    problems = []
    if name not in COSTS:
        problems.append(unknown("cost", name, COSTS))
    if phase is not None and phase not in PHASES:
        problems.append(unknown("phase", phase, PHASES))
    if problems:
        raise UnknownNameError(problems)
    found = COSTS[name]
    if phase is None:
        return found
    return NamedCost(f"{name}:{phase}", found.meaning, found.unit, found.quantities, PHASES[phase])
