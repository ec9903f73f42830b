"""Assembles decoders: traits, sizes and kinds of layers in, a declaration out."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sympy import Expr

from symbolic_cost.layers.core import GroupedCore
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.grouped import GroupedAttention, Rotated
from symbolic_cost.layers.latent import Expansion, LatentAttention
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.moe import MixtureOfExperts
from symbolic_cost.layers.tokens import Logits, Tokens
from symbolic_cost.models.decoder import Block, Decoder, Layer
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.sizes import Sizes
from symbolic_cost.models.traits import Positions, Traits


@dataclass(frozen=True)
class Run:
    """Consecutive or scattered layers of one kind.

    Args:
        sliding: whether queries see a window.
        sparse: whether the perceptron is a mixture of experts.
        count: of layers.
    """

    sliding: bool
    sparse: bool
    count: Expr


def decoder(
    name: str,
    traits: Traits,
    sizes: Sizes,
    runs: tuple[Run, ...],
    shape: Shape,
    *,
    head: bool = True,
    predicted: int = 0,
) -> Decoder:
    """Assemble a decoder from traits.

    Args:
        name: of the model.
        traits: of its family.
        sizes: of its axes.
        runs: kinds of layers and how often they occur.
        shape: what it runs on.
        head: whether logits are computed; the loss is part of training alone.
        predicted: further tokens predicted, each by one more block and the same head.
    """
    grouped = sizes.h != sizes.k and not traits.latent
    cached = shape.c != 0 and traits.expansion is Expansion.OWN
    expansion = Expansion.CACHED if cached else traits.expansion
    part = traits.latent or (traits.part is not None and not traits.part.whole)
    rotated = Rotated.PART if part else Rotated.WHOLE
    if traits.positions is not Positions.ROTARY:
        rotated = Rotated.NOTHING
    blocks = tuple(
        Block(
            _kind(run, runs),
            _attention(replace(traits, expansion=expansion), run, rotated, repeated=grouped),
            _mlp(traits, run),
            run.count,
        )
        for run in runs
    )
    width = "w" if traits.projected else "e"
    return Decoder(
        name,
        sizes.axes(shape, latent=traits.latent, expansion=expansion),
        Tokens(
            width,
            learned=traits.positions is Positions.LEARNED,
            scaled=traits.scaled,
            norm=traits.norm if traits.embedding_norm else None,
            dropout=traits.embedding_dropout,
        ),
        blocks,
        norm=traits.norm,
        placing=traits.placing,
        parallel_norms=traits.parallel_norms,
        dropout=traits.dropout,
        rotated=rotated.value,
        final_norm=traits.final_norm,
        head=_logits(traits, width, loss=shape.c == 0, shared=predicted > 0) if head else None,
        predicted=predicted,
    )


def _kind(run: Run, runs: tuple[Run, ...]) -> str:
    """Name a kind of block by what tells it from the others."""
    parts = []
    if len({other.sliding for other in runs}) > 1:
        parts.append("sliding" if run.sliding else "full")
    if len({other.sparse for other in runs}) > 1:
        parts.append("experts" if run.sparse else "dense")
    return "_".join(parts)


def _attention(traits: Traits, run: Run, rotated: Rotated, *, repeated: bool) -> Layer:
    core = GroupedCore(
        traits.core,
        repeated=repeated,
        sinks=traits.sinks,
        single=traits.single,
        dropout=traits.attention_dropout,
        precise=traits.precise,
    )
    if traits.latent:
        return LatentAttention(traits.query_latent, traits.expansion, core)
    return GroupedAttention(
        qkv_bias=traits.qkv_bias,
        output_bias=traits.output_bias,
        head_norm=traits.head_norm,
        norm=traits.norm,
        rotated=rotated,
        sliding=run.sliding,
        cached_heads=traits.cached_heads,
        core=core,
    )


def _mlp(traits: Traits, run: Run) -> Layer:
    if run.sparse:
        return MixtureOfExperts(
            traits.function,
            router_bias=traits.router_bias,
            expert_bias=traits.expert_bias,
            shared=traits.shared,
        )
    if traits.gated:
        return GatedMLP(traits.function, bias=traits.mlp_bias)
    return MLP(traits.function, bias=traits.mlp_bias)


def _logits(traits: Traits, width: str, *, loss: bool, shared: bool) -> Logits:
    weight = "@token" if traits.tied else "@head" if shared else "w"
    return Logits(weight, width, bias=traits.head_bias, capped=traits.capped, loss=loss)
