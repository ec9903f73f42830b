"""Time of a training step: stages, schedule, exposed communication and optimizer as one chain."""

from collections.abc import Iterator, Mapping

from sympy import Expr

from symbolic_cost import symbols
from symbolic_cost.algebra import add, replaced
from symbolic_cost.extrema import Max
from symbolic_cost.ledger import TRAINING, CostTable, Origin, Phase, Quantity, Row
from symbolic_cost.ops.graph import Model
from symbolic_cost.parallel.memory import Training
from symbolic_cost.parallel.stages import Stage
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.parallel.table import Divided, StageCosts
from symbolic_cost.records import dataclass, replace
from symbolic_cost.systems.chain import Chain
from symbolic_cost.systems.definitions import Definitions
from symbolic_cost.systems.ends import StepEnds
from symbolic_cost.systems.machines import Machine
from symbolic_cost.systems.methods import Methods
from symbolic_cost.systems.passes import PASSES, StagePasses, StageTimes
from symbolic_cost.systems.results import RESULTS, STEP_PARTS
from symbolic_cost.systems.setting import Setting
from symbolic_cost.units import Unit

__all__ = ["RESULTS", "STEP_PARTS", "Methods", "StageTimes", "StepTime", "step_time"]


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
    divided: Divided

    def rows(self, stage: Stage = Stage.FIRST) -> CostTable:
        """Return the times of one stage's ops per microbatch as a table of rows [s].

        Exposed communication is a row of its own, whose origin is waiting.
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
                yield replace(row, kind=kind, expr=exposed, origin=Origin.WAITING)

    def _plain(self, expr: Expr) -> Expr:
        plain = expr
        for symbol in expr.free_symbols:
            if symbol.name in self.chain.definitions:
                plain = plain.xreplace({symbol: self.chain.expression(symbol.name)})
        return plain


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
    model.check_trains()
    setting = Setting(model, strategy, machine, training or Training(), methods or Methods())
    to = Definitions()
    stages, costs = defined_step(setting, to)
    tables = {stage: own.table for stage, own in costs.items()}
    conditions = dict.fromkeys(c for table in tables.values() for c in table.conditions)
    return StepTime(Chain(to.definitions, tuple(conditions)), stages, tables, setting.divided)


def defined_step(
    setting: Setting, to: Definitions
) -> tuple[tuple[StageTimes, ...], Mapping[Stage, StageCosts]]:
    """Define a step, and return the times of each stage's ops and what they come from."""
    if setting.timing.rates is not None:
        setting.timing.rates.define(to)
    costs = {
        stage: setting.divided.costs(stage, setting.training.recompute)
        for stage in setting.structure.stages
    }
    passes = StagePasses(setting, to)
    stages = tuple(passes.of(stage, own) for stage, own in costs.items())
    _schedule(setting, to, tuple(costs))
    StepEnds(setting, to).of(costs)
    _results(setting, to)
    return stages, costs


def _schedule(setting: Setting, to: Definitions, stages: tuple[Stage, ...]) -> None:
    """Define the passes of the mean stage, all microbatches of the slowest one, the bubble."""
    sizes: dict[Expr, Expr] = {}
    for name, symbol in zip(PASSES, (symbols.T_F, symbols.T_B, symbols.T_W), strict=True):
        mean = (
            add(*(setting.structure.alike(stage) * to[f"{stage}.{name}"] for stage in stages))
            / setting.divided.stages
        )
        sizes[symbol] = to.keep(f"mean.{name}", mean)
    slowest = Max(*(to[f"{stage}.microbatch"] for stage in stages))
    pace = to.keep("microbatch", slowest)
    to.keep("microbatches", setting.training.microbatches * pace)
    pipeline = setting.divided.pipeline
    bubble = pipeline.of(pipeline.schedule.bubble, setting.divided.stages)
    to.keep("bubble", replaced(bubble, sizes))
    waits = Max(*(to[f"{stage}.exposed"] for stage in stages))
    to.keep("microbatches.exposed", setting.training.microbatches * waits)


def _results(setting: Setting, to: Definitions) -> None:
    """Define the step and its figures."""
    step = to.keep("step", add(*(to[name] for name in STEP_PARTS)))
    to.keep("bubble fraction", to["bubble"] / step)
    waited = ("microbatches.exposed", "gradients", "weights", "optimizer.exposed")
    to.keep("exposed", add(*(to[name] for name in waited if name in to.definitions)))
    what = (
        "work",
        id(setting.model),
        setting.training.recompute,
    )  # the model lives as long as these
    unit, amount, needed, done = to.once(what, setting.methods.counted, lambda: _worked(setting))
    to.keep(f"{unit} per second", amount * setting.training.microbatches / step)
    peak = to.keep("peak rate", setting.ranks.ranks * setting.machine.peak(setting.units))
    needed, done = to.keep("model FLOP", needed), to.keep("hardware FLOP", done)
    microbatches = setting.training.microbatches
    to.keep("achieved", microbatches * needed / (setting.ranks.ranks * step))
    to.keep("mfu", microbatches * needed / (peak * step))
    to.keep("hfu", microbatches * done / (peak * step))


def _worked(setting: Setting) -> tuple[str, Expr, Expr, Expr]:
    """Return what is worked off, how much of it, and the FLOP of the model and of the hardware."""
    executed = replace(setting.methods.counted, fused_recompute=True)  # whatever runs again
    table = Divided(setting.model, Strategy(), executed).table(recompute=setting.training.recompute)
    useful = [phase for phase in TRAINING if phase is not Phase.RECOMPUTE]
    needed, done = (table.total(Quantity.FLOP, phase=phases) for phases in (useful, TRAINING))
    return *setting.model.work, needed, done
