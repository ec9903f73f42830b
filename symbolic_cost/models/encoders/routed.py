"""Encoders of whose layers some have experts in place of the perceptron, as Nomic Embed 2 has.

Axes: as in an encoder; those of experts end in _s.
"""

from collections.abc import Iterator

from sympy import Expr, Integer

from symbolic_cost.layers import moe
from symbolic_cost.layers.moe import MixtureOfExperts
from symbolic_cost.models.decoders.mixers import letters_of
from symbolic_cost.models.encoders.encoder import Encoder
from symbolic_cost.ops.declare import Part, Place
from symbolic_cost.ops.part import retitled
from symbolic_cost.records import dataclass, field


@dataclass(frozen=True)
class Routed(Encoder):
    """An encoder with experts.

    Args:
        experts: of the layers that have them.
        sparse: how many do.
    """

    experts: MixtureOfExperts = field(default_factory=MixtureOfExperts)
    sparse: int = 0

    def _blocks(self, layers: Expr, groups: int) -> Iterator[Part]:
        if self.sparse:
            layer = retitled(self.experts.ops(), letters_of(moe.AXES))
            ops = (
                *self.branch.around("attention", self.attention.ops(), "x", "middle"),
                *self.branch.around("mlp", layer, "middle", "y"),
            )
            yield Part("experts.block", ops, Integer(self.sparse), {"x": ""}, Place.BLOCK)
        if layers != self.sparse:
            yield from super()._blocks(layers - self.sparse, groups)
