"""Pipeline stages: the parts of a model that one rank holds, and what it sends to neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sympy import Add, Expr, Integer

from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.errors import PlacementError
from symbolic_cost.ledger import Collective, CollectiveKind, CostTable, Phase, Quantity, Row, Split
from symbolic_cost.ops.counting import Counter
from symbolic_cost.ops.graph import Model, Part
from symbolic_cost.ops.pattern import Operand
from symbolic_cost.ops.placement import Placement
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.schedules import SCHEDULES, Schedule
from symbolic_cost.units import Unit

__all__ = ["Stage", "block_split", "stage_model", "stage_rows"]

_PASSES = (Phase.FORWARD, Phase.BACKWARD_INPUT)


def stage_model(
    model: Model, stages: Expr, stage: Stage, plan: Schedule = SCHEDULES["1f1b"]
) -> Model:
    """Return the parts of one stage: 1/pp of the repeated ones, and those at its ends.

    Args:
        model: the whole one.
        stages: of the pipeline.
        stage: which of them.
        plan: the schedule, which says where microbatches enter and end.

    Raises:
        PlacementError: the model repeats nothing that could be divided.
    """
    if stages == 1:
        return model
    before, between, after = _ends(model)
    blocks = tuple(replace(part, repeat=part.repeat / stages) for part in between)
    first = before if stage in plan.entry else ()
    last = after if stage in plan.exit else ()
    return replace(model, parts=(*first, *blocks, *last))


def block_split(model: Model, stages: Expr) -> tuple[Split, ...]:
    """Return the division of the blocks into stages, which must come out whole."""
    if stages == 1:
        return ()
    _, between, _ = _ends(model)
    blocks = Add(*(part.repeat for part in between))
    return (Split("blocks", blocks, (("pp", stages),), between[0].path),)


def stage_rows(
    model: Model,
    table: CostTable,
    placement: Placement,
    *,
    stages: Expr,
    stage: Stage,
    plan: Schedule,
) -> tuple[Row, ...]:
    """Return what a stage sends [byte]: activations on, gradients back, sums of shared weights.

    Args:
        model: the whole one.
        table: of the stage.
        placement: which axes are split.
        stages: of the pipeline.
        stage: which of them sends.
        plan: the schedule, which says how often.
    """
    if stages == 1:
        return ()
    rules = table.conventions
    counter = Counter(model.sizes, placement, rules, model.padded, model.means)
    _, between, _ = _ends(model)
    path, passed = between[-1].path, _passed_on(between[-1])
    send = Collective(CollectiveKind.SEND_RECEIVE, "pp", stages, counter.bytes(passed))
    rows = [
        replace(_row(path, passed.tensor, send, rules), phase=phase, count=count)
        for phase, count in zip(
            (Phase.FORWARD, Phase.BACKWARD_INPUT), plan.sends(stage), strict=True
        )
        if count != 0
    ]
    for tensor, size in _shared(model, table, counter, stage, plan):
        both = Collective(CollectiveKind.ALL_REDUCE, "pp", Integer(2), size)
        row = _row(path, tensor, both, rules)
        rows.append(replace(row, phase=Phase.BACKWARD_WEIGHT, per_step=True))
    return tuple(rows)


def _shared(
    model: Model, table: CostTable, counter: Counter, stage: Stage, plan: Schedule
) -> Iterator[tuple[str, Expr]]:
    """Yield gradients [byte] that two stages add up: of tied weights, and of copies."""
    before, _, after = _ends(model)
    if plan.entry != plan.exit and stage in plan.entry | plan.exit:
        tied = {weight.tensor for weight in _weights(before)}
        for weight in _weights(after):
            if weight.tensor in tied:
                yield weight.gradient().tensor, counter.bytes(weight.gradient())
    if plan.copies != 1:
        gradients = table.select(Quantity.WEIGHT_GRADIENT)
        yield "copies", plan.copies * Add(*(row.total for row in gradients if row.count != 1))


def _row(path: str, tensor: str, move: Collective, conventions: Conventions) -> Row:
    return Row(
        path=path,
        kind="pipeline",
        phase=Phase.FORWARD,
        quantity=Quantity.COMMUNICATION,
        unit=Unit.BYTE,
        expr=conventions.charge(move.kind, move.message, move.ranks),
        tensor=tensor,
        source="narayanan-2021",
        collective=move,
    )


def _ends(model: Model) -> tuple[tuple[Part, ...], tuple[Part, ...], tuple[Part, ...]]:
    """Return the parts before the repeated ones, the repeated ones, and the others."""
    repeated = tuple(part for part in model.parts if part.repeat != 1)
    if not repeated:
        raise PlacementError(
            f"pp: model {model.name!r} repeats no part, so there is nothing to divide into stages"
        )
    first = model.parts.index(repeated[0])
    others = tuple(part for part in model.parts[first:] if part.repeat == 1)
    return model.parts[:first], repeated, others


def _passed_on(part: Part) -> Operand:
    """Return the last tensor of a part that none of its ops takes."""
    taken = {operand.tensor for op in part.ops for operand in op.inputs}
    left = [made for op in part.ops for made in op.outputs if made.tensor not in taken]
    return left[-1]


def _weights(parts: tuple[Part, ...]) -> Iterator[Operand]:
    for part in parts:
        for op in part.ops:
            yield from op.weights
