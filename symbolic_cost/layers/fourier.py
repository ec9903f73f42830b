"""Positions and features brought together by a Fourier transform, which has no weights.

Source: lee-thorp-2021, section 3.
"""

from symbolic_cost.layers.attention import Attention
from symbolic_cost.ops.declare import Op, pointwise, view
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Fourier(Attention):
    """The real part of the transform of x[b r e] along positions and features, y[b r e]."""

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer: every position takes all."""
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            view("whole", "full[b l e] -> whole[b t e]"),
            pointwise("transform", "whole[b t e] -> mixed[b l e]", "fourier", laid="t"),
            view("scatter", "mixed[b l e] -> y[b r e]"),
        )
