"""Machines: rates, memories and links of one device and of the network between devices.

Every number carries its source and what it includes; records are TOML files, see `records`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, fields, replace
from typing import Any, TypeVar

from sympy import Expr, Integer, oo

from symbolic_cost import symbols
from symbolic_cost.display import NotebookTable
from symbolic_cost.errors import InputError, looked_up
from symbolic_cost.records import dataclass
from symbolic_cost.systems.network import Link, Network, Tier
from symbolic_cost.systems.rooflines import Curve, Device, Efficiency, Table


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a machine.

    Args:
        source: key of one of the machine's sources, or of a reference.
        includes: what it stands for ("dense", "one direction", "an assumption").
    """

    value: Expr
    source: str = "definition"
    includes: str = ""


ONE = Figure(Integer(1), includes="nominal")
NOTHING = Figure(Integer(0), includes="neglected")


@dataclass(frozen=True, slots=True)
class Cache:
    """One level of memory inside the device.

    Args:
        capacity: of the device [byte].
        bandwidth: of the device [byte/s]; None where it is not published.
    """

    name: str
    capacity: Figure
    bandwidth: Figure | None = None


@dataclass(frozen=True, slots=True)
class MachineLink:
    """One kind of link.

    Args:
        bandwidth: of one rank, one direction [byte/s].
        latency: of one step [s].
        ranks: that it joins to one domain; None where it joins all.
        efficiency: share of the bandwidth that large messages reach.
        dimensions: of a torus, along which rings run one after the other; one for a ring of all.
    """

    name: str
    bandwidth: Figure
    latency: Figure
    ranks: Figure | None = None
    efficiency: Figure = ONE
    dimensions: Figure = ONE

    @property
    def reached(self) -> Link:
        """The link at the bandwidth that is reached."""
        rate = self.bandwidth.value * self.efficiency.value
        return Link(self.name, rate, self.latency.value, self.dimensions.value)


RecordT = TypeVar("RecordT", MachineLink, "Efficiencies")

CLUSTER = ("computing", "moving", "issuing")
"""Efficiencies that are fitted to a cluster's own steps, under a software stack."""


@dataclass(frozen=True, slots=True)
class Efficiencies:
    """What is reached of the rates.

    Args:
        matrix: share of the matrix peak that large products reach.
        half: size of a product that reaches half of that [FLOP].
        vector: share of the vector peak.
        memory: share of the memory's bandwidth.
        launch: of one kernel [s].
        host: in which the host issues one op, while the device works on earlier ones [s].
        clock: share of the nominal clock that the box's limit of power leaves; kernels under a
            stack run at it.
        computing: times as long as predicted that kernels take on this cluster.
        moving: the same of collectives.
        issuing: the same of the host's time per op.
        products: instead of matrix and half, pairs of size [FLOP] and share of the matrix peak.
    """

    matrix: Figure = ONE
    half: Figure = NOTHING
    vector: Figure = ONE
    memory: Figure = ONE
    launch: Figure = NOTHING
    host: Figure = NOTHING
    clock: Figure = ONE
    computing: Figure = ONE
    moving: Figure = ONE
    issuing: Figure = ONE
    products: tuple[tuple[Figure, Figure], ...] = ()

    @property
    def of_products(self) -> Efficiency:
        """Share of the matrix peak by size."""
        if self.products:
            return Table(tuple((flop.value, share.value) for flop, share in self.products))
        return Curve(self.matrix.value, self.half.value)

    @property
    def fitted(self) -> str:
        """How much longer kernels, collectives and the host take than predicted, in words."""
        own = {name: getattr(self, name) for name in CLUSTER}
        moved = {name: figure for name, figure in own.items() if figure.value != 1}
        longer = ", ".join(f"{name} {float(one.value):.3g}" for name, one in moved.items())
        told = "; ".join(dict.fromkeys(figure.includes for figure in moved.values()))
        return f"; {longer} ({told})" if moved else ""


@dataclass(frozen=True)
class Machine(NotebookTable):
    """One machine.

    Args:
        sources: title and place by key.
        matrix: dense peak rate of the matrix units by precision [FLOP/s].
        vector: peak rate of the vector units by precision [FLOP/s].
        bandwidth: of the memory [byte/s].
        capacity: of the memory [byte].
        usable: what a program gets of it [byte].
        links: innermost first; the last joins all.
        latency: of the memory [s].
        efficiencies: what is reached of the rates.
        host: link to the memory of the host; None where the machine's record has none.
        kernels: rates of its kernels by kind, as in kernels.toml; empty for those on record.
        cluster: what measured steps leave open, as `spread.of_cluster` reads it; empty where none
            were fitted.
        record: machine whose shares of rates its kernels reach, where it is that at other rates.
        file: that it was read from; empty for one that has its name alone.
    """

    name: str
    meaning: str
    sources: Mapping[str, str]
    matrix: Mapping[str, Figure]
    vector: Mapping[str, Figure]
    bandwidth: Figure
    capacity: Figure
    usable: Figure
    links: tuple[MachineLink, ...]
    latency: Figure = NOTHING
    caches: tuple[Cache, ...] = ()
    efficiencies: Efficiencies = field(default_factory=Efficiencies)
    host: MachineLink | None = None
    kernels: Mapping[str, Any] = field(default_factory=dict)
    cluster: Mapping[str, Any] = field(default_factory=dict)
    record: Machine | None = None
    file: str = field(default="", compare=False, repr=False)

    @property
    def room(self) -> Expr | None:
        """What a program may hold [byte]; None where that has no bound, or no number."""
        usable = self.usable.value
        return None if usable.is_infinite or usable.free_symbols else usable

    def peak(self, precision: str) -> Expr:
        """Return the peak rate of the matrix units [FLOP/s].

        Raises:
            UnknownNameError: the machine has no such precision.
        """
        return looked_up(f"precision of {self.name}", precision, self.matrix).value

    def device(self, precision: str = "bf16") -> Device:
        """Return the rates that are reached in a precision.

        Vector units without a rate of their own for it work in single precision.

        Raises:
            UnknownNameError: the machine has no such precision.
        """
        reached = self.efficiencies
        vector = self.vector.get(precision, self.vector["fp32"]).value
        return Device(
            matrix=self.peak(precision),
            vector=vector * reached.vector.value,
            memory=self.bandwidth.value * reached.memory.value,
            efficiency=reached.of_products,
            latency=self.latency.value,
            launch=reached.launch.value,
            host=reached.host.value,
        )

    def network(self) -> Network:
        """Return the tiers of the network, at the bandwidths that are reached."""
        return Network(
            tuple(
                Tier(link.reached, oo if link.ranks is None else link.ranks.value)
                for link in self.links
            )
        )

    def host_link(self) -> Link:
        """Return the link to the host, at the bandwidth that is reached.

        Raises:
            InputError: the record has none.
        """
        if self.host is None:
            raise InputError(
                f"machine {self.name} has no link to the host on record, over which offloaded "
                "bytes would move: a TOML file with [host] is accepted"
            )
        return self.host.reached

    def mapped(self, change: Callable[[str, Figure], Figure]) -> Machine:
        """Return the machine with other rates, latencies and shares; tables by size stay.

        Args:
            change: of the dotted place of a figure in the record, and the figure.
        """

        def rates(units: str, own: Mapping[str, Figure]) -> dict[str, Figure]:
            return {name: change(f"{units}.{name}", figure) for name, figure in own.items()}

        def record(place: str, own: RecordT) -> RecordT:
            figures = figures_of(own).items()
            held: dict[str, Any] = {n: change(f"{place}.{n}", figure) for n, figure in figures}
            return replace(own, **held)

        return replace(
            self,
            matrix=rates("matrix", self.matrix),
            vector=rates("vector", self.vector),
            bandwidth=change("memory.bandwidth", self.bandwidth),
            usable=change("memory.usable", self.usable),
            latency=change("memory.latency", self.latency),
            links=tuple(record(f"links.{link.name}", link) for link in self.links),
            efficiencies=record("efficiencies", self.efficiencies),
            host=None if self.host is None else record("host", self.host),
        )

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Yield every number by its dotted place in the record."""
        for units in ("matrix", "vector"):
            for precision, figure in getattr(self, units).items():
                yield f"{units}.{precision}", figure
        for name in ("bandwidth", "capacity", "usable", "latency"):
            yield f"memory.{name}", getattr(self, name)
        for cache in self.caches:
            yield from _placed(f"caches.{cache.name}", cache)
        for link in self.links:
            yield from _placed(f"links.{link.name}", link)
        if self.host is not None:
            yield from _placed("host", self.host)
        yield from _placed("efficiencies", self.efficiencies)
        for place, pair in enumerate(self.efficiencies.products):
            for name, figure in zip(("flop", "share"), pair, strict=True):
                yield f"efficiencies.products.{place}.{name}", figure


def figures_of(record: Cache | MachineLink | Efficiencies) -> dict[str, Figure]:
    """Return the numbers of a part of a machine by field."""
    members = {entry.name: getattr(record, entry.name) for entry in fields(record)}
    return {name: figure for name, figure in members.items() if isinstance(figure, Figure)}


def _placed(place: str, record: Cache | MachineLink | Efficiencies) -> Iterator[tuple[str, Figure]]:
    yield from ((f"{place}.{name}", figure) for name, figure in figures_of(record).items())


def _symbol(symbol: Expr) -> Figure:
    return Figure(symbol, includes="a symbol")


PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4")
"""Precisions by the names that records use."""

SYMBOLIC = Machine(
    name="symbolic",
    meaning="every rate a symbol, two tiers of links",
    sources={},
    matrix=dict.fromkeys(PRECISIONS, _symbol(symbols.F_m)),
    vector={"fp32": _symbol(symbols.F_v)},
    bandwidth=_symbol(symbols.beta_m),
    capacity=Figure(oo, includes="not bounded"),
    usable=Figure(oo, includes="not bounded"),
    links=(
        MachineLink(
            "domain", _symbol(symbols.beta_d), _symbol(symbols.alpha_d), _symbol(symbols.n_d)
        ),
        MachineLink("between", _symbol(symbols.beta), _symbol(symbols.alpha)),
    ),
    latency=_symbol(symbols.alpha_m),
    efficiencies=Efficiencies(launch=_symbol(symbols.t_k)),
    host=MachineLink("host", _symbol(symbols.beta_h), NOTHING),
)
"""A machine of symbols."""
