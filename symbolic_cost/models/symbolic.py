"""Decoder families with symbols for sizes, and the same families bound to published sizes."""

from __future__ import annotations

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.errors import UnknownNameError, unknown
from symbolic_cost.models.assembly import Run, decoder
from symbolic_cost.models.decoder_families import TRAITS
from symbolic_cost.models.shape import TRAINING, Shape
from symbolic_cost.models.sizes import Sizes
from symbolic_cost.models.traits import Sparse, Traits, Window
from symbolic_cost.ops.graph import Model

GEMMA_3_PERIOD = 6
"""Of so many layers of Gemma 3, the last is full."""


def symbolic(
    name: str,
    shape: Shape = TRAINING,
    sizes: Sizes | None = None,
    traits: Traits | None = None,
) -> Model:
    """Declare a decoder family, every size a symbol unless given.

    Args:
        name: of the family, as model_type.
        shape: what it runs on.
        sizes: of the model.
        traits: of a family that is not registered.

    Raises:
        UnknownNameError: no such family; the closest are offered.
    """
    if traits is None and name not in TRAITS:
        raise UnknownNameError(unknown("decoder family", name, TRAITS))
    traits = traits or TRAITS[name]
    chosen = sizes or (Sizes() if traits.grouped else Sizes(k=symbols.h))
    return decoder(name, traits, chosen, _runs(traits, chosen), shape).model()


def _runs(traits: Traits, sizes: Sizes) -> tuple[Run, ...]:
    """Return the kinds of layers of a family: of the n_layers, how many slide or are dense."""
    layers = sizes.n_layers
    dense = {
        Sparse.NEVER: layers,
        Sparse.ALWAYS: Integer(0),
        Sparse.EVERY_NTH: Integer(0),
        Sparse.AFTER_FIRST: symbols.n_dense,
    }[traits.sparse]
    if 0 not in (dense, layers - dense):
        return (Run(sliding=False, sparse=False, count=dense), _sparse(layers - dense))
    sparse = dense == 0
    counts = _sliding(traits, layers)
    runs = ((sliding, count) for sliding, count in counts.items() if count != 0)
    return tuple(Run(sliding, sparse, count) for sliding, count in runs)


def _sparse(count: Expr) -> Run:
    return Run(sliding=False, sparse=True, count=count)


def _sliding(traits: Traits, layers: Expr) -> dict[bool, Expr]:
    """Return how many layers slide and how many do not."""
    sliding = {
        Window.NEVER: Integer(0),
        Window.UPPER: Integer(0),
        Window.ALWAYS: Integer(0) if traits.windowed is None else layers,
        Window.EVEN: layers / 2,
        Window.ALL_BUT_NTH: layers * (GEMMA_3_PERIOD - 1) / GEMMA_3_PERIOD,
    }[traits.window]
    return {True: sliding, False: layers - sliding}
