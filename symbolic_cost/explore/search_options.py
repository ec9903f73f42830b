"""What may be chosen, as typed or as a script says it, and what of it a search would not read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from symbolic_cost.errors import InputError, Problems, looked_up, quote, refuse, unknown
from symbolic_cost.explore.candidates import Numbers, candidates
from symbolic_cost.explore.choices import UNSAID
from symbolic_cost.explore.progress import bar
from symbolic_cost.explore.space import Space
from symbolic_cost.explore.subject import Facts, Subject

if TYPE_CHECKING:
    from symbolic_cost.explore.best import Search

CHOICES = tuple(f.name for f in fields(Space) if f.name not in ("gpus", "global_batch"))
"""What may be chosen, by name."""

Choice: TypeAlias = int | str | bool

Chosen: TypeAlias = Mapping[str, Choice | Iterable[Choice]]

LONG = 16384
"""Positions from which on a search splits them where nothing is said."""

_SWITCH = {"on": True, "off": False}


def search_of(
    base: Subject, space: Space, choose: Chosen, *, objective: str, top: int, progress: bool = True
) -> Search:
    """Price every candidate of a space; arguments as of `ask.search`."""
    from symbolic_cost.explore.best import search as searched

    with bar("deriving", "structures", shown=progress) as tick:
        return searched(base, usual(base.facts, space, choose), objective, top, tick)


def checked_space(
    problems: Problems, gpus: int, global_batch: int, choose: Chosen, top: int = 1
) -> Space:
    """Return a space; its problems, and those of the number of candidates, are collected."""
    space = problems.attempt(space_of, gpus, global_batch, choose)
    if top < 1:
        problems.texts.append(f"top = {top}: a positive integer is accepted")
    return space


def usual(facts: Facts, space: Space, choose: Mapping[str, object]) -> Space:
    """Return the space with positions whole where nothing is said and the sequence is short."""
    short = facts.length is not None and facts.length < LONG
    own = replace(space, cp=(1,)) if short and not {"cp", "context"} & {*choose} else space
    _refuse_unread(facts, own, choose)
    return own


def _refuse_unread(facts: Facts, space: Space, choose: Mapping[str, object]) -> None:
    """Refuse numbers and choices that would change nothing."""
    known = dict(facts.numbers)
    problems = [
        f"{name}={known[name]} is not read: a search chooses it"
        for name in ("b", "M", "v")
        if name in known
    ]
    shapes = candidates(space, facts).numbers
    for name in (one for one in Numbers._fields if one in choose):
        used = {getattr(one, name) for listed in shapes.values() for one in listed}
        unused = (n for n in getattr(space, name) if n not in used)
        problems += [f"choose {name}={n}: no candidate has it" for n in unused]
    names = {name for shape in shapes for name in shape.names}
    if "context" in choose:
        problems += [f"choose context={one}: cp is 1" for one in space.context if one not in names]
    refuse(dict.fromkeys(problems))


def space_of(gpus: int, global_batch: int, choose: Mapping[str, Iterable[Any]]) -> Space:
    """Return a space."""
    refuse(unknown("choice", name, CHOICES) for name in choose if name not in CHOICES)
    listed = {name: _options(values, UNSAID.get(name)) for name, values in choose.items()}
    refuse(
        f"choose {name}: {quote(one or UNSAID.get(name, one))} is given more than once"
        for name, values in listed.items()
        for one, times in Counter(values).items()
        if times > 1
    )
    return Space(gpus, global_batch, **listed)


def _options(values: Iterable[Any], unsaid: str | None) -> tuple[Any, ...]:
    listed = (values,) if isinstance(values, str | int) else values
    return tuple("" if one == unsaid else one for one in listed)


def read_choices(texts: Iterable[str]) -> dict[str, tuple[int | str | bool, ...]]:
    """Return choices typed as "tp=1,2,4" or "recompute=none,full"."""
    problems: list[str] = []
    choices: dict[str, tuple[int | str | bool, ...]] = {}
    for text in texts:
        name, equals, values = (piece.strip() for piece in text.partition("="))
        if not equals or not values:
            problems.append(f"{quote(text)}: NAME=VALUE,VALUE is accepted, as in tp=1,2,4")
        elif name not in CHOICES:
            problems.append(unknown("choice", name, CHOICES))
        elif name in choices:
            problems.append(f"choice {name} is given twice")
        else:
            pieces = [piece.strip() for piece in values.split(",")]
            choices[name] = tuple(_value(name, piece, problems) for piece in pieces)
    refuse(problems)
    return choices


def _value(name: str, text: str, problems: list[str]) -> int | str | bool:
    if name in ("sp", "scattered"):
        try:
            return looked_up(name, text, _SWITCH)
        except InputError as error:
            problems.extend(error.problems)
            return False
    if name not in ("recompute", "schedule", "context", *UNSAID):
        if not (text.isascii() and text.isdigit() and len(text) < 10):  # noqa: PLR2004 - a count
            problems.append(f"{name} = {quote(text)}: an integer is accepted")
            return 1
        return int(text)
    return "" if text == UNSAID.get(name) else text
