"""The costs of one rank under a strategy."""

from __future__ import annotations

from dataclasses import replace

from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.ledger import CostTable
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.recompute import KEEP_ALL, Recompute
from symbolic_cost.parallel.schedules import schedule as named_schedule
from symbolic_cost.parallel.stages import Stage, block_split, stage_model, stage_rows
from symbolic_cost.parallel.strategy import Strategy


def strategy_table(
    model: Model,
    strategy: Strategy,
    conventions: Conventions,
    recompute: Recompute = KEEP_ALL,
    *,
    stage: Stage = Stage.FIRST,
    schedule: str = "1f1b",
) -> CostTable:
    """Derive every cost of one rank of a pipeline stage, for one microbatch.

    Args:
        model: parts and sizes.
        strategy: degrees of the mesh.
        conventions: answers to the counting questions.
        recompute: what backward computes again.
        stage: of the pipeline; the whole model where there is one stage.
        schedule: name of the pipeline schedule, which says how often a stage sends.

    Returns:
        Rows as `cost` gives them, and those of what stages send to each other.

    Raises:
        PlacementError: the strategy and the model do not go together.
        UnknownNameError: no such schedule.
    """
    stages = strategy.degree("pp")
    placement = strategy.placement(model)
    share = stage_model(model, stages, stage)
    present = set(share.axes)
    used = {axis: meshes for axis, meshes in placement.axes.items() if axis in present}
    table = cost(share, conventions, replace(placement, axes=used), recompute)
    chunks = named_schedule(schedule).chunks
    sent = stage_rows(model, placement, conventions, stages=stages, stage=stage, chunks=chunks)
    return replace(table, rows=table.rows + sent, splits=table.splits + block_split(model, stages))
