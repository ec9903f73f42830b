"""Networks: links, tiers of domains that they join, and where a group of ranks lies on them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cache, lru_cache
from types import MappingProxyType

from sympy import Expr, Integer, log, oo

from symbolic_cost.algebra import mul, replaced
from symbolic_cost.errors import InputError
from symbolic_cost.extrema import Max, Min
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import p


@dataclass(frozen=True, slots=True)
class Link:
    """One kind of link.

    Args:
        bandwidth: of one rank [byte/s].
        latency: of one step [s].
        dimensions: of the torus that it makes; one for a ring.
    """

    name: str
    bandwidth: Expr
    latency: Expr = Integer(0)
    dimensions: Expr = Integer(1)

    def around(self, ranks: Expr) -> Expr:
        """Return the ranks of one ring of as many steps as there are along all dimensions.

        For example 4096 chips of a torus of 16 x 16 x 16: 45 steps in place of 4095.
        """
        if self.dimensions == 1:
            return ranks
        return 1 + self.dimensions * (replaced(_side(self.dimensions), {p: ranks}) - 1)

    def time(self, charged: Expr, ranks: Expr) -> Expr:
        """Return the time of a collective whose steps double the ranks reached [s].

        Args:
            charged: bytes charged to one rank [byte].
            ranks: that take part.
        """
        return charged / self.bandwidth + log(ranks, 2) * self.latency


@cache
def _side(dimensions: Expr) -> Expr:
    """Return the side of a torus of p ranks."""
    side: Expr = p ** (1 / dimensions)
    return side


@dataclass(frozen=True, slots=True)
class TwoLinks:
    """Two links, of which a whole group uses one.

    Args:
        fast: used by groups that fit into one domain.
        domain: ranks that the fast link joins; 0 where there is none, infinite where all are.
    """

    fast: Link
    slow: Link
    domain: Expr

    def link(self, ranks: Expr) -> Link:
        """Return the link that a group of ranks uses."""
        return self.fast if ranks <= self.domain else self.slow


@dataclass(frozen=True, slots=True)
class Hop:
    """The part of a group that lies on one tier.

    Args:
        ranks: members; one where the group does not use the link.
    """

    link: Link
    ranks: Expr


Hops = tuple[Hop, ...]
"""A group on the tiers, innermost first; the ranks multiply to those of the group."""


@dataclass(frozen=True, slots=True)
class Tier:
    """Domains that one kind of link makes.

    Args:
        link: that joins the domains of the next inner tier, or single ranks.
        ranks: of one domain, neighbours in rank; infinite for the outermost.
    """

    link: Link
    ranks: Expr


@dataclass(frozen=True)
class Network:
    """Domains inside domains.

    Raises:
        InputError: there is no tier, or the outermost does not join everything.
    """

    tiers: tuple[Tier, ...]

    def __post_init__(self) -> None:
        if not self.tiers or self.tiers[-1].ranks != oo:
            raise InputError("a network ends with a tier that joins all ranks")

    def hops(
        self,
        mesh: Mapping[str, Expr],
        axes: tuple[str, ...],
        strides: Mapping[str, Expr] = MappingProxyType({}),
    ) -> Hops:
        """Return where a group lies, neighbours on the first mesh axis having neighbouring ranks.

        Where the degrees do not divide the domains, members are counted in the mean.

        Args:
            mesh: ranks by mesh axis, innermost first.
            axes: mesh axes of the group, innermost first.
            strides: ranks between neighbours on a mesh axis, where their order is open.
        """
        if not strides:
            return _hops(self.tiers, tuple(mesh.items()), axes)
        return _on_tiers(self.tiers, [(mesh[name], strides[name]) for name in axes])


@lru_cache(1 << 12)  # the ops of a model ask it of the same groups again and again
def _hops(
    tiers: tuple[Tier, ...], mesh: tuple[tuple[str, Expr], ...], axes: tuple[str, ...]
) -> Hops:
    strides, step = {}, Integer(1)
    for name, degree in mesh:
        strides[name] = step
        step = step * degree
    degrees = dict(mesh)
    return _on_tiers(tiers, [(degrees[name], strides[name]) for name in axes])


def _on_tiers(tiers: Iterable[Tier], group: Sequence[tuple[Expr, Expr]]) -> Hops:
    """Return where a group of mesh axes with these degrees and strides lies."""
    counts = [_members(group, tier.ranks) for tier in tiers]
    inner = [Integer(1), *counts[:-1]]
    return tuple(
        Hop(tier.link, count / before)
        for tier, count, before in zip(tiers, counts, inner, strict=True)
    )


@dataclass(frozen=True)
class Assigned(Network):
    """Two tiers on which the ranks of every group are placed by hand.

    Args:
        inside: ranks of a group that share an inner domain, by mesh axis.
    """

    inside: Mapping[str, Expr] = field(default_factory=dict, hash=False)

    def hops(
        self,
        mesh: Mapping[str, Expr],
        axes: tuple[str, ...],
        strides: Mapping[str, Expr] = MappingProxyType({}),  # noqa: ARG002 - placed by hand
    ) -> Hops:
        """Return where a group along one mesh axis lies."""
        (name,), (inner, outer) = axes, self.tiers
        shared = self.inside[name]
        return Hop(inner.link, shared), Hop(outer.link, mesh[name] / shared)


def _members(group: Iterable[tuple[Expr, Expr]], domain: Expr) -> Expr:
    """Return how many members of a group share a domain."""
    return mul(
        *(
            degree if domain == oo else Min(degree, Max(1, domain / stride))
            for degree, stride in group
        )
    )
