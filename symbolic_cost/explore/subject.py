"""What a search reads of a job, as plain data: kept for a job of words, SymPy is not loaded again.

The job itself is made when a program must be derived, and not before.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

from symbolic_cost.cache import keep_bytes, kept_bytes, names_a_file
from symbolic_cost.records import dataclass

if TYPE_CHECKING:
    from symbolic_cost.jobs.setup import Setup

FREE = ("b",)
"""Symbols that stay symbols in the programs of a search, though a job may have numbers for them."""


@dataclass(frozen=True)
class Facts:
    """What a search reads of a job.

    Args:
        capacity: of a rank [byte]; None where it is not bounded.
        numbers: that the job was given beside those of its model: name and number as text.
        length: longest sequence of positions; None where it has no number or there are none.
        blocks: of the model; None where they have no number.
        heads: numbers of keys' and values' heads that query heads share; none where one is open.
        hidden: overlap where nothing is said: that of the stack.
        unhosted: why nothing can be offloaded; empty where it can.
        trains: which weights are trained; empty for all.
        notes: what a reader must know of the numbers.
        words: of a command line that say how the job is run.
        launched: overlaps that a launch file says of its own run; None where there is no file.
        about: what programs in FREE rest on; None where a user's own function decides.
    """

    model: str
    machine: str
    capacity: float | None
    numbers: tuple[tuple[str, str], ...]
    length: int | None
    experts: int
    blocks: int | None
    heads: tuple[int, ...]
    hidden: str
    unhosted: str
    trains: str
    notes: tuple[str, ...]
    words: tuple[str, ...]
    launched: tuple[str, ...] | None
    about: str | None


class Subject:
    """A job without a strategy, of which candidates are runs."""

    def __init__(self, facts: Facts, make: Callable[[], Setup]) -> None:
        self.facts, self._make = facts, make

    @cached_property
    def setup(self) -> Setup:
        """The job."""
        return self._make()


def subject_of_words(words: Mapping[str, str], make: Callable[[], Subject]) -> Subject:
    """Return the job that words stand for: what is kept of it, else the job, of which it is kept.

    Args:
        words: everything that the job is made from. Where a file or a plugin may change what they
            mean, nothing is kept.
        make: the job.
    """
    known, keeps = kept_subject(words, make), is_of_words(words)
    if known is not None:
        return known
    of_job = make()
    if keeps:
        keep_bytes(words, ".facts", json.dumps(asdict(of_job.facts)).encode())
    return of_job


def kept_subject(words: Mapping[str, str], make: Callable[[], Subject]) -> Subject | None:
    """Return the job that words stand for as it is kept, if it is."""
    data = kept_bytes(words, ".facts") if is_of_words(words) else None
    if data is not None:
        with suppress(ValueError, TypeError):
            return Subject(Facts(**_tuples(json.loads(data))), lambda: make().setup)
    return None


def is_of_words(words: Mapping[str, str]) -> bool:
    """Tell whether words say all of a job: no file and no plugin changes what they mean."""
    return not any(map(names_a_file, words.values())) and _REGISTRY not in sys.modules


_REGISTRY = "symbolic_cost.jobs.registry"
"""The module that is loaded where a plugin, or a user, registers anything."""


def _tuples(plain: Any) -> Any:  # noqa: ANN401 - JSON
    """Return what JSON holds with tuples in place of lists."""
    if isinstance(plain, dict):
        return {name: _tuples(one) for name, one in plain.items()}
    return tuple(map(_tuples, plain)) if isinstance(plain, list) else plain


def run_note(setup: Setup) -> str:
    """Say the precision, the optimizer and the kernel of attention."""
    training, kernel = setup.training, setup.running.attention
    attention = f", attention {kernel}" if kernel else ""
    return f"precision {training.precision}, optimizer {training.optimizer}{attention}"
