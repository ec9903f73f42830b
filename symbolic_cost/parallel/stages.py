"""Pipeline stages: the parts of a model that one rank holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sympy import Expr, Integer

from symbolic_cost.algebra import add
from symbolic_cost.axes import At, Role
from symbolic_cost.conditions import Condition, Least
from symbolic_cost.errors import PlacementError
from symbolic_cost.extrema import Max, Min
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.part import Part, unlinked_repeats
from symbolic_cost.ops.part import Place as PartPlace
from symbolic_cost.parallel.orders import Stage as Stage  # noqa: PLC0414 - known from here too
from symbolic_cost.parallel.pipeline import Pipeline
from symbolic_cost.records import replace

_ONE = Integer(1)


def stage_parts(
    model: Model, stages: Expr, stage: Stage, pipeline: Pipeline, blocks: Blocks | None = None
) -> Mapping[str, Expr]:
    """Return the paths of the parts of one stage, and how often each occurs.

    They are its blocks, the parts at the ends of the model, and the tables that every stage has.
    Blocks that lead (dense layers before mixtures) fill the first chunks; kinds that alternate are
    taken in the mean: each stage holds the same share of every kind. For example 61 layers of which
    3 lead are on 16 stages 3 and 1, then 4 at a time of the others.

    Raises:
        PlacementError: the model repeats nothing that could be divided.
    """
    if stages == 1:
        return {part.path: part.repeat for part in model.parts}
    before, _, after = divided(model)
    first = before if stage in pipeline.schedule.entry else ()
    last = after if stage in pipeline.schedule.exit else ()
    tables = every_stage(model)
    ahead, others = block_kinds(model)
    held = blocks or stage_blocks(model, stages, stage, pipeline)
    return {
        **{part.path: part.repeat for part in (*first, *last)},
        **{part.path: part.repeat for part in model.parts if part.path in tables},
        **spread(ahead, held.leading),
        **spread(others, held.others),
    }


class Blocks(NamedTuple):
    """How many blocks a stage holds: of those that lead, and of the others."""

    leading: Expr
    others: Expr


def stage_blocks(model: Model, stages: Expr, stage: Stage, pipeline: Pipeline) -> Blocks:
    """Return how many blocks of a model a stage of a pipeline of several holds."""
    ahead, others = block_kinds(model)
    total = number((*ahead, *others))
    held = _block_count(total, stages, stage, pipeline)
    leading = number(ahead)
    leads = _leading(leading, total, stages, stage, pipeline) if ahead else Integer(0)
    return Blocks(leads, held - leads)


def _block_count(total: Expr, stages: Expr, stage: Stage, pipeline: Pipeline) -> Expr:
    """Return the blocks of a stage, of each copy: both ends hold those of both where there are two.

    For example 61 blocks on 16 stages, 3 on the first and 2 on the last, are 5 on either end.
    """
    ends = (Stage.FIRST, Stage.LAST)
    both = pipeline.schedule.copies != 1 and stage in ends
    chunks = pipeline.chunks_of_a_stage
    of = [pipeline.layout.blocks(total, stages, chunks, one) for one in (ends if both else [stage])]
    return add(*of) / len(of)


def block_kinds(model: Model) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Return the blocks of a model that lead, and the others."""
    between = tuple(part for part in model.parts if part.is_block)
    ahead = tuple(part for part in between if part.place is PartPlace.LEADING)
    return ahead, tuple(part for part in between if part not in ahead)


def number(parts: Iterable[Part]) -> Expr:
    """Return how many blocks some parts are."""
    return add(*(part.repeat for part in parts))


def spread(parts: tuple[Part, ...], held: Expr) -> dict[str, Expr]:
    """Return how often each of some parts occurs, so many in all: each its share."""
    if len(parts) == 1:
        return {parts[0].path: held}
    return {part.path: part.repeat * held / number(parts) for part in parts}


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
    tables = every_stage(model)
    held = [
        replace(part, repeat=parts[part.path], place=part.stands, chunks=chunks)
        if part.is_block
        else part
        if share == 1 or part.path in tables
        else replace(part, share=share)
        for part in model.parts
        if part.path in parts
    ]
    unlike = [said for part in held for said in unlinked_repeats(part)]
    if unlike:
        raise PlacementError(
            f"pp: model {model.name!r} ends with a block of its own, of which every stage would "
            f"hold a share: {'; '.join(unlike)}"
        )
    return model.submodel(held)


def every_stage(model: Model) -> tuple[str, ...]:
    """Return the paths of the tables that blocks take as they are: every stage makes its own.

    They come of weights and of no sequence, as the biases of T5 by distance.
    """
    batch = {axis.name for axis in model.placed(At(Role.BATCH))}
    tables = [
        part.path
        for part in model.parts
        if not (part.is_block or part.inputs) and any(op.weights for op in part.ops)
        if all(batch.isdisjoint(result.axes) for result in part.results)
    ]
    taken = {
        source
        for part in model.parts
        if part.is_block
        for port, source in model.sources[part.path].items()
        if port not in part.inputs
    }
    return tuple(path for path in tables if path in taken)


def block_conditions(model: Model, stages: Expr, pipeline: Pipeline) -> tuple[Condition, ...]:
    """Return what the numbers of blocks, stages, chunks and microbatches must meet."""
    if stages == 1:
        return ()
    _, between, _ = divided(model)
    blocks, ahead = number(between), block_kinds(model)[0]
    own = pipeline.conditions(blocks, stages, between[0].path)
    chunks, copies = pipeline.chunks_of_a_stage, pipeline.schedule.copies
    if not ahead or chunks == copies:
        return own
    full, first, _ = pipeline.layout.rule(blocks, stages * chunks)
    room = (full / chunks - first) / copies
    what = "blocks of the first chunks beside those that lead"
    because = "blocks that lead are counted on the first chunks of the stages alone"
    return (*own, Least(what, room - number(ahead), Integer(0), because))


def block_count(model: Model) -> Expr:
    """Return how many blocks a pipeline divides into stages."""
    return add(*(part.repeat for part in model.parts if part.is_block))


def block_paths(model: Model) -> frozenset[str]:
    """Return the paths of the parts that a pipeline divides into stages."""
    return frozenset(part.path for part in model.parts if part.is_block)


def chains(model: Model) -> list[list[Part]]:
    """Return the blocks of each pass through all stages: those of an encoder, then of its decoder.

    A block begins a pass where its stream comes from no block of the one before.
    """
    found: list[list[Part]] = []
    for part in (part for part in model.parts if part.is_block):
        source = model.sources[part.path].get(part.stream)
        if not found or source not in {before.path for before in found[-1]}:
            found.append([])
        found[-1].append(part)
    return found


def divided(model: Model) -> tuple[tuple[Part, ...], tuple[Part, ...], tuple[Part, ...]]:
    """Return the parts before the repeated ones, the repeated ones, and the others."""
    repeated = tuple(part for part in model.parts if part.is_block)
    if not repeated:
        raise PlacementError(
            f"pp: model {model.name!r} repeats no part, so there is nothing to divide into stages"
        )
    for chain in chains(model):
        blocks = {part.path for part in chain}
        for part, before in zip(chain, (chain[0], *chain), strict=False):
            beside = {source for port, source in part.takes.items() if port != part.stream}
            # What the block before hands on reaches the next one, be it on another stage.
            several = len(before.streams) > 1 or len(part.streams) > 1
            handed = {part.path, *((before.path,) if several else ())}
            elsewhere = sorted((blocks - handed) & beside)
            if elsewhere:
                raise PlacementError(
                    f"pp: blocks {part.path!r} take more than the residual stream of "
                    f"{', '.join(elsewhere)}, which may stand on another stage"
                )
        outside = (part for part in model.parts if not part.is_block)
        ends = {source for part in outside for source in part.takes.values()} & blocks
        if len(ends) > 1:
            raise PlacementError(
                f"pp: model {model.name!r} takes results of the blocks {', '.join(sorted(ends))} "
                "behind all of them, which may stand on several stages"
            )
    first = model.parts.index(repeated[0])
    others = tuple(part for part in model.parts[first:] if part not in repeated)
    return model.parts[:first], repeated, others
