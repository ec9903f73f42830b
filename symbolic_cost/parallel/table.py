"""The costs of one rank under a strategy."""

from __future__ import annotations

from dataclasses import replace

from symbolic_cost.axes import Glossary
from symbolic_cost.conditions import check
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.ledger import CostTable, Least, Quantity, Row, Split
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.recompute import KEEP_ALL, Recompute
from symbolic_cost.parallel.catalogue import STRATEGIES
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.pipeline import Pipeline
from symbolic_cost.parallel.stages import block_conditions, stage_model, stage_rows
from symbolic_cost.parallel.steps import apart, step_buffers
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.parallel.structure import Structure
from symbolic_cost.symbols import exact


def strategy_table(
    model: Model,
    strategy: Strategy,
    conventions: Conventions,
    recompute: Recompute = KEEP_ALL,
    *,
    stage: Stage = Stage.FIRST,
    pipeline: Pipeline | None = None,
) -> CostTable:
    """Derive every cost of one rank of a pipeline stage, for one microbatch.

    Args:
        model: parts and sizes.
        strategy: degrees of the mesh.
        conventions: answers to the counting questions.
        recompute: what backward computes again.
        stage: of the pipeline; the whole model where there is one stage.
        pipeline: schedule and layout, which say how often a stage sends and what it holds.

    Returns:
        Rows as `cost` gives them, and those of what stages send to each other.

    Raises:
        PlacementError: the strategy and the model do not go together, or no such stage.
        InputError: numbers that the pipeline does not take.
    """
    way, structure = pipeline or Pipeline(), Structure(strategy)
    ranks = structure.reduced
    stages = ranks.degree("pp")
    own = ranks.model(model)
    placement = ranks.placement(own)
    share = stage_model(own, stages, structure.checked(stage), way)
    present = set(share.axis_names)
    used = {axis: meshes for axis, meshes in placement.axes.items() if axis in present}
    table = cost(share, conventions, replace(placement, axes=used), recompute)
    rows = tuple(step for row in table for step in in_steps(row, ranks, conventions, own.axes))
    whole = replace(table, rows=rows)
    sent = stage_rows(own, whole, placement, stages=stages, stage=stage, pipeline=way)
    of_stages = block_conditions(model, stages, way)
    check(of_stages, {})
    conditions = (
        *table.conditions,
        *of_stages,
        *_expert_split(ranks),
        *(bound for bound in structure.assumptions if bound.size == stages),
    )
    return replace(
        whole,
        rows=(*rows, *step_buffers(rows, own.axes), *sent),
        splits=tuple(c for c in conditions if isinstance(c, Split)),
        bounds=tuple(c for c in conditions if isinstance(c, Least)),
    )


def in_steps(
    row: Row, strategy: Strategy, conventions: Conventions, known: Glossary
) -> tuple[Row, ...]:
    """Return the rows of the steps that a strategy makes of a collective; else the row itself."""
    rows: tuple[Row, ...] = (row,)
    if row.collective is None:
        return rows
    for name, degrees in strategy.degrees.items():
        entry = STRATEGIES[name]
        grid = dict(zip(entry.meshes, degrees, strict=True))
        if entry.stored:
            rows = tuple(
                each for one in rows for each in apart(one, entry.stored, grid, conventions)
            )
        if entry.step is not None:
            panels = exact(strategy.panels)
            rows = tuple(
                each
                if each.collective is None or each.quantity is not Quantity.COMMUNICATION
                else entry.step(each, each.collective, conventions, panels, known)
                for each in rows
            )
    return rows


def _expert_split(strategy: Strategy) -> tuple[Split, ...]:
    """Return the division of data-parallel ranks by expert-parallel ones."""
    if "ep" not in strategy:
        return ()
    (ranks,), (experts,) = strategy.degrees["dp"], strategy.degrees["ep"]
    return (Split("data-parallel ranks", exact(ranks), (("ep", exact(experts)),), "experts"),)
