"""Capacity of experts."""

from __future__ import annotations

from dataclasses import replace

from sympy import Expr

from symbolic_cost.axes import At, Role
from symbolic_cost.errors import PlacementError
from symbolic_cost.ops.graph import Model
from symbolic_cost.symbols import exact


def with_capacity(model: Model, factor: Expr | float) -> Model:
    """Return a model whose experts take `factor` times the mean of their tokens, padded.

    Args:
        model: with experts.
        factor: capacity factor, at least one to drop no token when they are spread evenly.

    Source: fedus-2021, Equation 3.

    Raises:
        PlacementError: the model has no experts.
    """
    slots = model.placed(At(Role.SLOT), At(Role.TOKEN, ("routed",)))
    if not slots:
        raise PlacementError(f"capacity: model {model.name!r} has no experts")
    padded = {axis.name: model.sizes[axis.name] * exact(factor) for axis in slots}
    return replace(model, sizes={**model.sizes, **padded})
