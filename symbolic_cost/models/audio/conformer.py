"""Encoders of recordings whose blocks attend and convolve between two halved perceptrons.

Source: gulati-2020, section 2.
"""

from symbolic_cost.layers.conformer import Gated, halved
from symbolic_cost.layers.disentangled import Disentangled
from symbolic_cost.models.encoders.encoder import Encoder
from symbolic_cost.ops.op import Op
from symbolic_cost.records import dataclass, field


@dataclass(frozen=True)
class Conformer(Encoder):
    """An encoder of Conformer blocks; everything is normed before, and the block once more.

    Args:
        conv: its convolutions.
    """

    conv: Gated = field(default_factory=Gated)

    def block(self, *, bare: bool = False, windowed: bool = False) -> tuple[Op, ...]:  # noqa: ARG002
        """Declare one block from x[b r e] to y[b r e]."""
        outside = {"relative": "relative"} if isinstance(self.attention, Disentangled) else {}
        around, half = self.branch.around, halved(self.perceptron.ops())
        return (
            *around("mlp", half, "x", "first"),
            *around("attention", self.attention.ops(), "first", "seen", **outside),
            *around("conv", self.conv.ops(), "seen", "near"),
            *around("mlp_after", half, "near", "last"),
            self.branch.normed("norm", "last", "y"),
        )
