"""Axes that strategies tell apart, as layers name them."""

from __future__ import annotations

KEYS = ("t", "near")
"""Key positions: an op that has them belongs to the attention core."""

HEADS = ("h", "k")
INNER = (*HEADS, "f", "v")
"""Features inside a layer; the residual stream has e."""


def whole(axis: str) -> str:
    """Return the name of an axis where no mesh axis splits it."""
    return f"{axis}_whole"
