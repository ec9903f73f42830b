"""Strategies as they are written: tp=8,sp,dp=16,zero=1."""

from __future__ import annotations

import re
from functools import lru_cache

from symbolic_cost.checking import checked
from symbolic_cost.errors import InputError, quote, unknown
from symbolic_cost.parallel.catalogue import STRATEGIES
from symbolic_cost.parallel.degrees import KEY_COPIES, MOST_RANKS, Degrees
from symbolic_cost.parallel.strategy import Strategy

WORDS = {
    "fsdp": "zero",
    "hsdp": "replicas",
    "ddp": "dp",
    "mp": "tp",
    "tensor": "tp",
    "data": "dp",
    "pipeline": "pp",
    "context": "cp",
    "expert": "ep",
    "sequence": "sp",
}
"""Strategies by other words of the field."""

_NUMBER = re.compile(r"[0-9]{1,20}")
_LEVELS = ("0", "1", "2", "3")
_RUN_TOGETHER = re.compile(r"([A-Za-z]+)[ _:-]?([0-9]{1,6})")


@checked
def parse_strategy(text: str) -> Strategy:
    """Read a strategy; a name without a number keeps its symbolic degree.

    >>> str(parse_strategy("dp=16,zero=1,tp,sp"))
    'tp=m1,sp,dp=16,zero=1'

    Raises:
        InputError: every part that is refused.
    """
    return _parsed(str(text))


@lru_cache(1 << 8)  # structures ask for the same few again and again
def _parsed(text: str) -> Strategy:
    problems: list[str] = []
    options = {"zero": (0,), "panels": (1,), KEY_COPIES: (1,), "reshard": (0,)}
    degrees: dict[str, Degrees] = {}
    for part in (part.strip() for part in text.split(",") if text.strip()):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        numbers = value.split("x")
        if not part:
            problems.append(f"strategy {quote(text)}: a name is missing beside a comma")
        elif name in degrees:
            problems.append(f"{quote(name)} is given twice")
        elif name not in STRATEGIES and name not in options:
            problems.append(_unknown(name or part, (*STRATEGIES, *options)))
        elif equals and not all(map(_NUMBER.fullmatch, numbers)):
            problems.append(
                f"{quote(part)}: {quote(value)} is not a positive integer up to {MOST_RANKS}"
            )
        elif name in options and (not equals or len(numbers) > 1):
            problems.append(f"{quote(part)}: {name} takes one number, such as {name}=1")
        else:
            symbolic = () if equals else tuple(STRATEGIES[name].meshes.values())
            degrees[name] = tuple(map(int, numbers)) if equals else symbolic
    numbers_of = (int(degrees.pop(name, default)[0]) for name, default in options.items())
    try:
        zero, panels, copies, reshard = numbers_of
        strategy = Strategy(degrees, zero, panels, copies, reshard=reshard)
    except InputError as error:
        raise InputError([*problems, *error.problems]) from None
    if problems:
        raise InputError(problems)
    return strategy


def _unknown(name: str, accepted: tuple[str, ...]) -> str:
    """Say what was meant: of tp8 and "tp 8" tp=8, of fsdp zero=3 over data-parallel ranks."""
    run_together = _RUN_TOGETHER.fullmatch(name)
    if run_together and run_together[1].lower() in accepted:
        word, number = run_together[1].lower(), run_together[2]
        if word != "zero" or number in _LEVELS:
            return f"unknown strategy {quote(name)}: did you mean {word}={number}?"
    if name.lower() == "fsdp":
        return f"unknown strategy {quote(name)}: did you mean zero? As in dp=8,zero=3"
    return unknown("strategy", name, accepted, WORDS)
