"""Decoders whose blocks are built in other ways."""

from typing import ClassVar

from symbolic_cost.layers import block_index, hyper_connections, ngrams
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.rotary import angles
from symbolic_cost.models.decoders.decoder import Decoder, path_of
from symbolic_cost.models.decoders.kinds import Kind
from symbolic_cost.ops.declare import (
    Glossary,
    Op,
    Part,
    Place,
    axes,
    einsum,
    glossary,
    pointwise,
    scope,
)
from symbolic_cost.records import dataclass, replace


@dataclass(frozen=True)
class Arctic(Decoder):
    """Arctic: experts read what a block reads, beside its attention and a dense perceptron.

    Source: Snowflake/snowflake-arctic-instruct, modeling_arctic.py, ArcticDecoderLayer.
    """

    def block(self, kind: Kind) -> tuple[Op, ...]:
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


@dataclass(frozen=True)
class Shortcut(Decoder):
    """LongCat-Flash: two blocks in one, with experts on the norm of the first perceptron.

    Source: longcat-flash, section 2.
    """

    def block(self, kind: Kind) -> tuple[Op, ...]:
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


@dataclass(frozen=True)
class Connected(Decoder):
    """A decoder whose residual stream has copies that every branch mixes."""

    mixed: ClassVar[bool] = True

    @property
    def own_axes(self) -> Glossary:
        return glossary(hyper_connections.AXES, axes("one whole"))

    def turning(self, kinds: tuple[Kind, ...]) -> tuple[Op, ...]:  # noqa: ARG002 - all rotate
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
        """Declare one block from x[b r n_o e] to y[b r n_o e]."""
        norm, ports = self.branch.normed("norm", "x", "normed"), self.ports(kind)
        layers = (self._mixer(kind), self.experts if kind.sparse else self.perceptron)
        mixer, follower = (
            (norm, *scope("layer", layer.ops(), x="normed", y="y", **ports)) for layer in layers
        )
        mixed = self.mixed
        return (
            *hyper_connections.connected("attention", mixer, "x", "middle", mixed=mixed, **ports),
            *hyper_connections.connected("mlp", follower, "middle", "y", mixed=mixed),
        )


GRAMS = "ngram_linear_attention"
"""Linear layers that add features of n-grams to the stream."""


class Ngrams(Decoder):
    """A decoder whose copies have shares of every feature: Qwen4-Exp."""

    @property
    def own_axes(self) -> Glossary:
        return glossary(hyper_connections.AXES, block_index.AXES, ngrams.AXES, axes("one whole"))

    def turning(self, kinds: tuple[Kind, ...]) -> tuple[Op, ...]:
        own = super().turning(kinds)
        return (*own, block_index.history()) if own else ()

    def blocks(self, kinds: tuple[Kind, ...]) -> tuple[Part, ...]:
        """Declare rows of n-grams, and blocks between the copying of the stream and its mean."""
        named = any(kind.mixer == GRAMS for kind in kinds)
        parts = [Part("ngrams", ngrams.rows())] if named else []
        parts.append(Part("copies", hyper_connections.copies(), takes={"x": "embedding"}))
        for kind in kinds:
            takes = {"x": ""} | ({"grams": "ngrams"} if kind.mixer == GRAMS else {})
            path = path_of(kind, kinds)
            parts.append(Part(path, self.block(kind), kind.count, takes, place=Place.BLOCK))
        mean = scope("mean", hyper_connections.featured(closing=False), x="x", one="y")
        return (*parts, Part("sum", mean))

    def block(self, kind: Kind) -> tuple[Op, ...]:
        """Declare one block from x[b r n_o e] to y[b r n_o e]."""
        adds = kind.mixer == GRAMS
        start = "named" if adds else "x"
        layer = self.experts if kind.sparse else self.perceptron
        mixer, shares = self._mixer(kind).ops(), hyper_connections.featured()
        connected = hyper_connections.connected
        return (
            *(scope("ngrams", ngrams.added(), x="x", y=start, grams="grams") if adds else ()),
            *connected("attention", mixer, start, "middle", shares, mixed=False),
            *connected("mlp", layer.ops(), "middle", "y", shares, mixed=False),
        )


class Opened(Decoder):
    """A decoder whose norms before attention and experts are opened by a gate of low rank.

    Source: skt/A.X-K2, AXK2GatedRMSNorm.
    """

    @property
    def own_axes(self) -> Glossary:
        return axes("r_g latent")

    def block(self, kind: Kind) -> tuple[Op, ...]:
        """Declare one block; a perceptron's norm has no gate."""
        layer = _opened(self.experts.ops()) if kind.sparse else self.perceptron.ops()
        return (
            *self.branch.around("attention", _opened(self._mixer(kind).ops()), "x", "middle"),
            *self.branch.around("mlp", layer, "middle", "y"),
        )


def _opened(layer: tuple[Op, ...]) -> tuple[Op, ...]:
    """Declare a layer on x[b r e], opened by a sigmoid of two narrow products of it."""
    gate = (
        einsum("narrow", "x[b r e], *w[e r_g] -> narrow[b r r_g]"),
        pointwise("act", "narrow[b r r_g] -> acted[b r r_g]", "silu"),
        einsum("widen", "acted[b r r_g], *w[r_g e] -> wide[b r e]"),
        pointwise("open", "wide[b r e] -> opened[b r e]", "sigmoid"),
        pointwise("mul", "x[b r e], opened[b r e] -> fine[b r e]", "mul"),
    )
    entry = (op.mapped(lambda o: o.renamed("fine") if o.tensor == "x" else o) for op in layer)
    return (*scope("gate", gate, x="x", fine="fine"), *entry)
