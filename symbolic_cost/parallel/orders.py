"""The order in which every stage of a pipeline runs its tasks, by schedule.

A microbatch passes a chain of places (stage, chunk). A stage runs slots one after the other; a
slot is one task, or two that overlap.

In DualPipe microbatches enter at both ends, and forward and backward passes overlap. The V schedule
has two chunks per stage, placed forth and back, and no bubble: the order of forward and
input-gradient passes is a building block that repeats; weight gradients and early forward passes
fill what it leaves free, as far as the kept activations fit.

Source: deepseek-2024, section 3.2.1 (DualPipe); qi-2024, section 6 (the V schedule).
"""

from collections import deque
from collections.abc import Callable
from dataclasses import field
from enum import StrEnum
from functools import partial

from symbolic_cost.records import dataclass

Place = tuple[int, int]


class Stage(StrEnum):
    """Which of the pipeline's stages something is about."""

    FIRST = "first"
    MIDDLE = "middle"
    LAST = "last"


def stage_kind(stage: int, count: int) -> Stage:
    """Return which of the kinds of stages one is, from 0."""
    if stage == 0:
        return Stage.FIRST
    return Stage.LAST if stage == count - 1 else Stage.MIDDLE


class Pass(StrEnum):
    """What a task computes."""

    FORWARD = "forward"
    BACKWARD = "backward"
    BACKWARD_INPUT = "backward_input"
    BACKWARD_WEIGHT = "backward_weight"


@dataclass(frozen=True, slots=True)
class Task:
    """One pass of one microbatch through one chunk of a stage."""

    work: Pass
    microbatch: int
    chunk: int = 0


Slot = tuple[Task, ...]
Orders = list[list[Slot]]


def straight(pp: int, chunks: int, microbatch: int) -> list[Place]:  # noqa: ARG001 - one signature
    """Return a chain through all stages, chunk after chunk."""
    return [(stage, chunk) for chunk in range(chunks) for stage in range(pp)]


def forth_and_back(pp: int, chunks: int, microbatch: int) -> list[Place]:  # noqa: ARG001 - the same
    """Return a chain through all stages to the last one and back to the first."""
    return [(stage, 0) for stage in range(pp)] + [(stage, 1) for stage in reversed(range(pp))]


def both_ways(pp: int, chunks: int, microbatch: int) -> list[Place]:  # noqa: ARG001 - the same
    """Return a chain from the first stage for even microbatches, from the last for odd ones."""
    odd = microbatch % 2
    return [(stage, odd) for stage in (reversed(range(pp)) if odd else range(pp))]


def gpipe(pp: int, microbatches: int, chunks: int) -> Orders:  # noqa: ARG001 - one signature
    """All forward passes, then all backward passes."""
    works = (Pass.FORWARD, Pass.BACKWARD)
    return [[(Task(work, m),) for work in works for m in range(microbatches)] for _ in range(pp)]


def one_forward_one_backward(pp: int, microbatches: int, chunks: int) -> Orders:
    """Warm up, then alternate; with several chunks, groups of pp microbatches chunk by chunk."""
    count = microbatches * chunks
    group = pp * chunks
    turns = [(k // group * pp + k % pp, k % group // pp) for k in range(count)]
    forward = [Task(Pass.FORWARD, m, chunk) for m, chunk in turns]
    backward = [Task(Pass.BACKWARD, m, chunks - 1 - chunk) for m, chunk in turns]
    orders: Orders = []
    for stage in range(pp):
        warmup = pp - stage - 1 if chunks == 1 else 2 * (pp - stage - 1) + (chunks - 1) * pp
        orders.append(_alternate(forward, backward, warmup))
    return orders


def _alternate(forward: list[Task], backward: list[Task], warmup: int) -> list[Slot]:
    ahead = forward[:warmup]
    rest = forward[warmup:]
    order = list(ahead)
    for number, task in enumerate(backward):
        order += [*rest[number : number + 1], task]
    return [(task,) for task in order]


def zero_bubble(
    warmup: Callable[[int, int], int], delay: Callable[[int, int], int]
) -> Callable[[int, int, int], Orders]:
    """Return the orders that split backward: weight gradients wait for `delay` others.

    Args:
        warmup: forward passes before the first backward, of (pp, stage from 0).
        delay: weight gradients that wait, of the same.
    """

    def orders(pp: int, microbatches: int, chunks: int) -> Orders:  # noqa: ARG001 - one signature
        orders: Orders = []
        for stage in range(pp):
            ahead, waiting = warmup(pp, stage), delay(pp, stage)
            order = [Task(Pass.FORWARD, m) for m in range(min(ahead, microbatches))]
            for m in range(microbatches + waiting):
                if m < microbatches:
                    order.append(Task(Pass.BACKWARD_INPUT, m))
                if m >= waiting:
                    order.append(Task(Pass.BACKWARD_WEIGHT, m - waiting))
                if m + ahead < microbatches:
                    order.append(Task(Pass.FORWARD, m + ahead))
            orders.append([(task,) for task in order])
        return orders

    return orders


class _Bidirectional:
    """One stage of DualPipe: counts what it has run in its own and in the other direction."""

    def __init__(self, other_half: bool) -> None:  # noqa: FBT001 - one private use
        self.order: list[Slot] = []
        self._flip = int(other_half)
        self._next = {(work, way): 0 for work in (Pass.FORWARD, Pass.BACKWARD) for way in (0, 1)}
        self._waiting: deque[Task] = deque()

    def _task(self, work: Pass, way: int) -> Task:
        counter = (Pass.FORWARD if work is Pass.FORWARD else Pass.BACKWARD, way)
        direction = way ^ self._flip
        task = Task(work, 2 * self._next[counter] + direction, direction)
        self._next[counter] += 1
        return task

    def forward(self, way: int) -> None:
        self.order.append((self._task(Pass.FORWARD, way),))

    def backward(self, way: int, *, split: bool = False) -> None:
        task = self._task(Pass.BACKWARD_INPUT if split else Pass.BACKWARD, way)
        self.order.append((task,))
        if split:
            self._waiting.append(Task(Pass.BACKWARD_WEIGHT, task.microbatch, task.chunk))

    def weight(self) -> None:
        self.order.append((self._waiting.popleft(),))

    def overlap(self, forward: int, backward: int) -> None:
        self.order.append((self._task(Pass.FORWARD, forward), self._task(Pass.BACKWARD, backward)))


def dual_pipe(pp: int, microbatches: int, chunks: int) -> Orders:  # noqa: ARG001 - one signature
    """Half of the microbatches from each end, forward and backward of both overlapped."""
    return [_dual_pipe_stage(pp, stage, microbatches // 2) for stage in range(pp)]


def _dual_pipe_stage(pp: int, stage: int, per_way: int) -> list[Slot]:
    depth = min(stage, pp - 1 - stage)  # distance from the nearer end
    inner = pp // 2 - 1 - depth  # distance from the middle
    run = _Bidirectional(stage >= pp // 2)
    for _ in range(2 * inner):
        run.forward(0)
    for _ in range(depth + 1):
        run.forward(0)
        run.forward(1)
    for _ in range(inner):
        run.backward(1, split=True)
        run.weight()
        run.forward(1)
    for turn in range(per_way - pp + depth + 1):
        if turn == 0 and inner == 0:
            run.forward(0)
            run.backward(1)
        else:
            run.overlap(0, 1)
        run.overlap(1, 0)
    for _ in range(inner):
        run.backward(1)
        run.overlap(1, 0)
    for turn in range(2 * (depth + 1)):
        run.backward(1 - turn % 2, split=turn > depth)
    for _ in range(inner):
        run.weight()
        run.backward(0, split=True)
    for _ in range(depth + 1):
        run.weight()
    return run.order


@dataclass
class _VStage:
    """One stage of the V schedule while it is planned."""

    sequence: list[Task]
    room: int
    waiting: deque[Task] = field(default_factory=deque)
    order: list[Slot] = field(default_factory=list)

    def next(self, ready: Callable[[Task], bool]) -> Task | None:
        """Take the next task: as planned, else an early forward, else a weight gradient."""
        first = self.sequence[:1]
        early = [t for t in self.sequence if t.work is Pass.FORWARD and t.chunk == 0][:1]
        for task in [*first, *(early if self.room > 1 else [])]:
            if ready(task) and (self.room or task.work is not Pass.FORWARD):
                self.sequence.remove(task)
                return task
        return self.waiting.popleft() if self.waiting else None

    def run(self, task: Task) -> None:
        """Take a task into the order; a weight gradient frees what the forward pass kept."""
        self.order.append((task,))
        if task.work is Pass.FORWARD:
            self.room -= 1
        elif task.work is Pass.BACKWARD_INPUT:
            self.waiting.append(Task(Pass.BACKWARD_WEIGHT, task.microbatch, task.chunk))
        else:
            self.room += 1


def zero_bubble_v(pp: int, microbatches: int, chunks: int) -> Orders:  # noqa: ARG001 - one signature
    """Two chunks per stage, forth and back; every pass takes one unit, 2 pp activations fit."""
    chain = forth_and_back(pp, 2, 0)
    position = {place: number for number, place in enumerate(chain)}
    stages = [_VStage(_v_sequence(pp, stage, microbatches), 2 * pp) for stage in range(pp)]
    done: set[tuple[Pass, int, int]] = set()

    def ready(stage: int, task: Task) -> bool:
        place = position[stage, task.chunk]
        if task.work is Pass.FORWARD:
            return place == 0 or (Pass.FORWARD, task.microbatch, place - 1) in done
        if place == len(chain) - 1:
            return (Pass.FORWARD, task.microbatch, place) in done
        return (Pass.BACKWARD_INPUT, task.microbatch, place + 1) in done

    while any(stage.sequence or stage.waiting for stage in stages):
        chosen = [
            (number, stage.next(partial(ready, number))) for number, stage in enumerate(stages)
        ]
        for number, task in chosen:
            if task is not None:
                stages[number].run(task)
                done.add((task.work, task.microbatch, position[number, task.chunk]))
    return [stage.order for stage in stages]


def _v_sequence(pp: int, stage: int, microbatches: int) -> list[Task]:
    """Return forward and input-gradient tasks by the building block that repeats every 6 units.

    A pass moves on by 4 units per stage on the way forth and by 2 on the way back, so that the
    passes of one stage never meet.
    """
    forth, back = 4 * stage, 2 * (pp - 1 - stage)
    turn = 4 * (pp - 1) + 1
    loss = turn + 2 * (pp - 1) + 1
    starts = {Task(Pass.FORWARD, m, 0): forth + 6 * m for m in range(microbatches)}
    for m in range(microbatches):
        starts[Task(Pass.FORWARD, m, 1)] = turn + back + 6 * m
        starts[Task(Pass.BACKWARD_INPUT, m, 1)] = loss + forth + 6 * m
        starts[Task(Pass.BACKWARD_INPUT, m, 0)] = loss + turn + back + 6 * m
    return sorted(starts, key=starts.__getitem__)
