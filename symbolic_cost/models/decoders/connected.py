"""Decoders on copies of the residual stream that every branch mixes."""

from symbolic_cost.layers import hyper_connections
from symbolic_cost.layers.rotary import angles
from symbolic_cost.models.decoders.decoder import Decoder, path_of
from symbolic_cost.models.decoders.kinds import Kind
from symbolic_cost.ops.declare import Glossary, Op, Part, Place, axes, glossary, scope
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Connected(Decoder):
    """A decoder whose residual stream has copies that every branch mixes."""

    @property
    def own_axes(self) -> Glossary:
        """Roles of axes that this family alone has."""
        return glossary(hyper_connections.AXES, axes("one whole"))

    def turning(self, kinds: tuple[Kind, ...]) -> tuple[Op, ...]:  # noqa: ARG002 - all rotate
        """Declare the angles that layers rotate by."""
        return (angles("d_r"),)

    def blocks(self, kinds: tuple[Kind, ...]) -> tuple[Part, ...]:
        """Declare the blocks between the copying of the stream and its sum."""
        blocks = (
            Part(path_of(kind, kinds), self.block(kind), kind.count, place=Place.BLOCK)
            for kind in kinds
        )
        return (
            Part("copies", hyper_connections.copies()),
            *blocks,
            Part("sum", hyper_connections.joined()),
        )

    def block(self, kind: Kind) -> tuple[Op, ...]:
        """Declare one block from x[b r n_s e] to y[b r n_s e]."""
        norm = self.branch.normed("norm", "x", "normed")
        mixer, experts = (
            (norm, *scope("layer", ops, x="normed", y="y"))
            for ops in (self.mixers[kind.mixer].ops(), self.experts.ops())
        )
        return (
            *hyper_connections.connected("attention", mixer, "x", "middle"),
            *hyper_connections.connected("mlp", experts, "middle", "y"),
        )
