"""Time columns: a roofline per row, one link per row, nothing overlaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from sympy import Expr, Integer, oo

from symbolic_cost import symbols
from symbolic_cost.published.transformer_tables.columns import Counts
from symbolic_cost.systems.network import Link, TwoLinks
from symbolic_cost.systems.rooflines import MAXIMUM, Device

MILLISECOND = Integer(1000)
"""Milliseconds of a second."""

Cell: TypeAlias = Expr | str | None
"""A value, a name, or a blank."""


@dataclass(frozen=True, slots=True)
class System:
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
