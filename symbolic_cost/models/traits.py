"""What makes a decoder family: biases, norms, gating, ties and other parts, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from sympy import Expr

from symbolic_cost.layers.attention import Core
from symbolic_cost.layers.core import GroupedCore
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.grouped import GroupedAttention, HeadNorm
from symbolic_cost.layers.latent import LatentAttention
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.moe import MixtureOfExperts
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.tokens import Logits, Tokens
from symbolic_cost.models.decoder import Block, Decoder, Layer, Placing
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.sizes import Sizes


class Positions(StrEnum):
    """How positions enter."""

    LEARNED = "a learned table"
    ROTARY = "rotation of queries and keys"
    ALIBI = "a bias on the scores"


class Window(StrEnum):
    """Which layers slide, where the configuration does not list them."""

    NEVER = "none"
    ALWAYS = "all, if a window is given"
    EVEN = "every other one, from the first"
    ALL_BUT_NTH = "all but every n-th"
    UPPER = "from a given layer on, if switched on"


class Sparse(StrEnum):
    """Which layers are mixtures of experts."""

    NEVER = "none"
    ALWAYS = "all"
    AFTER_FIRST = "all after a given number"
    EVERY_NTH = "every n-th, but for listed ones"


@dataclass(frozen=True)
class Traits:
    """What a configuration does not say.

    Args:
        norm: kind of norm.
        placing: of norms in a residual branch.
        parallel_norms: norms of a block whose branches run side by side; 0 if they do not.
        qkv_bias: of the query, key and value projections.
        output_bias: of attention's output projection.
        mlp_bias: of the perceptron.
        grouped: whether key/value heads may be fewer than the query heads.
        head_norm: of queries and keys.
        positions: how they enter.
        sinks: whether heads have a learned extra logit.
        single: whether softmax runs in single precision.
        cached_heads: whether keys and values are cached for every query head.
        gated: whether the perceptron is.
        function: its activation function, unless given.
        tied: whether the output head is the token table, unless given.
        head_bias: whether the output head has a bias.
        capped: whether logits are squeezed.
        scaled: whether embeddings are scaled.
        embedding_norm: whether embeddings are normalised.
        final_norm: whether a norm follows the blocks.
        projected: whether the token table has a width of its own.
        dropout: whether branches are dropped out, unless given.
        attention_dropout: whether attention probabilities are, unless given.
        embedding_dropout: whether embeddings are, unless given.
        core: how attention runs.
        precise: whether an eager core runs in single precision throughout.
        latent: whether attention is latent.
        query_latent: whether its queries are, too.
        shared: whether an expert sees every token.
        router_bias: of the router.
        expert_bias: of the experts.
        window: which layers slide.
        windowed: window, unless given.
        sparse: which layers are mixtures of experts.
        expert_width: field that gives the width of an expert.
        head_width: head width, unless given; None for e/h.
        wide: whether the perceptron has width 4 e, unless given.
        offset: rows of the position table that no position uses.
        switches: traits that a field of the configuration turns on or off, by field.
    """

    norm: Norm = Norm.RMS
    placing: Placing = Placing.PRE
    parallel_norms: int = 0
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    grouped: bool = True
    head_norm: HeadNorm = HeadNorm.NONE
    positions: Positions = Positions.ROTARY
    sinks: bool = False
    single: bool = True
    cached_heads: bool = False
    gated: bool = True
    function: str = "silu"
    tied: bool = False
    head_bias: bool = False
    capped: bool = False
    scaled: bool = False
    embedding_norm: bool = False
    final_norm: bool = True
    projected: bool = False
    dropout: bool = False
    attention_dropout: bool = False
    embedding_dropout: bool = False
    core: Core = Core.EAGER
    precise: bool = False
    latent: bool = False
    query_latent: bool = False
    shared: bool = False
    router_bias: bool = False
    expert_bias: bool = False
    window: Window = Window.NEVER
    windowed: int | None = None
    sparse: Sparse = Sparse.NEVER
    expert_width: str = "moe_intermediate_size"
    head_width: int | None = None
    wide: bool = False
    offset: int = 0
    switches: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))


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
    blocks = tuple(
        Block(
            _kind(run, runs),
            _attention(traits, run, repeated=grouped),
            _mlp(traits, run),
            run.count,
        )
        for run in runs
    )
    rotated = {True: "d_r", False: "d"}[traits.latent]
    width = "w" if traits.projected else "e"
    return Decoder(
        name,
        sizes.axes(shape, latent=traits.latent),
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
        rotated=rotated if traits.positions is Positions.ROTARY else "",
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


def _attention(traits: Traits, run: Run, *, repeated: bool) -> Layer:
    core = GroupedCore(
        traits.core,
        repeated=repeated,
        sinks=traits.sinks,
        single=traits.single,
        dropout=traits.attention_dropout,
        precise=traits.precise,
    )
    if traits.latent:
        return LatentAttention(query_latent=traits.query_latent, core=core)
    return GroupedAttention(
        qkv_bias=traits.qkv_bias,
        output_bias=traits.output_bias,
        head_norm=traits.head_norm,
        norm=traits.norm,
        rotary=traits.positions is Positions.ROTARY,
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


def switched(traits: Traits, values: Mapping[str, bool]) -> Traits:
    """Return traits with switches set, by field of the configuration."""
    changed = {name: on for key, on in values.items() for name in traits.switches[key]}
    return replace(traits, **changed)  # type: ignore[arg-type]  # every switch is a truth value
