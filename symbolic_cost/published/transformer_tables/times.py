"""Inputs, and the time columns: a roofline per row, one link per row, nothing overlaps."""

from typing import Literal, NamedTuple, TypeAlias

from sympy import Expr, Integer, oo

from symbolic_cost import symbols
from symbolic_cost.published.inputs import Count, Index, Inputs, Latency, Rate
from symbolic_cost.published.transformer_tables.columns import Counts
from symbolic_cost.symbols import exact
from symbolic_cost.systems.network import Link, TwoLinks
from symbolic_cost.systems.rooflines import MAXIMUM, Device

MILLISECOND = Integer(1000)
"""Milliseconds of a second."""

Cell: TypeAlias = Expr | str | None
"""A value, a name, or a blank."""


class System(NamedTuple):
    """A machine: its device and the network between devices."""

    device: Device
    network: TwoLinks


def symbolic(variant: str) -> System:
    """Return a machine of symbols, of one kind of link, as a variant of the tables sees it."""
    latency = symbols.alpha if variant == "C" else Integer(0)
    link = Link("link", symbols.beta, latency)
    device = Device(symbols.F_m, symbols.F_v, symbols.beta_m)
    return System(device, TwoLinks(link, link, domain=oo))


def table_row(layer: str, counts: Counts, system: System) -> dict[str, Cell]:
    """Return all cells of one row; FLOP and bytes are in the units of the system's rates."""
    ranks = counts.ranks
    link = None if ranks is None else system.network.link(ranks)
    forward = _times("fwd", counts, system, link)
    backward = _times("bwd", counts, system, link)
    return {
        "layer": layer,
        **counts.sums,
        **_moved("bwd", counts),
        "comm_size": ranks,
        **_moved("fwd", counts),
        "intensity": forward["t_comp_fwd"] / forward["t_mem_fwd"],
        "comm_topology": None if link is None else link.name,
        **forward,
        **backward,
    }


def _moved(way: str, counts: Counts) -> dict[str, Cell]:
    move = counts.moved.get(f"comm_{way}")
    return {
        f"comm_{way}": None if move is None else move.charged,
        f"comm_{way}_type": None if move is None else move.kind.replace("-", ""),
    }


def _times(way: str, counts: Counts, system: System, link: Link | None) -> dict[str, Expr]:
    """Return the times of one pass [ms]; intensity is a ratio of them, not FLOP per byte."""
    device = system.device
    compute = MILLISECOND * device.compute_time(counts.units, counts.sums[f"flops_{way}"])
    memory = MILLISECOND * device.memory_time(counts.sums[f"total_mem_{way}"])
    busy = MAXIMUM.time(compute, memory)
    move = counts.moved.get(f"comm_{way}")
    moving = Integer(0)
    if move is not None and link is not None:
        moving = MILLISECOND * link.time(move.charged, counts.ranks)
    return {
        f"t_comp_{way}": compute,
        f"t_mem_{way}": memory,
        f"t_{way}": busy,
        f"t_comm_{way}": moving,
        f"t_total_{way}": busy + moving,
        f"frac_t_comm_{way}": moving / (busy + moving),
    }


class SystemInputs(Inputs):
    """One machine: rates per second in the units that the element size and flops_units set.

    With the published ones these are Tera-operations and GB (10**9 bytes) per second; latencies
    are seconds. vector_flops_fp32 is accepted since it was published; nothing uses it.
    """

    matrix_flops_fp16: Rate
    vector_flops_fp16: Rate
    hbm_bandwidth: Rate
    nvlink_bandwidth: Rate
    ib_bandwidth: Rate
    nvlink_size: Index
    vector_flops_fp32: Rate | None = None
    nvlink_latency: Latency = 0
    ib_latency: Latency = 0

    def system(self, variant: str) -> System:
        """Return the machine as a variant of the tables sees it."""
        meant = variant == "C"
        fast, slow = (self.nvlink_latency, self.ib_latency) if meant else (0, 0)
        alone = meant and self.nvlink_size == 1
        return System(
            Device(
                matrix=exact(self.matrix_flops_fp16),
                vector=exact(self.vector_flops_fp16),
                memory=exact(self.hbm_bandwidth),
            ),
            TwoLinks(
                Link("nvlink", exact(self.nvlink_bandwidth), exact(fast)),
                Link("ib", exact(self.ib_bandwidth), exact(slow)),
                domain=Integer(0 if alone else self.nvlink_size),
            ),
        )


class TableInputs(Inputs):
    """One configuration.

    f is 4 e unless given, s1 (variant B alone) is m1 unless given, m2 has no other value than 1.
    """

    b: Count
    l: Count
    e: Count
    h: Count
    system: SystemInputs
    f: Count | None = None
    m1: Count = 1
    m2: Literal[1] = 1
    s1: Count | None = None
    depth: Count = 1
    element_size: Rate = 2e-9
    mask_element_size: Rate = 1e-9
    flops_units: Rate = 1e-12
    variant: Literal["A", "B", "C"] = "A"

    @property
    def sequence_degree(self) -> int:
        """Degree over which variant B splits the positions of norms and dropouts."""
        return self.m1 if self.s1 is None else self.s1

    def numbers(self) -> dict[str, Expr | int]:
        """Return the number of every symbol of the tables."""
        return {
            **{name: getattr(self, name) for name in ("b", "l", "e", "h", "m1")},
            "f": 4 * self.e if self.f is None else self.f,
            "s1": self.sequence_degree,
            "s": exact(self.element_size),
            "mu": exact(self.mask_element_size),
        }

    @property
    def flop_unit(self) -> Expr:
        """Size of one FLOP in the unit of the tables."""
        return exact(self.flops_units)

    @property
    def layers(self) -> Expr:
        """How often the blocks occur."""
        return Integer(self.depth)
