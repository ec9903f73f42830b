"""Pipeline stages: the parts of a model that one rank holds, and what it sends to neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum

from sympy import Add, Expr, Integer

from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.errors import PlacementError
from symbolic_cost.ledger import Collective, CollectiveKind, Phase, Quantity, Row, Split
from symbolic_cost.ops.counting import Counter
from symbolic_cost.ops.graph import Model, Part
from symbolic_cost.ops.pattern import Operand
from symbolic_cost.ops.placement import Placement
from symbolic_cost.units import Unit


class Stage(StrEnum):
    """Which of the pipeline's stages a table is about."""

    FIRST = "first"
    MIDDLE = "middle"
    LAST = "last"

    def number(self, stages: Expr) -> Expr:
        """Return its number, counted from 1; a middle stage stands for the second."""
        if stages == 1:
            return Integer(1)
        return {Stage.FIRST: Integer(1), Stage.MIDDLE: Integer(2), Stage.LAST: stages}[self]


def stage_model(model: Model, stages: Expr, stage: Stage) -> Model:
    """Return the parts of one stage: 1/pp of the repeated ones, and those at its end.

    Raises:
        PlacementError: the model repeats nothing that could be divided.
    """
    if stages == 1:
        return model
    first, last = _repeated(model)
    blocks = tuple(
        replace(part, repeat=part.repeat / stages) for part in model.parts[first : last + 1]
    )
    before = model.parts[:first] if stage is Stage.FIRST else ()
    after = model.parts[last + 1 :] if stage is Stage.LAST else ()
    return replace(model, parts=(*before, *blocks, *after))


def block_split(model: Model, stages: Expr) -> tuple[Split, ...]:
    """Return the division of the blocks into stages, which must come out whole."""
    if stages == 1:
        return ()
    first, last = _repeated(model)
    blocks = Add(*(part.repeat for part in model.parts[first : last + 1]))
    return (Split("blocks", blocks, (("pp", stages),), model.parts[first].path),)


def stage_rows(
    model: Model,
    placement: Placement,
    conventions: Conventions,
    *,
    stages: Expr,
    stage: Stage,
    chunks: Expr = Integer(1),
) -> tuple[Row, ...]:
    """Return what a stage sends [byte]: activations on, gradients back, sums of tied weights.

    Args:
        model: the whole one.
        placement: which axes are split.
        conventions: what counts how.
        stages: of the pipeline.
        stage: which of them sends.
        chunks: model chunks per stage, each of which sends.
    """
    if stages == 1:
        return ()
    counter = Counter(model.sizes, placement, conventions, model.padded, model.means)
    first, last = _repeated(model)
    passed = _passed_on(model.parts[last])
    size = counter.bytes(passed)
    path = model.parts[last].path
    send = Collective(CollectiveKind.SEND_RECEIVE, "pp", stages, size)
    rows = [
        replace(_row(path, passed, send, conventions), phase=phase, count=count)
        for phase, end in ((Phase.FORWARD, Stage.LAST), (Phase.BACKWARD_INPUT, Stage.FIRST))
        if (count := chunks - int(stage is end)) != 0
    ]
    for weight in _tied(model, first, last) if stage is not Stage.MIDDLE else ():
        gradient = weight.gradient()
        message = counter.bytes(gradient)
        both = Collective(CollectiveKind.ALL_REDUCE, "pp", Integer(2), message)
        row = _row(path, gradient, both, conventions)
        rows.append(replace(row, phase=Phase.BACKWARD_WEIGHT, per_step=True))
    return tuple(rows)


def _row(path: str, operand: Operand, move: Collective, conventions: Conventions) -> Row:
    return Row(
        path=path,
        kind="pipeline",
        phase=Phase.FORWARD,
        quantity=Quantity.COMMUNICATION,
        unit=Unit.BYTE,
        expr=conventions.charge(move.kind, move.message, move.ranks),
        tensor=operand.tensor,
        source="narayanan-2021",
        collective=move,
    )


def _repeated(model: Model) -> tuple[int, int]:
    """Return the places of the first and the last repeated part."""
    places = [place for place, part in enumerate(model.parts) if part.repeat != 1]
    if not places:
        raise PlacementError(
            f"pp: model {model.name!r} repeats no part, so there is nothing to divide into stages"
        )
    return places[0], places[-1]


def _passed_on(part: Part) -> Operand:
    """Return the last tensor of a part that none of its ops takes."""
    taken = {operand.tensor for op in part.ops for operand in op.inputs}
    left = [made for op in part.ops for made in op.outputs if made.tensor not in taken]
    return left[-1]


def _tied(model: Model, first: int, last: int) -> Iterator[Operand]:
    """Yield the weights that both ends of the pipeline use."""
    before = {weight.tensor for weight in _weights(model.parts[:first])}
    for weight in _weights(model.parts[last + 1 :]):
        if weight.tensor in before:
            yield weight


def _weights(parts: tuple[Part, ...]) -> Iterator[Operand]:
    for part in parts:
        for op in part.ops:
            yield from op.weights
