"""The timeline of a step in the trace event format that Perfetto and Chromium read.

Every stage is a process with two threads: the passes of its microbatches in the order of the
schedule, each as long as the step's formulas say for that stage, and of which how much is busy and
how much waits for collectives. What ends the step follows the last pass of all stages.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from symbolic_cost.checking import checked
from symbolic_cost.emit.files import check_ending, write_whole
from symbolic_cost.errors import InputError, visible
from symbolic_cost.jobs.header import header
from symbolic_cost.jobs.job import Job
from symbolic_cost.jobs.timed import Timed
from symbolic_cost.numeric.binding import value
from symbolic_cost.parallel.orders import Pass, Stage, stage_kind
from symbolic_cost.parallel.timeline import Event, timeline
from symbolic_cost.systems.results import ENDS

_PASSES: Mapping[Pass, tuple[str, ...]] = {
    Pass.FORWARD: ("forward",),
    Pass.BACKWARD: ("backward", "weight gradients"),
    Pass.BACKWARD_INPUT: ("backward",),
    Pass.BACKWARD_WEIGHT: ("weight gradients",),
}
"""Definitions of a stage that a pass of the schedule takes."""

_MICROSECONDS = 10**6


@checked
def step_trace(job: Job, path: str) -> None:
    """Write the timeline of one step [microseconds].

    Args:
        job: model, strategy, machine, every number known.
        path: of the .json file, written whole or not at all.

    Raises:
        InputError: another ending, no machine, symbols without numbers, or a schedule too long
            to run.
    """
    check_ending("trace", path, ".json")
    write_whole(path, trace_text(job))


def trace_text(job: Job) -> str:
    """Return the text of a trace; see `step_trace`."""
    timed = Timed(replace(job, precise=True))
    known = {name: value(number) for name, number in timed.numbers.items() if number.is_Rational}
    stages = job.value(job.strategy.degree("pp"))
    if not stages.is_Integer or int(stages) < 1:
        raise InputError(f"pp = {stages}: a trace needs the number of stages")
    count, trained = int(stages), job.trained
    chunks = int(trained.chunks) if trained.chunks.is_Integer else 1
    kinds = [stage_kind(stage, count) for stage in range(count)]
    by_stage = [
        {
            work: sum((known[f"{kind}.{n}"] for n in names), Fraction(0))
            for work, names in _PASSES.items()
        }
        for kind in kinds
    ]
    events = timeline(trained.schedule, count, int(timed.microbatches), chunks, by_stage=by_stage)
    last = max(event.end for event in events)
    listed = [
        *_track_names(kinds),
        *(one for event in events for one in _passed(event, kinds[event.stage], known)),
        *_ended(count, last, known),
    ]
    end = last + sum(known[name] for name in ENDS)
    about = {
        "what": visible(timed.title),
        "step of the formulas [s]": float(known["step"]),
        "end of this timeline [s]": float(end),
        "note": "the formulas take the bubble of stages that all take the mean, "
        "the timeline runs each stage by itself",
        "run": [visible(line) for line in header(job)],
    }
    written = {"displayTimeUnit": "ms", "otherData": about, "traceEvents": listed}
    return json.dumps(written, indent=None, separators=(",", ":")) + "\n"


def _track_names(kinds: list[Stage]) -> Iterator[dict[str, object]]:
    for stage, kind in enumerate(kinds):
        process = f"stage {stage + 1} ({kind})"
        yield _metadata("process_name", stage, 0, process)
        yield _metadata("thread_name", stage, 0, "passes")
        yield _metadata("thread_name", stage, 1, "busy and waiting")


def _metadata(name: str, stage: int, thread: int, text: str) -> dict[str, object]:
    return {"ph": "M", "name": name, "pid": stage + 1, "tid": thread, "args": {"name": text}}


def _passed(
    event: Event, kind: Stage, known: Mapping[str, int | Fraction]
) -> Iterator[dict[str, object]]:
    """Yield a pass, and how much of it is busy and how much waits."""
    work, names = event.task.work, _PASSES[event.task.work]
    said = {"microbatch": event.task.microbatch + 1, "chunk": event.task.chunk + 1}
    label = work.value.replace("_", " ")
    yield _slice(f"{label} {said['microbatch']}", event.stage, 0, (event.start, event.end), said)
    busy = sum(known[f"{kind}.{name}.busy"] for name in names)
    waits = sum(known[f"{kind}.{name}.exposed"] for name in names)
    if busy + waits == 0:
        return
    middle = event.start + (event.end - event.start) * Fraction(busy) / (busy + waits)
    yield _slice("busy", event.stage, 1, (event.start, middle), said)
    if waits:
        yield _slice("waiting for collectives", event.stage, 1, (middle, event.end), said)


def _ended(
    count: int, start: Fraction, known: Mapping[str, int | Fraction]
) -> Iterator[dict[str, object]]:
    """Yield what ends the step, on every stage."""
    for name in ENDS:
        end = start + known[name]
        if end > start:
            yield from (_slice(name, stage, 0, (start, end), {}) for stage in range(count))
        start = end


def _slice(
    name: str, stage: int, thread: int, when: tuple[Fraction, Fraction], said: Mapping[str, object]
) -> dict[str, object]:
    start, end = when
    return {
        "ph": "X",
        "name": name,
        "pid": stage + 1,
        "tid": thread,
        "ts": float(start * _MICROSECONDS),
        "dur": float((end - start) * _MICROSECONDS),
        "args": dict(said),
    }
