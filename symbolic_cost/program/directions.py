"""Which inputs may make a register of a program larger or smaller as they grow."""

from __future__ import annotations

from collections.abc import Sequence

from symbolic_cost.program.intervals import Intervals
from symbolic_cost.program.spans import RegisterSpan
from symbolic_cost.program.tape import Step
from symbolic_cost.records import dataclass


@dataclass(frozen=True, slots=True)
class Directions:
    """Which inputs may make a register larger or smaller as they grow: bit i for the i-th input."""

    rising: tuple[int, ...]
    falling: tuple[int, ...]


def directions(bounds: Intervals) -> Directions:
    """Return how every register follows the inputs, by the signs that hold in all boxes.

    It is true of floats as well, whose operations are monotone; but for logarithms and powers.
    """
    tape, known = bounds.tape, bounds.known
    count = len(tape.constants)
    rising = [1 << place for place in range(len(tape.inputs))] + [0] * count
    falling = [0] * len(rising)
    for kind, taken in tape.steps:
        up, down = _direction((kind, taken), rising, falling, known)
        rising.append(up)
        falling.append(down)
    return Directions(tuple(rising), tuple(falling))


_FOLLOWS = frozenset({"add", "max", "min", "ceil", "floor", "sqrt"})
_TURNS = frozenset({"sub", "ge", "gt"})


def _direction(
    step: Step, rising: Sequence[int], falling: Sequence[int], known: Sequence[RegisterSpan]
) -> tuple[int, int]:
    kind, taken = step
    ups, downs = [rising[one] for one in taken], [falling[one] for one in taken]
    both = 0
    for bits in (*ups, *downs):
        both |= bits
    if kind in _FOLLOWS or (kind == "mul" and all(known[one].positive for one in taken)):
        return ups[0] | ups[-1], downs[0] | downs[-1]
    if kind in _TURNS or (kind == "div" and known[taken[0]].positive and known[taken[1]].nonzero):
        return ups[0] | downs[1], downs[0] | ups[1]
    if kind == "inv" and known[taken[0]].nonzero:
        return downs[0], ups[0]
    if kind == "select":
        own = ups[0] | downs[0]
        return own | ups[1] | ups[2], own | downs[1] | downs[2]
    return both, both
