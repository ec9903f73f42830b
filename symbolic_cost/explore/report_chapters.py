"""The chapters of a job's page, from what runs where to where the numbers come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from sympy import Expr

from symbolic_cost.emit.charts import draw_bars
from symbolic_cost.emit.report import Chapter, Picture
from symbolic_cost.emit.roofline import draw as draw_roofline
from symbolic_cost.emit.roofline import points_sheet
from symbolic_cost.emit.sheet import Cell, Sheet, headed, stacked
from symbolic_cost.emit.timeline import draw as draw_timeline
from symbolic_cost.errors import InputError
from symbolic_cost.explore.changes import Change, more_memory, other_strategies, rates_sheet
from symbolic_cost.jobs.answers import TimeAnswer
from symbolic_cost.jobs.device_memory import DeviceMemory
from symbolic_cost.jobs.header import header, stack_note
from symbolic_cost.jobs.job import Job
from symbolic_cost.jobs.peaks import Fit
from symbolic_cost.jobs.provenance import chain_sheet
from symbolic_cost.jobs.tables.explained import TimeShare, spent_sheet
from symbolic_cost.jobs.tables.memory import memory_sheet
from symbolic_cost.jobs.tables.paper import totals_sheet
from symbolic_cost.jobs.tables.per_op import named_costs
from symbolic_cost.jobs.tables.pictures import memory_bars, time_bars
from symbolic_cost.jobs.tables.placement import axes_sheet, mesh_sheet, stages_sheet
from symbolic_cost.jobs.tables.seconds import figure_text, step_sheet
from symbolic_cost.jobs.tables.traffic import communication_sheet
from symbolic_cost.jobs.timed import Timed
from symbolic_cost.numeric.binding import value
from symbolic_cost.parallel.schedules import SCHEDULES
from symbolic_cost.parallel.states import precision
from symbolic_cost.parallel.timeline import timeline
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import GLOSSARY, exact
from symbolic_cost.systems.rooflines import roofline_points
from symbolic_cost.systems.step import RESULTS, STEP_PARTS
from symbolic_cost.units import Unit, human

_TOTALS = "flops_fwd,flops_bwd,flops_recompute,params,saved,comm,comm_step"
_DRAWN = 12
"""Microbatches and stages of a schedule up to which a picture of its size can be read."""


def fullest(held: Fit) -> str:
    """Say what the stage that holds most holds at its peak."""
    if held.capacity is None or not held.has_numbers:
        return str(held)
    peak = held.peaks[held.fullest]
    return (
        f"the {held.fullest} stage holds {human(peak.size, Unit.BYTE)} at its peak "
        f"({peak.moment}){held.around} of {human(held.capacity, Unit.BYTE)} usable, most of it "
        f"{_WORDS.get(peak.binds, peak.binds.replace('_', ' '))}"
    )


_WORDS = {
    "saved": "saved activations",
    "weight": "weights",
    "weight_gradient": "gradients of weights",
    "optimizer": "moments of the optimizer",
}


def chapters(
    own: Job, timed: Timed, rows: list[TimeShare], waits: list[Wait]
) -> tuple[Chapter, ...]:
    """Return every chapter."""
    return (
        _placed(own),
        _binding(timed, rows, waits),
        _memory(own, timed),
        _seconds(timed),
        _moved(own),
        _roofline(own),
        _changes(own, timed),
        _sources(own, timed),
    )


def _placed(own: Job) -> Chapter:
    ranks = own.value(own.strategy.numbered(own.values).ranks)
    said = (
        f"{ranks} rank{'s' * bool(ranks > 1)}. Sizes and what else is known: "
        + ", ".join(f"{name} = {size}" for name, size in own.values.items())
        + "."
    )
    sheets = [mesh_sheet(own), stages_sheet(own)] if own.strategy.degrees else []
    split = axes_sheet(own)
    return Chapter(
        "What runs where",
        (said,),
        sheets=tuple(sheets),
        folded=(split,) if split.rows else (),
        pictures=tuple(_schedule(own)),
    )


def _schedule(own: Job) -> Iterator[Picture]:
    """Yield the schedule of the pipeline, with fewer microbatches where there are too many."""
    stages, count = (
        own.value(exact(one)) for one in (own.strategy.degree("pp"), own.training.microbatches)
    )
    if "pp" not in own.strategy or not 1 < stages <= _DRAWN:
        return
    trained = own.trained
    plan = SCHEDULES.get(trained.schedule, None)
    chunks = int(trained.chunks) if trained.chunks.is_Integer else 1
    drawn = min(int(count), 2 * int(stages))
    if plan is None or drawn > 2 * _DRAWN:
        return
    try:
        events = timeline(trained.schedule, int(stages), drawn, chunks)
    except InputError:  # so few microbatches are none of this schedule
        return
    few = (
        "" if drawn == count else f"; the first {drawn} of {count} microbatches as if they were all"
    )
    caption = f"Schedule {trained.schedule} on {stages} stages{few}"
    yield Picture(lambda figure: draw_timeline(figure, events, trained.schedule), caption)


@dataclass(frozen=True, slots=True)
class Wait:
    """What a step waits for: seconds, and per cent of the step."""

    name: str
    seconds: float
    share: float


def waits_of(rows: list[TimeShare]) -> list[Wait]:
    """Add up what takes time by what it waits for, the largest first."""
    sums: dict[str, float] = {}
    for one in rows:
        name = _CAUSES.get(one.bound, one.bound)
        sums[name] = sums.get(name, 0.0) + one.total
    step = sum(sums.values())
    listed = sorted(sums.items(), key=lambda item: -item[1])
    return [Wait(name, took, 100 * took / step) for name, took in listed]


_CAUSES = {"compute": "computing", "memory": "moving data in the device's memory"}


def _binding(timed: Timed, rows: list[TimeShare], waits: list[Wait]) -> Chapter:
    cells = tuple((one.name, one.seconds, one.share) for one in waits)
    first = next((one for one in rows if one.phase), rows[0])
    said = (
        f"Memory: {fullest(timed.fit)}.",
        (
            f"Time: {waits[0].name} takes {waits[0].share:.0f} % of the step. Of single ops "
            f"{first.name} ({first.phase}) takes most: {human(first.total, Unit.SECOND)}."
        ),
        *timed.warnings,
    )
    top = Sheet("What a step waits for", headed("waits for, of a step> [s], share> [%]"), cells)
    return Chapter("What binds", said, sheets=(top,), folded=(spent_sheet(timed, rows),))


def _memory(own: Job, timed: Timed) -> Chapter:
    stages = own.structure.stages
    works = {stage.value: replace(own, stage=stage) for stage in stages}
    bars = memory_bars([*works.values()], [f"stage {name}" for name in works])
    sheets = {name: memory_sheet(work) for name, work in works.items()}
    folded = [replace(stacked("stage", sheets), notes=())] if len(sheets) > 1 else []
    most = timed.fit.fullest if timed.fit.peaks else stages[0]
    shown_sheet = replace(sheets[most.value], notes=())
    lines = [_sentence(fullest(timed.fit))]
    try:
        device = DeviceMemory(own)
        lines.append(
            f"With workspaces, the allocator's cache and the context, nvidia-smi shows "
            f"{human(device.total(), Unit.BYTE)}."
        )
        folded.append(replace(device.sheet(), notes=()))
    except InputError as refused:
        lines.append(f"What surrounds the tensors is not told: {refused}.")
    caption = f"{bars.title}: {bars.limited or 'the machine has no bound'}"
    return Chapter(
        "Memory",
        tuple(lines),
        pictures=(Picture(partial(draw_bars, bars=bars), caption),),
        sheets=(replace(shown_sheet, title=f"{shown_sheet.title}, the fullest stage"),),
        folded=tuple(folded),
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _seconds(timed: Timed) -> Chapter:
    parts = replace(step_sheet(timed), notes=())
    answer = TimeAnswer(timed.setup, parts, timed.step.rows, timed)
    bars = replace(time_bars([answer]), labels=["one step"])
    said = f"{timed.title}: {figure_text(timed, 'step')}. {_sentence(stack_note(timed.setup))}"
    picture = Picture(partial(draw_bars, bars=bars), f"{bars.title}: the parts that add up to it")
    return Chapter("Time", (said,), pictures=(picture,), folded=(parts,))


def _moved(own: Job) -> Chapter:
    sheet = replace(communication_sheet(own, per_op=False), notes=())
    total = sum((own.value(size) for size in own.sent_by_rank.values()), exact(0))
    known = human(float(total), Unit.BYTE) if not total.free_symbols else str(total)
    said = f"One rank of the first stage sends {known} in a step."
    if not own.sent_by_rank:
        return Chapter("Communication", ("Nothing is sent.",))
    return Chapter("Communication", (said,), sheets=(sheet,))


def _roofline(own: Job) -> Chapter:
    units = precision(own.training.precision).units
    if own.machine is None:
        return Chapter("Roofline")
    device = own.machine.device(units)
    points = roofline_points(own.bound, device)
    title = f"{own.model.name} on {own.machine.name}, {units}"
    sheet = points_sheet(points, device, f"Ops of one rank, {units}")
    draw = partial(draw_roofline, points=points, device=device, title=title)
    caption = "Ops of the first stage below the roofs of the machine, at its peak rates"
    below = sheet.notes
    table = replace(sheet, notes=())
    return Chapter("Roofline", (), below, (Picture(draw, caption),), folded=(table,))


def _changes(own: Job, timed: Timed) -> Chapter:
    rates = rates_sheet(timed)
    memory, others = more_memory(own, timed), other_strategies(own, timed)
    told = [
        f"Of the machine's rates, a tenth better {name} shortens the step most: by {gain:.2g} %."
        for name, gain in rates.rows[:1]
    ]
    changes: tuple[Change, ...] = (others, memory)
    sheets = (*(one.sheet for one in changes if one.sheet is not None), rates)
    looked = tuple((note,) for one in changes for note in one.notes)
    return Chapter(
        "What to change",
        (*(one.text for one in changes), *told),
        sheets=sheets,
        folded=(Sheet("What was searched", headed("candidates"), looked),) * bool(looked),
    )


def _sources(own: Job, timed: Timed) -> Chapter:
    lines = (
        (
            "Derived: from the declarations of the ops, by the formula beside the number. "
            "Datasheet or published: a figure that the machine's record cites. Calibrated: fitted "
            "to measured runs. Assumed: a guess, named as such. Given: by the job."
        ),
    )
    symbols = {s.name for row in own.rows for s in row.total.free_symbols}
    meanings = tuple(
        (exact(GLOSSARY[name].symbol), GLOSSARY[name].meaning, own.values.get(name))
        for name in GLOSSARY
        if name in symbols
    )
    return Chapter(
        "Where the numbers come from",
        lines,
        header(own),
        sheets=(totals_sheet(own, named_costs(_TOTALS), _printed),),
        folded=(Sheet("Symbols", headed("symbol, meaning, value>"), meanings),),
        anchored=chain_sheet(timed, (*RESULTS, *STEP_PARTS)),
    )


def _printed(total: Expr, unit: Unit) -> Cell:
    """Print a total with its unit; a formula where it has symbols."""
    return None if total.free_symbols else human(value(total), unit)
