"""Time of a training step: stages, schedule, exposed communication and optimizer as one chain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sympy import Add, Expr, Integer, Max, Mul

from symbolic_cost import symbols
from symbolic_cost.conventions.presets import MODEL_FLOP, STANDARD
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.ledger import (
    TRAINING,
    CollectiveKind,
    CostTable,
    Phase,
    Quantity,
    Row,
)
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.recompute import KEEP_ALL
from symbolic_cost.parallel.catalogue import DATA_AXES
from symbolic_cost.parallel.memory import Training
from symbolic_cost.parallel.schedules import schedule
from symbolic_cost.parallel.sharded import States
from symbolic_cost.parallel.stages import Stage, stage_model
from symbolic_cost.parallel.states import optimizer, precision
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.parallel.table import strategy_table
from symbolic_cost.symbols import named
from symbolic_cost.systems.chain import Chain
from symbolic_cost.systems.collectives import COLLECTIVES, Collectives
from symbolic_cost.systems.machines import Machine
from symbolic_cost.systems.overlap import Overlap
from symbolic_cost.systems.rooflines import MAXIMUM, Roofline
from symbolic_cost.systems.times import Definitions, OpTime, Timing, op_times
from symbolic_cost.units import Unit

PASSES: Mapping[str, tuple[Phase, ...]] = {
    "forward": (Phase.FORWARD,),
    "backward": (Phase.RECOMPUTE, Phase.BACKWARD_INPUT),
    "weight gradients": (Phase.BACKWARD_WEIGHT,),
}
"""What the three passes of a schedule run; recomputation comes before backward."""

STEP_PARTS = ("microbatches", "bubble", "gradients", "clipping", "optimizer", "weights")
"""Definitions that add up to the step."""

RESULTS = ("step", "bubble fraction", "exposed", "tokens per second", "achieved", "mfu", "hfu")
"""Definitions that say how good the step is."""

_NORM = Integer(4)  # bytes of the sum of squares, in single precision


@dataclass(frozen=True)
class Methods:
    """Named answers to how work takes time.

    Args:
        roofline: how computing and memory make one time.
        collectives: how long a collective takes.
        overlaps: what of a communication is exposed, by mesh axis ("tp", "cp", "dp", "pp").
        clipping: whether gradients are clipped to a norm.
        scattered: whether tensor-parallel ranks, which hold the same activations unless these are
            split (sp), send a part each to the next stage and gather them there (narayanan-2021,
            section 4.1).
        conventions: answers to the counting questions.
    """

    roofline: Roofline = MAXIMUM
    collectives: Collectives = COLLECTIVES["hierarchical ring"]
    overlaps: Mapping[str, Overlap] = field(default_factory=dict)
    clipping: bool = True
    scattered: bool = False
    conventions: Conventions = STANDARD


@dataclass(frozen=True)
class StageTimes:
    """What one pipeline stage takes.

    Args:
        stage: which one.
        ops: times of its ops, once.
        counts: how often each op runs per microbatch, by path.
    """

    stage: Stage
    ops: tuple[OpTime, ...]
    counts: Mapping[str, Expr]


@dataclass(frozen=True)
class StepTime:
    """The time of a step as a chain, and what its definitions mean.

    Args:
        chain: ends with `STEP_PARTS` and `RESULTS`.
        stages: times of the ops of each stage.
        table: the cost table that each stage's times come from.
    """

    chain: Chain
    stages: tuple[StageTimes, ...]
    table: Mapping[Stage, CostTable]

    def rows(self, stage: Stage = Stage.FIRST) -> CostTable:
        """Return the times of one stage's ops per microbatch as a table of rows [s].

        Exposed communication is a row of its own, of kind "exposed" and its collectives.

        Args:
            stage: of the pipeline.
        """
        times = next(times for times in self.stages if times.stage is stage)
        table = self.table[stage]
        return replace(table, rows=tuple(self._rows(times)))

    def _rows(self, times: StageTimes) -> Iterator[Row]:
        for op in times.ops:
            row = Row(
                path=op.path,
                kind=op.kind,
                phase=op.phase,
                quantity=Quantity.TIME,
                unit=Unit.SECOND,
                expr=self._plain(op.busy),
                count=times.counts[op.path],
            )
            if row.expr != 0:
                yield row
            exposed = self._plain(op.exposed)
            if exposed != 0:
                kind = f"exposed {', '.join(op.collectives)}"
                yield replace(row, kind=kind, expr=exposed)

    def _plain(self, expr: Expr) -> Expr:
        found = expr
        for symbol in expr.free_symbols:
            if symbol.name in self.chain.definitions:
                found = found.xreplace({symbol: self.chain.expression(symbol.name)})
        return found


def step_time(
    model: Model,
    strategy: Strategy,
    machine: Machine,
    training: Training | None = None,
    methods: Methods | None = None,
) -> StepTime:
    """Derive the time of one training step [s].

    Every stage runs its microbatches one after the other; the slowest stage sets the pace, and
    the schedule's bubble is that of stages which all take the mean. Gradients are summed after
    the last microbatch, the norm of the gradients is taken and the optimizer runs from memory.

    Args:
        model: parts and sizes; b is the microbatch of all data-parallel ranks together.
        strategy: degrees of the mesh.
        machine: its rates and links.
        training: precision, optimizer, recomputation, schedule and microbatches.
        methods: roofline, algorithms of collectives, overlap.

    Returns:
        The chain, its last definitions the parts of the step, the step and its figures.

    Raises:
        InputError: names that are unknown, or a strategy that does not go with the model.
    """
    return _StepMaker(model, strategy, machine, training or Training(), methods or Methods()).made()


class _StepMaker:
    """Writes the chain of one step."""

    def __init__(
        self,
        model: Model,
        strategy: Strategy,
        machine: Machine,
        training: Training,
        methods: Methods,
    ) -> None:
        self.model, self.strategy, self.machine = model, strategy, machine
        self.training, self.methods = training, methods
        self.policy = precision(training.precision)
        self.units = training.precision.partition("-")[0]
        self.conventions = self.policy.applied(methods.conventions)
        self.plan = schedule(training.schedule)
        self.own = strategy.model(model)
        self.placement = strategy.placement(self.own)
        self.pp = strategy.degree("pp")
        whole = methods.scattered and "sp" not in strategy
        self.parts = strategy.degree("tp") if whole else Integer(1)
        self.timing = Timing(
            machine.device(self.units),
            machine.network(),
            strategy.mesh,
            methods.roofline,
            methods.collectives,
            methods.overlaps,
        )
        self.to = Definitions()

    def made(self) -> StepTime:
        """Define everything, the ops first."""
        tables = {
            stage: strategy_table(
                self.model,
                self.strategy,
                self.conventions,
                self.training.recompute,
                stage=stage,
                schedule=self.plan.name,
            )
            for stage in _stages(self.pp)
        }
        stages = tuple(self._stage(stage, table) for stage, table in tables.items())
        self._schedule([times.stage for times in stages])
        self._ends(tables)
        self._results()
        return StepTime(Chain(self.to.made), stages, tables)

    def _stage(self, stage: Stage, table: CostTable) -> StageTimes:
        """Define the passes of one stage and microbatch."""
        ops = op_times(table, self.timing, self.to)
        parts = stage_model(self.own, self.pp, stage, self.plan).parts
        counts = {
            op.path: part.repeat
            for part in parts
            for op in ops
            if op.path.startswith(f"{part.path}.")
        }
        for name, phases in PASSES.items():
            busy, exposed = [], []
            for part in parts:
                mine = [o for o in ops if o.phase in phases and o.path.startswith(f"{part.path}.")]
                label = f"{part.path}.{name}"
                busy.append(part.repeat * self.to.add(f"{label}.busy", _sum(o.busy for o in mine)))
                waits = self.to.add(f"{label}.exposed", _sum(o.exposed for o in mine))
                exposed.append(part.repeat * waits)
            working = self.to.keep(f"{stage}.{name}.busy", Add(*busy))
            sending = self._sent(stage, name, table, phases, working)
            self.to.keep(f"{stage}.{name}.exposed", Add(*exposed, sending))
        self._passes(stage, ops, counts)
        self.to.keep(f"{stage}.exposed", _sum(named(f"{stage}.{name}.exposed") for name in PASSES))
        self.to.keep(f"{stage}.microbatch", _sum(named(f"{stage}.{name}") for name in PASSES))
        return StageTimes(stage, tuple(ops), counts)

    def _passes(self, stage: Stage, ops: list[OpTime], counts: Mapping[str, Expr]) -> None:
        """Define the passes; the device idles where the host issues ops more slowly than it works.

        Gradients of inputs and weights are issued together, op by op.
        """
        for group in (tuple(PASSES)[:1], tuple(PASSES)[1:]):
            works = {
                name: named(f"{stage}.{name}.busy") + named(f"{stage}.{name}.exposed")
                for name in group
            }
            phases = [phase for name in group for phase in PASSES[name]]
            issued = Add(*(counts[op.path] * op.issued for op in ops if op.phase in phases))
            host = issued * self.timing.device.host
            idle = Max(0, host - Add(*works.values())) if host != 0 else host
            works[group[0]] += self.to.add(f"{stage}.{group[0]}.idle", idle)
            for name, work in works.items():
                self.to.keep(f"{stage}.{name}", work)

    def _sent(
        self, stage: Stage, name: str, table: CostTable, phases: tuple[Phase, ...], busy: Expr
    ) -> Expr:
        """Define what a stage waits for its neighbours in one pass."""
        sent = []
        for row in table.select(Quantity.COMMUNICATION, kind="pipeline", phase=phases):
            move = row.collective
            if move is not None and not row.per_step:
                hops = self.to.hops("neighbours", self.timing.pair("pp"))
                took = self.timing.collectives.time(move.kind, move.message / self.parts, hops)
                if self.parts != 1:
                    inside = self.to.hops("tp", self.timing.hops("tp"))
                    gather = CollectiveKind.ALL_GATHER
                    took += self.timing.collectives.time(gather, move.message, inside)
                time = self.to.add(f"{stage}.{name}.sent", row.count * took)
                sent.append(self.timing.overlap(move).exposed(time, busy))
        return Add(*sent)

    def _schedule(self, stages: list[Stage]) -> None:
        """Define the passes of the mean stage, all microbatches of the slowest one, the bubble."""
        weights = _weights(self.pp)
        sizes: dict[Expr, Expr] = {
            symbols.pp: self.pp,
            symbols.M: self.training.microbatches,
        }
        for name, symbol in zip(PASSES, (symbols.T_F, symbols.T_B, symbols.T_W), strict=True):
            mean = Add(*(weights[stage] * named(f"{stage}.{name}") for stage in stages)) / self.pp
            sizes[symbol] = self.to.keep(f"mean.{name}", mean)
        slowest = Max(*(named(f"{stage}.microbatch") for stage in stages))
        pace = self.to.keep("microbatch", slowest)
        self.to.keep("microbatches", self.training.microbatches * pace)
        self.to.keep("bubble", self.plan.bubble.xreplace(sizes))
        waits = Max(*(named(f"{stage}.exposed") for stage in stages))
        self.to.keep("microbatches.exposed", self.training.microbatches * waits)

    def _ends(self, tables: Mapping[Stage, CostTable]) -> None:
        """Define what happens once per step: sums of gradients, clipping, optimizer, gathers."""
        ends: dict[str, list[Expr]] = {name: [] for name in STEP_PARTS[2:]}
        for stage, table in tables.items():
            backward = named(f"{stage}.backward") + named(f"{stage}.weight gradients")
            summing = table.select(phase=Phase.BACKWARD_WEIGHT)
            ends["gradients"].append(self._once(f"{stage}.gradients", summing, backward))
            gathering = table.select(phase=Phase.STEP)
            forward = named(f"{stage}.forward")
            ends["weights"].append(self._once(f"{stage}.weights", gathering, forward))
            gradients = table.total(Quantity.WEIGHT_GRADIENT)
            if self.methods.clipping:
                ends["clipping"].append(self._clipping(stage, gradients))
            updating = self.timing.device.memory_time(self._updated(stage, table, gradients))
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
                policies[group] = self.timing.overlap(move)
        exposed = []
        for (group, kind), sizes in messages.items():
            apart = group == "ends"
            hops = self.timing.pair("pp") if apart else self.timing.hops(group)
            size = self.to.add(f"{name}.{group}.{kind}.message", Add(*sizes))
            time = self.timing.collectives.time(kind, size, self.to.hops(group, hops))
            took = self.to.add(f"{name}.{group}.{kind}", time)
            exposed.append(policies[group].exposed(took, busy))
        return self.to.keep(name, Add(*exposed))

    def _clipping(self, stage: Stage, gradients: Expr) -> Expr:
        """Define the norm (one read, one small sum over ranks) and the scaling (read, write)."""
        time = self.timing.device.memory_time(3 * gradients)
        for mesh in self.strategy.mesh:
            if mesh not in DATA_AXES:
                hops = self.to.hops(mesh, self.timing.hops(mesh))
                time += self.timing.collectives.time(CollectiveKind.ALL_REDUCE, _NORM, hops)
        return self.to.keep(f"{stage}.clipping", time)

    def _updated(self, stage: Stage, table: CostTable, gradients: Expr) -> Expr:
        """Return what the optimizer reads and writes [byte]: its share of all it keeps."""
        share = stage_model(self.own, self.pp, stage, self.plan)
        states = States(
            share,
            self.placement,
            self.conventions,
            self.policy,
            optimizer(self.training.optimizer),
        )
        kept = Add(*(row.total for row in states.rows()))
        degree = self.placement.degree(self.placement.stored.get("optimizer", ()))
        stored = self.placement.degree(self.placement.stored.get("weight", ()))
        reduced = self.placement.degree(self.placement.stored.get("weight_gradient", ()))
        weights = table.total(Quantity.WEIGHT) * stored / degree
        reads = Integer(1) if self.policy.master else Integer(2)
        return 2 * kept + gradients * reduced / degree + reads * weights

    def _results(self) -> None:
        """Define the step and its figures."""
        step = self.to.keep("step", _sum(named(name) for name in STEP_PARTS))
        self.to.keep("bubble fraction", named("bubble") / step)
        self.to.keep(
            "exposed",
            named("microbatches.exposed") + named("gradients") + named("weights"),
        )
        sizes = self.model.sizes
        tokens = sizes["b"] * sizes.get("l", Integer(1)) * self.training.microbatches
        self.to.keep("tokens per second", tokens / step)
        peak = self.strategy.ranks * self.machine.peak(self.units)
        once = cost(self.model, MODEL_FLOP, recompute=KEEP_ALL)
        again = cost(self.model, MODEL_FLOP, recompute=self.training.recompute)
        useful = [phase for phase in TRAINING if phase is not Phase.RECOMPUTE]
        needed = self.to.keep("model FLOP", once.total(Quantity.FLOP, phase=useful))
        made = self.to.keep("hardware FLOP", again.total(Quantity.FLOP, phase=TRAINING))
        microbatches = self.training.microbatches
        self.to.keep("achieved", microbatches * needed / (self.strategy.ranks * step))
        self.to.keep("mfu", microbatches * needed / (peak * step))
        self.to.keep("hfu", microbatches * made / (peak * step))


def _sum(terms: Iterator[Expr]) -> Expr:
    return Add(*terms)


def _stages(pp: Expr) -> tuple[Stage, ...]:
    if pp == 1:
        return (Stage.FIRST,)
    return (Stage.FIRST, Stage.LAST) if pp == 2 else tuple(Stage)  # noqa: PLR2004 - no middle


def _weights(pp: Expr) -> dict[Stage, Expr]:
    """Return how many stages are like each."""
    return {
        Stage.FIRST: Integer(1),
        Stage.MIDDLE: pp - 2,
        Stage.LAST: Integer(1),
    }
