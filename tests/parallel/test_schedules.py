"""Every schedule's expressions against an event simulation that shares no code with the package."""

from fractions import Fraction
from itertools import pairwise, product

import pytest
from click.testing import CliRunner
from sympy import Integer, Rational

import symbolic_cost as sc
from symbolic_cost.cli import main
from symbolic_cost.errors import InputError, UnknownNameError
from symbolic_cost.parallel.orders import Pass
from symbolic_cost.parallel.schedules import SCHEDULES, schedule
from symbolic_cost.parallel.timeline import timeline
from symbolic_cost.references import REFERENCES
from symbolic_cost.symbols import T_B, T_F, T_W, M, pp, stage, v

EQUAL = (1, 1, 1)
UNEQUAL = (6, 8, 4)
LATE = ("zb-h1", "zb-h2", "zb-v")
"""Schedules with late weight gradients, which fill what unequal passes leave."""


def chain_of(name, stages, chunks, microbatch):
    """The way of a microbatch, told from the schedule's description alone."""
    if name == "zb-v":
        return [(s, 0) for s in range(stages)] + [(s, 1) for s in range(stages - 1, -1, -1)]
    if name == "dualpipe" and microbatch % 2:
        return [(s, 1) for s in range(stages - 1, -1, -1)]
    return [(s, c) for c in range(chunks) for s in range(stages)]


def simulate(name, stages, microbatches, chunks, times):
    """Run the slots that `timeline` reports, in its order per stage, on a clock of its own."""
    f, b, w = times
    spent = {Pass.FORWARD: f, Pass.BACKWARD: b + w, Pass.BACKWARD_INPUT: b, Pass.BACKWARD_WEIGHT: w}
    per_stage = {s: [] for s in range(stages)}
    given = {work: time * chunks for work, time in spent.items()}
    for event in timeline(name, stages, microbatches, chunks, given):
        slots = per_stage[event.stage]
        if slots and slots[-1][0] == (event.start, event.end):
            slots[-1][1].append(event.task)
        else:
            slots.append(((event.start, event.end), [event.task]))
    finished, log = {}, {s: [] for s in range(stages)}
    cursor, clock = dict.fromkeys(range(stages), 0), dict.fromkeys(range(stages), 0)
    moved = True
    while moved:
        moved = False
        for s in range(stages):
            while cursor[s] < len(per_stage[s]):
                _, tasks = per_stage[s][cursor[s]]
                needs = [n for task in tasks for n in inputs(name, stages, chunks, s, task)]
                if any(n not in finished for n in needs):
                    break
                start = max([clock[s], *(finished[n] for n in needs)])
                clock[s] = start + sum(spent[task.work] for task in tasks)
                for task in tasks:
                    kind = (
                        "F"
                        if task.work is Pass.FORWARD
                        else "W"
                        if task.work is Pass.BACKWARD_WEIGHT
                        else "B"
                    )
                    finished[kind, task.microbatch, s, task.chunk] = clock[s]
                    log[s].append((task, start, clock[s]))
                cursor[s] += 1
                moved = True
    assert all(cursor[s] == len(per_stage[s]) for s in range(stages)), "stuck"
    return log


@pytest.mark.parametrize("name", [name for name in SCHEDULES if name != "gpipe"])
def test_stages_that_differ_are_near_a_clock(name):
    """The slowest stage's microbatches and the bubble of stages that all take the mean."""
    plan, errors = schedule(name), []
    passes = ((10, 10, 8),) if name == "dualpipe" else ((10, 14, 8), (9, 11, 12))
    ends_of = (0.8, 1), (1, 1.3), (1.2, 1.2), (0.9, 1.4)
    for stages, ends, middle in product((2, 4), ends_of, passes):
        factors = [ends[0], *[1] * (stages - 2), ends[1]]
        each = [[Fraction(round(f * time)) for time in middle] for f in factors]
        works = Pass.FORWARD, Pass.BACKWARD_INPUT, Pass.BACKWARD_WEIGHT, Pass.BACKWARD
        by_stage = [dict(zip(works, (f, b, w, b + w), strict=True)) for f, b, w in each]
        means = [sum(times) / stages for times in zip(*each, strict=True)]
        sizes = dict(zip((T_F, T_B, T_W), map(Rational, means), strict=True))
        step = 24 * max(map(sum, each)) + plan.bubble.xreplace({**sizes, pp: stages, M: 24, v: 2})
        found = max(e.end for e in timeline(name, stages, 24, by_stage=by_stage))
        errors.append(abs(float(step) / float(found) - 1))
    assert sum(errors) / len(errors) < 0.011
    assert max(errors) < 0.03


def inputs(name, stages, chunks, s, task):
    way = chain_of(name, stages, chunks, task.microbatch)
    at, m = way.index((s, task.chunk)), task.microbatch
    if task.work is Pass.FORWARD:
        return [("F", m, *way[at - 1])] if at else []
    if task.work is Pass.BACKWARD_WEIGHT:
        return [("B", m, s, task.chunk)]
    return [("F", m, *way[at])] if at == len(way) - 1 else [("B", m, *way[at + 1])]


def waits(log, work):
    return max(
        max(end for *_, end in t) - min(start for _, start, _ in t) - work for t in log.values()
    )


def held(tasks, chunks):
    """Most microbatches kept whole, and most kept at all, on one stage."""
    full = residue = most_full = most = 0
    for task, _, _ in tasks:
        if task.work is Pass.FORWARD:
            full += 1
            most_full, most = max(most_full, full), max(most, full + residue)
        elif task.work is Pass.BACKWARD_WEIGHT:
            residue -= 1
        else:
            full -= 1
            residue += task.work is Pass.BACKWARD_INPUT
    return Integer(most_full) / chunks, Integer(most) / chunks


def chunks_of(name):
    return {"interleaved": 3, "zb-v": 2}.get(name, 1)


def cases():
    for name in SCHEDULES:
        for stages in (1, 2, 3, 4, 6, 8):
            if name == "dualpipe" and stages % 2:
                continue
            low = 2 * stages if name == "dualpipe" else stages
            for microbatches in (low, 2 * stages, 3 * stages, 3 * stages + 2):
                if name == "interleaved" and microbatches % stages:
                    continue
                late = ((4, 10, 3), (8, 6, 10)) if name in LATE and stages > 2 else ()
                for times in (EQUAL, UNEQUAL, (4, 4, 2), *late):
                    if times != EQUAL and name in LATE and microbatches < 2 * stages - 1:
                        continue
                    if times[0] != times[1] and name == "dualpipe":
                        continue
                    yield name, stages, microbatches, times


CASES = list(dict.fromkeys(cases()))


def test_enough_cases():
    for name in SCHEDULES:
        assert sum(case[0] == name for case in CASES) >= 12


@pytest.mark.parametrize(("name", "stages", "microbatches", "times"), CASES)
def test_expressions_equal_the_simulation(name, stages, microbatches, times):
    made, chunks = schedule(name), chunks_of(name)
    f, b, w = (time * chunks for time in times)
    log = simulate(name, stages, microbatches, chunks, times)
    values = {pp: stages, M: microbatches, v: chunks, T_F: f, T_B: b, T_W: w}
    work = microbatches * (f + b + w)
    assert waits(log, work) == made.bubble.xreplace(values)
    assert made.step_time.xreplace(values) == work + waits(log, work)
    for s, tasks in log.items():
        assert len({task for task, _, _ in tasks}) == len(tasks)
        full, kept = held(tasks, chunks)
        here = values | {stage: s + 1}
        most, residue = made.in_flight.xreplace(here), made.residue.xreplace(here)
        if name == "dualpipe":
            assert full <= most
            assert stages == 2 or full == most
        elif name == "zb-v":
            assert kept <= most
        else:
            assert full == most
            assert kept <= min(most + residue, microbatches)
    if stages > 1 and made.ended is not None:
        way = chain_of(name, stages, chunks, 0)
        for (s, chunk), expr in ((way[0], made.entered), (way[-1], made.ended)):
            own = [entry for entry in log[s] if entry[0].chunk == chunk]
            assert held(own, 1)[0] == expr.xreplace(values)
    sends = sum(
        2 * (len(way) - 1) - 2 * sum(one[0] == two[0] for one, two in pairwise(way))
        for way in (chain_of(name, stages, chunks, m) for m in range(microbatches))
    )
    if stages > 1:
        assert made.messages.xreplace(values) == sends


@pytest.mark.parametrize("name", SCHEDULES)
def test_source_is_known(name):
    assert SCHEDULES[name].source in REFERENCES


def test_published_forms():
    """Memory of worker i (from 1) and bubbles as qi-2024, Table 2 and section 2.3 print them."""
    many = {M: 1000, pp: 8}
    shorter = {T_F: 6, T_B: 7, T_W: 4}
    assert schedule("zb-h1").bubble.xreplace(many | shorter) == 7 * (6 + 7 - 4)
    assert schedule("zb-h2").bubble.xreplace(many | shorter) == 7 * (6 + 7 - 2 * 4)
    assert schedule("zb-v").bubble.xreplace(many | dict.fromkeys(shorter, 5)) == 0
    assert schedule("zb-h2").in_flight.xreplace(many | {stage: 1}) == 15
    worst = schedule("interleaved").in_flight.xreplace(many | {stage: 1, v: 4})
    assert worst == 8 * (1 + Integer(7) / (8 * 4))


def test_one_chunk_is_no_interleaving():
    assert timeline("interleaved", 4, 8, 1) == timeline("1f1b", 4, 8)
    line = "schedule --strategy pp=4 --microbatches 8 --schedule interleaved --chunks"
    one, two = (CliRunner().invoke(main, [*line.split(), n]).stdout for n in "12")
    assert one.startswith("1f1b (")
    assert "v = 2 chunks" in two


def test_names_and_numbers_are_checked():
    with pytest.raises(UnknownNameError, match="did you mean zb-h1 or zb-h2"):
        timeline("zb-h", 4, 8)
    with pytest.raises(InputError) as caught:
        timeline("1f1b", 0, 2.5, chunks=-1)
    assert len(caught.value.problems) == 3
    with pytest.raises(InputError, match="multiples of 4 from 4"):
        timeline("interleaved", 4, 6)
    with pytest.raises(InputError, match="even number of stages"):
        timeline("dualpipe", 3, 8)


@pytest.mark.parametrize(("strategy", "said"), [("dp=8,pp=1", True), ("dp=4,pp=2", False)])
def test_a_schedule_without_a_pipeline_is_told(strategy, said):
    job = sc.job("gpt2", strategy, system="h100", global_batch=64, schedule="zb-h2")
    for sheet in (job.memory(), job.time()):
        notes = " ".join(sheet.sheet.notes)
        assert ("no pipeline, so schedule zb-h2 changes nothing" in notes) == said
