"""One page for a job: what runs where, what binds, what to change, and where numbers come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import PurePath

from symbolic_cost.checking import checked
from symbolic_cost.emit import report as page
from symbolic_cost.emit.files import check_target, write_whole
from symbolic_cost.emit.report import Figure, Written
from symbolic_cost.errors import InputError, quote
from symbolic_cost.explore.report_chapters import Wait, chapters, fullest, waits_of
from symbolic_cost.jobs.job import Job
from symbolic_cost.jobs.tables.explained import time_shares
from symbolic_cost.jobs.tables.paper import citations
from symbolic_cost.jobs.tables.seconds import figure_text
from symbolic_cost.jobs.timed import Timed, ends_of
from symbolic_cost.records import dataclass
from symbolic_cost.units import Unit, human

_MEMORY = 3
"""Number of the chapter on memory."""

_WRITERS = {".html": page.as_html, ".htm": page.as_html, ".md": page.as_markdown}


@dataclass(frozen=True)
class Report:
    """A report on a job, as text that a file can hold."""

    written: Written

    @cached_property
    def html(self) -> str:
        """The page: self-contained, light and dark; nothing in it runs or is fetched.

        Raises:
            InputError: the extras html and plots are not installed.
        """
        return page.as_html(self.written)

    @property
    def markdown(self) -> str:
        """The same as Markdown, without pictures."""
        return page.as_markdown(self.written)

    def write(self, path: str) -> None:
        """Write the report to FILE.html or FILE.md, whole or not at all.

        Raises:
            InputError: another ending, or a file that cannot be written.
        """
        check_path(path)
        write_whole(path, _WRITERS[PurePath(path).suffix.lower()](self.written))

    def __str__(self) -> str:
        return self.markdown


def check_path(path: str) -> None:
    """Refuse a file that is neither a page nor Markdown."""
    if PurePath(path).suffix.lower() not in _WRITERS:
        raise InputError(f"-o {quote(path)}: a report is .html or .md")
    check_target(path)


@checked
def report(job: Job) -> Report:
    """Report on a job: what runs where, what binds, what to change, and where numbers come from.

    Args:
        job: model, strategy, machine, every number known.

    Raises:
        InputError: no machine, or symbols without a number.
    """
    own = replace(job, precise=True)
    timed = Timed(own)
    timed.numbers  # noqa: B018 - refuses symbols without a number
    rows = time_shares(timed)
    waits = waits_of(rows)
    machine = "" if own.machine is None else f" on {own.machine.name}"
    title = f"{own.model.name}{machine}, strategy {str(own.strategy) or 'one rank'}"
    cited = tuple(dict.fromkeys(citations(own)))
    said, listed = _verdict(timed, waits[0]), chapters(own, timed, rows, waits)
    return Report(Written(title, said, tuple(_figures(timed)), listed, cited))


def _verdict(timed: Timed, most: Wait) -> str:
    step = figure_text(timed, "step")
    fits = "It fits" if timed.fit else "IT DOES NOT FIT"
    return (
        f"{fits}: {fullest(timed.fit)}. A step takes {step}, {most.share:.0f} % of it {most.name}."
    )


def _figures(timed: Timed) -> Iterator[Figure]:
    known, own = timed.numbers, timed.interval
    between = "" if own is None else f"four of five: {ends_of(own)}"
    yield Figure("Step", figure_text(timed, "step"), between or "one training step", "step")
    ranks = int(timed.setup.strategy.numbered(timed.setup.values).ranks)
    for name in ("tokens per second", "samples per second"):
        if name in known:
            rate = float(known[name])
            note = f"{rate / ranks:,.0f} per device"
            yield Figure(name.capitalize(), f"{rate:,.0f}", note, name)
    note = f"conventions {timed.setup.conventions.name}"
    yield Figure("MFU", f"{float(known['mfu']):.1%}", note, "mfu")
    yield Figure("HFU", f"{float(known['hfu']):.1%}", "with what is computed again", "hfu")
    fit = timed.fit
    if fit.has_numbers and fit.capacity is not None:
        peak = fit.peaks[fit.fullest]
        note = f"of {human(fit.capacity, Unit.BYTE)} usable, stage {fit.fullest}"
        yield Figure("Memory", human(peak.size, Unit.BYTE), note, _MEMORY)
    share = float(known["bubble"] / known["step"])
    yield Figure("Bubble", f"{share:.1%}", f"{figure_text(timed, 'bubble')} of the step", "bubble")
    share = float(known["exposed"] / known["step"])
    note = f"{figure_text(timed, 'exposed')} of waiting for communication"
    yield Figure("Exposed", f"{share:.1%}", note, "exposed")
