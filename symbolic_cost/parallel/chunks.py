"""What the chunks of a stage keep at once, where they hold different blocks.

Microbatches are in flight chunk by chunk. Where all chunks of a stage hold the same blocks, only
their number counts. An end that holds fewer blocks lacks them in one chunk, and blocks that lead
(dense layers before mixtures) are in the first: then it counts which chunks are in flight when most
of them are. For example 32 blocks on 2 stages of 5 chunks: the last stage holds 4, 4, 4, 4 and
none, and keeps two microbatches of each of the four while one is in the head.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from sympy import Expr, Integer

from symbolic_cost.algebra import add, mul
from symbolic_cost.extrema import Max, Min
from symbolic_cost.ledger import Origin, Phase, Quantity, Row
from symbolic_cost.ops.derive import PartCosts
from symbolic_cost.ops.graph import Model
from symbolic_cost.parallel.layout import EVEN
from symbolic_cost.parallel.orders import Stage, forth_and_back
from symbolic_cost.parallel.part_memory import PartMemory
from symbolic_cost.parallel.pipeline import Pipeline
from symbolic_cost.parallel.stages import block_kinds, number, spread, stage_blocks
from symbolic_cost.records import dataclass, replace
from symbolic_cost.units import Unit

_NONE, _ONE = Integer(0), Integer(1)


class ByChunk(NamedTuple):
    """What the first chunk of a stage has, each between (or all of them together), and the last."""

    first: Expr
    between: Expr
    last: Expr


@dataclass(frozen=True)
class Chunks:
    """The chunks of one stage, which hold different blocks; of two copies, these.

    Args:
        blocks: that each chunk holds, by the path of their part.
    """

    stages: Expr
    stage: Stage
    pipeline: Pipeline
    blocks: Mapping[str, ByChunk]

    @cached_property
    def flights(self) -> tuple[ByChunk, ...]:
        """Passes in flight when most of them are; first with what stands at the model's ends."""
        plan = self.pipeline.schedule
        every = plan.in_flight * plan.chunks
        return tuple(
            ByChunk(*map(self._here, (first, every - first - last, last)))
            for first, last in plan.fullest[self.stage]
        )

    def _here(self, expr: Expr) -> Expr:
        return self.pipeline.of(expr, self.stages, self.stage)

    def count(self, costs: PartCosts, count: Expr, flight: ByChunk | None = None) -> Expr:
        """Return how often a row of blocks is kept, of its count in `once`."""
        if count.xreplace({costs.each: _NONE}) == count:  # what all blocks of a part share
            return mul(self._here(self.pipeline.schedule.in_flight), costs.times(count))
        passes, own = flight or self.flights[0], self.blocks[costs.part.path]
        return add(*_products(costs, count, passes, own))

    def more(
        self, parts: Iterable[tuple[PartCosts, PartMemory]], behind: frozenset[str]
    ) -> Iterator[Row]:
        """Yield what is kept beyond that of the first flight, as others may keep more [byte].

        Args:
            parts: of the stage.
            behind: paths of parts that stand behind the first block.
        """
        sums: list[list[Expr]] = [[] for _ in self.flights[1:]]
        for costs, held in parts:
            for (group, _, count), size in held.sums.items():
                for flight, own in zip(self.flights[1:], sums, strict=True):
                    if group == "saved":
                        own.append(mul(self._beyond(costs, count, flight, behind), size))
        if sums:
            yield Row(
                path="other_chunks",
                kind="pipeline",
                origin=Origin.PIPELINE,
                phase=Phase.FORWARD,
                quantity=Quantity.SAVED,
                unit=Unit.BYTE,
                expr=Max(_NONE, *(add(*own) for own in sums)),
                source=self.pipeline.schedule.source,
            )

    def _beyond(
        self, costs: PartCosts, count: Expr, flight: ByChunk, behind: frozenset[str]
    ) -> Expr:
        """Return how many more there are of a row than in the first flight; less is negative."""
        path, most = costs.part.path, self.flights[0]
        if path in self.blocks:
            return self.count(costs, count, flight) - self.count(costs, count)
        if path in behind:
            more = Min(_ONE, flight.last) - Min(_ONE, most.last)
        elif self.stage in self.pipeline.schedule.entry:
            entered = self._here(self.pipeline.schedule.entered or _NONE)
            more = Min(flight.first, entered) - Min(most.first, entered)
        else:
            return _NONE
        return mul(more, costs.times(count))


def _products(costs: PartCosts, count: Expr, passes: ByChunk, blocks: ByChunk) -> Iterator[Expr]:
    for often, held in zip(passes, blocks, strict=True):
        if often != 0 and held != 0:
            part = replace(costs.part, repeat=held, chunks=_ONE)
            yield mul(often, replace(costs, part=part).times(count))


def unlike_chunks(model: Model, stages: Expr, stage: Stage, pipeline: Pipeline) -> Chunks | None:
    """Return the chunks of a stage, unless all of them hold the same blocks."""
    plan, chunks = pipeline.schedule, pipeline.chunks_of_a_stage
    ahead, others = block_kinds(model)
    if stages == 1 or not plan.fullest or (pipeline.layout is EVEN and not ahead):
        return None
    full, first, last = pipeline.layout.rule(number((*ahead, *others)), stages * chunks)
    each = full / (stages * chunks)
    lacking = _lacking(pipeline, stage, first, last)
    leading = stage_blocks(model, stages, stage, pipeline).leading * plan.copies
    held = (each - lacking[0] - leading, each, each - lacking[1])
    by_chunk = [spread(others, blocks) for blocks in held]
    blocks = {path: ByChunk(*(own[path] for own in by_chunk)) for path in by_chunk[0]} | {
        path: ByChunk(own, _NONE, _NONE) for path, own in spread(ahead, leading).items()
    }
    return Chunks(stages, stage, pipeline, blocks)


def _lacking(pipeline: Pipeline, stage: Stage, first: Expr, last: Expr) -> tuple[Expr, Expr]:
    """Return the blocks that the first and the last chunk of a stage lack.

    Where chunks go forth and back it is the one on the way back: more microbatches keep the other.
    """
    both = pipeline.schedule.copies != 1
    back = pipeline.schedule.chain is forth_and_back
    if stage is Stage.MIDDLE:
        return _NONE, _NONE
    if both:
        return first, last
    if stage is Stage.FIRST:
        return (_NONE, first) if back else (first, _NONE)
    return _NONE, last


def chunks_assumed(pipeline: Pipeline) -> Iterator[str]:
    """Say where the blocks of unlike chunks are taken to be, and what that means for the peak."""
    if pipeline.schedule.copies != 1:
        yield "either end holds the first stage's blocks of one direction, the last's of the other"
    elif pipeline.schedule.chain is forth_and_back:
        yield "ends that hold fewer blocks lack them in their chunk on the way back"
    else:
        yield "the first stage lacks blocks in its first chunk, the last one in its last chunk"
    yield (
        "chunks hold different blocks: most that all passes keep and most that one holds for a "
        "while are added, though they may come at different times, so that the peak is no higher"
    )
