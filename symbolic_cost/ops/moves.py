"""What moves between ranks: the step from the state that a tensor has to the state that is needed.

    have | need     Replicate      Shard(j)
    Partial         all-reduce     reduce-scatter
    Shard(i)        all-gather     all-to-all (nothing if i is j)
    Replicate       nothing        nothing (a local slice)

Forward and backward use the same table: the backward state of a tensor is the dual of its
forward state, so that all-gather and reduce-scatter, all-reduce and nothing, all-to-all and
all-to-all come out as each other's adjoints without being told.
"""

from collections.abc import Mapping

from sympy import Expr

from symbolic_cost.algebra import mul
from symbolic_cost.ledger import CollectiveKind
from symbolic_cost.ops.placement import Partial, Placement, Replicate, Shard, State
from symbolic_cost.records import dataclass


@dataclass(frozen=True, slots=True)
class Move:
    """One collective on one tensor.

    Args:
        axis: axis gathered or scattered, empty for an all-reduce.
        elements: of the full message (of the local buffer for an all-to-all).
    """

    kind: CollectiveKind
    meshes: tuple[str, ...]
    axis: str
    elements: Expr


_ORDER = (
    CollectiveKind.REDUCE_SCATTER,
    CollectiveKind.ALL_REDUCE,
    CollectiveKind.ALL_TO_ALL,
    CollectiveKind.ALL_GATHER,
)
"""Messages shrink before they grow; local slices come first."""


def moves(
    have: Mapping[str, State], need: Mapping[str, State], elements: Expr, placement: Placement
) -> tuple[Move, ...]:
    """Return the collectives that take a tensor from one state to another."""
    steps: dict[tuple[CollectiveKind, str], list[str]] = {}
    together: dict[State, str] = {}  # one exchange leaves an axis, wherever its shards go
    for mesh, state in have.items():
        step = _step(state, need[mesh])
        if step is not None:
            kind, axis = step
            if kind is CollectiveKind.ALL_TO_ALL:
                axis = together.setdefault(state, axis)
            steps.setdefault((kind, axis), []).append(mesh)
    sliced = [m for m in have if have[m] == Replicate() and isinstance(need[m], Shard)]
    elements = elements / placement.degree(sliced)
    collectives = []
    for kind, axis in sorted(steps, key=lambda step: _ORDER.index(step[0])):
        meshes = tuple(steps[kind, axis])
        ranks = placement.degree(meshes)
        full = mul(elements, ranks) if kind is CollectiveKind.ALL_GATHER else elements
        collectives.append(Move(kind, meshes, axis, full))
        if kind is CollectiveKind.REDUCE_SCATTER:
            elements = elements / ranks
        if kind is CollectiveKind.ALL_GATHER:
            elements = full
    return tuple(collectives)


def _step(have: State, need: State) -> tuple[CollectiveKind, str] | None:
    match have, need:
        case Partial(), Replicate():
            return CollectiveKind.ALL_REDUCE, ""
        case Partial(), Shard(axis):
            return CollectiveKind.REDUCE_SCATTER, axis
        case Shard(axis), Replicate():
            return CollectiveKind.ALL_GATHER, axis
        case Shard(axis), Shard(other) if axis != other:
            return CollectiveKind.ALL_TO_ALL, other
    return None
