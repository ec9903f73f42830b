"""A step as Chakra execution traces, one file per rank, for ASTRA-sim.

A rank's trace is its passes in the order of the schedule, each op of each block by itself: a
computing node with FLOP and bytes read and written, then its collectives. A node waits for the one
before it on its rank, a received tensor besides for who sends it; nothing is overlapped, which is
for the simulator to decide. After the last pass come sums of gradients, the optimizer and gathers
of weights. FLOP and bytes that are no integers (experts, taken in the mean) are rounded so that
their sums are not.

Fields and enumerators are those of et_def.proto (github.com/mlcommons/chakra, schema 0.0.4);
attributes and the file of groups are what ASTRA-sim 2 reads: `comm_size` is what one rank puts in,
so that of an all-gather is its shard.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import NamedTuple

from sympy import Expr

from symbolic_cost.checking import checked
from symbolic_cost.emit.files import write_whole
from symbolic_cost.emit.protobuf import field as message_field
from symbolic_cost.emit.protobuf import framed, packed
from symbolic_cost.errors import InputError, shown
from symbolic_cost.jobs.job import Job
from symbolic_cost.jobs.perfetto import stage_kind
from symbolic_cost.jobs.timed import Timed
from symbolic_cost.ledger import CollectiveKind, Origin, Phase, Quantity, Row
from symbolic_cost.numeric.binding import value
from symbolic_cost.parallel.groups import arranged
from symbolic_cost.parallel.orders import Pass, Stage
from symbolic_cost.parallel.schedules import schedule
from symbolic_cost.parallel.timeline import timeline
from symbolic_cost.systems.ends import states_of

MOST_NODES = 4_000_000
"""Nodes of all ranks together."""

_COMPUTE, _SEND, _RECEIVE, _COLLECTIVE = 4, 5, 6, 7
_KINDS = {
    CollectiveKind.ALL_REDUCE: 0,
    CollectiveKind.REDUCE: 1,
    CollectiveKind.ALL_GATHER: 2,
    CollectiveKind.BROADCAST: 5,
    CollectiveKind.ALL_TO_ALL: 6,
    CollectiveKind.REDUCE_SCATTER: 7,
}
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
class _Op:
    """What one op does in one phase, all blocks of a pass together."""

    path: str
    flop: Fraction = Fraction(0)
    moved: Fraction = Fraction(0)
    moves: list[tuple[Move, int]] = field(default_factory=list)


@checked
def chakra_traces(job: Job, folder: str) -> tuple[str, ...]:
    """Write the traces of all ranks and the file of their groups into a folder that exists.

    Args:
        job: model, strategy, machine, every number known.
        folder: gets step.RANK.et, and groups.json for ASTRA-sim's communicator groups.

    Returns:
        The paths.

    Raises:
        InputError: no machine, symbols without numbers, a schedule or layout whose blocks cannot be
            told one by one, too many nodes, or a folder that is none.
    """
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"--chakra {shown(folder)}: is no folder; make it first")
    step = Step(replace(job, precise=True))
    paths = []
    for rank in range(step.ranks):
        paths.append(str(place / f"step.{rank}.et"))
        write_whole(paths[-1], step.trace(rank))
    groups = {str(number): list(ranks) for ranks, number in step.groups.items()}
    paths.append(str(place / "groups.json"))
    write_whole(paths[-1], json.dumps(groups) + "\n")
    return tuple(paths)


class Step:
    """The nodes of a step, by rank.

    Args:
        job: with the bytes of its precision.

    Raises:
        InputError: what `chakra_traces` refuses.
    """

    def __init__(self, job: Job) -> None:
        self.job, self.timed = job, Timed(job)
        self.timed.known  # noqa: B018 - refuses symbols without a number
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
        nodes = sum(len(self._pass(e.stage, e.task.work, e.task.chunk)) + 2 for e in self.events)
        if nodes * self.ranks // self.stages > MOST_NODES:
            raise InputError(
                f"{nodes * self.ranks // self.stages} nodes are too many to write: up to "
                f"{MOST_NODES} are, of fewer ranks or microbatches"
            )

    @property
    def ranks(self) -> int:
        """Ranks of the mesh."""
        return self._product(self.mesh)

    def _product(self, names: Iterable[str]) -> int:
        product_of = 1
        for name in names:
            product_of *= self.mesh[name]
        return product_of

    # ------------------------------------------------------------------ what a pass does

    def _kind(self, stage: int) -> Stage:
        return stage_kind(stage, self.stages)

    @cached_property
    def _passes(self) -> dict[tuple[Stage, Pass, int], list[_Op]]:
        return {}

    def _pass(self, stage: int, work: Pass, chunk: int) -> list[_Op]:
        """Return the ops of a pass one after the other, block by block."""
        key = (self._kind(stage), work, chunk)
        if key not in self._passes:
            self._passes[key] = list(self._unrolled(*key))
        return self._passes[key]

    def _unrolled(self, kind: Stage, work: Pass, chunk: int) -> Iterator[_Op]:
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
    def _known(self) -> dict[tuple[Stage, Phase], dict[str, list[_Op]]]:
        return {}

    def _ops(self, kind: Stage, phase: Phase) -> dict[str, list[_Op]]:
        """Return the ops of a phase by part, all blocks of the stage together."""
        key = (kind, phase)
        if key not in self._known:
            ops: dict[str, dict[str, _Op]] = defaultdict(dict)
            for row in self.timed.step.table[kind]:
                if row.phase is phase and not row.per_step and row.origin is Origin.OP:
                    op = ops[row.part].setdefault(row.path, _Op(row.path))
                    self._add(op, row)
            self._known[key] = {part: list(own.values()) for part, own in ops.items()}
        return self._known[key]

    def _add(self, op: _Op, row: Row) -> None:
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

    def _place(self, rank: int) -> dict[str, int]:
        """Return where a rank stands on every mesh axis."""
        at = {}
        for name, size in self.mesh.items():
            rank, at[name] = divmod(rank, size)
        return at

    def _rank(self, at: Mapping[str, int]) -> int:
        rank, stride = 0, 1
        for name, size in self.mesh.items():
            rank, stride = rank + at[name] * stride, stride * size
        return rank

    def _members(self, rank: int, meshes: tuple[str, ...]) -> tuple[int, ...]:
        at = self._place(rank)
        if meshes == (_TIED,):
            return tuple(self._rank({**at, "pp": stage}) for stage in (0, self.stages - 1))
        names = [name for name in meshes if name in self.mesh]
        places = product(*(range(self.mesh[name]) for name in reversed(names)))
        return tuple(
            self._rank({**at, **dict(zip(reversed(names), one, strict=True))}) for one in places
        )

    # ------------------------------------------------------------------ files

    def trace(self, rank: int) -> bytes:
        """Return the file of a rank."""
        made = _Trace(self, rank)
        stage = self._place(rank).get("pp", 0)
        for event in sorted(
            (e for e in self.events if e.stage == stage), key=lambda e: (e.start, e.task.chunk)
        ):
            task = event.task
            chain = self.plan.chain(self.stages, self.chunks, task.microbatch)
            here = chain.index((stage, task.chunk))
            steps = {Pass.FORWARD: 1, Pass.BACKWARD: -1, Pass.BACKWARD_INPUT: -1}
            step = steps.get(task.work, 0)
            before, after = (
                chain[n] if 0 <= n < len(chain) else None for n in (here - step, here + step)
            )
            tag = 2 * (task.microbatch * len(chain) + here) + (step < 0)
            if step and before is not None:
                made.pass_on(
                    _RECEIVE, before[0], self._passed(before[0], task.work), tag - 2 * step
                )
            for op in self._pass(stage, task.work, task.chunk):
                made.op(op, f"{task.work.value} {task.microbatch + 1}")
            if step and after is not None:
                made.pass_on(_SEND, after[0], self._passed(stage, task.work), tag)
        made.end(self._kind(stage))
        return made.data()

    def _passed(self, stage: int, work: Pass) -> int:
        """Return what a stage sends on after a pass [byte]."""
        phase = Phase.FORWARD if work is Pass.FORWARD else Phase.BACKWARD_INPUT
        rows = self.timed.step.table[self._kind(stage)]
        return sum(
            self._move(row).size * int(self._number(row.collective.calls))
            for row in rows
            if row.origin is Origin.PIPELINE and not row.per_step and row.phase is phase
            if row.collective is not None and row.collective.kind is CollectiveKind.SEND_RECEIVE
        )

    def once(self, kind: Stage, phase: Phase) -> list[tuple[str, Move, int]]:
        """Return the collectives of a step that a stage makes once, each with how often."""
        found = []
        for row in self.timed.step.table[kind]:
            if row.per_step and row.phase is phase and row.collective is not None:
                times = int(self._number(row.count) * self._number(row.collective.calls))
                move = self._move(row)
                if row.origin is Origin.PIPELINE:
                    move = move._replace(meshes=(_TIED,))
                found.append((f"{row.path} {row.tensor}", move, times))
        return found

    def update(self, kind: Stage) -> _Op:
        """Return clipping and optimizer of a stage, all weights together."""
        states = states_of(self.timed.setting, kind)
        whole = _Op("optimizer")
        split: set[str] = set()
        for part, weights in states.parts():
            update = states.update(part.path, weights)
            split |= update.split
            for row in update.rows:
                self._add(whole, replace(row, count=part.repeat * row.count))
        norm = states.norm(split)
        if norm is not None:
            self._add(whole, norm)
        return whole


def _share(op: _Op, block: int, times: int, whole: int) -> _Op:
    """Return what an op does in one of its blocks, in whole FLOP and bytes.

    Args:
        op: of all blocks of the stage.
        block: of the pass, from 0.
        times: blocks of the pass.
        whole: blocks of the stage.
    """

    def part(total: Fraction) -> Fraction:
        own = total * times / whole
        return Fraction(round(own * (block + 1) / times) - round(own * block / times))

    moves = [(move, count // whole) for move, count in op.moves]
    return _Op(op.path, part(op.flop), part(op.moved), moves)


class _Trace:
    """The file of one rank: nodes one after the other, each waiting for the one before."""

    def __init__(self, step: Step, rank: int) -> None:
        self._step, self._rank = step, rank
        self._parts = [framed(message_field(1, "0.0.4"))]
        self._last = 0

    def data(self) -> bytes:
        """Return the file."""
        return b"".join(self._parts)

    def _node(self, name: str, kind: int, attributes: Mapping[str, int | str]) -> None:
        number = self._last + 1
        waits = (self._last,) if self._last else ()
        texts = b"".join(message_field(10, _attribute(*one)) for one in attributes.items())
        on_device = message_field(1, "is_cpu_op") + message_field(27, 0)
        self._parts.append(
            framed(
                message_field(1, number)
                + message_field(2, name)
                + message_field(3, kind)
                + packed(5, waits)
                + message_field(10, on_device)
                + texts
            )
        )
        self._last = number

    def op(self, op: _Op, when: str) -> None:
        """Add what an op computes and moves, and its collectives."""
        name = f"{op.path} {when}"
        if op.flop or op.moved:
            sizes = {"num_ops": int(op.flop), "tensor_size": int(op.moved)}
            self._node(name, _COMPUTE, sizes)
        for move, times in op.moves:
            for _ in range(times):
                self._moved(name, move)

    def _moved(self, name: str, move: Move) -> None:
        members = self._step._members(self._rank, move.meshes)  # noqa: SLF001 - its own trace
        if len(members) == 1 or self._rank not in members:
            return
        if move.kind is CollectiveKind.SEND_RECEIVE:  # a round of a ring
            here = members.index(self._rank)
            after, before = members[(here + 1) % len(members)], members[here - 1]
            self._sent(name, _SEND, after, move.size, 0)
            self._sent(name, _RECEIVE, before, move.size, 0)
            return
        group = self._step.groups.setdefault(members, len(self._step.groups) + 1)
        sizes: dict[str, int | str] = {"comm_type": _KINDS[move.kind], "comm_size": move.size}
        self._node(f"{move.kind} {name}", _COLLECTIVE, {**sizes, "pg_name": str(group)})

    def pass_on(self, kind: int, stage: int, size: int, tag: int) -> None:
        """Add a tensor between stages, unless both are this one."""
        at = self._step._place(self._rank)  # noqa: SLF001 - its own trace
        other = self._step._rank({**at, "pp": stage})  # noqa: SLF001
        if other != self._rank:
            self._sent("between stages", kind, other, size, tag)

    def _sent(self, name: str, kind: int, other: int, size: int, tag: int) -> None:
        ends = (self._rank, other) if kind == _SEND else (other, self._rank)
        word = "send" if kind == _SEND else "receive"
        sizes = {"comm_src": ends[0], "comm_dst": ends[1], "comm_size": size, "comm_tag": tag}
        self._node(f"{word} {name}", kind, sizes)

    def end(self, kind: Stage) -> None:
        """Add what ends the step: sums of gradients, clipping and optimizer, gathers of weights."""
        for phase in (Phase.BACKWARD_WEIGHT, Phase.STEP):
            if phase is Phase.STEP:
                self.op(self._step.update(kind), "step")
            for name, move, times in self._step.once(kind, phase):
                for _ in range(times):
                    self._moved(name, move)


def _attribute(name: str, content: int | str) -> bytes:
    return message_field(1, name) + message_field(29 if isinstance(content, str) else 9, content)
