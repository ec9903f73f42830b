"""Spectrograms that are written frame by frame: how a target of frames is read, and made.

Axes: b sequences, r residual positions; n_m features of a frame, w_0 w_1 ... widths of the
perceptron before the blocks, w_s features of a speaker, w_b those beside the embedding e; n_r
frames of a position, x_q all positions, x_p all frames; c_1 c_2 ... channels of the convolutions
behind the blocks, n_w those of the last, s_k their kernel; one the learned number that scales
computed positions.

Source: ao-2021, section 2.
"""

from symbolic_cost.layers.embeddings import Words
from symbolic_cost.ops.declare import Op, conv, dropout, einsum, norm, pointwise, view
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Weighed(Words):
    """Embedding of tokens, whose computed positions are scaled by one learned number."""

    def further(self) -> tuple[Op, ...]:
        """Declare the positions."""
        return (
            pointwise("places", "!places[r]:buffer -> plain[r e]", "angles"),
            pointwise("alpha", "plain[r e], *alpha[one] -> position[r e]", "mul", laid="one"),
        )


@dataclass(frozen=True)
class Frames(Weighed):
    """Embedding of frames, narrowed by a perceptron that always drops out, and of a speaker.

    Args:
        layers: of the perceptron.
    """

    layers: int = 2

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer."""
        x, old, ops = "!frames[b r n_m]", "n_m", []
        for i in range(self.layers):
            new, axes = f"w_{i}", f"[b r w_{i}]"
            ops += [
                einsum(f"fc{i}", f"{x}, *w[{old} {new}] + *bias[{new}] -> u{i}{axes}"),
                pointwise(f"act{i}", f"u{i}{axes} -> a{i}{axes}", "relu"),
                dropout(f"dropout{i}", f"a{i}{axes} -> x{i}{axes}"),
            ]
            x, old = f"x{i}{axes}", new
        both = "placed[b r e], !speaker[b w_s] -> both[b r w_b]"
        return (
            *ops,
            einsum("final", f"{x}, *w[{old} e] + *bias[e] -> narrow[b r e]"),
            *self.further(),
            pointwise("add", "narrow[b r e], position[r e] -> whole[b r e]", "add"),
            dropout("dropout", "whole[b r e] -> placed[b r e]"),
            pointwise("join", both, "copy", laid="e w_s"),
            einsum("speak", "both[b r w_b], *w[w_b e] + *bias[e] -> spoken[b r e]"),
            pointwise("act", "spoken[b r e] -> x[b r e]", "relu"),
        )


@dataclass(frozen=True)
class Written:
    """Frames from x[b r e], whether they are the last, and what convolutions add to them.

    Args:
        layers: convolutions.
    """

    layers: int = 5

    def ops(self) -> tuple[Op, ...]:
        """Declare the head."""
        x, old = "frames[b n_m x_p]", "n_m"
        ops: list[Op] = [
            einsum("told", "x[b r e], *w[e n_r n_m] + *bias[n_r n_m] -> told[b r n_r n_m]"),
            einsum("stop", "x[b r e], *w[e n_r] + *bias[n_r] -> stop[b r n_r]"),
            view("gather", "told[b r n_r n_m] -> all[b x_q n_r n_m]"),
            pointwise("lay", f"all[b x_q n_r n_m] -> {x}", "copy", laid="x_q n_r"),
        ]
        for i in range(1, self.layers + 1):
            new = "n_w" if i == self.layers else f"c_{i}"
            axes = f"[b {new} x_p]"
            learned = f"u{i}{axes}, *scale[{new}], *shift[{new}] -> n{i}{axes}"
            ops += [
                conv(f"conv{i}", f"{x}, *w[{old} {new} s_k] -> u{i}{axes}"),
                norm(f"norm{i}", learned, "batch_norm", "b x_p"),
            ]
            x, old = f"n{i}{axes}", new
            if i < self.layers:
                ops.append(pointwise(f"act{i}", f"{x} -> a{i}{axes}", "tanh"))
                x = f"a{i}{axes}"
            ops.append(dropout(f"dropout{i}", f"{x} -> d{i}{axes}"))
            x = f"d{i}{axes}"
        add = f"frames[b n_m x_p], {x} -> y[b n_m x_p]"
        return (*ops, pointwise("residual", add, "add", laid=old))
