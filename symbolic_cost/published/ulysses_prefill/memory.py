"""Memory over the course of a program: what is allocated, what is freed, and the running peak."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

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


def caching(size: int) -> int:
    """Return what PyTorch's caching allocator counts for a fresh request [byte].

    A large request that nearly fills its segment gets all of it.

    >>> caching(1), caching(122_880_000), caching(399_360_000)
    (512, 123731968, 399360000)
    """
    rounded = -(-size // BLOCK) * BLOCK
    segment = -(-rounded // SEGMENT) * SEGMENT
    return rounded if rounded < LARGE or segment - rounded > SMALL else segment


ALLOCATORS: Mapping[str, Callable[[int], int]] = {"caching": caching, "payload": lambda size: size}
"""What is counted for a request [byte], by the allocator's name."""


class Moment(NamedTuple):
    """Bytes allocated at the end of a step, and the most that were allocated at once so far."""

    current: int
    peak: int


def moments(
    steps: Iterable[tuple[str, str]], sizes: Mapping[str, int], allocator: str
) -> dict[str, Moment]:
    """Follow a program's memory.

    Args:
        steps: name and events of each step; "+x" allocates x, "-x" frees it, in order.
        sizes: bytes asked for, by the event's name without sign.
        allocator: a key of ALLOCATORS.

    >>> list(moments([("a", "+x"), ("b", "+y -x")], {"x": 5, "y": 7}, "payload").values())
    [Moment(current=5, peak=5), Moment(current=7, peak=12)]
    """
    after, current, peak = {}, 0, 0
    for step, events in steps:
        for event in events.split():
            counted = ALLOCATORS[allocator](sizes[event[1:]])
            current += counted if event.startswith("+") else -counted
            peak = max(peak, current)
        after[step] = Moment(current, peak)
    return after
