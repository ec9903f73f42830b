"""What every rank does in a step, op by op: the passes of the schedule, their blocks unrolled.

A pass runs the ops of its blocks one after the other, backward from the last. FLOP and bytes that
are no integers (experts, taken in the mean) are rounded so that their sums are not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import NamedTuple

from sympy import Expr

from symbolic_cost.errors import InputError
from symbolic_cost.jobs.job import Job
from symbolic_cost.jobs.timed import Timed
from symbolic_cost.ledger import CollectiveKind, Origin, Phase, Quantity, Row
from symbolic_cost.numeric.binding import value
from symbolic_cost.parallel.groups import arranged, offsets
from symbolic_cost.parallel.orders import Pass, Stage, stage_kind
from symbolic_cost.parallel.schedules import schedule
from symbolic_cost.parallel.timeline import timeline
from symbolic_cost.records import dataclass
from symbolic_cost.systems.ends import states_of

MOST_NODES = 4_000_000
"""Nodes of all ranks together."""

_PHASES: Mapping[Pass, tuple[Phase, ...]] = {
    Pass.FORWARD: (Phase.FORWARD,),
    Pass.BACKWARD: (Phase.RECOMPUTE, Phase.BACKWARD_INPUT, Phase.BACKWARD_WEIGHT),
    Pass.BACKWARD_INPUT: (Phase.RECOMPUTE, Phase.BACKWARD_INPUT),
    Pass.BACKWARD_WEIGHT: (Phase.BACKWARD_WEIGHT,),
}
_MOVED = (Quantity.READ, Quantity.WRITE)
_TIED = "(ends)"
"""The group of the first and the last stage, which share a weight."""


class Move(NamedTuple):
    """A collective, or one round of sends in a ring: what one rank puts in [byte]."""

    kind: CollectiveKind
    meshes: tuple[str, ...]
    size: int


@dataclass
class Op:
    """What one op does in one phase, all blocks of a pass together."""

    path: str
    flop: Fraction = Fraction(0)
    moved: Fraction = Fraction(0)
    moves: list[tuple[Move, int]] = field(default_factory=list)


class Step:
    """The nodes of a step, by rank.

    Raises:
        InputError: what `chakra_traces` refuses.
    """

    def __init__(self, job: Job) -> None:
        self.job, self.timed = job, Timed(job)
        self.timed.numbers  # noqa: B018 - refuses symbols without a number
        mesh = arranged(job.strategy.mesh, job.methods.order)
        self.mesh = {name: int(value(job.value(degree))) for name, degree in mesh.items()}
        self.stages = self.mesh.get("pp", 1)
        self.groups: dict[tuple[int, ...], int] = {}
        trained = job.trained
        self.chunks = int(trained.chunks) if trained.schedule == "interleaved" else 1
        self.plan = schedule(trained.schedule)
        straight = trained.schedule == "interleaved" or self.plan.chunks == 1
        if self.plan.copies != 1 or not straight:
            raise InputError(
                f"schedule {trained.schedule}: a stage holds blocks of several places; traces are "
                "of schedules with one chunk, and of interleaved"
            )
        count = int(value(self.timed.microbatches))
        self.events = timeline(trained.schedule, self.stages, count, self.chunks)
        self.microbatches = count
        nodes = sum(len(self.unrolled(e.stage, e.task.work, e.task.chunk)) + 2 for e in self.events)
        if nodes * self.ranks // self.stages > MOST_NODES:
            raise InputError(
                f"{nodes * self.ranks // self.stages} nodes are too many to write: up to "
                f"{MOST_NODES} are, of fewer ranks or microbatches"
            )

    @property
    def ranks(self) -> int:
        """Ranks of the mesh."""
        return prod(self.mesh[name] for name in self.mesh)

    # ------------------------------------------------------------------ what a pass does

    def kind(self, stage: int) -> Stage:
        """Return which of the kinds of stages one is, from 0."""
        return stage_kind(stage, self.stages)

    @cached_property
    def _passes(self) -> dict[tuple[Stage, Pass, int], list[Op]]:
        return {}

    def unrolled(self, stage: int, work: Pass, chunk: int) -> list[Op]:
        """Return the ops of a pass one after the other, block by block."""
        key = (self.kind(stage), work, chunk)
        if key not in self._passes:
            self._passes[key] = list(self._pass_ops(*key))
        return self._passes[key]

    def _pass_ops(self, kind: Stage, work: Pass, chunk: int) -> Iterator[Op]:
        """Yield ops: forward from the first part on, backward from the last."""
        parts = [*self.job.divided.share(kind).parts]
        blocks = next((n for n, part in enumerate(parts) if part.is_block), 0)
        runs: list[tuple[str, int]] = []
        for place, part in enumerate(parts):
            times = value(self.job.value(part.repeat))
            own = Fraction(times) / (self.chunks if part.is_block else 1)
            if own.denominator != 1:
                raise InputError(
                    f"stage {kind} holds {times} x {part.path} in the mean: traces take whole "
                    "blocks, as of --layout even and one kind of block"
                )
            ends = 0 if place < blocks else self.chunks - 1
            if part.is_block or chunk == ends:
                runs.append((part.path, int(own)))
        if work is not Pass.FORWARD:
            runs.reverse()
        for phase in _PHASES[work]:
            for path, times in runs:
                ops = self._ops(kind, phase).get(path, [])
                whole = times * (self.chunks if path in self._repeated(kind) else 1)
                for block in range(times):
                    yield from (_share(op, block, times, whole) for op in ops)

    def _repeated(self, kind: Stage) -> frozenset[str]:
        return frozenset(p.path for p in self.job.divided.share(kind).parts if p.is_block)

    @cached_property
    def _ops_by_pass(self) -> dict[tuple[Stage, Phase], dict[str, list[Op]]]:
        return {}

    def _ops(self, kind: Stage, phase: Phase) -> dict[str, list[Op]]:
        """Return the ops of a phase by part, all blocks of the stage together."""
        key = (kind, phase)
        if key not in self._ops_by_pass:
            ops: dict[str, dict[str, Op]] = defaultdict(dict)
            for row in self.timed.step.table[kind]:
                if row.phase is phase and not row.per_step and row.origin is Origin.OP:
                    op = ops[row.part].setdefault(row.path, Op(row.path))
                    self._add(op, row)
            self._ops_by_pass[key] = {part: list(own.values()) for part, own in ops.items()}
        return self._ops_by_pass[key]

    def _add(self, op: Op, row: Row) -> None:
        count = self._number(row.count)
        if row.collective is not None:
            op.moves.append((self._move(row), int(count * self._number(row.collective.calls))))
        elif row.quantity is Quantity.FLOP:
            op.flop += count * self._number(row.expr)
        elif row.quantity in _MOVED:
            op.moved += count * self._number(row.expr)

    def _number(self, expr: Expr) -> Fraction:
        return Fraction(value(self.job.value(expr)))

    def _move(self, row: Row) -> Move:
        move = row.collective
        if move is None:
            raise InputError(f"{row.path}: no collective")
        size = self._number(move.message)
        if move.kind is CollectiveKind.ALL_GATHER:
            size /= self._number(move.ranks)
        return Move(move.kind, move.meshes, round(size))

    # ------------------------------------------------------------------ ranks and groups

    def place(self, rank: int) -> dict[str, int]:
        """Return where a rank stands on every mesh axis."""
        at = {}
        for name, size in self.mesh.items():
            rank, at[name] = divmod(rank, size)
        return at

    def rank_at(self, at: Mapping[str, int]) -> int:
        """Return the rank at a place of the mesh."""
        rank, stride = 0, 1
        for name, size in self.mesh.items():
            rank, stride = rank + at[name] * stride, stride * size
        return rank

    def members(self, rank: int, meshes: tuple[str, ...]) -> tuple[int, ...]:
        """Return the ranks that a rank meets over some mesh axes, itself among them."""
        at = self.place(rank)
        if meshes == (_TIED,):
            return tuple(self.rank_at({**at, "pp": stage}) for stage in (0, self.stages - 1))
        names = [name for name in meshes if name in self.mesh]
        first = self.rank_at({**at, **dict.fromkeys(names, 0)})
        return tuple(first + offset for offset in offsets(self.mesh, names))

    def passed(self, stage: int, work: Pass) -> int:
        """Return what a stage sends on after a pass [byte]."""
        phase = Phase.FORWARD if work is Pass.FORWARD else Phase.BACKWARD_INPUT
        rows = self.timed.step.table[self.kind(stage)]
        return sum(
            self._move(row).size * int(self._number(row.collective.calls))
            for row in rows
            if row.origin is Origin.PIPELINE and not row.per_step and row.phase is phase
            if row.collective is not None and row.collective.kind is CollectiveKind.SEND_RECEIVE
        )

    def once(self, kind: Stage, phase: Phase) -> list[tuple[str, Move, int]]:
        """Return the collectives of a step that a stage makes once, each with how often."""
        collectives = []
        for row in self.timed.step.table[kind]:
            if row.per_step and row.phase is phase and row.collective is not None:
                times = int(self._number(row.count) * self._number(row.collective.calls))
                move = self._move(row)
                if row.origin is Origin.PIPELINE and move.meshes == ("pp",):
                    every = self._number(row.collective.ranks) == self.stages
                    move = move if every else move._replace(meshes=(_TIED,))
                collectives.append((f"{row.path} {row.tensor}", move, times))
        return collectives

    def update(self, kind: Stage) -> Op:
        """Return clipping and optimizer of a stage, all weights together."""
        states = states_of(self.timed.setting, kind)
        whole = Op("optimizer")
        split: set[str] = set()
        for part, weights in states.model.learned:
            update = states.update(part.path, weights)
            split |= update.split
            for row in update.rows:
                self._add(whole, replace(row, count=part.repeat * row.count))
        norm = states.norm(split)
        if norm is not None:
            self._add(whole, norm)
        return whole


def _share(op: Op, block: int, times: int, whole: int) -> Op:
    """Return what an op does in one of its blocks, in whole FLOP and bytes."""

    def part(total: Fraction) -> Fraction:
        own = total * times / whole
        return Fraction(round(own * (block + 1) / times) - round(own * block / times))

    moves = [(move, count // whole) for move, count in op.moves]
    return Op(op.path, part(op.flop), part(op.moved), moves)
