"""What makes a decoder family: biases, norms, gating, ties and other parts, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from types import MappingProxyType

from symbolic_cost.layers.attention import Core
from symbolic_cost.layers.grouped import HeadNorm
from symbolic_cost.layers.latent import Expansion
from symbolic_cost.layers.norm import Norm
from symbolic_cost.models.decoder import Placing


class Positions(StrEnum):
    """How positions enter."""

    LEARNED = "a learned table"
    ROTARY = "rotation of queries and keys"
    ALIBI = "a bias on the scores"


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a head that is rotated.

    Args:
        key: field of the configuration, "rotary_dim" if it gives the width, else a share.
        default: its value if not given.
    """

    key: str
    default: Fraction | int

    @property
    def whole(self) -> bool:
        """Whether all of a head is rotated unless the configuration says otherwise."""
        return self.default == 1


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
        part: the part of a head that is rotated, if not all of it.
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
        expansion: where its keys and values are expanded.
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
    part: Part | None = None
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
    expansion: Expansion = Expansion.OWN
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


def switched(traits: Traits, values: Mapping[str, bool]) -> Traits:
    """Return traits with switches set, by field of the configuration."""
    changed = {name: on for key, on in values.items() for name in traits.switches[key]}
    return replace(traits, **changed)  # type: ignore[arg-type]  # every switch is a truth value
