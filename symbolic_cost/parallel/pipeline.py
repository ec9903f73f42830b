"""A pipeline: schedule, chunks, microbatches and layout, and the numbers that it takes."""

from collections.abc import Iterator
from functools import cached_property, lru_cache

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.conditions import Condition, Least, Split
from symbolic_cost.parallel.layout import EVEN, Layout
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.schedules import Schedule, schedule
from symbolic_cost.records import dataclass

_PATH = "pipeline"


@dataclass(frozen=True)
class Pipeline:
    """How stages work together.

    Args:
        chunks: model chunks per stage, for schedules that leave it open; one chunk of
            "interleaved" is 1f1b.
        scattered: whether tensor-parallel ranks, which hold the same activations unless these are
            split (sp), send a part each to the next stage and gather them there (narayanan-2021,
            section 4.1).
    """

    name: str = "1f1b"
    microbatches: Expr = symbols.M
    chunks: Expr = symbols.v
    layout: Layout = EVEN
    scattered: bool = False

    @cached_property
    def schedule(self) -> Schedule:
        """The schedule."""
        return schedule(self.name, self.chunks)

    @cached_property
    def chunks_of_a_stage(self) -> Expr:
        """Model chunks per stage, as the schedule has them."""
        return self.schedule.chunks.xreplace({symbols.v: self.chunks})

    def of(self, expr: Expr, stages: Expr, stage: Stage = Stage.FIRST) -> Expr:
        """Return an expression of the schedule for these microbatches, chunks and stages."""
        return _numbered(expr, stages, stage, self.microbatches, self.chunks)

    def conditions(self, blocks: Expr, stages: Expr, path: str) -> tuple[Condition, ...]:
        """Return what the numbers must meet."""
        if stages == 1:
            return ()
        of_layout = self.layout.conditions(blocks, stages, self.chunks_of_a_stage, path)
        return (*of_layout, *self._of_schedule(stages))

    def _of_schedule(self, stages: Expr) -> Iterator[Condition]:
        plan = self.schedule
        multiple, least = self.of(plan.multiple, stages), self.of(plan.least, stages)
        if multiple != 1:
            label = "pp" if plan.multiple == symbols.pp else plan.name
            yield Split("microbatches", self.microbatches, ((label, multiple),), _PATH)
        if least != 1:
            because = f"schedule {plan.name} takes {plan.least} or more"
            yield Least("microbatches", self.microbatches, least, because)
        if plan.copies != 1:
            yield Split("stages", stages, ((plan.name, plan.copies),), _PATH)
        if plan.chunks == symbols.v:
            because = "one chunk is schedule 1f1b"
            yield Least("chunks of a stage", self.chunks, Integer(2), because)


_NUMBER = {Stage.FIRST: Integer(1), Stage.MIDDLE: Integer(2)}
"""Number of a stage, counted from 1; a middle one stands for the second."""


@lru_cache(1 << 10)  # structures, stages and parts ask for the same few again and again
def _numbered(expr: Expr, stages: Expr, stage: Stage, microbatches: Expr, chunks: Expr) -> Expr:
    return expr.xreplace(
        {
            symbols.pp: stages,
            symbols.M: microbatches,
            symbols.v: chunks,
            symbols.stage: stages if stage is Stage.LAST or stages == 1 else _NUMBER[stage],
        }
    )
