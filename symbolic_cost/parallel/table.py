"""The costs of one rank under a strategy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field
from functools import cached_property
from typing import TypeVar

from sympy import Expr

from symbolic_cost.axes import Glossary
from symbolic_cost.conditions import Condition, Least, Split, check
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.lazy import Recent
from symbolic_cost.ledger import CostTable, Quantity, Row
from symbolic_cost.ops.derive import Bookings, Derivation, PartCosts
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.matrices import with_others_in
from symbolic_cost.ops.placement import Placement
from symbolic_cost.ops.recompute import KEEP_ALL, Recompute
from symbolic_cost.parallel.catalogue import DATA_AXES, STRATEGIES
from symbolic_cost.parallel.degrees import SHARDED
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.pipeline import Pipeline
from symbolic_cost.parallel.sends import stage_rows
from symbolic_cost.parallel.software import gathered_again
from symbolic_cost.parallel.stages import Blocks, block_conditions, cut_stage, stage_parts
from symbolic_cost.parallel.steps import BUFFERS, apart, step_buffers
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.parallel.structure import Structure, structure
from symbolic_cost.records import dataclass, replace
from symbolic_cost.symbols import exact

KeyT = TypeVar("KeyT")
ResultT = TypeVar("ResultT")


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

    Returns:
        Rows as `cost` gives them, and those of what stages send to each other.

    Raises:
        PlacementError: the strategy and the model do not go together, or no such stage.
        InputError: numbers that the pipeline does not take.
    """
    divided = Divided(model, strategy, conventions, pipeline or Pipeline())
    return divided.table(stage, recompute)


class _Split:
    """A model with the axes of a strategy, and rows that all policies and ZeRO levels share."""

    def __init__(self, model: Model, ranks: Strategy) -> None:
        self.model, self.own = model, ranks.model(model)
        self._bookings: list[tuple[Conventions, Bookings]] = []
        self._shares: dict[tuple[object, ...], Model] = {}

    def bookings(self, conventions: Conventions) -> Bookings:
        """Return what is booked under some conventions."""
        return _of(self._bookings, conventions, Bookings)

    def share(self, stage: Stage, stages: Expr, pipeline: Pipeline, blocks: Blocks | None) -> Model:
        """Return the parts of a stage, each a number of times."""
        copies, chunks = pipeline.schedule.copies, pipeline.chunks_of_a_stage
        asked = (stage, stages, pipeline, blocks)
        if asked not in self._shares:
            parts = stage_parts(self.own, stages, stage, pipeline, blocks)
            key = (copies, chunks, *parts.items())
            if key not in self._shares:
                self._shares[key] = cut_stage(self.own, parts, 1 / copies, chunks)
            self._shares[asked] = self._shares[key]
        return self._shares[asked]


class _Placed:
    """A model placed on the ranks of one stage, and what was derived of it."""

    def __init__(self, split: _Split, ranks: Strategy, ends: str) -> None:
        self.split, self.own = split, split.own
        placed, units = ranks.placement(self.own), bool(ends) and ranks.zero == SHARDED
        if units:
            placed = replace(placed, again=gathered_again(self.own, ends))
        if (units or placed.whole) and ranks.degree("pp") != 1:
            placed = replace(placed, stored={**placed.stored, "weight_gradient": _kept(placed)})
        self.placement = placed
        self._derivations: list[tuple[tuple[Recompute, Conventions], Derivation]] = []
        self._sent: list[tuple[Conventions, dict[object, tuple[Row, ...]]]] = []

    def derivation(self, conventions: Conventions, recompute: Recompute) -> Derivation:
        """Return the derivation under some conventions and policy."""
        booked = self.split.bookings
        return _of(
            self._derivations,
            (recompute, conventions),
            lambda: Derivation(
                self.own, conventions, self.placement, recompute, booked(conventions)
            ),
        )

    def sent(self, conventions: Conventions) -> dict[object, tuple[Row, ...]]:
        """Return what stages send, by stage and pipeline; what runs again changes none of it."""
        return _of(self._sent, conventions, dict)


def _kept(placed: Placement) -> tuple[str, ...]:
    """Return what shards of gradients FSDP keeps between the microbatches of a pipeline.

    It reduces them once per step: what data-parallel ranks sum adds up whole.
    Source: github.com/pytorch/pytorch, torch/distributed/pipelining/stage.py: perform_reduce_grad.
    """
    stored = placed.stored.get("weight_gradient", ())
    return tuple(mesh for mesh in stored if mesh not in DATA_AXES)


def _of(listed: list[tuple[KeyT, ResultT]], key: KeyT, make: Callable[[], ResultT]) -> ResultT:
    """Return what was made for a key that has no hash, or make it."""
    for known, result in listed:
        if known == key:
            return result
    listed.append((key, make()))
    return listed[-1][1]


_ALONE = Pipeline().name
_SPLIT: Recent[_Split] = Recent(64, passing=True)
_PLACED: Recent[_Placed] = Recent(64, passing=True)
"""A search asks for pipelines of all kinds of the same parts; one job asks for its stages."""


@dataclass(frozen=True)
class Divided:
    """A model divided over the ranks of a mesh; its stages share what is derived.

    Args:
        pipeline: schedule and layout, which say how often a stage sends and what it holds.
        blocks: letters for the blocks of a stage, where formulas are to have them.
        ends: what of FSDP's units is no block, as in `Software`; empty where there are no units.
    """

    model: Model
    strategy: Strategy
    conventions: Conventions
    pipeline: Pipeline = field(default_factory=Pipeline)
    blocks: Mapping[Stage, Blocks] = field(default_factory=dict)
    ends: str = ""

    def __post_init__(self) -> None:
        """Give weights their bytes; one stage has no schedule: microbatches run one by one."""
        others = self.conventions.sizes.others
        if others is not None:
            object.__setattr__(self, "model", with_others_in(self.model, others))
        if self.stages == 1 and self.pipeline.name != _ALONE:
            object.__setattr__(self, "pipeline", replace(self.pipeline, name=_ALONE))

    @cached_property
    def structure(self) -> Structure:
        """The class of each degree."""
        return structure(self.strategy)

    @property
    def ranks(self) -> Strategy:
        """The strategy without the names that split nothing."""
        return self.structure.reduced

    @cached_property
    def stages(self) -> Expr:
        """Stages of the pipeline."""
        return self.ranks.degree("pp")

    @cached_property
    def _placed(self) -> _Placed:
        """What does not depend on the stages, shared with other pipelines of the same parts."""
        model, ranks = self.model, self.ranks
        inside = tuple(item for item in ranks.degrees.items() if item[0] != "pp")
        sizes = tuple(model.sizes.items())
        key = (id(model.parts), sizes, inside, ranks.panels, ranks.copies, ranks.shared)
        split = _SPLIT.of(key, lambda: _Split(model, ranks))
        if split.model.parts is not model.parts:
            return _Placed(_Split(model, ranks), ranks, self.ends)
        own = (*key, ranks.zero, *self._held)
        placed = _PLACED.of(own, lambda: _Placed(split, ranks, self.ends))
        return placed if placed.split is split else _Placed(split, ranks, self.ends)

    @property
    def _held(self) -> tuple[object, ...]:
        """What says how long weights stay whole: microbatches of a pipeline find them so."""
        several = bool(self.ends or self.ranks.reshard) and self.stages != 1
        return (self.ends, several, self.ranks.reshard)

    @property
    def split_model(self) -> Model:
        """The model with the axes of the strategy."""
        return self._placed.own

    @property
    def placement(self) -> Placement:
        """Which axes are split."""
        return self._placed.placement

    @cached_property
    def sent(self) -> dict[object, tuple[Row, ...]]:
        """What stages send, as far as it is known, by stage and pipeline."""
        return self._placed.sent(self.conventions)

    def share(self, stage: Stage) -> Model:
        """Return the parts of one stage."""
        self.structure.checked(stage)
        split = self._placed.split
        return split.share(stage, self.stages, self.pipeline, self.blocks.get(stage))

    @cached_property
    def _tables(self) -> dict[tuple[Stage, Recompute], StageCosts]:
        return {}

    def table(self, stage: Stage = Stage.FIRST, recompute: Recompute = KEEP_ALL) -> CostTable:
        """Derive every cost of one rank of a stage; see `strategy_table`."""
        return self.costs(stage, recompute).table

    def costs(self, stage: Stage = Stage.FIRST, recompute: Recompute = KEEP_ALL) -> StageCosts:
        """Derive the same part by part."""
        key = (stage, recompute)
        if key not in self._tables:
            self._tables[key] = self._derived(stage, recompute)
        return self._tables[key]

    def _derived(self, stage: Stage, recompute: Recompute) -> StageCosts:
        own, ranks = self.split_model, self.ranks
        derivation = self._placed.derivation(self.conventions, recompute)

        def in_their_steps(row: Row) -> tuple[Row, ...]:
            return in_steps(row, ranks, self.conventions, own.axes)

        parts = derivation.parts(self.share(stage).parts, in_their_steps)
        return StageCosts(self, stage, derivation, parts)

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """What the numbers of stages, blocks and ranks must meet."""
        of_stages = block_conditions(self.model, self.stages, self.pipeline)
        check(of_stages, {})
        assumed = (bound for bound in self.structure.assumptions if bound.size == self.stages)
        return (*of_stages, *_expert_split(self.ranks), *assumed)


@dataclass(frozen=True, eq=False)
class StageCosts:
    """Every cost of one rank of a stage.

    Args:
        derivation: of the parts.
        parts: what each of the stage's parts costs.
    """

    divided: Divided
    stage: Stage
    derivation: Derivation
    parts: tuple[PartCosts, ...]

    @cached_property
    def sent(self) -> tuple[Row, ...]:
        """What it sends to its neighbours."""
        divided, stage = self.divided, self.stage
        key = (stage, divided.stages, divided.pipeline, *divided.blocks.items())
        known = divided.sent
        if key not in known:
            known[key] = stage_rows(
                divided.split_model,
                divided.conventions,
                divided.placement,
                lambda: self._joined,
                stages=divided.stages,
                stage=stage,
                pipeline=divided.pipeline,
            )
        return known[key]

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """What numbers must meet."""
        return (*self.derivation.conditions(self.parts), *self.divided.conditions)

    @cached_property
    def _joined(self) -> CostTable:
        return self.derivation.combined(self.parts)

    def of(self, quantities: Collection[Quantity]) -> Iterator[Row]:
        """Yield the rows of the parts that are of some quantities; no table of all is held."""
        for one in self.parts:
            yield from one.counted(row for row in one.once if row.quantity in quantities)

    @cached_property
    def buffers(self) -> tuple[Row, ...]:
        """The buffers of what arrives in steps [byte]."""
        if self.divided.placement.degrees.keys().isdisjoint(BUFFERS):
            return ()
        rows = (row for one in self.parts for row in one.once)
        return tuple(step_buffers(rows, self.divided.split_model.axes))

    @cached_property
    def table(self) -> CostTable:
        """All of it."""
        rows = (*self._joined.rows, *self.buffers, *self.sent)
        splits = tuple(c for c in self.conditions if isinstance(c, Split))
        bounds = tuple(c for c in self.conditions if isinstance(c, Least))
        return replace(self._joined, rows=rows, splits=splits, bounds=bounds)


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
