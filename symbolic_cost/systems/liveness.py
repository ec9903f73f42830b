"""Memory over the course of a program: what is allocated, what is freed, and the running peak.

What an allocator counts for a request is a named, exchangeable part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from symbolic_cost.errors import InputError, looked_up

BLOCK = 512
"""Requests are rounded up to blocks [byte]."""

SMALL = 2**20
"""A rest of a segment up to this size is not split off [byte]."""

LARGE = 10 * 2**20
"""Requests from this size on get a segment of their own [byte]."""

SEGMENT = 2**21
"""Segments of large requests are multiples of it [byte]."""

WORKSPACE = 2**25
"""Workspace of the matrix products on an H100, allocated with the first of them [byte]."""


def payload(size: int) -> int:
    """Return what is asked for [byte]."""
    return size


def caching(size: int) -> int:
    """Return what PyTorch's caching allocator counts for a fresh request [byte].

    A large request that nearly fills its segment gets all of it.

    >>> caching(1), caching(122_880_000), caching(399_360_000)
    (512, 123731968, 399360000)
    """
    rounded = -(-size // BLOCK) * BLOCK
    segment = -(-rounded // SEGMENT) * SEGMENT
    return rounded if rounded < LARGE or segment - rounded > SMALL else segment


ALLOCATORS: Mapping[str, Callable[[int], int]] = MappingProxyType(
    {"caching": caching, "payload": payload}
)
"""What is counted for a request, by the allocator's name."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Memory after one step of a program.

    Args:
        step: its name.
        current: bytes allocated at its end.
        peak: the most bytes allocated at once so far.
    """

    step: str
    current: int
    peak: int


def moments(
    steps: Iterable[tuple[str, str]], sizes: Mapping[str, int], allocator: str = "caching"
) -> list[Moment]:
    """Follow a program's memory.

    Args:
        steps: name and events of each step; "+x" allocates x, "-x" frees it, in order.
        sizes: bytes asked for, by the event's name without sign.
        allocator: a key of ALLOCATORS.

    Returns:
        Bytes after each step.

    Raises:
        UnknownNameError: no such allocator.
        InputError: every event that allocates what is alive, frees what is not, or has no size.

    >>> [m.peak for m in moments([("a", "+x"), ("b", "+y -x")], {"x": 5, "y": 7}, "payload")]
    [5, 12]
    """
    counted_as = looked_up("allocator", allocator, ALLOCATORS)
    listed = [(step, events.split()) for step, events in steps]
    problems = _problems(listed, sizes)
    if problems:
        raise InputError(problems)
    found, current, peak = [], 0, 0
    for step, events in listed:
        for event in events:
            counted = counted_as(sizes[event[1:]])
            current += counted if event.startswith("+") else -counted
            peak = max(peak, current)
        found.append(Moment(step, current, peak))
    return found


def _problems(steps: list[tuple[str, list[str]]], sizes: Mapping[str, int]) -> list[str]:
    alive: set[str] = set()
    problems = []
    for step, events in steps:
        for event in events:
            sign, name = event[0], event[1:]
            if sign not in "+-" or name not in sizes:
                problems.append(f"step {step!r}: event {event!r} is not +x or -x with a size of x")
            elif (sign == "+") == (name in alive):
                state = "alive already" if sign == "+" else "not alive"
                problems.append(f"step {step!r}: event {event!r}, but {name!r} is {state}")
            alive = alive | {name} if sign == "+" else alive - {name}
    return problems
