"""Memory of one rank: states, activations in flight, workspace, and the moments of the step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from sympy import Expr, Integer

from symbolic_cost.algebra import add, mul
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.extrema import Max, Min
from symbolic_cost.grouping import grouped
from symbolic_cost.ledger import CostTable, Phase, Place, Quantity, Row
from symbolic_cost.ops.derive import PartCosts
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.recompute import KEEP_ALL, Recompute
from symbolic_cost.parallel.chunks import Chunks, chunks_assumed, unlike_chunks
from symbolic_cost.parallel.degrees import SHARDED
from symbolic_cost.parallel.liveness import Backward
from symbolic_cost.parallel.moments import DeviceBytes
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.part_memory import PartMemory, part_memory
from symbolic_cost.parallel.sharded import States
from symbolic_cost.parallel.software import Making, Software
from symbolic_cost.parallel.states import optimizer, precision
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.parallel.table import Divided, StageCosts
from symbolic_cost.parallel.training import Training as Training  # noqa: PLC0414 - known from here too
from symbolic_cost.parallel.units import Standing, Units, Whole
from symbolic_cost.parallel.unused import unused_gradients
from symbolic_cost.parallel.workspace import in_backward, in_forward, workspace_row
from symbolic_cost.records import dataclass, replace


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
            replace(self._timed(row), count=times, source=source or row.source)
            for group in _GROUPS
            for costs, held in parts
            for row in held.rows[group]
            for times, source in (self._times(group, costs, stage, row.count),)
            if times != 0
        ]
        rows += self._more(stage, parts)
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
            for (group, quantity, count), size in held.sums.items():
                times, _ = self._times(group, costs, stage, count)
                if times != 0 and quantity not in gone:
                    total = mul(here.get(quantity, _WHOLE), times, size)
                    phase = self._made if quantity is Quantity.WEIGHT_GRADIENT else None
                    sums.setdefault((quantity, phase), []).append(total)
        for row in self._more(stage, parts):
            if row.quantity not in gone:
                kept = mul(here.get(row.quantity, _WHOLE), row.expr)
                sums.setdefault((row.quantity, None), []).append(kept)
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
        if any(self._chunks(stage) for stage in self.divided.structure.stages):
            yield from chunks_assumed(self.divided.pipeline)
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

    def _times(self, group: str, costs: PartCosts, stage: Stage, count: Expr) -> tuple[Expr, str]:
        """Return how often a row of a group is there at once, and where that stands."""
        pipeline, stages, part = self.divided.pipeline, self.divided.stages, costs.part
        plan = pipeline.schedule
        if group == "saved" and part.is_block and (chunks := self._chunks(stage)):
            return chunks.count(costs, count), plan.source
        ends = plan.ended if part.path in self._behind else plan.entered
        inside = part.is_block or ends is None or stages == 1
        kept = self.divided.ranks.zero or not part.is_block
        at_once = {
            "resident": plan.copies if part.is_block else _WHOLE,
            "states": _WHOLE if kept else plan.copies,
            "shared": _WHOLE,
            "waiting": plan.residue,
            "saved": plan.in_flight if inside or ends is None else ends,
        }[group]
        source = plan.source if group in {"saved", "waiting"} else ""
        return mul(pipeline.of(at_once, stages, stage), costs.times(count)), source

    def _chunks(self, stage: Stage) -> Chunks | None:
        """Return the chunks of a stage, where they hold different blocks."""
        if stage not in self._unlike:
            divided = self.divided
            own = unlike_chunks(divided.split_model, divided.stages, stage, divided.pipeline)
            self._unlike[stage] = own
        return self._unlike[stage]

    @cached_property
    def _unlike(self) -> dict[Stage, Chunks | None]:
        return {}

    def _more(self, stage: Stage, parts: list[tuple[PartCosts, PartMemory]]) -> Iterator[Row]:
        """Yield what chunks of a stage keep at other moments than the usual."""
        chunks = self._chunks(stage)
        return chunks.more(parts, self._behind) if chunks else iter(())

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
        deferred = plan.residue != 0
        size = in_backward(units, here, training.microbatches, deferred=deferred)
        if self._chunks(stage):  # most may be there while none is in the head
            inside = [
                one for one in standing if one.part.is_block or one.part.path not in self._behind
            ]
            others = replace(units, standing=inside)
            own = in_backward(others, here, training.microbatches, deferred=deferred)
            size = Max(size, own)
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
