"""Rates, capacities and tiles that a power budget pays for."""

from __future__ import annotations

from sympy import Add, Expr, Integer, Mul, Piecewise

from symbolic_cost.published.lstm_roofline.definitions import IB, TILES, ZERO, Definitions, F, W
from symbolic_cost.published.lstm_roofline.inputs import PARTS, term
from symbolic_cost.published.lstm_roofline.tiles import largest_square
from symbolic_cost.symbols import dp, s

BITS = Integer(8)
GIB = Integer(2**30)
MIB = Integer(2**20)
TIB = Integer(2**40)
TERA = Integer(10**12)
ALL_KINDS = 3
"""Kinds of parallelism that may have links: data, layers, kernels."""


def hardware(found: Definitions) -> None:
    """Define rates [FLOP/s, byte/s], capacities [byte], tiles [element] and what is printed."""
    core = found.define("peak.core", _power("core") / _tech("core_energy_per_flop_J"))
    memory = found.define("peak.memory", _per_byte("DRAM"))
    found.define("rate.core", term("code_constants", "th_scale") * core)
    found.define("rate.memory", term("code_constants", "mem_scale") * memory)
    capacity = found.define(
        "capacity.memory", _banks(memory, "HBM_stack_capacity_B", "HBM_stack_bw_Bps")
    )
    l2 = found.define("rate.L2", _per_byte("L2"))
    shared = found.define("rate.shared_mem", _per_byte("shared_mem"))
    caches = {"L2": l2, "shared_mem": shared}
    sizes = {
        name: found.define(
            f"capacity.{name}", _banks(rate, f"{name}_bank_capacity_B", f"{name}_bank_bw_Bps")
        )
        for name, rate in caches.items()
    }
    for name, side in zip(sizes, TILES.values(), strict=True):
        found.define(side.name, largest_square(sizes[name], s))
    found.define("ridge", F / W)
    found.define(IB.name, _interconnect() if found.structure.mesh else ZERO)
    found.define_all(
        "hw",
        {
            "throughput": core / TERA,
            "memory_bandwidth": memory / GIB,
            "memory_size": capacity / GIB,
            "l2_bandwidth": l2 / TIB,
            "l2_size": sizes["L2"] / MIB,
            "shared_memory_size": sizes["shared_mem"] / MIB,
            "interconnection_bandwidth": IB / GIB,
        },
    )


def _interconnect() -> Expr:
    """Return the bandwidth of a link where every kind of parallelism has links of its own."""
    lp, width = term("schedule", "lp"), term("schedule", "kp_hidden_dim1")
    dims = [term("schedule", f"kp_{part}_dim{place}") for part in PARTS for place in (1, 2)]
    kernels = Piecewise((1, Add(*dims) > len(dims)), (0, True))
    kinds = _more_than_one(dp) + _more_than_one(lp) + kernels
    links = dp * width * kinds * Piecewise((lp, kinds >= ALL_KINDS), (1, True))
    bandwidth = _power("IB") / (links * BITS * _tech("internode_energy_per_bit_J"))
    return Piecewise((ZERO, kinds <= 0), (bandwidth, True))


def _more_than_one(degree: Expr) -> Expr:
    return Piecewise((1, degree > 1), (0, True))


def _power(part: str) -> Expr:
    return Mul(term("power", part), term("power", "TDP_W"))


def _per_byte(part: str) -> Expr:
    return _power(part) / (BITS * _tech(f"{part}_energy_per_bit_J"))


def _banks(rate: Expr, capacity: str, bandwidth: str) -> Expr:
    return rate / _tech(bandwidth) * _tech(capacity)


def _tech(name: str) -> Expr:
    return term("tech", name)
