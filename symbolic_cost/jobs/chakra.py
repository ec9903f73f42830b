"""A step as Chakra execution traces, one file per rank, for ASTRA-sim.

A rank's trace is its passes in the order of the schedule, each op of each block by itself: a
computing node with FLOP and bytes read and written, then its collectives. A node waits for the one
before it on its rank, a received tensor besides for who sends it; nothing is overlapped, which is
for the simulator to decide. After the last pass come sums of gradients, the optimizer and gathers
of weights.

Fields and enumerators are those of et_def.proto (github.com/mlcommons/chakra, schema 0.0.4);
attributes and the file of groups are what ASTRA-sim 2 reads: `comm_size` is what one rank puts in,
so that of an all-gather is its shard.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from symbolic_cost.checking import checked
from symbolic_cost.emit.files import check_target, write_whole
from symbolic_cost.emit.protobuf import field, framed, packed
from symbolic_cost.errors import InputError, quote
from symbolic_cost.jobs.job import Job
from symbolic_cost.jobs.unrolled import Move, Op, Step
from symbolic_cost.ledger import CollectiveKind, Phase
from symbolic_cost.parallel.orders import Pass, Stage

_COMPUTE, _SEND, _RECEIVE, _COLLECTIVE = 4, 5, 6, 7
_KINDS = {
    CollectiveKind.ALL_REDUCE: 0,
    CollectiveKind.REDUCE: 1,
    CollectiveKind.ALL_GATHER: 2,
    CollectiveKind.BROADCAST: 5,
    CollectiveKind.ALL_TO_ALL: 6,
    CollectiveKind.REDUCE_SCATTER: 7,
}


_GROUPS = "groups.json"


@checked
def chakra_traces(job: Job, folder: str) -> tuple[str, ...]:
    """Write the traces of all ranks and the file of their groups into a folder.

    Args:
        job: model, strategy, machine, every number known.
        folder: gets step.RANK.et, and groups.json for ASTRA-sim's communicator groups.

    Returns:
        The paths.

    Raises:
        InputError: no machine, symbols without numbers, a schedule or layout whose blocks cannot be
            told one by one, too many nodes, or a folder that is none.
    """
    place = _folder(folder)
    step = Step(replace(job, precise=True))
    first = _trace(step, 0)
    try:
        place.mkdir(exist_ok=True)
    except (OSError, ValueError) as error:  # no place for it, or a name with a null character
        raise InputError(f"--chakra {quote(folder)}: is a folder that cannot be made") from error
    paths = []
    for rank in range(step.ranks):
        paths.append(str(place / f"step.{rank}.et"))
        write_whole(paths[-1], _trace(step, rank) if rank else first)
    groups = {str(number): list(ranks) for ranks, number in step.groups.items()}
    paths.append(str(place / _GROUPS))
    write_whole(paths[-1], json.dumps(groups) + "\n")
    return tuple(paths)


def _folder(name: str) -> Path:
    """Return a folder that is there, or that can be made."""
    place = Path(name)
    try:
        other, inside = place.exists() and not place.is_dir(), place.parent.is_dir()
    except (OSError, ValueError) as error:  # too long, for one
        raise InputError(f"--chakra {quote(name)}: is no name of a folder") from error
    if other:
        raise InputError(f"--chakra {quote(name)}: is no folder")
    if not inside:
        raise InputError(f"--chakra {quote(name)}: is in no folder: make that first")
    check_target(str(place / _GROUPS if place.exists() else place))
    return place


def _trace(own: Step, rank: int) -> bytes:
    trace = _Trace(own, rank)
    stage = own.place(rank).get("pp", 0)
    for event in sorted(
        (e for e in own.events if e.stage == stage), key=lambda e: (e.start, e.task.chunk)
    ):
        task = event.task
        chain = own.plan.chain(own.stages, own.chunks, task.microbatch)
        here = chain.index((stage, task.chunk))
        steps = {Pass.FORWARD: 1, Pass.BACKWARD: -1, Pass.BACKWARD_INPUT: -1}
        step = steps.get(task.work, 0)
        before, after = (
            chain[n] if 0 <= n < len(chain) else None for n in (here - step, here + step)
        )
        tag = 2 * (task.microbatch * len(chain) + here) + (step < 0)
        if step and before is not None:
            trace.pass_on(_RECEIVE, before[0], own.passed(before[0], task.work), tag - 2 * step)
        for op in own.unrolled(stage, task.work, task.chunk):
            trace.op(op, f"{task.work.value} {task.microbatch + 1}")
        if step and after is not None:
            trace.pass_on(_SEND, after[0], own.passed(stage, task.work), tag)
    trace.end(own.kind(stage))
    return trace.data()


class _Trace:
    """The file of one rank: nodes one after the other, each waiting for the one before."""

    def __init__(self, step: Step, rank: int) -> None:
        self._step, self._rank = step, rank
        self._parts = [framed(field(1, "0.0.4"))]
        self._last = 0

    def data(self) -> bytes:
        return b"".join(self._parts)

    def _node(self, name: str, kind: int, attributes: Mapping[str, int | str]) -> None:
        number = self._last + 1
        waits = (self._last,) if self._last else ()
        texts = b"".join(
            field(10, field(1, name) + field(29 if isinstance(own, str) else 9, own))
            for name, own in attributes.items()
        )
        on_device = field(1, "is_cpu_op") + field(27, 0)
        self._parts.append(
            framed(
                field(1, number)
                + field(2, name)
                + field(3, kind)
                + packed(5, waits)
                + field(10, on_device)
                + texts
            )
        )
        self._last = number

    def op(self, op: Op, when: str) -> None:
        """Add what an op computes and moves, and its collectives."""
        name = f"{op.path} {when}"
        if op.flop or op.moved:
            sizes = {"num_ops": int(op.flop), "tensor_size": int(op.moved)}
            self._node(name, _COMPUTE, sizes)
        for move, times in op.moves:
            for _ in range(times):
                self._moved(name, move)

    def _moved(self, name: str, move: Move) -> None:
        members = self._step.members(self._rank, move.meshes)
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
        at = self._step.place(self._rank)
        other = self._step.rank_at({**at, "pp": stage})
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
