"""The costs of one rank under a strategy."""

from __future__ import annotations

from dataclasses import replace

from symbolic_cost.axes import Glossary
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.ledger import CostTable, Quantity, Row, Split
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.recompute import KEEP_ALL, Recompute
from symbolic_cost.parallel.catalogue import STRATEGIES
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.schedules import schedule as named_schedule
from symbolic_cost.parallel.stages import block_split, stage_model, stage_rows
from symbolic_cost.parallel.steps import step_buffers
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.symbols import exact


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
    own = strategy.model(model)
    placement = strategy.placement(own)
    plan = named_schedule(schedule)
    share = stage_model(own, stages, stage, plan)
    present = set(share.axis_names)
    used = {axis: meshes for axis, meshes in placement.axes.items() if axis in present}
    table = cost(share, conventions, replace(placement, axes=used), recompute)
    rows = tuple(_in_steps(row, strategy, conventions, own.axes) for row in table)
    sent = stage_rows(own, table, placement, stages=stages, stage=stage, plan=plan)
    splits = table.splits + block_split(model, stages) + _expert_split(strategy)
    return replace(table, rows=(*rows, *step_buffers(rows, own.axes), *sent), splits=splits)


def _in_steps(row: Row, strategy: Strategy, conventions: Conventions, known: Glossary) -> Row:
    move = row.collective
    if move is not None and row.quantity is Quantity.COMMUNICATION:
        for name in strategy.degrees:
            step = STRATEGIES[name].step
            if step is not None:
                row = step(row, move, conventions, exact(strategy.panels), known)
    return row


def _expert_split(strategy: Strategy) -> tuple[Split, ...]:
    """Return the division of data-parallel ranks by expert-parallel ones."""
    if "ep" not in strategy:
        return ()
    (ranks,), (experts,) = strategy.degrees["dp"], strategy.degrees["ep"]
    return (Split("data-parallel ranks", exact(ranks), (("ep", exact(experts)),), "experts"),)
