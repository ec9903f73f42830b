"""Inputs of the model: sizes, strategy, and the machine."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field
from sympy import Expr, Integer, Rational, oo

from symbolic_cost.errors import unknown
from symbolic_cost.published.inputs import Count, Inputs, Latency, Rate, indivisible
from symbolic_cost.published.nersc_2024.books import ALL_SLIPS
from symbolic_cost.published.nersc_2024.declaration import MESHES, Scheme
from symbolic_cost.symbols import exact, symbol
from symbolic_cost.systems.network import Assigned, Hop, Hops, Link, Tier
from symbolic_cost.systems.rooflines import Device

REACHED = Rational(4, 5)
"""Share of the peak rates that is reached."""

LAUNCH = Rational(20, 10**6)
"""Time that every row pays in each pass [s]."""

Share = Annotated[float, Field(gt=0, le=1)]
"""A share of a rate."""


def _lower(text: object) -> object:
    return text.lower() if isinstance(text, str) else text


Name = Annotated[Literal["1d", "2d", "2d-seqp"], BeforeValidator(_lower)]
"""A strategy; as printed with capitals, or without."""

_DEGREES = {"1d": 1, "2d": 2, "2d-seqp": 2}


class SystemInputs(Inputs):
    """One machine, in the units that element_size and flops_units set (GB and Tera-operations).

    Latencies are seconds. vector_flops_fp32 is accepted since it was published; nothing uses it,
    and empirical may only be false.
    """

    matrix_flops_fp16: Rate
    vector_flops_fp16: Rate
    hbm_bandwidth: Rate
    hbm_capacity: Rate
    nvlink_bandwidth: Rate
    nvlink_latency: Latency
    nvlink_size: Count
    ib_bandwidth: Rate
    ib_latency: Latency
    nvlink_eff: Share = 1
    ib_eff: Share = 1
    nic_factor: Rate = 1
    summa_nb: Count = 4
    element_size: Rate = 2e-9
    mask_element_size: Rate = 1e-9
    flops_units: Rate = 1e-12
    vector_flops_fp32: Rate | None = None
    empirical: Literal[False] = False

    @property
    def device(self) -> Device:
        """Rates that are reached; FLOP in units of flops_units."""
        reached = REACHED / exact(self.flops_units)
        return Device(
            matrix=reached * exact(self.matrix_flops_fp16),
            vector=reached * exact(self.vector_flops_fp16),
            memory=exact(self.hbm_bandwidth),
            launch=LAUNCH,
        )

    @property
    def tiers(self) -> tuple[Tier, Tier]:
        """Fast domains, and the network between them."""
        fast = exact(self.nvlink_bandwidth) * exact(self.nvlink_eff)
        slow = exact(self.ib_bandwidth) * exact(self.ib_eff)
        return (
            Tier(Link("nvlink", fast, exact(self.nvlink_latency)), Integer(self.nvlink_size)),
            Tier(Link("ib", slow, exact(self.ib_latency)), oo),
        )

    def hops(self, ranks: int, inside: int) -> Hops:
        """Return where a group lies, `inside` of its ranks in each domain."""
        fast, slow = (tier.link for tier in self.tiers)
        return Hop(fast, Integer(inside)), Hop(slow, Integer(ranks) / inside)


class StepInputs(Inputs):
    """One configuration.

    f is 4 e unless given. tp is [m1], or [m1, m2] of the strategies with two degrees.
    nv_assignment says how many ranks of each group share a fast domain, in the order tp, dp, pp;
    one each unless given. corrected may be true, or a list of the slips that are repaired.
    """

    strategy: Name
    l: Count
    e: Count
    h: Count
    depth: Count
    global_batch_size: Count
    system: SystemInputs
    micro_batch_size: Count = 1
    f: Count | None = None
    tp: list[Count] = Field(default_factory=lambda: [1])
    dp: Count = 1
    pp: Count = 1
    nv_assignment: list[Count] | None = None
    flash_attention: bool = True
    recompute_attention: bool = False
    corrected: bool | list[str] = False

    @property
    def repaired(self) -> frozenset[str]:
        """Names of the slips that are left out."""
        if isinstance(self.corrected, bool):
            return frozenset(ALL_SLIPS if self.corrected else ())
        return frozenset(self.corrected)

    @property
    def scheme(self) -> Scheme:
        """How a block runs."""
        return Scheme(self.strategy, self.flash_attention, self.recompute_attention)

    @property
    def width(self) -> int:
        """Width of the MLP."""
        return 4 * self.e if self.f is None else self.f

    @property
    def degrees(self) -> dict[str, int]:
        """Ranks of each group."""
        tensor = dict(zip(("m1", "m2"), (*self.tp, 1), strict=False))
        return {**tensor, "dp": self.dp, "pp": self.pp}

    @property
    def inside(self) -> dict[str, int]:
        """Ranks of each group that share a fast domain."""
        names = [*("m1", "m2")[: len(self.tp)], "dp", "pp"]
        ranks = [1] * len(names) if self.nv_assignment is None else self.nv_assignment
        return {"m2": 1, **dict(zip(names, ranks, strict=True))}

    @property
    def copies(self) -> int:
        """Ranks that hold the same weights: context parallelism splits none."""
        return self._copies(self.degrees)

    def _copies(self, counts: dict[str, int]) -> int:
        return counts["dp"] * (counts["m2"] if self.strategy == "2d-seqp" else 1)

    @property
    def mesh(self) -> dict[str, Expr]:
        """Ranks of each mesh axis; those of "dp" hold the same weights."""
        ranks = {name: Integer(self.degrees[degree]) for name, degree in MESHES.items()}
        return ranks | {"dp": Integer(self.copies)}

    @property
    def network(self) -> Assigned:
        """The machine's tiers, and how many ranks of each group share a fast domain."""
        inside = {name: self.inside[degree] for name, degree in MESHES.items()}
        shared = inside | {"dp": self._copies(self.inside)}
        return Assigned(self.system.tiers, {name: Integer(n) for name, n in shared.items()})

    @property
    def microbatches(self) -> int:
        """Microbatches of one pipeline and step."""
        return self.global_batch_size // self.dp // self.micro_batch_size

    def numbers(self) -> dict[Expr, Expr]:
        """Return the number of every symbol of the layers."""
        degrees = {symbol(name): Integer(self.degrees[name]) for name in ("m1", "m2")}
        own = self.bound("b=micro_batch_size l e f=width h")
        machine = "panels=summa_nb s=element_size mu=mask_element_size"
        rates = "F_m=matrix_flops_fp16 F_v=vector_flops_fp16"
        return own | degrees | self.system.bound(f"{machine} {rates}")

    def contradictions(self) -> list[str]:
        """Say which degrees do not divide what they split, and which do not fit the domain."""
        expected = _DEGREES[self.strategy]
        if len(self.tp) != expected:
            return [f"tp = {self.tp}: strategy {self.strategy} takes {expected} degrees"]
        groups = expected + 2
        if self.nv_assignment is not None and len(self.nv_assignment) != groups:
            return [f"nv_assignment = {self.nv_assignment}: {groups} numbers are accepted"]
        strange = sorted(self.repaired - ALL_SLIPS.keys())
        problems = [unknown("slip", name, ALL_SLIPS) for name in strange]
        return [*self._uneven(), *self._unfit(), *self._unknown_attention(), *problems]

    def _uneven(self) -> list[str]:
        m1, m2 = self.degrees["m1"], self.degrees["m2"]
        positions = m2 if self.strategy == "2d" else m1 * m2
        tokens = self.micro_batch_size * self.l
        local = self.global_batch_size // self.dp
        checks = [
            *([] if self.scheme.in_squares else [("h", self.h, "m1", m1)]),
            ("e", self.e, "m1", m1),
            ("e", self.e, "h", self.h),
            ("f", self.width, "m1", m1),
            ("micro_batch_size l", tokens, "the ranks that split it", positions),
            ("l", self.l, "m2", m2),
            ("depth", self.depth, "pp", self.pp),
            ("global_batch_size", self.global_batch_size, "dp", self.dp),
            ("global_batch_size / dp", local, "micro_batch_size", self.micro_batch_size),
        ]
        if self.scheme.in_squares:
            checks += [("e / h", self.e // self.h, "m1", m1), ("l", self.l, "m1", m1)]
        if self.strategy == "2d":
            checks += [("e", self.e, "m2", m2), ("f", self.width, "m2", m2)]
        return [problem for check in checks for problem in indivisible(*check)]

    def _unknown_attention(self) -> list[str]:
        if self.recompute_attention and (self.strategy != "1d" or self.flash_attention):
            return ["recompute_attention: accepted with strategy 1d and flash_attention = False"]
        return []

    def _unfit(self) -> list[str]:
        inside, size = self.inside, self.system.nvlink_size
        problems = [
            problem
            for name, ranks in self.degrees.items()
            for problem in indivisible(name, ranks, f"nv_assignment of {name}", inside[name])
        ]
        problems += [
            f"nv_assignment of {name} = {count} is more than nvlink_size = {size}"
            for name, count in inside.items()
            if count > size
        ]
        return problems
