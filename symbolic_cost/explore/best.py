"""Search over strategies: every candidate of a space is priced, the best are kept.

Nothing is sampled and nothing estimated: each structure is derived once as a program, whose
numbers are then evaluated together. What is left out is counted, with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from symbolic_cost.display import NotebookTable
from symbolic_cost.errors import looked_up
from symbolic_cost.explore.axes import axes_of
from symbolic_cost.explore.candidates import Structured, candidates
from symbolic_cost.explore.objectives import HELD, MEMORY, NEEDED, OBJECTIVES, SHARE, Objective
from symbolic_cost.explore.space import Space
from symbolic_cost.explore.structured import structured_setup
from symbolic_cost.explore.subject import Facts, Subject
from symbolic_cost.explore.tally import Candidate, Part, Tally
from symbolic_cost.explore.together import all_priced
from symbolic_cost.jobs.peaks import Fit, peak_of
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.records import dataclass

if TYPE_CHECKING:
    from symbolic_cost.jobs.setup import Setup


@dataclass(frozen=True)
class Search(NotebookTable):
    """What a search found.

    Args:
        space: what was chosen from.
        best: candidates that fit, the best first.
        smallest: of what is legal, the one that takes least memory.
    """

    subject: Subject
    space: Space
    objective: Objective
    best: tuple[Candidate, ...]
    smallest: Candidate | None
    considered: int
    legal: int
    fitting: int
    left_out: Mapping[str, int]
    refused: Mapping[str, int]
    structures: int

    __repr__ = NotebookTable.__str__

    @property
    def facts(self) -> Facts:
        """What the search read of the job."""
        return self.subject.facts

    @property
    def setup(self) -> Setup:
        """The job without a strategy."""
        return self.subject.setup

    def job(self, candidate: Candidate) -> Setup:
        """Return the job of a candidate, all of its numbers in place."""
        return structured_setup(self.setup, candidate.structure, candidate.numbers)

    def fit(self, candidate: Candidate) -> Fit:
        """Return whether a candidate fits, and what takes most of its memory."""
        peaks = {}
        for stage in Stage:
            held, shares = (_of_stage(candidate, f"{kind}{stage}: ") for kind in (HELD, SHARE))
            if held:
                peaks[stage] = peak_of(held, shares)
        beside = candidate.outputs[NEEDED] - candidate.outputs[MEMORY]
        return Fit(None if self.capacity is None else int(self.capacity), peaks, int(beside))

    @property
    def capacity(self) -> float | None:
        """What a rank may hold [byte]; None where it is not bounded."""
        return self.facts.capacity


def _of_stage(candidate: Candidate, begin: str) -> dict[str, float]:
    every = candidate.outputs.items()
    return {name.removeprefix(begin): size for name, size in every if name.startswith(begin)}


def search(
    base: Subject,
    space: Space,
    objective: str = "step",
    top: int = 10,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Search:
    """Price every candidate of a space.

    Raises:
        InputError: an objective that is unknown, or nothing that makes the ranks.
    """
    wanted = looked_up("objective", objective, OBJECTIVES).priced(base.facts.machine, space.gpus)
    walked = candidates(space, base.facts)
    tally = Tally(top, wanted, base.facts.capacity)
    done = 0
    priced_shapes = []
    for shape, together in all_priced(base, walked.structures, progress=progress):
        axes = axes_of(walked, shape)
        together.check({name for own in axes.along for name in own})
        priced_shapes.append((shape, together, axes))
    # What these were derived from is gone before arrays take its place.
    for shape, together, axes in priced_shapes:
        rows = walked.rows(shape)
        for structure, reason in together.refused.items():
            tally.refused[f"{_words(structure)}: {reason}"] += rows
        done += len(together.priced)
        degrees = axes.sizes[-1]
        whole = Part(walked, shape, together, axes, np.arange(degrees), degrees)
        for part in whole.pieces(axes.sizes[1]):
            tally.add(part)
    left_out = Counter(walked.left_out) + tally.left_out
    considered = walked.count + sum(walked.left_out.values())
    return Search(
        base,
        space,
        wanted,
        tally.best,
        tally.smallest,
        considered,
        tally.legal,
        tally.fitting,
        left_out,
        tally.refused,
        done,
    )


def _words(structure: Structured) -> str:
    names = [name for name, _ in structure.shape.degrees]
    return (
        ",".join([*names, *([structure.positions] if structure.positions else [])]) or "no strategy"
    )
