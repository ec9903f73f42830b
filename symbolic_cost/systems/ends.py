"""What happens once per step: sums of gradients, clipping, optimizer, gathers of weights."""

from __future__ import annotations

from collections.abc import Mapping

from sympy import Add, Expr, Integer, Mul

from symbolic_cost.extrema import Max
from symbolic_cost.ledger import CollectiveKind, CostTable, Phase, Quantity
from symbolic_cost.parallel.catalogue import DATA_AXES
from symbolic_cost.parallel.sharded import States
from symbolic_cost.parallel.stages import Stage, stage_model
from symbolic_cost.parallel.states import optimizer
from symbolic_cost.symbols import named
from symbolic_cost.systems.overlap import Overlap
from symbolic_cost.systems.setting import Setting
from symbolic_cost.systems.times import Definitions

ENDS = ("gradients", "clipping", "optimizer", "weights")
"""Definitions of what happens once."""

_NORM = Integer(4)  # bytes of the sum of squares, in single precision


class StepEnds:
    """Writes what happens once per step.

    Args:
        given: what the step rests on.
        to: where the definitions go.
    """

    def __init__(self, given: Setting, to: Definitions) -> None:
        self.given, self.to = given, to

    def of(self, tables: Mapping[Stage, CostTable]) -> None:
        """Define what happens once per step: sums of gradients, clipping, optimizer, gathers."""
        ends: dict[str, list[Expr]] = {name: [] for name in ENDS}
        for stage, table in tables.items():
            backward = named(f"{stage}.backward") + named(f"{stage}.weight gradients")
            summing = table.select(phase=Phase.BACKWARD_WEIGHT)
            ends["gradients"].append(self._once(f"{stage}.gradients", summing, backward))
            gathering = table.select(phase=Phase.STEP)
            forward = named(f"{stage}.forward")
            ends["weights"].append(self._once(f"{stage}.weights", gathering, forward))
            gradients = table.total(Quantity.WEIGHT_GRADIENT)
            if self.given.methods.clipping:
                ends["clipping"].append(self._clipping(stage, gradients))
            updating = self.given.timing.device.memory_time(self._updated(stage, table, gradients))
            ends["optimizer"].append(self.to.keep(f"{stage}.optimizer", updating))
        for name, terms in ends.items():
            self.to.keep(name, Max(*terms) if terms else Integer(0))

    def _once(self, name: str, table: CostTable, busy: Expr) -> Expr:
        """Define the exposed collectives of a step; messages of one group go together."""
        messages: dict[tuple[str, CollectiveKind], list[Expr]] = {}
        policies: dict[str, Overlap] = {}
        for row in table.select(Quantity.COMMUNICATION, where=lambda row: row.per_step):
            move = row.collective
            if move is not None:
                group = "ends" if row.kind == "pipeline" else move.mesh_axis
                messages.setdefault((group, move.kind), []).append(
                    Mul(row.count, move.calls, move.message)
                )
                policies[group] = self.given.timing.overlap(move)
        exposed = []
        for (group, kind), sizes in messages.items():
            apart = group == "ends"
            hops = self.given.timing.pair("pp") if apart else self.given.timing.hops(group)
            size = self.to.add(f"{name}.{group}.{kind}.message", Add(*sizes))
            time = self.given.timing.collectives.time(kind, size, self.to.hops(group, hops))
            took = self.to.add(f"{name}.{group}.{kind}", time)
            exposed.append(policies[group].exposed(took, busy))
        return self.to.keep(name, Add(*exposed))

    def _clipping(self, stage: Stage, gradients: Expr) -> Expr:
        """Define the norm (one read, one small sum over ranks) and the scaling (read, write)."""
        time = self.given.timing.device.memory_time(3 * gradients)
        for mesh in self.given.strategy.mesh:
            if mesh not in DATA_AXES:
                hops = self.to.hops(mesh, self.given.timing.hops(mesh))
                time += self.given.timing.collectives.time(CollectiveKind.ALL_REDUCE, _NORM, hops)
        return self.to.keep(f"{stage}.clipping", time)

    def _updated(self, stage: Stage, table: CostTable, gradients: Expr) -> Expr:
        """Return what the optimizer reads and writes [byte]: its share of all it keeps."""
        share = stage_model(self.given.own, self.given.pp, stage, self.given.plan)
        states = States(
            share,
            self.given.placement,
            self.given.conventions,
            self.given.policy,
            optimizer(self.given.training.optimizer),
        )
        kept = Add(*(row.total for row in states.rows()))
        degree = self.given.placement.degree(self.given.placement.stored.get("optimizer", ()))
        stored = self.given.placement.degree(self.given.placement.stored.get("weight", ()))
        reduced = self.given.placement.degree(
            self.given.placement.stored.get("weight_gradient", ())
        )
        weights = table.total(Quantity.WEIGHT) * stored / degree
        reads = Integer(1) if self.given.policy.master else Integer(2)
        return 2 * kept + gradients * reduced / degree + reads * weights
