"""Decoders of series of numbers, of which l tokens are l patches."""

from dataclasses import replace

from symbolic_cost.layers import series
from symbolic_cost.layers.attention import Bias, HeadNorm
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.residual import Branch, Placing
from symbolic_cost.layers.series import Forecast, Patches, Scaled
from symbolic_cost.models.decoders.decoder import ATTENTION, Decoder, Habit
from symbolic_cost.models.decoders.kinds import FULL
from symbolic_cost.models.decoders.reads import Reads
from symbolic_cost.models.decoders.switches import BIAS, STILL, mlp_bias
from symbolic_cost.ops.declare import Glossary
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Timed(Decoder):
    """A decoder of series."""

    @property
    def own_axes(self) -> Glossary:
        return series.AXES


_NORMS = (Branch(Norm.RMS), Branch(Norm.LAYER))
SERIES = {
    "timesfm": Timed(
        Scaled(**vars(replace(STILL, cache=Scaled().cache))),
        MLP("relu"),
        tokens=Patches(rates="n_f"),
        head=Forecast(),
        habits=Habit.NONE,
        branches={FULL: _NORMS},
        reads=Reads(head_width=80),
    ),
    "timesfm2_5": Timed(
        Scaled(**vars(replace(ATTENTION, head_norm=HeadNorm.HEAD, cache=Scaled().cache))),
        MLP("silu", Bias.NONE),
        tokens=Patches(),
        head=Forecast(bias=Bias.NONE, kinds=("n_v", "n_q")),
        branch=Branch(Norm.RMS, Placing.SANDWICH),
        habits=Habit.NONE,
        reads=Reads({**BIAS, "use_bias": mlp_bias}, head_width=80),
    ),
}
"""Families by model_type."""
