"""The order in which every stage of a pipeline runs its tasks, by schedule.

A microbatch passes a chain of places (stage, chunk). A stage runs slots one after the other; a
slot is one task, or two that overlap.
"""

from collections.abc import Callable
from enum import StrEnum

from symbolic_cost.records import dataclass

Place = tuple[int, int]


class Stage(StrEnum):
    """Which of the pipeline's stages something is about."""

    FIRST = "first"
    MIDDLE = "middle"
    LAST = "last"


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
