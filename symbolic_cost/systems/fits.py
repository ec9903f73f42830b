"""Whether a job fits: what each stage of a pipeline needs against what the device has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sympy import Expr

from symbolic_cost.ledger import CostTable
from symbolic_cost.parallel.memory import moments, peak
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.systems.machines import Machine


@dataclass(frozen=True, slots=True)
class Fit:
    """One stage on one device.

    Args:
        stage: of the pipeline.
        needed: at the fullest moment [byte].
        usable: what a program gets of the device's memory [byte].
        moment: the fullest one, "backward" or "optimizer step"; empty while symbols are left.
    """

    stage: Stage
    needed: Expr
    usable: Expr
    moment: str

    @property
    def fits(self) -> bool | None:
        """Whether it does; None while symbols are left."""
        left = self.needed.is_number and self.usable.is_number
        return bool(self.needed <= self.usable) if left else None


def fits(tables: Mapping[Stage, CostTable], machine: Machine) -> tuple[Fit, ...]:
    """Say of every stage whether it fits, and which moment of the step binds.

    Args:
        tables: memory of every stage that differs, as `memory_table` gives it.
        machine: its memory.
    """
    return tuple(_fit(stage, table, machine.usable.value) for stage, table in tables.items())


def _fit(stage: Stage, table: CostTable, usable: Expr) -> Fit:
    held = moments(table)
    if all(size.is_number for size in held.values()):
        moment = max(held, key=lambda name: held[name])
        return Fit(stage, held[moment], usable, moment)
    return Fit(stage, peak(table), usable, "")
