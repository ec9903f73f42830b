"""What happens once per step: sums of gradients, clipping, optimizer, gathers of weights."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from sympy import Expr, Integer

from symbolic_cost.algebra import add, mul, sums
from symbolic_cost.extrema import Max
from symbolic_cost.ledger import Collective, CollectiveKind, Phase, Quantity, Row
from symbolic_cost.ops.graph import Weights
from symbolic_cost.ops.update import Work
from symbolic_cost.parallel.sharded import PartUpdate, States
from symbolic_cost.parallel.stages import Stage
from symbolic_cost.parallel.states import optimizer
from symbolic_cost.parallel.table import StageCosts
from symbolic_cost.systems.definitions import Definitions
from symbolic_cost.systems.offload import Offload
from symbolic_cost.systems.overlap import Overlap, exposed
from symbolic_cost.systems.pricing import PASSING, SLOWNESS
from symbolic_cost.systems.results import ENDS
from symbolic_cost.systems.setting import Setting
from symbolic_cost.systems.times import collective_time, sent_time, work_time


def states_of(setting: Setting, stage: Stage) -> States:
    """Return the states of one rank of a stage."""
    return States(
        setting.divided.share(stage),
        setting.divided.placement,
        setting.conventions,
        setting.policy,
        optimizer(setting.training.optimizer),
        setting.timing.mesh,
    )


class StepEnds:
    """Writes what happens once per step."""

    def __init__(self, setting: Setting, to: Definitions) -> None:
        self.setting, self.to, self.offload = setting, to, Offload(setting, to)

    def of(self, stages: Mapping[Stage, StageCosts]) -> None:
        """Define what happens once per step: sums of gradients, clipping, optimizer, gathers."""
        ends: dict[str, list[Expr]] = {name: [] for name in ENDS}
        hosting: list[Expr] = []
        alone = self.setting.divided.placement.adds_up  # reduced when the last backward is done
        for stage, costs in stages.items():
            backward = self.to[f"{stage}.backward"] + self.to[f"{stage}.weight gradients"]
            beside = Integer(0) if alone else backward
            summed = self._once(f"{stage}.gradients", costs, Phase.BACKWARD_WEIGHT, beside)
            ends["gradients"].append(summed)
            forward = self.to[f"{stage}.forward"]
            ends["weights"].append(self._once(f"{stage}.weights", costs, Phase.STEP, forward))
            states = states_of(self.setting, stage)
            clipped, updated = self._updated(stage, states)
            ends["clipping"] += clipped
            waits = self.offload.step(stage, costs, states, updated)
            ends["optimizer"].append(updated + waits)
            hosting.append(waits)
        for name, terms in ends.items():
            self.to.keep(name, Max(*terms) if terms else Integer(0))
        if self.setting.training.offload:
            self.to.keep("optimizer.exposed", Max(*hosting))

    def _updated(self, stage: Stage, states: States) -> tuple[list[Expr], Expr]:
        """Define the times of clipping, if there are weights, and of the optimizer."""
        held = ((part.path, part.repeat) for part in states.model.parts)
        what = (
            "ends",
            stage,
            self.setting.timing.key(self.setting.timing.mesh),
            *_state_key(states),
            *held,
        )

        def made() -> tuple[list[Expr], Expr]:
            updates = [
                (p.repeat, self._update(states, p.path, own)) for p, own in states.model.learned
            ]
            clipped = [self._clipped(f"{stage}.clipping", states, updates)] if updates else []
            optimized = Work.together((count, update.optimizer) for count, update in updates)
            return clipped, self._work(f"{stage}.optimizer", optimized)

        return self.to.once(what, states.placement, made)

    def _update(self, states: States, path: str, weights: Weights) -> PartUpdate:
        """Return what a part costs at the end of a step, once; it is the same on every stage."""
        names = tuple(weight.tensor for _, weight in weights)
        what = ("update", path, names, *_state_key(states))
        return self.to.once(what, states.placement, lambda: states.update(path, weights))

    def _clipped(
        self, name: str, states: States, updates: Sequence[tuple[Expr, PartUpdate]]
    ) -> Expr:
        """Define the time of clipping, and of the sum of the gradients' squares over ranks."""
        works = Work.together((count, update.clipping) for count, update in updates)
        norm = states.norm({mesh for _, update in updates for mesh in update.split})
        return self._work(name, works, norm.collective if norm else None)

    def _work(self, name: str, work: Work, move: Collective | None = None) -> Expr:
        """Define the time of what runs over all weights together, and of its collective."""
        timing = self.setting.timing
        if timing.rates is not None:
            busy = mul(self.to[f"{SLOWNESS}.{PASSING}"], timing.rates.update(work))
        else:
            busy = timing.roofline.time(*work_time(work, timing, name, self.to))
        if move is not None:
            busy += collective_time(move, timing, self.to)
        return self.to.keep(name, busy)

    def _once(self, name: str, costs: StageCosts, phase: Phase, busy: Expr) -> Expr:
        """Define the exposed collectives of a step; messages of one group go together."""
        messages: dict[Group, list[Expr]] = {}
        for one in costs.parts:
            rows = self.to.once(("sent", phase), one.once, partial(_sent, one.once, phase))
            make = partial(_sums, rows, one.times)
            for key, size in self.to.once(("messages", phase), one, make).items():
                messages.setdefault(key, []).append(size)
        for key, size in _sums(_sent(costs.sent, phase)).items():
            messages.setdefault(key, []).append(size)
        sent: list[tuple[Overlap, Expr]] = []
        for (meshes, kind, ranks), sizes in messages.items():
            pair = "ends" if meshes == ("pp",) and ranks == _PAIR else ""  # they share a weight
            group = pair or "+".join(meshes)
            whole = mul(self.setting.reduced(phase), add(*sizes))
            size = self.to.add(f"{name}.{group}.{kind}.message", whole)
            time = sent_time(kind, meshes, size, self.setting.timing, self.to, pair=pair)
            took = self.to.add(f"{name}.{group}.{kind}", time)
            sent.append((self.setting.timing.overlap(meshes, phase, kind), took))
        waits, took = exposed(sent, busy), add(*(one for _, one in sent))
        return self.to.keep(name, waits + mul(self.setting.timing.steal, took - waits))


def _state_key(states: States) -> tuple[object, ...]:
    """Return what updates depend on besides weights and placement."""
    return states.conventions.sizes, states.precision, states.optimizer


_PAIR = 2
Group = tuple[tuple[str, ...], CollectiveKind, Expr]
"""Mesh axes, kind and ranks of a collective."""


def _sent(rows: Iterable[Row], phase: Phase) -> list[tuple[Row, Collective]]:
    """Return the collectives of a step in a phase."""
    return [
        (row, row.collective)
        for row in rows
        if row.per_step and row.phase is phase and row.quantity is Quantity.COMMUNICATION
        if row.collective is not None
    ]


def _sums(
    sent: Iterable[tuple[Row, Collective]], times: Callable[[Expr], Expr] = lambda count: count
) -> dict[Group, Expr]:
    """Return the messages of a step's collectives [byte] by group.

    Args:
        sent: of a phase.
        times: how often a row occurs, of its count.
    """
    return sums(
        ((move.meshes, move.kind, move.ranks), mul(times(row.count), move.calls, move.message))
        for row, move in sent
    )
