"""What has one key together, in the order in which the keys are first met."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

KeyT = TypeVar("KeyT")
ThingT = TypeVar("ThingT")


def grouped(pairs: Iterable[tuple[KeyT, ThingT]]) -> dict[KeyT, list[ThingT]]:
    """Return things by their key.

    >>> grouped((len(word), word) for word in ("a", "bc", "d"))
    {1: ['a', 'd'], 2: ['bc']}
    """
    groups: dict[KeyT, list[ThingT]] = {}
    for key, thing in pairs:
        groups.setdefault(key, []).append(thing)
    return groups
