"""When every stage of a pipeline runs what: the data of a drawing."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from symbolic_cost.errors import quote, refuse
from symbolic_cost.parallel.orders import Pass, Place, Task
from symbolic_cost.parallel.schedules import Schedule, schedule
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import M, pp, v


@dataclass(frozen=True, slots=True)
class Event:
    """One task on a stage.

    Args:
        stage: from 0.
        start: when it begins, in the unit of the given times.
        end: when it is done.
    """

    stage: int
    task: Task
    start: Fraction
    end: Fraction


MOST_STAGES = 512
MOST_PASSES = 2 * 10**4
"""Longer schedules are not run task by task; their formulas hold all the same."""

TIMES: Mapping[Pass, int | Fraction] = {
    Pass.FORWARD: 1,
    Pass.BACKWARD: 2,
    Pass.BACKWARD_INPUT: 1,
    Pass.BACKWARD_WEIGHT: 1,
}
"""Forward pass and both gradients take one unit each."""


def timeline(
    name: str,
    stages: int,
    microbatches: int,
    chunks: int = 2,
    times: Mapping[Pass, int | Fraction] = TIMES,
    *,
    by_stage: Sequence[Mapping[Pass, int | Fraction]] = (),
) -> tuple[Event, ...]:
    """Return when every stage runs what, as soon as its order and its inputs allow.

    Args:
        name: of the schedule.
        stages: of the pipeline.
        microbatches: of one step.
        chunks: model chunks per stage, for schedules that leave it open.
        times: of one microbatch and stage, by pass; overlapped tasks take the sum of both.
        by_stage: times of each stage, where these differ.
    """
    plan = schedule(name, chunks)
    sizes = {pp: stages, M: microbatches, v: chunks}
    _check(plan, stages, microbatches, chunks)
    per_stage = int(plan.chunks.xreplace(sizes))
    every = by_stage or [times] * stages
    return _Clock(plan, stages, microbatches, per_stage, every).run()


def _check(plan: Schedule, stages: int, microbatches: int, chunks: int) -> None:
    sizes = {pp: stages, M: microbatches, v: chunks}
    problems = [
        f"{meaning}={quote(number)}: a positive integer is accepted"
        for meaning, number in (("pp", stages), ("microbatches", microbatches), ("chunks", chunks))
        if type(number) is not int or number < 1
    ]
    if not problems and stages > MOST_STAGES:
        problems.append(f"pp={stages}: a schedule of up to {MOST_STAGES} stages is run one by one")
    if not problems and stages * microbatches * chunks > MOST_PASSES:
        problems.append(
            f"{stages} stages, {microbatches} microbatches and {chunks} chunks are too many to "
            f"run one by one: a product up to {MOST_PASSES} is accepted"
        )
    if not problems:
        multiple, least = (int(bound.xreplace(sizes)) for bound in (plan.multiple, plan.least))
        if microbatches % multiple or microbatches < least:
            problems.append(
                f"microbatches={microbatches}: {plan.name} on {stages} stages takes "
                f"multiples of {multiple} from {max(least, multiple)}"
            )
        if plan.copies != 1 and stages % 2:
            problems.append(f"pp={stages}: {plan.name} takes an even number of stages")
    refuse(problems)


class _Clock:
    """Runs the orders of all stages."""

    def __init__(
        self,
        plan: Schedule,
        stages: int,
        microbatches: int,
        chunks: int,
        times: Sequence[Mapping[Pass, int | Fraction]],
    ) -> None:
        self._orders = plan.plan(stages, microbatches, chunks)
        self._chains = {m: plan.chain(stages, chunks, m) for m in range(microbatches)}
        self._positions = {
            m: {place: position for position, place in enumerate(chain)}
            for m, chain in self._chains.items()
        }
        self._times = [
            {work: Fraction(time) / chunks for work, time in own.items()} for own in times
        ]
        self._done: dict[tuple[bool, int, Place], Fraction] = {}

    def run(self) -> tuple[Event, ...]:
        events: list[Event] = []
        queues = [list(reversed(order)) for order in self._orders]
        free = [Fraction(0)] * len(queues)
        while any(queues):
            before = len(events)
            for number, queue in enumerate(queues):
                while queue and (start := self._start(number, queue[-1])) is not None:
                    slot = queue.pop()
                    begin = max(start, free[number])
                    free[number] = begin + sum(self._times[number][task.work] for task in slot)
                    for task in slot:
                        events.append(Event(number, task, begin, free[number]))
                        self._finish(number, task, free[number])
            if len(events) == before:
                raise RuntimeError("a schedule waits for itself")
        return tuple(events)

    def _start(self, number: int, slot: tuple[Task, ...]) -> Fraction | None:
        ends = [self._done.get(need) for task in slot for need in self._needs(number, task)]
        known = [end for end in ends if end is not None]
        return max(known, default=Fraction(0)) if len(known) == len(ends) else None

    def _needs(self, number: int, task: Task) -> list[tuple[bool, int, Place]]:
        place = (number, task.chunk)
        if task.work is Pass.BACKWARD_WEIGHT:
            return []
        chain = self._chains[task.microbatch]
        position = self._positions[task.microbatch][place]
        forward = task.work is Pass.FORWARD
        if not forward and position == len(chain) - 1:
            return [(True, task.microbatch, place)]
        neighbour = position - 1 if forward else position + 1
        return [(forward, task.microbatch, chain[neighbour])] if neighbour >= 0 else []

    def _finish(self, number: int, task: Task, end: Fraction) -> None:
        if task.work is not Pass.BACKWARD_WEIGHT:
            key = (task.work is Pass.FORWARD, task.microbatch, (number, task.chunk))
            self._done[key] = end
