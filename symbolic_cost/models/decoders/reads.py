"""What configurations of a decoder family say, and what holds where they do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from symbolic_cost.records import dataclass, field

if TYPE_CHECKING:
    from symbolic_cost.models.fields import Fields


@dataclass(frozen=True, slots=True)
class Share:
    """The part of a head that is rotated.

    Args:
        key: field of the configuration, "rotary_dim" if it gives the width, else a share.
        default: its value if not given.
    """

    key: str
    default: Fraction | int


@dataclass(frozen=True)
class Reads:
    """What configurations of a family say, and what holds where they do not.

    Args:
        switches: what a truth value changes of the family, by field.
        expert_width: field that gives the width of an expert.
        shared_width: field that gives the width of the shared experts; that of so many experts as
            are shared if empty.
        shared: experts that are shared unless given.
        value_width: makes the width of values of the embedding's and the heads, unless given.
        dense: layers before the first with experts, unless given.
        head_width: head width; e/h if None.
        widening: perceptron width as a multiple of the embedding's; None if it must be given.
        offset: rows of the position table that no position uses.
        share: the part of a head that is rotated; all of it if None.
        angles: precision of the angles of rotation, as in a pattern.
        dense_width: field that gives the width of the perceptron.
        inner: makes the perceptron's width of the one that is given.
        latent_width: field that gives the rank of the latent that experts work on, if they do.
        counts: lists or texts with an entry for every layer, where their number may be missing.
        kinds: the mixer and the perceptron of every layer, where no list of the file says.
    """

    switches: Mapping[str, Callable[[Any, bool], Any]] = field(default_factory=dict)
    expert_width: str = "moe_intermediate_size"
    shared_width: str = ""
    shared: int | None = None
    dense: int = 0
    value_width: Callable[[int, int], int] | None = None
    head_width: int | None = None
    widening: int | None = None
    offset: int = 0
    share: Share | None = None
    angles: str = ""
    kinds: Kinds | None = None
    counts: tuple[str, ...] = ()
    dense_width: str = "intermediate_size"
    inner: Callable[[Fields, int], int] | None = None
    latent_width: str = ""


Kinds = Callable[["Fields", int], tuple[list[str], list[str]]]
"""Mixer and perceptron of every one of so many layers, from the fields."""
