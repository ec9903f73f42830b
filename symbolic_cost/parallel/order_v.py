"""The V schedule: two chunks per stage, placed forth and back, without a bubble.

The order of forward and input-gradient passes is a building block that repeats; weight gradients
and early forward passes fill what it leaves free, as far as the kept activations fit.

Source: qi-2024, section 6.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import field
from functools import partial

from symbolic_cost.parallel.orders import Orders, Pass, Slot, Task, forth_and_back
from symbolic_cost.records import dataclass


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
