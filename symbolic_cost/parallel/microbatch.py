"""The microbatch of one rank, and that of all ranks that split sequences."""

from dataclasses import replace

from sympy import Mul

from symbolic_cost.axes import Role
from symbolic_cost.lazy import Recent
from symbolic_cost.ops.graph import Model
from symbolic_cost.parallel.strategy import Strategy

_OWN = ("ep", "dp", "replicas")
"""Mesh axes whose ranks have microbatches of their own; those of a tensor grid share one."""


def on_every_rank(model: Model, strategy: Strategy) -> Model:
    """Return a model on its microbatch for every data-parallel rank.

    The field's b is the microbatch of one rank; a placement splits that of all of them.
    """
    key = (id(model), *(strategy.degree(mesh) for mesh in _OWN))
    return _MODELS.of(key, lambda: (model, _on_every_rank(model, strategy)))[1]


_MODELS: Recent[tuple[Model, Model]] = Recent(64, passing=True)
"""A search asks for it again and again."""


def _on_every_rank(model: Model, strategy: Strategy) -> Model:
    ranks = Mul(*(strategy.degree(mesh) for mesh in _OWN))
    sequences = {axis.name for axis in model.axes.values() if axis.role is Role.BATCH}
    sizes = {
        axis: Mul(size, ranks) if axis in sequences else size for axis, size in model.sizes.items()
    }
    return replace(model, sizes=sizes)
