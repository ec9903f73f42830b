"""Exceptions, each a refusal of an input with every problem found.

    SymbolicCostError
    └── InputError              a user's input is refused
        ├── UnknownNameError    no such model, symbol, convention, axis, ...
        ├── DivisibilityError   a size is not divisible by the degree that splits it
        ├── PatternError        an op's pattern does not parse or contradicts itself
        ├── PlacementError      axes and mesh axes do not go together
        └── ConventionError     a convention has no answer, or tables of two are mixed

Every refusal of an input lists all that is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import TypeVar, cast

ResultT = TypeVar("ResultT")


class SymbolicCostError(Exception):
    """Base of all exceptions of this library."""


class InputError(SymbolicCostError):
    """A refused input.

    Args:
        problems: one sentence or several, each saying what was given and what is accepted.
    """

    def __init__(self, problems: str | Iterable[str]) -> None:
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__(*self.problems)

    def __str__(self) -> str:
        """Give the one problem, or a numbered list of all of them."""
        if len(self.problems) == 1:
            return self.problems[0]
        lines = [f"  {number}. {text}" for number, text in enumerate(self.problems, 1)]
        return "\n".join([f"{len(self.problems)} problems:", *lines])


class UnknownNameError(InputError):
    """A name that is not in a catalogue."""


class DivisibilityError(InputError):
    """A size that the degree of its mesh axes does not divide."""


class PatternError(InputError):
    """A pattern that does not parse or contradicts itself."""


class PlacementError(InputError):
    """Axes and mesh axes that do not go together."""


class ConventionError(InputError):
    """A counting question without an answer, or answers that are mixed."""


class Problems:
    """Collects refusals, so that all problems of an input are told at once."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def attempt(self, make: Callable[..., ResultT], *args: object) -> ResultT:
        """Return what `make` returns; after a refusal nothing useful, so call `refuse` first."""
        try:
            return make(*args)
        except InputError as error:
            self.found += error.problems
            return cast("ResultT", None)

    def refuse(self) -> None:
        """Raise if anything was refused.

        Raises:
            InputError: every problem collected.
        """
        if self.found:
            raise InputError(dict.fromkeys(self.found))


def unknown(kind: str, name: str, accepted: Iterable[str]) -> str:
    """Say that a name is unknown, with the closest accepted names or all of them.

    >>> unknown("model", "gpt33", ["gpt", "gpt2", "gpt3-13b"])
    "unknown model 'gpt33': did you mean gpt3-13b, gpt or gpt2?"
    """
    names = sorted(accepted)
    folded = {candidate.lower(): candidate for candidate in names}
    close = [folded[match] for match in get_close_matches(name.lower(), folded, n=3, cutoff=0.5)]
    if close:
        return f"unknown {kind} {name!r}: did you mean {_either(close)}?"
    shown = names if len(names) <= _MOST_NAMES else [*names[:_MOST_NAMES], "..."]
    return f"unknown {kind} {name!r}: accepted are {', '.join(shown) or 'none'}"


_MOST_NAMES = 30


def _either(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
