"""Memory of one rank: states, activations in flight, workspace, and the moments of the step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import cached_property

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.algebra import add, mul
from symbolic_cost.checking import accepts, described
from symbolic_cost.conventions.questions import Conventions, Saved
from symbolic_cost.errors import Problems, quote, unknown
from symbolic_cost.extrema import Min
from symbolic_cost.grouping import grouped
from symbolic_cost.lazy import Recent
from symbolic_cost.ledger import CostTable, Phase, Place, Quantity, Row
from symbolic_cost.ops.derive import PartCosts
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.part import Part
from symbolic_cost.ops.recompute import KEEP_ALL, Recompute
from symbolic_cost.parallel.degrees import SHARDED
from symbolic_cost.parallel.layout import layout as named_layout
from symbolic_cost.parallel.liveness import Backward
from symbolic_cost.parallel.moments import DeviceBytes
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.part_memory import STATES, PartMemory, part_memory
from symbolic_cost.parallel.pipeline import Pipeline
from symbolic_cost.parallel.schedules import schedule
from symbolic_cost.parallel.sharded import States
from symbolic_cost.parallel.software import Making, Software
from symbolic_cost.parallel.states import optimizer, precision
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.parallel.table import Divided, StageCosts
from symbolic_cost.parallel.units import Standing, Units, Whole
from symbolic_cost.parallel.unused import unused_gradients
from symbolic_cost.parallel.workspace import in_backward, in_forward, workspace_row
from symbolic_cost.records import dataclass, replace


@dataclass(frozen=True)
class Training:
    """How a model is trained, as far as memory is concerned.

    Args:
        recompute: what backward computes again.
        microbatches: of one step and pipeline.
        offload: quantities kept in the memory of the host.
        chunks: model chunks per stage, for schedules that leave it open.
        layout: how many blocks each stage holds: "even", "uneven", "ends=1", "ends=0/3".
        saved: what is kept of inputs that are gathered for use; None leaves it to the conventions.
            Shards are gathered again in backward.
        shares: of what is offloaded, how much is on the host, as terms where that is open; all of
            it where nothing is said.
        software: what of a framework decides what lives for a while.
    """

    precision: str = "bf16-mixed"
    optimizer: str = "adam"
    recompute: Recompute = KEEP_ALL
    schedule: str = "1f1b"
    microbatches: Expr = symbols.M
    offload: frozenset[str] = frozenset()
    chunks: Expr = symbols.v
    layout: str = "even"
    saved: Saved | None = None
    shares: Mapping[str, Expr] = field(default_factory=dict)
    software: Software = Software()

    def hosted(self, quantity: Quantity) -> Expr:
        """Return the share of a quantity that is on the host."""
        name = quantity.value
        return self.shares.get(name, Integer(1)) if name in self.offload else Integer(0)

    @property
    def pipeline(self) -> Pipeline:
        """How the stages work together."""
        blocks = named_layout(self.layout)
        return Pipeline(self.schedule, self.microbatches, self.chunks, blocks)

    def __post_init__(self) -> None:
        """Refuse names that are none, and numbers that are no count."""
        problems = Problems()
        problems.texts += [
            f"Training: {name} = {quote(value)}: {described(hint)} is accepted"
            for name, value, hint in (
                ("recompute", self.recompute, Recompute),
                ("offload", self.offload, frozenset[str]),
                ("chunks", self.chunks, Expr | int),
                ("layout", self.layout, str),
                ("saved", self.saved, Saved | None),
            )
            if not accepts(hint, value)
        ]
        problems.refuse()
        for look_up, name in (
            (precision, self.precision),
            (optimizer, self.optimizer),
            (schedule, self.schedule),
            (named_layout, self.layout),
        ):
            problems.attempt(look_up, name)
        accepted = [quantity.value for quantity in (*STATES, Quantity.SAVED)]
        strange = sorted(name for name in self.offload if name not in accepted)
        problems.texts += [unknown("offload", name, accepted) for name in strange]
        number = symbols.exact(self.microbatches)
        if number.is_extended_positive is False:
            problems.texts.append(f"microbatches = {quote(number)}: a positive number is accepted")
        problems.refuse()
        object.__setattr__(self, "microbatches", number)

    def conventions_of(self, conventions: Conventions) -> Conventions:
        """Return conventions with what the training and its software keep; alike for the same."""
        key = (id(conventions), self.saved, self.software)
        return _COUNTED.of(key, lambda: (conventions, self._kept(conventions)))[1]

    def _kept(self, conventions: Conventions) -> Conventions:
        own = self.software.counted(conventions)
        return own if self.saved in (None, own.saved) else replace(own, saved=self.saved)

    def counted(self, conventions: Conventions) -> Conventions:
        """Return the same with the bytes of the precision; of the same answers one object."""
        key = (id(conventions), self.saved, self.software, self.precision)
        make = precision(self.precision).applied
        return _COUNTED.of(key, lambda: (conventions, make(self.conventions_of(conventions))))[1]


_COUNTED: Recent[tuple[Conventions, Conventions]] = Recent(64)
"""By the id of what they are made of, which lives as long."""


def memory_table(
    model: Model,
    strategy: Strategy,
    conventions: Conventions,
    training: Training | None = None,
    *,
    stage: Stage = Stage.FIRST,
) -> CostTable:
    """Derive what one rank of a pipeline stage holds [byte].

    Returns:
        Rows of weights, their gradients, master weights, optimizer states, saved activations
        times the microbatches in flight, and the workspace of the backward pass; rows say whether
        the device or the host holds them.
    """
    chosen = training or Training()
    counted, plan = chosen.counted(conventions), chosen.pipeline
    divided = Divided(model, strategy, counted, plan, ends=chosen.software.units)
    return Memory(divided, chosen).table(stage)


@dataclass(frozen=True)
class Memory:
    """What the ranks of every stage hold.

    Args:
        divided: the model, under conventions with the bytes of the precision.
    """

    divided: Divided
    training: Training

    def __post_init__(self) -> None:
        self.divided.model.check_trains()

    def table(self, stage: Stage) -> CostTable:
        """Derive what one rank of a stage holds [byte]; see `memory_table`."""
        hosted, parts = self.training.offload, self._parts(stage)
        rows = [
            replace(self._timed(row), count=mul(times, row.count), source=source or row.source)
            for group in _GROUPS
            for costs, held in parts
            for times, source in (self._times(group, costs.part, stage),)
            for row in held.counted(group, costs)
            if times != 0
        ]
        placed = (
            replace(row, place=Place.HOST) if row.quantity.value in hosted else row
            for row in (*rows, *self._workspace(stage, parts))
            if row.expr != 0
        )
        return replace(self._costs(stage).table, rows=tuple(placed))

    def device_bytes(self, stage: Stage) -> DeviceBytes:
        """Return what the device holds [byte], by quantity and phase of a workspace."""
        parts = self._parts(stage)
        sums: DeviceBytes = {}
        training = self.training
        here = {q: 1 - training.hosted(q) for q in Quantity if q.value in training.offload}
        gone = {quantity for quantity, share in here.items() if share == 0}
        for costs, held in parts:
            often: dict[str, Expr] = {}
            for (group, quantity, count), size in held.sums.items():
                if group not in often:
                    often[group], _ = self._times(group, costs.part, stage)
                times = often[group]
                if times != 0 and quantity not in gone:
                    total = mul(here.get(quantity, _WHOLE), times, costs.times(count), size)
                    phase = self._made if quantity is Quantity.WEIGHT_GRADIENT else None
                    sums.setdefault((quantity, phase), []).append(total)
        for row in self._workspace(stage, parts):
            sums.setdefault((row.quantity, row.phase), []).append(row.expr)
        return sums

    def _timed(self, row: Row) -> Row:
        """Return a row of gradients in the phase that makes them; others stay as they are."""
        made = row.quantity is Quantity.WEIGHT_GRADIENT and self._made
        return replace(row, phase=made) if made else row

    @property
    def _made(self) -> Phase | None:
        """The phase that makes the gradients of every step; none where they stay."""
        return None if self.software.gradients == "kept" else Phase.BACKWARD_WEIGHT

    @cached_property
    def software(self) -> Software:
        """What of the framework decides what lives for a while.

        Gradients of other sizes than the weights are sums in buffers of their own, which stay.
        """
        policy, software = precision(self.training.precision), self.training.software
        own = {policy.value, policy.value + policy.master}
        each = self.divided.ranks.zero == SHARDED and self._whole is not Whole.STEP
        if software.making is Making.REDUCED and not each:
            cast = Making.CAST if policy.gradient > policy.value else Making.APART
            software = replace(software, making=cast)
        return software if policy.gradient in own else replace(software, gradients="kept")

    @property
    def assumed(self) -> Iterator[str]:
        """Say what of the framework is taken to be, in words."""
        level, placed = self.divided.ranks.zero, self.divided.placement
        yield self.software.description
        yield from self.software.merged(self.divided.split_model)
        if self.training.software.making is Making.REDUCED and 0 < level < SHARDED:
            yield (
                f"zero={level} keeps whole weights from step to step; FSDP that does not reshard "
                f"them after forward keeps shards: zero={SHARDED},reshard=1"
            )
        if placed.adds_up and not placed.whole:
            yield "weights that a pipeline's backward leaves whole are taken to stay so"

    @cached_property
    def _whole(self) -> Whole:
        """How long weights are whole that ranks keep in shards."""
        passing = Whole.MICROBATCH if self.divided.placement.whole else Whole.USE
        return Whole.STEP if self.divided.placement.adds_up else passing

    def _costs(self, stage: Stage, recompute: Recompute | None = None) -> StageCosts:
        return self.divided.costs(stage, recompute or self.training.recompute)

    def _parts(self, stage: Stage) -> list[tuple[PartCosts, PartMemory]]:
        """Return what each part of a stage takes, made once for all stages that have it."""
        divided, chosen = self.divided, self.training
        policy, update = precision(chosen.precision), optimizer(chosen.optimizer)
        share, rules = divided.share(stage), divided.conventions
        states = States(share, divided.placement, rules, policy, update)
        weights = grouped((part.path, held) for part, held in states.model.learned)
        parts = []
        both = (self._costs(stage).parts, self._costs(stage, KEEP_ALL).parts)
        for costs, executed in zip(*both, strict=True):
            own = tuple(held for some in weights.get(costs.part.path, ()) for held in some)
            what = (
                "memory",
                policy,
                update,
                self.software,
                self._whole,
                tuple(weight.tensor for _, weight in own),
            )
            if what not in costs.derived:
                rows = tuple(states.state_rows(costs.part.path, own))
                backward = Backward(costs, executed, rules, chosen.recompute, self.software)
                step = self._whole is Whole.STEP
                costs.derived[what] = part_memory(backward, rows, for_a_step=step)
            parts.append((costs, costs.derived[what]))
        return parts

    def _times(self, group: str, part: Part, stage: Stage) -> tuple[Expr, str]:
        """Return how many times a group of rows is there at once, and where that stands."""
        pipeline, stages = self.divided.pipeline, self.divided.stages
        plan = pipeline.schedule
        if group == "resident":
            return (plan.copies if part.is_block else Integer(1)), ""
        if group == "states":
            sharded = self.divided.ranks.zero or not part.is_block
            return (Integer(1) if sharded else plan.copies), ""
        if group == "shared":
            return Integer(1), ""
        if group == "waiting":
            return pipeline.of(plan.residue, stages, stage), plan.source
        ends = plan.ended if part.path in self._behind else plan.entered
        count = plan.in_flight if part.is_block or ends is None or stages == 1 else ends
        return pipeline.of(count, stages, stage), ""

    @cached_property
    def _behind(self) -> frozenset[str]:
        """Paths of what stands behind the first block, on the last chunk of all."""
        parts = self.divided.split_model.parts
        first = next((place for place, part in enumerate(parts) if part.is_block), len(parts))
        return frozenset(part.path for part in parts[first:])

    def _workspace(
        self, stage: Stage, parts: Iterable[tuple[PartCosts, PartMemory]]
    ) -> Iterator[Row]:
        """Yield what is there for a while [byte]: each as much as the part that takes most of it.

        What backward recomputes at once is no more than there is: of every fourth block kept, three
        where the stage has three. The weights of one part are whole at a time, or all of them from
        forward on. The optimizer converts gradients that are smaller than the master weights, and
        makes some of its moments anew where every op runs on all weights.
        """
        training, listed = self.training, tuple(parts)
        policy, every = precision(training.precision), training.recompute.every
        yield from self._costs(stage).buffers
        standing = []
        for costs, held in listed:
            once = every if every == 1 else Min(every, costs.part.repeat / costs.part.chunks)
            standing.append(Standing(costs, held.backward, once, held.gathered))
        units = Units(standing, self.software.ends, self._whole)
        plan = training.pipeline.schedule
        passing = (Quantity.SAVED, Quantity.WEIGHT_GRADIENT)
        here = {quantity: 1 - training.hosted(quantity) for quantity in passing}
        size = in_backward(units, here, training.microbatches, deferred=plan.residue != 0)
        yield workspace_row("backward", Phase.BACKWARD_INPUT, size)
        yield workspace_row(
            "forward", Phase.FORWARD, in_forward(units, here, training.microbatches)
        )
        master, moments = (
            add(*(held.whole(quantity, costs) for costs, held in listed))
            for quantity in (Quantity.MASTER_WEIGHT, Quantity.OPTIMIZER)
        )
        converted = master if policy.master > policy.gradient else Integer(0)
        if self.software.making is Making.RETURNED:
            yield unused_gradients(self.divided, stage, standing)
        yield workspace_row("converted_gradients", Phase.STEP, converted)
        copies = optimizer(training.optimizer).copied if self.software.by_op else Integer(0)
        yield workspace_row("copied_moments", Phase.STEP, mul(copies, moments))


_WHOLE = Integer(1)
_GROUPS = ("resident", "states", "shared", "saved", "waiting")
"""Why rows are there: weights and gradients, states, those of weights that all blocks share,
activations, what waits for their products."""
