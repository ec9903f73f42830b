"""What requests ask for, and what an engine must reach."""

from __future__ import annotations

from symbolic_cost.checking import checked
from symbolic_cost.errors import InputError, Problems, quote, refuse
from symbolic_cost.models.shape import LONGEST_STEP
from symbolic_cost.records import dataclass

MOST_TOKENS = 10**8
"""Of a prompt or an answer."""

_SMALLEST, _LARGEST = 1e-9, 1e9


@checked
@dataclass(frozen=True)
class Load:
    """What requests ask for.

    Args:
        input: tokens of a prompt.
        output: tokens of an answer.
        shared: tokens at the start of every prompt that all have in common; cached once.
        yielded: tokens that a sequence gains per step; more than one where a draft is checked.

    Raises:
        InputError: a number of tokens that is none; an answer has two tokens at least, and the
            last token of a prompt is its own.
    """

    input: int
    output: int
    shared: int = 0
    yielded: float = 1.0

    def __post_init__(self) -> None:
        bounds = (
            ("input", self.input, 1, MOST_TOKENS),
            ("output", self.output, 2, MOST_TOKENS),
            ("shared", self.shared, 0, max(0, self.input - 1)),
        )
        problems = [
            f"{name} = {quote(number)}: an integer from {least} to {most} is accepted"
            for name, number, least, most in bounds
            if not least <= number <= most
        ]
        if not self.yielded >= 1:
            problems.append(f"yielded = {quote(self.yielded)}: a number from 1 is accepted")
        refuse(problems)

    @property
    def prefilled(self) -> int:
        """Tokens of a prompt that are prefilled: those that it does not share."""
        return self.input - self.shared

    @property
    def context(self) -> float:
        """Tokens in the cache of a sequence, in the mean over its decode steps."""
        return self.input + self.output / 2

    @property
    def longest(self) -> int:
        """Tokens of a sequence at its end."""
        return self.input + self.output

    @property
    def steps(self) -> float:
        """Decode steps of a sequence; the first token is the prefill's."""
        return (self.output - 1) / self.yielded


@checked
@dataclass(frozen=True)
class Targets:
    """What a plan must reach; what is None is free.

    Args:
        rate: requests per second, of all engines.
        ttft: time to the first token [s].
        itl: time between tokens of a sequence [s].

    Raises:
        InputError: every target that is no positive number.
    """

    rate: float | None = None
    ttft: float | None = None
    itl: float | None = None

    def __post_init__(self) -> None:
        named = (("rate", self.rate), ("ttft", self.ttft), ("itl", self.itl))
        problems = [
            f"{name} = {quote(value)}: a number between {_SMALLEST:g} and {_LARGEST:g} is accepted"
            for name, value in named
            if value is not None and not _SMALLEST < value < _LARGEST
        ]
        refuse(problems)

    def excess(self, ttft: float, itl: float) -> float:
        """Return how many times its target the worst of both is; at most 1 where both are met."""
        asked = ((ttft, self.ttft), (itl, self.itl))
        return max((value / target for value, target in asked if target is not None), default=0.0)

    def missed(self, ttft: float, itl: float) -> str:
        """Return the targets that are missed, in words; empty where both are met."""
        asked = (("TTFT", ttft, self.ttft), ("ITL", itl, self.itl))
        return " and ".join(
            f"{name} {value * 1000:.4g} ms of {target * 1000:.4g}"
            for name, value, target in asked
            if target is not None and value > target
        )


@checked
def accepted(rate: float, draft: int) -> float:
    """Return the tokens that one step yields where a draft is checked.

    Args:
        rate: with which a drafted token is accepted, each alike.
        draft: tokens drafted per step.

    Raises:
        InputError: a rate that is no share.

    Source: leviathan-2022, equation 1: (1 - a^(g + 1))/(1 - a).

    >>> round(accepted(0.8, 4), 4)
    3.3616
    """
    if not 0 <= rate <= 1:
        raise InputError(f"rate = {rate}: a share from 0 to 1 is accepted")
    return draft + 1.0 if rate == 1 else (1 - rate ** (draft + 1)) / (1 - rate)


@dataclass(frozen=True)
class Draft:
    """Tokens that are drafted, and checked by the next step.

    Args:
        tokens: per step; none without a draft.
        acceptance: share of them that is accepted, each alike.
        model: that drafts them one by one; empty where heads of the model or a lookup do, whose
            time is neglected.

    Raises:
        InputError: every number that is refused.
    """

    tokens: int = 0
    acceptance: float = 0.0
    model: str = ""

    def __post_init__(self) -> None:
        problems = Problems()
        if not 0 <= self.tokens < LONGEST_STEP:
            accepts = f"an integer from 0 to {LONGEST_STEP - 1} is accepted"
            problems.texts.append(f"draft = {quote(self.tokens)}: {accepts}")
        if not 0 <= self.acceptance <= 1:
            problems.texts.append(
                f"acceptance = {quote(self.acceptance)}: a share from 0 to 1 is accepted"
            )
        if bool(self.tokens) is not bool(self.acceptance):
            problems.texts.append(
                "draft and acceptance (--accepted) go together: give both, or neither"
            )
        if self.model and not self.tokens:
            problems.texts.append(
                f"draft_model = {quote(self.model)}: say how many tokens it drafts"
            )
        problems.refuse()

    @property
    def yielded(self) -> float:
        """Tokens that a step yields."""
        return accepted(self.acceptance, self.tokens)
