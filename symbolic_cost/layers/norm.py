"""Norms over the embedding, and over heads.

Axes: b sequences, r residual positions, e embedding.
"""

from enum import StrEnum

from symbolic_cost.ops.declare import Op, norm
from symbolic_cost.ops.pattern import parse


class Norm(StrEnum):
    """Kinds of norm, by what they learn."""

    LAYER = "layer norm with scale and shift"
    LAYER_SCALE = "layer norm with a scale"
    LAYER_BARE = "layer norm without weights"
    LAYER_WRITTEN = "layer norm with a scale, op by op in single precision"
    RMS = "root-mean-square norm with a scale"
    RMS_AFFINE = "root-mean-square norm with scale and shift"
    RMS_BARE = "root-mean-square norm without weights"
    RMS_WIDE = "root-mean-square norm scaled in single precision"
    BATCH = "batch norm with scale and shift: of a feature, over all positions"
    RMS_SHIFTED = "root-mean-square norm scaled by one more than its weight, in single precision"

    def op(
        self, name: str, tensor: str, result: str, *, row: str = "e", scale: str | None = None
    ) -> Op:
        """Declare a norm along `row`, for example `op("norm", "x[b r e]", "y[b r e]")`.

        Args:
            name: of the op.
            tensor: what is normalised.
            result: the normalised tensor.
            row: axes along which it normalises.
            scale: axes of its weights; those of the row unless given.
        """
        axes = row if scale is None else scale
        both = f", *scale[{axes}], *shift[{axes}]"
        weights = {
            **dict.fromkeys((Norm.LAYER, Norm.RMS_AFFINE, Norm.BATCH), both),
            **dict.fromkeys((Norm.LAYER_BARE, Norm.RMS_BARE), ""),
        }
        learned = weights.get(self, f", *scale[{axes}]")
        if self is Norm.BATCH:
            row = " ".join(axis for axis in parse(f"{tensor} -> y[]").inputs[0].axes if axis != row)
        return norm(name, f"{tensor}{learned} -> {result}", _FUNCTIONS[self], row)


_FUNCTIONS = {
    Norm.BATCH: "batch_norm",
    Norm.LAYER: "layer_norm",
    Norm.LAYER_SCALE: "layer_norm",
    Norm.LAYER_BARE: "layer_norm_bare",
    Norm.LAYER_WRITTEN: "layer_norm_written",
    Norm.RMS: "rms_norm",
    Norm.RMS_AFFINE: "rms_norm",
    Norm.RMS_BARE: "rms_norm_bare",
    Norm.RMS_WIDE: "rms_norm_wide",
    Norm.RMS_SHIFTED: "rms_norm_shifted",
}
"""Elementwise functions by kind of norm."""


def layer_norm(name: str) -> Op:
    """Declare a layer norm from x[b r e] to y[b r e], with scale and shift."""
    return Norm.LAYER.op(name, "x[b r e]", "y[b r e]")
