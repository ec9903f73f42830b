"""DualPipe: microbatches enter at both ends, and forward and backward passes overlap.

Source: deepseek-2024, section 3.2.1.
"""

from collections import deque

from symbolic_cost.parallel.orders import Orders, Pass, Slot, Task


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
