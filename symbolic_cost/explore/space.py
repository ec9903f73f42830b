"""What a search may choose: degrees, microbatches, and options of a job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import partial

from symbolic_cost.errors import InputError, looked_up, quote, refuse, unknown
from symbolic_cost.explore.choices import CONTEXT, UNSAID, word_problems
from symbolic_cost.records import dataclass

MOST_RANKS = 10**9
"""No larger number of GPUs or sequences is asked for."""


@dataclass(frozen=True)
class Space:
    """What may be chosen; degrees that are empty take every divisor of the ranks.

    Args:
        global_batch: sequences of one step.
        cp: degrees of what splits positions.
        context: how positions are split.
        b: microbatches of one rank [sequences].
        v: chunks of a stage; of the interleaved schedule.
        sp: whether sequence parallelism is on.
        overlap: of communication, as in "dp=full" or "tp=full+dp=full".
        order: mesh axes, innermost first, as in "tp+dp+pp"; "all" for every order, empty for that
            of the catalogue.
        offload: what is kept on the host, as in "optimizer+master_weight"; empty for nothing.
        regather: "on" or "off"; empty leaves it to the conventions.
        scattered: whether stages send each tensor-parallel rank's part once.
    """

    gpus: int
    global_batch: int
    tp: tuple[int, ...] = ()
    pp: tuple[int, ...] = ()
    dp: tuple[int, ...] = ()
    ep: tuple[int, ...] = ()
    cp: tuple[int, ...] = ()
    context: tuple[str, ...] = ("cp",)
    b: tuple[int, ...] = ()
    v: tuple[int, ...] = ()
    sp: tuple[bool, ...] = (False, True)
    zero: tuple[int, ...] = (0, 1, 2, 3)
    recompute: tuple[str, ...] = ("none", "selective", "full")
    schedule: tuple[str, ...] = ("1f1b", "interleaved")
    overlap: tuple[str, ...] = ("",)
    order: tuple[str, ...] = ("",)
    offload: tuple[str, ...] = ("",)
    regather: tuple[str, ...] = ("",)
    scattered: tuple[bool, ...] = (False,)

    def __post_init__(self) -> None:
        """Refuse what is none of it, all problems at once."""
        problems = [
            f"{name} = {quote(number)}: an integer from 1 to {MOST_RANKS} is accepted"
            for name in ("gpus", "global_batch", "tp", "pp", "dp", "ep", "cp", "b", "v")
            for number in _as_tuple(getattr(self, name))
            if type(number) is not int or not 1 <= number <= MOST_RANKS
        ]
        problems += [
            f"{f.name}: nothing to choose from"
            for f in fields(self)
            if f.name in _OPTIONS and not getattr(self, f.name)
        ]
        problems += [unknown("context", one, CONTEXT) for one in self.context if one not in CONTEXT]
        problems += [
            f"zero = {one}: 0 to 3 are accepted" for one in self.zero if one not in range(4)
        ]
        problems += _unknown_words(self.recompute, self.schedule)
        problems += [
            problem
            for name in UNSAID
            for choice in getattr(self, name)
            for problem in word_problems(name, choice)
        ]
        refuse(problems)


USUAL = {"recompute": ("none", "selective", "full"), "schedule": ("1f1b", "interleaved")}
"""Words that are looked at where nothing is said; they need not be looked up."""


def _unknown_words(recompute: Iterable[str], schedule: Iterable[str]) -> Iterator[str]:
    """Yield what is wrong with words that are not the usual ones."""
    policies = [one for one in recompute if one not in USUAL["recompute"]]
    schedules = [one for one in schedule if one not in USUAL["schedule"]]
    if not policies and not schedules:
        return
    from symbolic_cost.ops.recompute import recompute_policy
    from symbolic_cost.parallel.schedules import SCHEDULES

    checks: list[Callable[[], object]] = [partial(recompute_policy, one) for one in policies]
    checks += [partial(looked_up, "schedule", one, SCHEDULES) for one in schedules]
    for check in checks:
        try:
            check()
        except InputError as error:
            yield from error.problems


_OPTIONS = ("sp", "zero", "recompute", "schedule", *UNSAID, "scattered", "context")


def _as_tuple(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)
