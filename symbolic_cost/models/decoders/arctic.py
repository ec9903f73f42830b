"""Arctic: experts read what a block reads, and run beside its attention and a dense perceptron.

Source: Snowflake/snowflake-arctic-instruct, modeling_arctic.py, ArcticDecoderLayer.
"""

from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.models.decoders.decoder import Decoder
from symbolic_cost.models.decoders.kinds import Kind
from symbolic_cost.ops.declare import Op, pointwise, scope
from symbolic_cost.records import dataclass, replace


@dataclass(frozen=True)
class Arctic(Decoder):
    """A decoder whose sparse blocks are dense ones, with experts beside them."""

    def block(self, kind: Kind) -> tuple[Op, ...]:
        """Declare one block from x[b r e] to y[b r e]."""
        if not kind.sparse:
            return super().block(kind)
        experts = replace(self.experts, shared="").ops()
        dense = GatedMLP(self.experts.function, width=self.experts.shared).ops()
        return (
            *self.branch.around("attention", self.attention.ops(), "x", "attended"),
            *self.branch.around("residual", dense, "attended", "straight"),
            *scope("mlp", (self.branch.normed("norm"),), x="x", y="mlp.entry"),
            *self.branch.beside("mlp", experts, "mlp.entry", "routed"),
            pointwise("join", "straight[b r e], routed[b r e] -> y[b r e]", "add"),
        )
