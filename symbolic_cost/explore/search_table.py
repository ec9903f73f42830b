"""What a search found, as a table for people with the reasons below it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from symbolic_cost.emit.sheet import Cell, Sheet, headed
from symbolic_cost.explore.best import Search
from symbolic_cost.explore.choices import UNSAID
from symbolic_cost.explore.flags import lacking, megatron_flags, time_command
from symbolic_cost.explore.objectives import MEMORY, NEEDED
from symbolic_cost.explore.subject import run_note
from symbolic_cost.explore.tally import Candidate
from symbolic_cost.systems.results import STEP_PARTS
from symbolic_cost.units import Unit, gpu_count, human

if TYPE_CHECKING:
    from symbolic_cost.explore.fits import Fits
    from symbolic_cost.explore.proven import Proof

_NEAR = 8
"""Reasons told, the most frequent first."""


def search_sheet(outcome: Search, *, explain: bool = False) -> Sheet:
    """Tabulate the best candidates; notes say what was considered and what was ruled out."""
    parts = STEP_PARTS if explain else ()
    headings = "rank>, strategy, options, b>, M>, v>, step> [s], MFU> [%], memory> [byte]"
    columns = headed(", ".join([headings, *(f"{part}> [s]" for part in parts)]))
    rows = tuple(_row(place, one, parts) for place, one in enumerate(outcome.best, 1))
    return Sheet(title(outcome), columns, rows, tuple(_notes(outcome)))


def _row(place: int, one: Candidate, parts: tuple[str, ...]) -> tuple[Cell, ...]:
    at = one.outputs
    return (
        place,
        one.strategy or "none",
        options_text(one),
        one.numbers.b,
        one.numbers.M,
        one.numbers.v if one.numbers.v > 1 else None,
        at["step"],
        100 * at["mfu"],
        at[MEMORY],
        *(at[part] for part in parts),
    )


def options_text(one: Candidate) -> str:
    """Return the options of a candidate that are not the usual ones."""
    said = ((name, text) for name, text in one.options.items() if text not in _USUAL)
    return ", ".join(
        f"{name} {text.replace(',', '+')}"
        if name in ("order", "offload")
        else text.replace(",", "+")
        for name, text in said
    )


_USUAL = ("none", "1f1b", "even")


def title(outcome: Search | Proof) -> str:
    """Say what was looked for, on what."""
    return (
        f"{outcome.facts.model} on {outcome.space.gpus} x {outcome.facts.machine}, "
        f"{outcome.space.global_batch} sequences in a step: {outcome.objective.meaning}"
    )


def _notes(outcome: Search) -> Iterator[str]:
    room = f"{_room(outcome)} per rank{_around(outcome)}"
    yield (
        f"{outcome.considered} candidates of {outcome.structures} structures: "
        f"{outcome.legal} legal, {outcome.fitting} fit into {room}"
    )
    yield _chosen(outcome)
    if outcome.objective.resource and outcome.best:
        value = outcome.objective.read(outcome.best[0].outputs)
        yield f"{outcome.objective.meaning}: {value:.6g} of the best; {outcome.objective.source}"
    yield from outcome.facts.notes
    yield from _ruled_out(outcome.left_out, "ruled out")
    yield from _ruled_out(outcome.refused, "not derived")
    if outcome.best:
        first = outcome.best[0]
        yield f"memory of the best: {outcome.fit(first)}"
        if len(outcome.best) > 1:
            yield _runner_up(first, outcome.best[1])
        yield f"run it: {time_command(outcome, first)}"
        flags = megatron_flags(outcome, first)
        missing = "; ".join(lacking(outcome, first))
        yield f"Megatron-LM: {flags or f'no flags for {missing}'}"
    else:
        yield from nothing(outcome)


def _chosen(outcome: Search) -> str:
    chosen = outcome.space
    return (
        f"chosen from: sp {_words(chosen.sp)}, zero {_words(chosen.zero)}, recompute "
        f"{_words(chosen.recompute)}, schedule {_words(chosen.schedule)}"
        + "".join(_of_ways(outcome))
        + _of_context(outcome)
    )


def _of_ways(outcome: Search) -> Iterator[str]:
    """Say what each structure may be run with; but for overlap, where it is not the usual alone."""
    for name, unsaid in UNSAID.items():
        chosen = getattr(outcome.space, name)
        if name == "overlap" or any(chosen):
            yield f", {name} {_words(tuple(one or unsaid for one in chosen))}"
    if any(outcome.space.scattered):
        yield f", scattered {_words(outcome.space.scattered)}"


def _of_context(outcome: Search) -> str:
    widest = max(outcome.space.cp, default=0)
    return (
        ", positions whole"
        if widest == 1
        else f", positions split by {_words(outcome.space.context)}"
    )


def _around(outcome: Search) -> str:
    """Say what is there beside the tensors of the best, or of the smallest."""
    some = [one for one in (*outcome.best, outcome.smallest) if one is not None]
    return outcome.fit(some[0]).around.replace(" and ", ", beside ", 1) if some else ""


def _room(outcome: Search) -> str:
    return "no bound" if outcome.capacity is None else human(outcome.capacity, Unit.BYTE)


def _words(values: tuple[object, ...]) -> str:
    names = {True: "on", False: "off"}
    return "/".join(names[one] if isinstance(one, bool) else str(one) for one in values)


def _ruled_out(reasons: Mapping[str, int], what: str) -> Iterator[str]:
    listed = sorted(reasons.items(), key=lambda item: -item[1])
    for reason, count in listed[:_NEAR]:
        yield f"{what}: {count} candidates, {reason}"
    rest = sum(count for _, count in listed[_NEAR:])
    if rest:
        yield f"{what}: {rest} candidates for {len(listed) - _NEAR} other reasons"


def _runner_up(first: Candidate, second: Candidate) -> str:
    """Say what the second takes more, part by part, the largest first."""
    gap = second.outputs["step"] - first.outputs["step"]
    apart = {part: second.outputs[part] - first.outputs[part] for part in STEP_PARTS}
    listed = sorted(apart.items(), key=lambda item: -abs(item[1]))
    parts = ", ".join(f"{part} {_signed(size)}" for part, size in listed[:3] if size)
    if second.score == first.score:
        return (
            f"the second scores the same; its step: {_signed(gap)} ({parts or 'no part differs'})"
        )
    share = gap / first.outputs["step"]
    return f"the second takes {_signed(gap)} ({100 * share:+.2g} %): {parts}"


def _signed(seconds: float) -> str:
    sign = "-" if seconds < 0 else "+"
    return f"{sign}{human(Fraction(abs(seconds)), Unit.SECOND)}"


def nothing(outcome: Search) -> Iterator[str]:
    """Say how near the nearest is, and what takes its memory."""
    if outcome.smallest is None:
        yield "nothing is legal: no candidate meets every condition"
        return
    least = outcome.smallest
    size = human(least.outputs[NEEDED], Unit.BYTE)
    yield f"nothing fits: the smallest takes {size} of {_room(outcome)}"
    yield f"the smallest: {outcome.fit(least)}"
    yield f"run it: {time_command(outcome, least)}"


def fits_sheet(fits: Fits) -> Sheet:
    """Tabulate what fits: the job itself, the largest sizes, the fewest GPUs."""
    from symbolic_cost.explore.facts import said_otherwise
    from symbolic_cost.jobs.fit import fit
    from symbolic_cost.jobs.header import trained

    columns = headed(
        "question, answer>, strategy, options, "
        "one more takes> [byte], with 10 GiB more>, what binds"
    )
    search = fits.search
    gpus = search.space.gpus
    rows = [_of_the_job(fits)]
    for name, one in fits.largest.items():
        binds = "nothing fits" if one.setup is None else str(fit(one.setup))
        if one.size == search.setup.most(name):
            binds = f"the model has {one.size} learned positions; {binds}"
        elif one.tried is not None:
            binds = f"none beyond {one.tried} was tried; {binds}"
        label = f"largest {name} on {gpu_count(gpus)}"
        rows.append((label, one.size, *_way(one.candidate), one.per_unit, one.more, binds))
    if fits.fewest is None:
        rows.append(("fewest GPUs", None, "", "", None, None, "no number that was tried"))
    else:
        count, candidate = fits.fewest
        size = human(candidate.outputs[MEMORY], Unit.BYTE)
        rows.append(("fewest GPUs", count, *_way(candidate), None, None, f"{size} per GPU"))
    setup = search.setup
    machine = "" if setup.machine is None else setup.machine.name
    notes = (
        f"{_room(search)} per rank; one sequence per microbatch but for largest b",
        _chosen(search),
        run_note(setup),
        "numbers of GPUs are powers of two",
        *setup.model.notes,
        *trained(setup),
        *said_otherwise(setup),
        "the largest integer that is legal and fits under any strategy chosen from",
        "the step may be slow: search looks for the shortest",
    )
    return Sheet(f"What fits of {setup.model.name} on {machine}", columns, tuple(rows), notes)


def _of_the_job(fits: Fits) -> tuple[Cell, ...]:
    search = fits.search
    one = search.best[0] if search.best else search.smallest
    binds = "nothing is legal" if one is None else str(search.fit(one))
    label = f"fits on {gpu_count(search.space.gpus)}"
    return (label, "yes" if search.best else "no", *_way(one), None, None, binds)


def _way(one: Candidate | None) -> tuple[str, str]:
    """Return the strategy and the options of a candidate."""
    return ("", "") if one is None else (one.strategy, options_text(one))
