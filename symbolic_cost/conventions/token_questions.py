"""Questions on the FLOP of one token, and their answers: see `per_token`."""

from enum import StrEnum
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field


class Meant(StrEnum):
    """A name, and what it means."""

    meaning: str

    def __new__(cls, name: str, meaning: str) -> Self:
        """Hold the meaning beside the name."""
        member = str.__new__(cls, name)
        member._value_, member.meaning = name, meaning
        return member


class Weights(Meant):
    """Kinds of weights."""

    TABLE = "table", "token tables that ids are looked up in"
    POSITIONS = "positions", "tables of positions, token types and relative distances"
    HEAD = "head", "the product with the vocabulary"
    PRODUCTS = "products", "all other matrix products"
    GATES = "gates", "projections that gate the result of attention"
    SHARED = "shared", "products of experts that all tokens meet"
    SHARED_GATES = "shared-gates", "gates of those experts"
    CONVOLUTIONS = "convolutions", "short convolutions beside a state"
    ROUTER = "router", "scores of the experts"
    EXPERTS = "experts", "products of routed experts"
    NORMS = "norms", "scales and shifts of norms of the residual stream"
    HEAD_NORMS = "head-norms", "those of queries and keys"
    LATENT_NORMS = "latent-norms", "those of latents"
    BIASES = "biases", "biases of products"
    SINKS = "sinks", "learned logits of attention"
    OTHER = "other", "weights applied element by element"


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


class State(Meant):
    """Kinds of states, by what their elements are."""

    SELECTIVE = "selective", "Mamba's: channels by states"
    DUAL = "dual", "Mamba-2's: heads by head width by states"
    DELTA = "delta", "of the gated delta rule: heads by key width by value width"
    CHANNEL_DELTA = "channel-delta", "of the delta rule whose decay is of every channel"
    LINEAR = "linear", "of linear attention: heads by key width by value width"


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
