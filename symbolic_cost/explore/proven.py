"""A proven search: the best strategy together with sizes and rates that vary, over all of them.

Strategies are rows of numbers that go together; what varies beside them is an axis each. Nothing is
sampled: `bound` leaves out only what cannot be better, or breaks a condition, for certain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

import numpy as np

from symbolic_cost.errors import looked_up, refuse
from symbolic_cost.explore.axes import columns_of
from symbolic_cost.explore.bound import MOST_BOXES, Minimum, minimum
from symbolic_cost.explore.boxes import Axis, Piece, Wish
from symbolic_cost.explore.candidates import Candidates, Shape, Structured, candidates
from symbolic_cost.explore.facts import subject
from symbolic_cost.explore.free_symbols import Numbers, checked, freed, with_numbers
from symbolic_cost.explore.objectives import LEGAL, NEEDED, OBJECTIVES, Objective
from symbolic_cost.explore.progress import bar
from symbolic_cost.explore.ranges import Given
from symbolic_cost.explore.space import Space
from symbolic_cost.explore.structured import structured_setup
from symbolic_cost.explore.subject import Facts, Subject
from symbolic_cost.explore.tally import Candidate
from symbolic_cost.explore.together import Together, all_priced
from symbolic_cost.grouping import grouped
from symbolic_cost.jobs.numbers import RATES
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Proof:
    """The best combination of all, and what is certain of the others.

    Args:
        candidate: the best strategy, with its outputs; None where nothing is legal and fits.
        at: number by symbol of what varies.
        least: what is known of all combinations.
        left_out: numbers that make no candidate, by reason.
    """

    subject: Subject
    space: Space
    objective: Objective
    vary: Numbers
    candidate: Candidate | None
    at: Mapping[str, int | Fraction]
    least: Minimum
    left_out: Mapping[str, int]
    refused: Mapping[str, int]

    @property
    def facts(self) -> Facts:
        """What a search reads of the job."""
        return self.subject.facts

    @property
    def proven(self) -> bool:
        """Tell whether nothing is left open."""
        return not self.least.open

    @property
    def bound(self) -> float:
        """No combination is better, in exact numbers; of the objective, in its unit."""
        return self.objective.figure(self.objective.sign * self.least.bound, self.objective.second)

    @property
    def value(self) -> float | None:
        """The objective of the best, in its unit."""
        return None if self.candidate is None else self.objective.read(self.candidate.outputs)

    @property
    def job(self) -> Setup | None:
        """The job of the best, all of its numbers in place."""
        if self.candidate is None:
            return None
        base = with_numbers(self.subject.setup, self.at)
        return structured_setup(base, self.candidate.structure, self.candidate.numbers)


def proof(
    base: Subject,
    space: Space,
    vary: Mapping[str, Given],
    objective: str = "step",
    *,
    most_boxes: int = MOST_BOXES,
) -> Proof:
    """Return the best of all combinations of a strategy and what varies."""
    wanted = looked_up("objective", objective, OBJECTIVES).priced(base.facts.machine, space.gpus)
    numbers = checked(base.setup, vary)
    own = subject(freed(base.setup, numbers))
    walked = candidates(space, own.facts)
    shapes, refused = _shapes(own, walked, numbers)
    axes = [Axis(name, np.array(one, dtype=float)) for name, one in numbers.items()]
    pieces = [_piece(one, walked, shape, wanted, own.facts.capacity) for shape, one in shapes]
    least = minimum([one for one in pieces if one.wishes], axes, most_boxes)
    asked = [pair for pair, one in zip(shapes, pieces, strict=True) if one.wishes]
    at, best = _best(least, asked, walked, numbers)
    return Proof(base, space, wanted, numbers, best, at, least, walked.left_out, refused)


def _shapes(
    own: Subject, walked: Candidates, numbers: Numbers
) -> tuple[list[tuple[Shape, Together[Structured]]], dict[str, int]]:
    """Return the programs of all shapes, and what the model refuses, by reason."""
    free = ("b", *numbers)
    _refuse_unread(own, walked, numbers)
    with bar("deriving", "structures", shown=True) as tick:
        shapes = list(all_priced(own, walked.structures, free, tick))
    refused: Counter[str] = Counter()
    known = {*numbers, "b", "M", "v"}
    missing: set[str] = set()
    for shape, one in shapes:
        for reason in one.refused.values():
            refused[reason] += walked.rows(shape)
        columns = columns_of(walked, shape)
        missing |= {name for name in one.tape.inputs if name not in known and name not in columns}
    read = {name for _, one in shapes for name in one.tape.inputs}
    problems = [f"no number for {name}: bind it (--set), or vary it" for name in sorted(missing)]
    problems += _unread(numbers, read)
    refuse(problems)
    return shapes, refused


def _unread(numbers: Numbers, read: Collection[str]) -> list[str]:
    return [f"vary {name}: nothing depends on it" for name in numbers if name not in read]


def _refuse_unread(own: Subject, walked: Candidates, numbers: Numbers) -> None:
    """Refuse rates that not even the shape reads that has every mesh axis of all others.

    Others do not wait for links that it does not have, so that they need not be derived first.
    """
    rates = {name: one for name, one in numbers.items() if name in RATES}
    shapes = walked.structures
    widest = max(shapes, key=lambda shape: len(shape.names), default=None)
    if not rates or widest is None or any(not one.names <= widest.names for one in shapes):
        return
    some = {widest: [*dict.fromkeys((shapes[widest][0], shapes[widest][-1]))]}
    read = {name for _, one in all_priced(own, some, ("b", *numbers)) for name in one.tape.inputs}
    refuse(_unread(rates, read))


def _piece(
    one: Together[Structured],
    walked: Candidates,
    shape: Shape,
    wanted: Objective,
    room: float | None,
) -> Piece:
    """Return the candidates of a shape as a piece of the search."""
    outputs = grouped((label.partition("|")[0], label) for label in one.tape.outputs)
    refused = {one.structures.index(structure) for structure in one.refused}
    wishes = tuple(
        Wish(
            f"{place}|{wanted.of([label.partition('|')[2] for label in labels])}",
            wanted.sign,
            tuple(label for label in labels if label.partition("|")[2].startswith(LEGAL)),
            {} if room is None else {f"{place}|{NEEDED}": room},
        )
        for place, labels in outputs.items()
        if int(place) not in refused
    )
    tape = one.tape.only(dict.fromkeys(name for wish in wishes for name in wish.outputs))
    return Piece(tape, wishes, columns_of(walked, shape), walked.rows(shape))


def _best(
    least: Minimum,
    shapes: Sequence[tuple[Shape, Together[Structured]]],
    walked: Candidates,
    numbers: Numbers,
) -> tuple[dict[str, int | Fraction], Candidate | None]:
    """Return the numbers of what varies and the candidate of the best combination."""
    if least.piece < 0:
        return {}, None
    shape, together = shapes[least.piece]
    at = {
        name: one[place] for (name, one), place in zip(numbers.items(), least.places, strict=True)
    }
    every = columns_of(walked, shape)
    columns = {name: column[least.row : least.row + 1] for name, column in every.items()}
    columns |= {name: np.array([float(number)]) for name, number in at.items()}
    results = list(together.evaluated(columns, 1))
    structure, outputs = results[least.wish]
    told = {n: float(value[0]) for n, value in outputs.items() if not n.startswith(LEGAL)}
    return at, Candidate(*walked.chosen(shape, structure, least.row), told, least.value)


__all__ = ["Proof", "proof", "with_numbers"]
