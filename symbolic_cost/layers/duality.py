"""State-space layers of Mamba-2: a scan in chunks of matrix products, or step by step.

Axes: b sequences, r residual positions, l positions, e embedding, h heads, d head width, g groups
of heads that share a state projection, s state, m all channels of the convolutions (of heads and
both projections), k their kernel, p its padded positions; z chunks, i and j positions of one chunk
(out, in), zo and zi chunk borders (out, in), one a single place.
"""

from enum import StrEnum

from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.scan import causal_conv
from symbolic_cost.ops.declare import Op, axes, cache, einsum, norm, pointwise, scan, view
from symbolic_cost.records import dataclass

AXES = axes(
    "b batch, r token residual, l token query, p whole, e hidden, h head, d width, g whole, "
    "s latent, m whole, k whole, z whole, i whole, j whole, zo whole, zi whole, one whole"
)


_CHANNELS = {"u": "h d", "into": "g s", "outof": "g s"}
"""Axes of what is convolved: what the heads take in, and what goes into and out of the state."""


class Form(StrEnum):
    """How the recurrence runs."""

    CHUNKED = "matrix products inside chunks, a recurrence between them"
    STEPS = "one step after the other"


@dataclass(frozen=True)
class Duality:
    """Mamba-2's layer from x[b r e] to y[b r e].

    Args:
        form: how the recurrence runs.
        bias: of the convolutions (inner) and of the outer projections (output).
        normed: whether the gated result is normalised.
    """

    form: Form = Form.CHUNKED
    bias: Bias = Bias.INNER
    normed: bool = True

    def ops(self) -> tuple[Op, ...]:
        result = "normed" if self.normed else "gated"
        narrow = " + *bias[e]" if Bias.OUTPUT in self.bias else ""
        recurrence = _chunks() if self.form is Form.CHUNKED else _steps()
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            *self._projections(),
            *self._convolutions(),
            pointwise("softplus", "raw[b l h], *bias[h] -> step[b l h]", "softplus"),
            pointwise("rate", "step[b l h], *a[h] -> rate[b l h]", "mul"),
            pointwise("scaled", "u[b l h d], step[b l h] -> scaled[b l h d]", "mul"),
            *recurrence,
            pointwise("skip", "u[b l h d], *d[h] -> direct[b l h d]", "mul"),
            pointwise("add", "read[b l h d], direct[b l h d] -> skipped[b l h d]", "add"),
            pointwise("gate", "gate[b l h d] -> opened[b l h d]", "silu"),
            pointwise("mul", "skipped[b l h d], opened[b l h d] -> gated[b l h d]", "mul"),
            *self._normed(),
            einsum("out", f"{result}[b l h d], *w[h d e]{narrow} -> summed[b l e]"),
            view("scatter", "summed[b l e] -> y[b r e]"),
        )

    def _normed(self) -> tuple[Op, ...]:
        if not self.normed:
            return ()
        pattern = "gated[b l h d], *scale[h d] -> normed[b l h d]"
        return (norm("gated_norm", pattern, "rms_norm", row="h d"),)

    def _convolutions(self) -> tuple[Op, ...]:
        """Declare the parts of the convolution: that of the heads is split with them."""
        return tuple(
            op
            for name, axes in _CHANNELS.items()
            for op in causal_conv(
                name, f"plain_{name}", axes, bias=Bias.INNER in self.bias, among="m"
            )
        )

    def _projections(self) -> tuple[Op, ...]:
        plain = {f"plain_{name}": axes for name, axes in _CHANNELS.items()}
        parts = {"gate": "h d", **plain, "raw": "h"}
        return tuple(
            einsum(
                f"in_{name}",
                f"full[b l e], *w[e {axes}]"
                + (f" + *bias[{axes}]" if Bias.OUTPUT in self.bias else "")
                + f" -> {name}[b l {axes}]",
            )
            for name, axes in parts.items()
        )


def _steps() -> tuple[Op, ...]:
    return (
        pointwise("decay", "rate[b l h] -> decay[b l h]", "exp"),
        pointwise("spread", "decay[b l h] -> decays[b l h d s]", "copy"),
        pointwise("many_into", "into[b l g s] -> many_into[b l h s]", "copy", laid="g"),
        pointwise("many_outof", "outof[b l g s] -> many_outof[b l h s]", "copy", laid="g"),
        pointwise("drive", "scaled[b l h d], many_into[b l h s] -> drive[b l h d s]", "mul"),
        scan("scan", "decays[b l h d s], drive[b l h d s] -> states[b l h d s]", along="l"),
        cache("state", "states[b l h d s] -> known[b l h d s]", kept="b one h d s"),
        einsum("read", "known[b l h d s], many_outof[b l h s] -> read[b l h d]"),
    )


def _chunks() -> tuple[Op, ...]:
    return (*_cut(), *_inside(), *_between(), *_joined())


def _cut() -> tuple[Op, ...]:
    """Declare the padding to whole chunks, and the copies of the groups for every head."""
    return (
        pointwise("cut_u", "scaled[b l h d] -> chunk[b z j h d]", "copy", laid="l"),
        pointwise("cut_rate", "rate[b l h] -> rates[b h z i]", "copy", laid="l"),
        pointwise("cut_into", "into[b l g s] -> many_into[b z j h s]", "copy", laid="l g"),
        pointwise("cut_outof", "outof[b l g s] -> many_outof[b z i h s]", "copy", laid="l g"),
    )


def _inside() -> tuple[Op, ...]:
    """Declare what the positions of a chunk give to later ones of the same chunk."""
    return (
        pointwise("decay", "rates[b h z i] -> decay[b h z i j]", "exp"),
        einsum("scores", "many_outof[b z i h s], many_into[b z j h s] -> scores[b h z i j]"),
        pointwise("mask", "scores[b h z i j], decay[b h z i j] -> masked[b h z i j]", "mul"),
        einsum("attend", "masked[b h z i j], chunk[b z j h d] -> near[b z i h d]"),
    )


def _between() -> tuple[Op, ...]:
    """Declare what the state at the start of a chunk gives to its positions."""
    return (
        pointwise("fade", "rates[b h z i] -> fade[b h z j]", "exp", laid="i"),
        pointwise("faded", "many_into[b z j h s], fade[b h z j] -> faded[b z j h s]", "mul"),
        einsum("gain", "faded[b z j h s], chunk[b z j h d] -> gain[b z h d s]"),
        pointwise("start", "gain[b z h d s] -> gains[b zi h d s]", "copy", laid="z"),
        pointwise("passing", "rates[b h z i] -> passing[b h zo zi]", "exp", laid="z i"),
        einsum("pass", "passing[b h zo zi], gains[b zi h d s] -> states[b zo h d s]"),
        cache("state", "states[b zo h d s] -> known[b z h d s]", kept="b one h d s"),
        einsum("read", "many_outof[b z i h s], known[b z h d s] -> unscaled[b z i h d]"),
        pointwise("reach", "rates[b h z i] -> reach[b h z i]", "exp"),
        pointwise("far", "unscaled[b z i h d], reach[b h z i] -> far[b z i h d]", "mul"),
    )


def _joined() -> tuple[Op, ...]:
    return (
        pointwise("join", "near[b z i h d], far[b z i h d] -> joined[b z i h d]", "add"),
        pointwise("uncut", "joined[b z i h d] -> read[b l h d]", "copy", laid="z i"),
    )
