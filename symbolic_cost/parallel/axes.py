"""Axes that strategies tell apart, as layers name them."""

from __future__ import annotations

from collections.abc import Iterable

KEYS = ("t", "near")
"""Key positions: an op that has them belongs to the attention core."""

HEADS = ("h", "k")
INNER = (*HEADS, "f", "v")
"""Features inside a layer; the residual stream has e."""

EXPERTS = ("x", "u", "z")
"""Experts, and their tokens in place of sequences and positions."""


def placeable(axes: Iterable[str]) -> set[str]:
    """Return the axes that mean what strategies take them for.

    Experts' names stand for pixels or classes elsewhere, and k for the kernel of a convolution.
    """
    found = set(axes)
    if not {*EXPERTS, "f_m"} <= found:
        found -= set(EXPERTS)
    return found if found & set(KEYS) else found - {"k"}


def whole(axis: str) -> str:
    """Return the name of an axis where no mesh axis splits it."""
    return f"{axis}_whole"
