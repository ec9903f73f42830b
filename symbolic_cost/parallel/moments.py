"""The moments of a step: what a rank holds at each, and at which it holds most."""

from __future__ import annotations

from typing import TypeAlias

from sympy import Expr

from symbolic_cost.algebra import add
from symbolic_cost.extrema import Max
from symbolic_cost.grouping import grouped
from symbolic_cost.ledger import CostTable, Phase, Place, Quantity, Row
from symbolic_cost.parallel.part_memory import STATES

MOMENTS = {
    "between steps": (STATES, frozenset[Phase]()),
    "end of forward": ((*STATES, Quantity.SAVED), frozenset({Phase.FORWARD})),
    "backward": (
        (*STATES, Quantity.SAVED),
        frozenset({Phase.BACKWARD_INPUT, Phase.BACKWARD_WEIGHT}),
    ),
    "optimizer step": (STATES, frozenset({Phase.STEP, Phase.BACKWARD_WEIGHT})),
}
"""What is there at the moments of a step: quantities, and which phases of what is not always there.

Workspaces are of a phase, that of states where they stay, and gradients that every step makes
anew, those of a first microbatch.
"""


DeviceBytes: TypeAlias = dict[tuple[Quantity, Phase | None], list[Expr]]
"""What the device holds [byte], by quantity and phase of a workspace."""


def moments(table: CostTable) -> dict[str, Expr]:
    """Return what the device holds at each moment of the step [byte], by the moment's name."""
    return at_moments(_by_quantity(table))


def at_moments(held: DeviceBytes) -> dict[str, Expr]:
    """Return sums by moment, of what is there by quantity and phase of a workspace."""
    return {
        name: add(*(term for key in _present(name) for term in held.get(key, ())))
        for name in MOMENTS
    }


def shares(held: CostTable | DeviceBytes, moment: str) -> dict[str, Expr]:
    """Return what the device holds at a moment of the step [byte], by quantity."""
    sums = _by_quantity(held) if isinstance(held, CostTable) else held
    present = _present(moment)
    return {key[0].value: add(*terms) for key, terms in sums.items() if key in present}


def _by_quantity(table: CostTable) -> DeviceBytes:
    passing = (Phase.BACKWARD_INPUT, Phase.BACKWARD_WEIGHT, Phase.STEP)

    def phase(row: Row) -> Phase | None:
        return row.phase if row.quantity is Quantity.WORKSPACE or row.phase in passing else None

    return grouped(
        ((row.quantity, phase(row)), row.total) for row in table if row.place is Place.DEVICE
    )


def _present(moment: str) -> list[tuple[Quantity, Phase | None]]:
    quantities, phases = MOMENTS[moment]
    always = [*((quantity, None) for quantity in quantities), (Quantity.WORKSPACE, Phase.STATE)]
    passing = (Quantity.WEIGHT_GRADIENT, Quantity.WORKSPACE)
    return [*always, *((quantity, phase) for quantity in passing for phase in phases)]


def peak(table: CostTable) -> Expr:
    """Return the greatest of the moments [byte]."""
    at = moments(table)
    names = ["backward"]  # unless weights stay whole, the end of forward holds a part of it
    names += ["optimizer step"] if at["optimizer step"] != at["between steps"] else []
    if any(row.phase is Phase.FORWARD for row in table.select(Quantity.WORKSPACE)):
        names.append("end of forward")
    return Max(*(at[name] for name in names), evaluate=False) if names[1:] else at["backward"]
