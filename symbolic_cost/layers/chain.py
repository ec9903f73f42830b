"""Chains: steps that follow each other, of which a layer has some and leaves out others."""

from collections.abc import Callable, Sequence

from symbolic_cost.ops.op import Op

Step = Callable[[str, str], Op]
"""Declares one op from the names of the tensor that goes in and the one that comes out."""


def chain(start: str, steps: Sequence[Step], end: str) -> tuple[Op, ...]:
    """Declare steps from tensor `start` to tensor `end`; those between are numbered after `end`."""
    names = [start, *(f"{end}_{place}" for place in range(1, len(steps))), end]
    return tuple(step(x, y) for step, x, y in zip(steps, names[:-1], names[1:], strict=True))
