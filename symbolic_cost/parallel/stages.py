"""Pipeline stages: the parts of a model that one rank holds, and what it sends to neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.algebra import add
from symbolic_cost.axes import Role, of_role
from symbolic_cost.conventions.questions import Conventions, ElementSizes
from symbolic_cost.conventions.questions import Role as Element
from symbolic_cost.errors import PlacementError
from symbolic_cost.extrema import Max, Min
from symbolic_cost.ledger import (
    Collective,
    CollectiveKind,
    Condition,
    CostTable,
    Origin,
    Phase,
    Quantity,
    Row,
)
from symbolic_cost.ops.counting import Counter
from symbolic_cost.ops.graph import OUTSIDE, Model, Part
from symbolic_cost.ops.graph import Place as PartPlace
from symbolic_cost.ops.moves import moves
from symbolic_cost.ops.pattern import Operand
from symbolic_cost.ops.placement import Placement
from symbolic_cost.ops.weights import cuts
from symbolic_cost.parallel.degrees import KEY_COPIES
from symbolic_cost.parallel.orders import Stage as Stage  # noqa: PLC0414 - known from here too
from symbolic_cost.parallel.pipeline import Pipeline
from symbolic_cost.parallel.schedules import Schedule
from symbolic_cost.records import dataclass, replace
from symbolic_cost.units import Unit

_ONE = Integer(1)
_PASSES = (Phase.FORWARD, Phase.BACKWARD_INPUT)


def stage_parts(
    model: Model, stages: Expr, stage: Stage, pipeline: Pipeline, blocks: Blocks | None = None
) -> Mapping[str, Expr]:
    """Return the paths of the parts of one stage, and how often each occurs.

    They are its blocks, and the parts at the ends of the model. Blocks that lead (dense layers
    before mixtures) fill the first chunks; kinds that alternate are taken in the mean: each stage
    holds the same share of every kind. For example 61 layers of which 3 lead are on 16 stages 3 and
    1, then 4 at a time of the others.

    Raises:
        PlacementError: the model repeats nothing that could be divided.
    """
    if stages == 1:
        return {part.path: part.repeat for part in model.parts}
    before, between, after = _ends(model)
    first = before if stage in pipeline.schedule.entry else ()
    last = after if stage in pipeline.schedule.exit else ()
    ahead = tuple(part for part in between if part.place is PartPlace.LEADING)
    others = tuple(part for part in between if part not in ahead)
    held = blocks or stage_blocks(model, stages, stage, pipeline)
    return {
        **{part.path: part.repeat for part in (*first, *last)},
        **_spread(ahead, held.leading),
        **_spread(others, held.others),
    }


class Blocks(NamedTuple):
    """How many blocks a stage holds: of those that lead, and of the others."""

    leading: Expr
    others: Expr


def stage_blocks(model: Model, stages: Expr, stage: Stage, pipeline: Pipeline) -> Blocks:
    """Return how many blocks of a model a stage of a pipeline of several holds."""
    between = tuple(part for part in model.parts if part.is_block)
    ahead = tuple(part for part in between if part.place is PartPlace.LEADING)
    total = _number(between)
    held = _held(total, stages, stage, pipeline)
    leading = _number(ahead)
    leads = _leading(leading, total, stages, stage, pipeline) if ahead else Integer(0)
    return Blocks(leads, held - leads)


def _held(total: Expr, stages: Expr, stage: Stage, pipeline: Pipeline) -> Expr:
    """Return the blocks of a stage, of each copy: both ends hold those of both where there are two.

    For example 61 blocks on 16 stages, 3 on the first and 2 on the last, are 5 on either end.
    """
    ends = (Stage.FIRST, Stage.LAST)
    both = pipeline.schedule.copies != 1 and stage in ends
    chunks = pipeline.chunks_of_a_stage
    of = [pipeline.layout.blocks(total, stages, chunks, one) for one in (ends if both else [stage])]
    return add(*of) / len(of)


def _number(parts: Iterable[Part]) -> Expr:
    return add(*(part.repeat for part in parts))


def _spread(parts: tuple[Part, ...], held: Expr) -> dict[str, Expr]:
    """Return how often each of some parts occurs, so many in all: each its share."""
    if len(parts) == 1:
        return {parts[0].path: held}
    return {part.path: part.repeat * held / _number(parts) for part in parts}


def _leading(leading: Expr, total: Expr, stages: Expr, stage: Stage, pipeline: Pipeline) -> Expr:
    """Return how many of the leading blocks a stage holds, of each copy.

    The first chunks of all stages hold total / chunks blocks, one stage after the other. Where
    microbatches enter at both ends, the last stage holds the first chunk of the other direction.
    """
    plan, chunks, layout = pipeline.schedule, pipeline.chunks_of_a_stage, pipeline.layout
    first, last = (
        layout.blocks(total, stages, chunks, end) / chunks for end in (Stage.FIRST, Stage.LAST)
    )
    held = {Stage.FIRST: Min(leading, first)}
    if plan.copies != 1:
        held[Stage.LAST] = held[Stage.FIRST] = leading / 2 if stages == 2 else held[Stage.FIRST] / 2  # noqa: PLR2004 - both ends
    elif stages == 2:  # noqa: PLR2004 - both ends
        held[Stage.LAST] = leading - held[Stage.FIRST]
    else:
        held[Stage.LAST] = Max(leading - (total / chunks - last), Integer(0))
    if stage in held:
        return held[stage]
    return (leading - held[Stage.FIRST] - held[Stage.LAST]) / (stages - 2)


def cut_stage(
    model: Model, parts: Mapping[str, Expr], share: Expr = _ONE, chunks: Expr = _ONE
) -> Model:
    """Return the parts of a stage, as `stage_parts` names them."""
    if parts == {part.path: part.repeat for part in model.parts}:
        return model
    held = (part for part in model.parts if part.path in parts)
    return model.cut(
        replace(part, repeat=parts[part.path], place=part.stands, chunks=chunks)
        if part.is_block
        else part
        if share == 1
        else replace(part, share=share)
        for part in held
    )


def block_conditions(model: Model, stages: Expr, pipeline: Pipeline) -> tuple[Condition, ...]:
    """Return what the numbers of blocks, stages, chunks and microbatches must meet."""
    if stages == 1:
        return ()
    _, between, _ = _ends(model)
    blocks = add(*(part.repeat for part in between))
    return pipeline.conditions(blocks, stages, between[0].path)


def block_count(model: Model) -> Expr:
    """Return how many blocks a pipeline divides into stages."""
    return add(*(part.repeat for part in model.parts if part.is_block))


def block_paths(model: Model) -> frozenset[str]:
    """Return the paths of the parts that a pipeline divides into stages."""
    return frozenset(part.path for part in model.parts if part.is_block)


def stage_rows(
    model: Model,
    conventions: Conventions,
    placement: Placement,
    table: Callable[[], CostTable],
    *,
    stages: Expr,
    stage: Stage,
    pipeline: Pipeline,
) -> tuple[Row, ...]:
    """Return what a stage sends [byte]: activations on, gradients back, sums of shared weights."""
    if stages == 1:
        return ()
    rules, plan = conventions, pipeline.schedule
    counter = Counter(model.sizes, placement, rules, model.padded, model.means)
    _, between, _ = _ends(model)
    path, rows = between[-1].path, []
    for passed, again in _passed(model, between):
        passes = _PASSES if passed.needs_gradient else _PASSES[:1]
        for phase, count in zip(passes, plan.sends(stage), strict=False):
            times = count.xreplace({symbols.v: pipeline.chunks})
            returns = Stage.LAST if phase is Phase.FORWARD else Stage.FIRST
            times += 1 if again and stage is returns else 0
            for move in _sent(counter.bytes(passed), stages, placement, passed, pipeline):
                row = _row(path, passed.tensor, move, rules)
                rows += [replace(row, phase=phase, count=times)] if times != 0 else []
    shared = [
        *_copied(model, table, plan, rules.sizes),
        *_tied(model, _Gradients(counter, placement), stage, plan),
    ]
    for tensor, move in shared:
        row = _row(path, tensor, move, rules)
        rows.append(replace(row, phase=Phase.BACKWARD_WEIGHT, per_step=True))
    return tuple(rows)


def _sent(
    size: Expr, stages: Expr, placement: Placement, passed: Operand, pipeline: Pipeline
) -> Iterator[Collective]:
    """Yield how a tensor reaches the next stage: whole, or in parts that are gathered there.

    For example 8 tensor-parallel ranks that hold the same 16 MiB send 2 MiB each.
    """
    alike = not any("tp" in placement.meshes(axis) for axis in passed.axes)
    meshes = tuple(mesh for mesh in (KEY_COPIES, "tp") if mesh in placement.degrees)
    ranks = placement.degree(meshes)
    parts = ranks if pipeline.scattered and alike else Integer(1)
    yield Collective(CollectiveKind.SEND_RECEIVE, ("pp",), stages, size / parts)
    if parts != 1:
        yield Collective(CollectiveKind.ALL_GATHER, meshes, parts, size, "flat")


def _copied(
    model: Model, table: Callable[[], CostTable], plan: Schedule, sizes: ElementSizes
) -> Iterator[tuple[str, Collective]]:
    """Yield the sum of the gradients of two stages that hold copies of the same parts."""
    if plan.copies != 1:
        blocks, gradients = block_paths(model), table().select(Quantity.WEIGHT_GRADIENT)
        own = gradients.select(where=lambda row: row.part in blocks).total()
        both = gradients.total() - own + plan.copies * own
        if both != 0:
            share = sizes.moved(Element.WEIGHT_GRADIENT) / sizes.weight_gradient
            yield "copies", _both(share * both)


def _tied(
    model: Model, gradients: _Gradients, stage: Stage, plan: Schedule
) -> Iterator[tuple[str, Collective]]:
    """Yield what adds up the gradients of weights that the first and the last stage share.

    Ranks exchange what they keep of a gradient, in the cut of the first stage; where the last one
    cuts it otherwise, it turns its own before and the sum after. For example a 2D grid cuts a
    token table W by features for the lookup and by vocabulary for the head: W/(m1 m2) is exchanged
    over m1, then added over both stages, then exchanged over m1 again.
    """
    if plan.entry == plan.exit or stage not in plan.entry | plan.exit:
        return
    before, _, after = _ends(model)
    firsts = {weight.tensor: weight.gradient() for weight in _weights(before)}
    lasts = {weight.tensor: weight.gradient() for weight in _weights(after)}  # added up there
    for tensor, last in lasts.items():
        if tensor in firsts:
            first = firsts[tensor]
            there, back = gradients.turned(last, first), gradients.turned(first, last)
            added = _both(gradients.kept(first))
            both = (*there, added, *back) if stage in plan.exit else (added,)
            yield from ((first.tensor, move) for move in both)


@dataclass(frozen=True)
class _Gradients:
    """Gradients of weights as ranks keep them, in bytes as they move [byte]."""

    counter: Counter
    placement: Placement

    def kept(self, weight: Operand) -> Expr:
        """Return the bytes of what a rank keeps: its shard where it keeps no more."""
        shards = self.placement.stored_over("weight_gradient", weight.axes)
        size = self.counter.moved(weight) * self.counter.elements(weight.axes)
        return size / self.placement.degree(shards)

    def turned(self, old: Operand, new: Operand) -> Iterator[Collective]:
        """Yield what brings a gradient from one cut to another."""
        have, need = cuts(self.placement, old, new)
        for move in moves(have, need, self.kept(old), self.placement):
            ranks = self.placement.degree(move.meshes)
            yield Collective(move.kind, move.meshes, ranks, move.elements, move.axis)


def _both(size: Expr) -> Collective:
    return Collective(CollectiveKind.ALL_REDUCE, ("pp",), Integer(2), size)


def _row(path: str, tensor: str, move: Collective, conventions: Conventions) -> Row:
    return Row(
        path=path,
        kind="pipeline",
        origin=Origin.PIPELINE,
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
    repeated = tuple(part for part in model.parts if part.is_block)
    if not repeated:
        raise PlacementError(
            f"pp: model {model.name!r} repeats no part, so there is nothing to divide into stages"
        )
    blocks = {part.path for part in repeated}
    for part in repeated:
        state = next(iter(part.inputs), "")  # which one block hands to the next
        beside = {source for port, source in part.takes.items() if port != state}
        elsewhere = sorted((blocks - {part.path}) & beside)
        if elsewhere:
            raise PlacementError(
                f"pp: blocks {part.path!r} take more than the residual stream of "
                f"{', '.join(elsewhere)}, which may stand on another stage"
            )
    first = model.parts.index(repeated[0])
    others = tuple(part for part in model.parts[first:] if part not in repeated)
    return model.parts[:first], repeated, others


def _passed(model: Model, between: tuple[Part, ...]) -> Iterator[tuple[Operand, bool]]:
    """Yield what stages pass on, and whether the last one passes it to the first as well.

    Where later blocks take what earlier ones made in the end, every stage needs that: an encoder's
    microbatch passes all stages, its result goes round, and along with the decoder's. What parts
    before all blocks made (features of tokens for every layer) starts on the first stage.
    """
    ahead = {part.path for part in model.parts[: model.parts.index(between[0])]}
    chains: list[list[Part]] = [[]]
    for part in model.parts:
        if part.is_block:
            chains[-1].append(part)
        elif chains[-1] and part.inputs:
            chains.append([])
    chains = [chain for chain in chains if chain]
    carried: dict[tuple[str, str], Operand] = {}
    for chain in chains:
        inside = {part.path for part in chain}
        for part in chain:
            for name, operand in tuple(part.inputs.items())[1:]:
                source = model.sources[part.path][name]
                samples = any(of_role(model.axes, operand.axes, Role.BATCH))
                if samples and source != OUTSIDE and source not in inside:
                    carried.setdefault((source, operand.tensor), operand)
    ends = [chain[-1] for chain in chains] if carried else [between[-1]]
    yield from ((_passed_on(part), False) for part in ends)
    yield from ((operand, source not in ahead) for (source, _), operand in carried.items())


def _passed_on(part: Part) -> Operand:
    """Return the last tensor of a part that none of its ops takes."""
    taken = {operand.tensor for op in part.ops for operand in op.inputs}
    left = [result for op in part.ops for result in op.outputs if result.tensor not in taken]
    return left[-1]


def _weights(parts: tuple[Part, ...]) -> Iterator[Operand]:
    for part in parts:
        for op in part.ops:
            yield from (weight for weight in op.weights if weight.needs_gradient)
