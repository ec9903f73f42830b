"""LongCat-Flash: two blocks in one, of which the first has experts beside its perceptron.

Source: longcat-flash, section 2.
"""

from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.models.decoders.decoder import Decoder
from symbolic_cost.models.decoders.kinds import Kind
from symbolic_cost.ops.declare import Op, pointwise
from symbolic_cost.records import dataclass, replace


@dataclass(frozen=True)
class Shortcut(Decoder):
    """A decoder whose blocks are two, with experts on the norm of the first perceptron."""

    def block(self, kind: Kind) -> tuple[Op, ...]:
        """Declare one block from x[b r e] to y[b r e]."""
        branch, attention = self.branch, self._mixer(kind).ops()
        dense = GatedMLP(self.experts.function, width=self.experts.shared).ops()
        experts = replace(self.experts, shared="").ops()
        add = "{}[b r e], {}[b r e] -> {}[b r e]"
        return (
            *branch.around("first.attention", attention, "x", "attended"),
            branch.normed("mlp.norm", "attended", "entry"),
            *branch.beside("mlp", experts, "entry", "routed"),
            *branch.beside("first.mlp", dense, "entry", "processed"),
            pointwise("first.residual", add.format("attended", "processed", "middle"), "add"),
            *branch.around("second.attention", attention, "middle", "attended_again"),
            *branch.around("second.mlp", dense, "attended_again", "straight"),
            pointwise("join", add.format("straight", "routed", "y"), "add"),
        )
