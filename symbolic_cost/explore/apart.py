"""Programs of a search derived by a process of its own, where this one has not loaded SymPy.

What derives needs no arrays and what evaluates no formulas.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from symbolic_cost.apart import apart, goes_apart
from symbolic_cost.errors import InputError
from symbolic_cost.explore.candidates import candidates
from symbolic_cost.explore.progress import bar
from symbolic_cost.explore.space import Space
from symbolic_cost.explore.structured import Derived, Program, Progress
from symbolic_cost.explore.subject import (
    Facts,
    Subject,
    is_of_words,
    kept_subject,
    subject_of_words,
)
from symbolic_cost.program.layering import kept_layers, made_layers


def derived_apart(
    words: Mapping[str, str], make: Callable[[], Subject], space: Callable[[Facts], Space]
) -> None:
    """Derive and keep what a search lacks; what is refused here is refused where it is asked.

    Args:
        words: everything that the job is made from.
        make: the job.
        space: what may be chosen, by what a search reads of the job.
    """
    if "sympy" in sys.modules or not is_of_words(words) or not goes_apart():
        return
    with suppress(InputError):
        known = kept_subject(words, make)
        if known is None or any(_lacking(known, space)):
            apart(lambda: _derive(subject_of_words(words, make), space))


def _lacking(
    base: Subject, space: Callable[[Facts], Space], progress: Progress = lambda *_: None
) -> Iterator[Program]:
    """Yield the programs that are not kept, of those that can be."""
    walked = candidates(space(base.facts), base.facts)
    for one in Derived(base, progress=progress).programs(walked.structures):
        if one.about is not None and kept_layers(one.about) is None:
            yield one


def _derive(base: Subject, space: Callable[[Facts], Space]) -> None:
    parent = os.getppid()
    with bar("deriving", "structures", shown=True) as tick:

        def told(done: int, every: int) -> None:
            if os.getppid() != parent:
                raise KeyboardInterrupt  # nobody waits for it any more
            tick(done, every)

        for one in _lacking(base, space, told):
            made_layers(one.about, one.make)
