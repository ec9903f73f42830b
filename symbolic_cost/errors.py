"""Exceptions, each a refusal of an input with every problem found.

    SymbolicCostError
    └── InputError              a user's input is refused
        ├── UnknownNameError    no such model, symbol, convention, axis, ...
        ├── DivisibilityError   a size is not divisible by the degree that splits it
        ├── PatternError        an op's pattern does not parse or contradicts itself
        ├── PlacementError      axes and mesh axes do not go together
        ├── NothingFitsError    the input is accepted: nothing is the answer, and this is nearest
        └── ConventionError     a convention has no answer, or tables of two are mixed

Every refusal of an input lists all that is wrong with it.
"""

from collections.abc import Callable, Iterable, Mapping
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
        """Give the one problem, or a numbered list; what is long is cut, `problems` has it all."""
        if len(self.problems) == 1:
            return brief(self.problems[0], _LONGEST_ALONE)
        texts = [brief(text, _LONGEST_OF_MANY) for text in self.problems[:_MOST_PROBLEMS]]
        lines = [f"  {number}. {text}" for number, text in enumerate(texts, 1)]
        more = len(self.problems) - len(texts)
        lines += [f"  ... and {more} more"] if more else []
        return "\n".join([f"{len(self.problems)} problems:", *lines])


def refuse(problems: Iterable[str], error: type[InputError] = InputError) -> None:
    """Raise if there are any problems.

    Raises:
        InputError: all of them; or the kind that is given.
    """
    told = tuple(problems)
    if told:
        raise error(told)


class UnknownNameError(InputError):
    """A name that is not in a catalogue."""


class DivisibilityError(InputError):
    """A size that the degree of its mesh axes does not divide."""


class PatternError(InputError):
    """A pattern that does not parse or contradicts itself."""


class PlacementError(InputError):
    """Axes and mesh axes that do not go together."""


class NothingFitsError(InputError):
    """A question that was understood, of which nothing is the answer: what is nearest, and why."""


class ConventionError(InputError):
    """A counting question without an answer, or answers that are mixed."""


class Problems:
    """Collects refusals, so that all problems of an input are told at once."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def attempt(self, make: Callable[..., ResultT], *args: object) -> ResultT:
        """Return what `make` returns; after a refusal nothing useful, so call `refuse` first."""
        try:
            return make(*args)
        except InputError as error:
            self.texts += error.problems
            return cast("ResultT", None)

    def refuse(self) -> None:
        """Raise if anything was refused.

        Raises:
            InputError: every problem collected.
        """
        refuse(dict.fromkeys(self.texts))


_NO_WORDS: Mapping[str, str] = {}


def unknown(
    kind: str, name: object, accepted: Iterable[str], words: Mapping[str, str] = _NO_WORDS
) -> str:
    """Say that a name is unknown, with the closest accepted names or all of them.

    Args:
        kind: what it names.
        name: as given.
        accepted: the names that are known.
        words: accepted names by other words for the same (tp means m1).

    Names that begin with what was written come first: of fp8 are fp8-hybrid and fp8-all meant, not
    fp32, though fp32 has more of its letters.

    >>> unknown("model", "gpt33", ["gpt", "gpt2", "gpt3-13b"])
    "unknown model 'gpt33': did you mean gpt3-13b, gpt or gpt2?"
    """
    from difflib import get_close_matches

    names = sorted(map(str, accepted))
    if isinstance(name, str) and words.get(name.lower()) in names:
        return f"unknown {kind} {quote(name)}: did you mean {words[name.lower()]}?"
    refused = f"unknown {kind} {quote(name)}"
    text = name.lower() if isinstance(name, str) and len(name) <= _LONGEST_NAME else ""
    folded = {candidate.lower(): candidate for candidate in names}
    longer = [folded[start] for start in folded if text and start.startswith(text)][:3]
    alike = get_close_matches(text, folded, n=3, cutoff=0.5) if text else []
    close = longer if len(text) > 1 and longer else [folded[match] for match in alike]
    if close:
        return f"{refused}: did you mean {_either(close)}?"
    listed = names if len(names) <= _MOST_NAMES else [*names[:_MOST_NAMES], "..."]
    return f"{refused}: accepted are {', '.join(listed) or 'none'}"


def looked_up(
    kind: str, name: object, table: Mapping[str, ResultT], words: Mapping[str, str] = _NO_WORDS
) -> ResultT:
    """Return what a name stands for.

    Raises:
        UnknownNameError: the table has no such name; the closest are offered.
    """
    if not isinstance(name, str) or name not in table:
        raise UnknownNameError(unknown(kind, name, table, words))
    return table[name]


def quote(value: object, most: int = 60) -> str:
    r"""Show a refused value on at most `most` characters, control characters escaped.

    >>> quote("gpt\x1b[31m"), quote(10**400), quote("a" * 100, 12)
    ("'gpt\\x1b[31m'", 'an integer of 1329 bits', "'aaaaaaaa...")
    """
    if isinstance(value, int) and value.bit_length() > _LONGEST_NUMBER:
        return f"an integer of {value.bit_length()} bits"
    short = value[: most + 1] if isinstance(value, str | bytes | list | tuple) else value
    try:
        text = repr(short) if isinstance(value, str) else visible(repr(short))
    except Exception:  # noqa: BLE001 - digits beyond Python's limit, or whatever a foreign type does
        return f"a {type(value).__name__}"
    return brief(text, most)


def brief(text: str, most: int) -> str:
    """Cut a text to at most `most` characters.

    >>> brief("microbatches", 8)
    'micro...'
    """
    return text if len(text) <= most else f"{text[: most - 3]}..."


def visible(text: str) -> str:
    r"""Escape what a terminal would obey instead of showing: control characters, text direction.

    Line ends stay, and the no-break spaces that indent.

    >>> visible("a\x1b[2J\u202eb")
    'a\\x1b[2J\\u202eb'
    """
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() or one in "\n\N{NO-BREAK SPACE}" else ascii(one)[1:-1]
        for one in text
    )


_MOST_NAMES = 30
_LONGEST_NAME = 100
_LONGEST_NUMBER = 200  # bits; 60 decimal digits
_LONGEST_ALONE, _LONGEST_OF_MANY, _MOST_PROBLEMS = 1500, 220, 8


def _either(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
