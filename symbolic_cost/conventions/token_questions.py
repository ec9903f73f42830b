"""Questions on the FLOP of one token, and their answers: see `per_token`."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Weights(StrEnum):
    """Kinds of weights."""

    TABLE = "table"
    POSITIONS = "positions"
    HEAD = "head"
    PRODUCTS = "products"
    GATES = "gates"
    SHARED = "shared"
    SHARED_GATES = "shared-gates"
    CONVOLUTIONS = "convolutions"
    ROUTER = "router"
    EXPERTS = "experts"
    NORMS = "norms"
    HEAD_NORMS = "head-norms"
    LATENT_NORMS = "latent-norms"
    BIASES = "biases"
    SINKS = "sinks"
    OTHER = "other"


MEANINGS: Mapping[Weights, str] = {
    Weights.TABLE: "token tables that ids are looked up in",
    Weights.POSITIONS: "tables of positions, token types and relative distances",
    Weights.HEAD: "the product with the vocabulary",
    Weights.PRODUCTS: "all other matrix products",
    Weights.GATES: "projections that gate the result of attention",
    Weights.SHARED: "products of experts that all tokens meet",
    Weights.SHARED_GATES: "gates of those experts",
    Weights.CONVOLUTIONS: "short convolutions beside a state",
    Weights.ROUTER: "scores of the experts",
    Weights.EXPERTS: "products of routed experts",
    Weights.NORMS: "scales and shifts of norms of the residual stream",
    Weights.HEAD_NORMS: "those of queries and keys",
    Weights.LATENT_NORMS: "those of latents",
    Weights.BIASES: "biases of products",
    Weights.SINKS: "learned logits of attention",
    Weights.OTHER: "weights applied element by element",
}


AMONG_PRODUCTS = frozenset(
    {Weights.GATES, Weights.SHARED, Weights.SHARED_GATES, Weights.CONVOLUTIONS}
)
"""Kinds that count where products do, unless they are left out by name."""


class Tied(StrEnum):
    """How a weight counts that is token table and head."""

    EACH_USE = "each use"
    TABLE = "as the table"


class Routed(StrEnum):
    """Which routed experts count."""

    ACTIVE = "active"
    ALL = "all"
    REFUSED = "refused"
    """The framework has no formula for experts in this family."""


class Causal(StrEnum):
    """Which share of the pairs a causal mask leaves."""

    FULL = "full"
    HALF = "half"
    EXACT = "exact"


class Window(StrEnum):
    """What a sliding window W leaves of s keys."""

    IGNORED = "ignored"
    LEAST = "min"
    EXACT = "exact"


class Width(StrEnum):
    """How wide heads are taken to be."""

    DECLARED = "declared"
    HIDDEN = "hidden"


class Core(StrEnum):
    """Whether products of queries, keys and values count, and how wide."""

    DECLARED = "declared"
    HIDDEN = "hidden"
    NONE = "none"


class Perceptron(StrEnum):
    """How many products a feed-forward layer is taken to have."""

    DECLARED = "declared"
    GATED = "gated"


class Unknown(StrEnum):
    """What becomes of states for which the conventions have no rule."""

    NONE = "none"
    """They cost nothing."""
    REFUSED = "refused"
    """The framework has formulas for kinds of states, and none for this one."""


class State(StrEnum):
    """Kinds of states, by what their elements are."""

    SELECTIVE = "selective"
    DUAL = "dual"
    DELTA = "delta"
    CHANNEL_DELTA = "channel-delta"
    LINEAR = "linear"


STATES: Mapping[State, str] = {
    State.SELECTIVE: "Mamba's: channels by states",
    State.DUAL: "Mamba-2's: heads by head width by states",
    State.DELTA: "of the gated delta rule: heads by key width by value width",
    State.CHANNEL_DELTA: "of the delta rule whose decay is of every channel",
    State.LINEAR: "of linear attention: heads by key width by value width",
}


class Inner(StrEnum):
    """How wide the heads of a state together are taken to be."""

    DECLARED = "declared"
    TWICE = "twice the embedding"


class Between(StrEnum):
    """Which widths make a state of the delta rule."""

    DECLARED = "keys by values"
    VALUES = "values by values"


class StateRule(BaseModel):
    """What a kind of state costs.

    Args:
        flop: per element of the state, token and pass.
        inner: how wide its heads together are taken to be.
        between: which widths make it.
        convolutions: whether the short convolutions beside it count, where products do.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    flop: int = Field(strict=True, ge=0, le=100)
    inner: Inner = Inner.DECLARED
    between: Between = Between.DECLARED
    convolutions: Literal["counted", "not counted"] = "counted"
