"""Norms over the embedding.

Axes: b sequences, r residual positions, e embedding.
"""

from __future__ import annotations

from symbolic_cost.ops.elementwise import norm
from symbolic_cost.ops.op import Op


def layer_norm(name: str) -> Op:
    """Declare a layer norm from x[b r e] to y[b r e], with scale and shift."""
    return norm(name, "x[b r e], *scale[e], *shift[e] -> y[b r e]", "layer_norm", row="e")


def rms_norm(name: str) -> Op:
    """Declare a root-mean-square norm from x[b r e] to y[b r e], with a scale."""
    return norm(name, "x[b r e], *scale[e] -> y[b r e]", "rms_norm", row="e")
