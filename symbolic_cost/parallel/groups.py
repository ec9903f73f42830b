"""Rank groups: which ranks of an ordered mesh take part in a collective, and on which nodes."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, product
from math import prod
from operator import mul
from typing import TypeVar

from symbolic_cost.checking import is_count
from symbolic_cost.errors import InputError, refuse, unknown
from symbolic_cost.parallel.degrees import KEY_COPIES
from symbolic_cost.records import dataclass

MeshT = TypeVar("MeshT")

MOST_RANKS = 2**14
"""A mesh with more ranks is not listed."""


@dataclass(frozen=True, slots=True)
class Group:
    """Ranks of one collective.

    Args:
        ranks: in the order of the mesh axis.
        node_size: ranks per node, which hold consecutive ranks.
    """

    ranks: tuple[int, ...]
    node_size: int

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the ranks: n1_g0 is the first GPU of the second node."""
        return tuple(f"n{rank // self.node_size}_g{rank % self.node_size}" for rank in self.ranks)

    @property
    def nodes(self) -> tuple[int, ...]:
        """Nodes that the ranks are on, each once."""
        return tuple(dict.fromkeys(rank // self.node_size for rank in self.ranks))

    @property
    def crosses_nodes(self) -> bool:
        """Whether the ranks are on more than one node."""
        return len(self.nodes) > 1

    def __str__(self) -> str:
        return f"[{' '.join(self.names)}]"


def arranged(mesh: Mapping[str, MeshT], order: Sequence[str]) -> dict[str, MeshT]:
    """Return a mesh with its axes in an order; ranks that share key/value heads stay beside tp.

    Args:
        mesh: by mesh axis, in the order of the catalogue.
        order: names, innermost first; empty for that of the mesh. Names of axes that the mesh
            lacks, which have one rank, are passed over.

    >>> list(arranged({"kv": 2, "tp": 8, "dp": 4}, ("dp", "tp")))
    ['dp', 'kv', 'tp']

    Raises:
        InputError: axes that the order leaves out.
    """
    if not order:
        return dict(mesh)
    names = [each for name in order for each in ((KEY_COPIES, name) if name == "tp" else (name,))]
    missing = [name for name in mesh if name not in names]
    if missing:
        raise InputError(f"order {','.join(order)} does not say where {', '.join(missing)} lies")
    return {name: mesh[name] for name in names if name in mesh}


def rank_groups(
    mesh: Mapping[str, int], axes: str | tuple[str, ...], node_size: int
) -> tuple[Group, ...]:
    """Return the groups along one mesh axis, or along several.

    Args:
        mesh: ranks by mesh axis, innermost first: neighbours on the first have neighbouring ranks.
        axes: a name or several; the first one's ranks stand next to each other in a group.
        node_size: ranks per node.

    >>> [str(group) for group in rank_groups({"tp": 2, "dp": 2, "pp": 2}, "dp", 4)]
    ['[n0_g0 n0_g2]', '[n0_g1 n0_g3]', '[n1_g0 n1_g2]', '[n1_g1 n1_g3]']
    """
    names = (axes,) if isinstance(axes, str) else axes
    _check(mesh, names, node_size)
    members = offsets(mesh, names)
    starts = offsets(mesh, [name for name in mesh if name not in names])
    groups = (tuple(start + member for member in members) for start in starts)
    return tuple(Group(ranks, node_size) for ranks in groups)


def offsets(mesh: Mapping[str, int], names: Sequence[str]) -> list[int]:
    """Return how far the ranks along some mesh axes are from the first, the first axis fastest.

    >>> offsets({"tp": 2, "dp": 2, "pp": 2}, ("tp", "pp"))
    [0, 1, 4, 5]
    """
    strides = dict(zip(mesh, accumulate((1, *mesh.values()), mul), strict=False))
    steps = [range(0, mesh[name] * strides[name], strides[name]) for name in reversed(names)]
    return [sum(each) for each in product(*steps)]


def _check(mesh: Mapping[str, int], names: Iterable[str], node_size: int) -> None:
    problems = [
        f"mesh axis {name!r} has degree {degree!r}: rank groups need a positive integer"
        for name, degree in mesh.items()
        if not is_count(degree)
    ]
    problems += [unknown("mesh axis", name, mesh) for name in names if name not in mesh]
    if not is_count(node_size):
        problems.append(f"node size {node_size!r}: a positive integer is accepted")
    if not problems and prod(mesh.values()) > MOST_RANKS:
        problems.append(f"{prod(mesh.values())} ranks are too many to list: {MOST_RANKS} at most")
    refuse(problems)
